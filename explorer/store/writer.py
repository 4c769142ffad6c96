"""Writes a profile directory whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from explorer.store import schema
from explorer.store.errors import UsageError


def conform(name: str, table: pa.Table) -> pa.Table:
    """The table with the published columns first, in published order and type, then the `ts_` ones.

    A required column that is missing is added as nulls. Raises ValueError on a column that is neither published nor `ts_`.
    """
    spec = schema.tables()[name]
    columns: dict[str, pa.ChunkedArray | pa.Array] = {}
    for column in spec.columns:
        if column.name in table.column_names:
            columns[column.name] = table[column.name].cast(column.arrow)
        elif column.required:
            columns[column.name] = pa.nulls(table.num_rows, column.arrow)
    for extra in table.column_names:
        if extra not in columns:
            if not extra.startswith(schema.COLUMN_PREFIX):
                raise ValueError(f"{name}.{extra}: not a column of schema {schema.VERSION} and without the ts_ prefix")
            columns[extra] = table[extra]
    return pa.table(columns)


def write(path: Path | str, tables: Mapping[str, pa.Table], *, force: bool = False) -> None:
    """Write a profile to `path`. Tables without rows are left out.

    Raises UsageError if `path` exists and `force` is not set.
    """
    path = Path(path)
    if path.exists() and not force:
        raise UsageError(f"{path}: exists already; give another -o or --force to replace it")
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for name, table in tables.items():
        if table.num_rows:
            pq.write_table(conform(name, table), beside / f"{name}.parquet", compression="zstd")
    if path.exists():
        shutil.rmtree(path)
    beside.rename(path)
