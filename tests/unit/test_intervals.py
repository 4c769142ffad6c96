"""Merged time against a bitmap that marks every nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from explorer.analysis import intervals

LAST = 60
INTERVALS = st.lists(st.tuples(st.integers(0, LAST), st.integers(0, LAST)), max_size=30)


def columns(pairs: list[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def bitmap(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    marked = np.zeros(LAST + 1, bool)
    for s, e in zip(start.tolist(), end.tolist(), strict=True):
        marked[s:e] = True
    return marked


def check(result: tuple[NDArray[np.int64], NDArray[np.int64]], expected: NDArray[np.bool_]) -> None:
    start, end = result
    assert (bitmap(start, end) == expected).all()
    assert (start < end).all()
    assert (start[1:] > end[:-1]).all(), "sorted, disjoint, and not touching"


@given(INTERVALS)
def test_union_and_busy(pairs: list[tuple[int, int]]) -> None:
    a = columns(pairs)
    check(intervals.union(*a), bitmap(*a))
    assert intervals.busy(*a) == int(bitmap(*a).sum())


@given(INTERVALS, st.integers(0, LAST), st.integers(0, LAST))
def test_gaps(pairs: list[tuple[int, int]], first: int, last: int) -> None:
    a = columns(pairs)
    window = np.zeros(LAST + 1, bool)
    window[first:last] = True
    start, end = intervals.gaps(*a, first, last)
    assert (bitmap(start, end) == (window & ~bitmap(*a))).all()


@given(INTERVALS, INTERVALS)
def test_intersection_overlap_and_difference(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    a, b = columns(first), columns(second)
    check(intervals.intersect(a, b), bitmap(*a) & bitmap(*b))
    assert intervals.overlap(a, b) == int((bitmap(*a) & bitmap(*b)).sum())
    start, end = intervals.subtract(a, b)
    assert (bitmap(start, end) == (bitmap(*a) & ~bitmap(*b))).all()


def test_times_beyond_what_floats_hold_stay_exact() -> None:
    big = 2**62
    assert intervals.busy([big, big + 1], [big + 1, big + 2]) == 2
    assert intervals.union([big + 3, big], [big + 4, big + 3]) == ([big], [big + 4])
