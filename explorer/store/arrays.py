"""Columns as numpy arrays without pandas: pyarrow's own conversions import it (a third of a second) whether it is needed or not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Int = NDArray[np.int64]


def integers(column: pa.ChunkedArray | pa.Array, missing: int) -> Int:
    """An integer column of any width as int64, `missing` where it is null."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_integers(chunk.cast(pa.int64()), missing) for chunk in chunks]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def valid(column: pa.ChunkedArray | pa.Array) -> NDArray[np.bool_]:
    """Mask of the rows that are not null."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return np.concatenate([_valid(chunk) for chunk in chunks]) if chunks else np.zeros(0, bool)


def _integers(array: pa.Array, missing: int) -> Int:
    data = array.buffers()[1]
    if data is None:
        return np.full(len(array), missing, np.int64)
    values: Int = np.frombuffer(data, np.int64)[array.offset : array.offset + len(array)]
    return values if array.null_count == 0 else np.where(_valid(array), values, missing)


def _valid(array: pa.Array) -> NDArray[np.bool_]:
    if array.null_count == len(array):
        return np.zeros(len(array), bool)
    bits = array.buffers()[0]
    if array.null_count == 0 or bits is None:
        return np.ones(len(array), bool)
    flags: NDArray[np.bool_] = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(bool)
    return flags[array.offset : array.offset + len(array)]


def rows_equal(column: pa.ChunkedArray | pa.Array, text: str) -> Int:
    """Positions of the rows of a string column that hold exactly that text."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    found, before = [], 0
    for chunk in chunks:
        found.append(before + _rows_equal(chunk.cast(pa.string()), text.encode()))
        before += len(chunk)
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _rows_equal(array: pa.Array, wanted: bytes) -> Int:
    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return np.zeros(0, np.int64)
    at = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    rows: Int = np.flatnonzero((np.diff(at) == len(wanted)) & _valid(array))
    if wanted and len(rows):
        text = np.frombuffer(data, np.uint8)
        # From the back: names made by counting differ there first.
        for place in range(len(wanted) - 1, -1, -1):
            rows = rows[text[at[rows] + place] == wanted[place]]
    return rows
