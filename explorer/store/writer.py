"""Writes a profile directory whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from explorer.store import schema
from explorer.store.errors import ProfileError, UsageError

#: Rows of a Parquet row group: what a reader that goes chunk by chunk holds at a time.
ROW_GROUP = 65_536
#: Where caches, annotations and layout of a profile live; never read as tables.
PRIVATE = ".trnscope"
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def conform(name: str, table: pa.Table) -> pa.Table:
    """The table with the published columns first, in published order and type, then the `ts_` ones.

    A required column that is missing is added as nulls; rows are put into time order. Tables of our own (`Ts...`) keep their
    columns. Raises ValueError on a table or column that is neither published nor marked as ours, and on a value outside a
    published enum.
    """
    spec = schema.tables().get(name)
    if spec is None:
        if name.startswith(schema.TABLE_PREFIX):
            return table
        raise ValueError(f"{name}: not a table of schema {schema.VERSION} and without the {schema.TABLE_PREFIX} prefix")
    columns: dict[str, pa.ChunkedArray | pa.Array] = {}
    for column in spec.columns:
        if column.name in table.column_names:
            columns[column.name] = table[column.name].cast(column.arrow)
            _check_enum(name, column, columns[column.name])
        elif column.required:
            columns[column.name] = pa.nulls(table.num_rows, column.arrow)
    for extra in table.column_names:
        if extra not in columns:
            if not extra.startswith(schema.COLUMN_PREFIX):
                raise ValueError(f"{name}.{extra}: not a column of schema {schema.VERSION} and without the ts_ prefix")
            columns[extra] = table[extra]
    return _in_time_order(pa.table(columns))


def write(
    path: Path | str,
    tables: Mapping[str, pa.Table],
    *,
    force: bool = False,
    descriptions: Mapping[str, str] | None = None,
) -> None:
    """Write a profile to `path`, with `SchemaFields` added. Tables without rows are left out.

    `descriptions` says what our own columns hold, by "Table.column". The profile appears under its name complete and on disk, or
    not at all; an older one of that name is untouched until then. Raises UsageError if `path` exists and `force` is not set, or is
    not a profile; ProfileError if it cannot be written.
    """
    path = Path(path)
    check_destination(path, force)
    whole = {name: conform(name, table) for name, table in tables.items() if table.num_rows}
    if "Metadata" not in whole:
        raise ValueError("a profile has a Metadata row")
    whole["SchemaFields"] = conform("SchemaFields", _schema_fields(whole, descriptions or {}))
    try:
        with scratch_beside(path) as beside:
            for name in sorted(whole):
                file = beside / f"{name}.parquet"
                pq.write_table(whole[name], file, compression="zstd", row_group_size=ROW_GROUP)
                _sync(file)
            _sync(beside)
            if path.exists() and (path / PRIVATE).exists():
                shutil.copytree(path / PRIVATE, beside / PRIVATE, symlinks=True)
            appear(beside, path)
    except OSError as error:
        raise ProfileError(f"{path}: cannot write the profile: {error.strerror or error}; nothing was written") from error


def check_destination(path: Path, force: bool) -> None:
    """Raise UsageError if `write` would: before long work, not after it."""
    if path.name in ("", ".."):
        raise UsageError(f"{path}: names no profile directory; give -o a name of its own")
    if not (path.exists() or path.is_symlink()):
        return
    if not path.is_dir() or path.is_symlink():
        raise UsageError(f"{path}: exists and is not a profile directory; give another -o")
    if not force:
        raise UsageError(f"{path}: exists already; give another -o, or --force to replace it")
    strangers = [p.name for p in path.iterdir() if p.suffix != ".parquet" and p.name != PRIVATE]
    if strangers:
        raise UsageError(f"{path}: holds {strangers[0]!r}, which is no table of a profile: not replaced; give another -o")


@contextlib.contextmanager
def scratch_beside(path: Path) -> Iterator[Path]:
    """A scratch directory next to `path`, gone afterwards whatever happens; those of writers that were killed go too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        owner = re.fullmatch(r".*\.(\d+)\.partial", left.name)
        if owner and not Path(f"/proc/{owner[1]}").exists():
            shutil.rmtree(left, ignore_errors=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def appear(beside: Path, path: Path) -> None:
    """Give `beside` the name `path` in one step; what had that name before takes the scratch name."""
    if path.exists():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.renameat2(_AT_FDCWD, os.fsencode(beside), _AT_FDCWD, os.fsencode(path), _RENAME_EXCHANGE) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    else:
        beside.rename(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _in_time_order(table: pa.Table) -> pa.Table:
    time = next((c for c in ("start_ts", "timestamp") if c in table.column_names), None)
    if time is None or table.num_rows < 2:
        return table
    values = table[time].combine_chunks()
    if values.null_count == 0 and pc.all(pc.less_equal(values[:-1], values[1:])).as_py():
        return table
    order = pc.sort_indices(pa.table({"t": values, "row": range(len(values))}), [("t", "ascending"), ("row", "ascending")])
    return table.take(order)


def _check_enum(name: str, column: schema.ColumnSpec, values: pa.ChunkedArray) -> None:
    if column.enum:
        outside = set(pc.unique(values).to_pylist()) - {None, *schema.enums()[column.enum]}
        if outside:
            raise ValueError(f"{name}.{column.name}: {sorted(outside)} not in {column.enum}")


def _schema_fields(tables: Mapping[str, pa.Table], descriptions: Mapping[str, str]) -> pa.Table:
    rows = []
    for name, table in sorted(tables.items()):
        spec = schema.tables().get(name)
        for field in table.schema:
            column = spec.column(field.name) if spec else None
            rows.append(
                {
                    "table_name": name,
                    "table_description": spec.description if spec else descriptions.get(name),
                    "field_name": field.name,
                    "field_description": column.description if column else descriptions.get(f"{name}.{field.name}"),
                    "field_type": column.type if column else str(field.type),
                    "field_required": bool(column and column.required),
                    "field_unit": column.unit if column else None,
                    "field_enum_values": ",".join(schema.enums()[column.enum]) if column and column.enum else None,
                }
            )
    return pa.Table.from_pylist(rows, schema=pa.schema([(c.name, c.arrow) for c in schema.tables()["SchemaFields"].columns]))
