"""Tables as CSV files: nulls are empty, texts quoted, times in nanoseconds as in the profile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from explorer.export.files import whole_file
from explorer.export.window import Window
from explorer.store.arrays import integers, valid
from explorer.store.errors import ProfileError, UsageError
from explorer.store.reader import Profile
from explorer.store.writer import appear, scratch_beside

#: What a spreadsheet takes for the start of a formula.
_FORMULA = r"^[=+\-@\t\r\n]"


@dataclass(frozen=True, slots=True)
class CsvResult:
    """What was written: rows by table."""

    rows: Mapping[str, int]


def export_table(profile: Profile, name: str, path: Path, *, at: Window | None = None, force: bool = False) -> CsvResult:
    """Write one table to a CSV file; returns its number of rows.

    A text that a spreadsheet would take for a formula gets an apostrophe in front. `at` keeps the rows that touch that window.
    Raises UsageError if the profile has no such table, or as `whole_file` does.
    """
    if name not in profile.tables:
        raise UsageError(f"{profile.path}: has no table {name!r}; it has {', '.join(profile.tables)}")
    with whole_file(path, force=force) as file:
        return CsvResult({name: _write(profile, name, file, at)})


def export_all(profile: Profile, folder: Path, *, at: Window | None = None, force: bool = False) -> CsvResult:
    """Write every table to `folder` as TABLE.csv; the folder appears whole or not at all. Otherwise as `export_table`."""
    if folder.name in ("", ".."):
        raise UsageError(f"{folder}: names no folder; give -o a name of its own")
    if (folder.exists() or folder.is_symlink()) and not force:
        raise UsageError(f"{folder}: exists already; give another -o, or --force to replace it")
    if folder.is_symlink() or folder.is_file() or (folder.exists() and any(f.suffix != ".csv" for f in folder.iterdir())):
        raise UsageError(f"{folder}: holds more than an earlier export: not replaced; give another -o")
    rows = {}
    try:
        with scratch_beside(folder) as beside:
            for name in profile.tables:
                with whole_file(beside / f"{name}.csv", force=True) as file:
                    rows[name] = _write(profile, name, file, at)
            appear(beside, folder)
    except OSError as error:
        raise ProfileError(f"{folder}: cannot be written: {error.strerror or error}; nothing was written") from error
    return CsvResult(rows)


def _write(profile: Profile, name: str, file: IO[bytes], window: Window | None) -> int:
    header = [_plain_text(c) for c in profile.columns(name)]
    file.write((",".join('"' + c.replace('"', '""') + '"' for c in header) + "\n").encode())
    written = 0
    for rows in _inside(profile.chunks(name), window):
        shown = pa.Table.from_arrays([_cells(rows[c]) for c in rows.column_names], names=[str(i) for i in range(rows.num_columns)])
        csv.write_csv(shown, file, csv.WriteOptions(include_header=False))
        written += rows.num_rows
    return written


def _inside(chunks: Iterator[pa.Table], window: Window | None) -> Iterator[pa.Table]:
    for rows in chunks:
        start = next((c for c in ("start_ts", "timestamp") if c in rows.column_names), None)
        if window is None or start is None:
            yield rows
            continue
        end = "end_ts" if "end_ts" in rows.column_names else start
        keep = window.touches(integers(rows[start], 0), integers(rows[end], 0)) & valid(rows[start])
        yield rows.take(pa.array(np.flatnonzero(keep)))


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        column = pa.chunked_array([[None if v is None else json.dumps(v, default=repr) for v in column.to_pylist()]], pa.string())
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column
    column = column.cast(pa.string())
    formula = pc.match_substring_regex(column, _FORMULA)
    return pc.if_else(formula, pc.binary_join_element_wise("'", column, ""), column)


def _plain_text(text: str) -> str:
    return f"'{text}" if text[:1] in tuple("=+-@\t\r\n") else text
