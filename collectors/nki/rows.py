"""Small vectorised helpers that the builders of tables share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


def take(texts: Sequence[str | None], index: NDArray[Any], *, missing: Bool | None = None) -> pa.Array:
    """One string for each index into `texts`, as an Arrow string array; null where `missing` is set or the index is negative."""
    rows = np.asarray(index, np.int64)
    absent = rows < 0 if missing is None else missing | (rows < 0)
    return pa.array(list(texts), pa.string()).take(pa.array(np.where(absent, 0, rows), mask=absent))


def ints(values: NDArray[Any], *, missing: Bool | None = None, type: pa.DataType | None = None) -> pa.Array:
    """An int64 Arrow array, null where `missing` is set."""
    return pa.array(np.asarray(values, np.int64), type or pa.int64(), mask=missing)


def unique_rows(columns: Sequence[NDArray[Any]]) -> tuple[Int, Int]:
    """First row of each distinct row of equally long integer columns, and for each row the number of its distinct row.

    Rows are told apart by a hash that is then checked against the columns: sorting wide rows is slow, and copies of them are big.
    """
    weights = np.random.default_rng(1).integers(1, 2**63, len(columns), dtype=np.uint64) | np.uint64(1)
    hashed = np.zeros(len(columns[0]), np.uint64)
    for column, weight in zip(columns, weights, strict=True):
        hashed ^= column.astype(np.int64).view(np.uint64)
        hashed *= weight
        hashed ^= hashed >> np.uint64(29)
    _, first, inverse = np.unique(hashed, return_index=True, return_inverse=True)
    if not all(np.array_equal(column[first][inverse], column) for column in columns):
        _, first, inverse = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.astype(np.int64).reshape(-1)


def rank_within(groups: NDArray[Any]) -> Int:
    """For each row, how many earlier rows have the same group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else np.zeros(0, np.int64)
    lengths = np.diff(np.concatenate((starts, [len(ordered)])))
    rank = np.empty(len(ordered), np.int64)
    rank[order] = np.arange(len(ordered)) - np.repeat(starts, lengths)
    return rank


def sum_by(groups: NDArray[Any], values: NDArray[Any], count: int) -> Int:
    """Exact integer sums of `values` for groups 0 to `count` - 1."""
    total = np.zeros(count, np.int64)
    np.add.at(total, groups, np.asarray(values, np.int64))
    return total
