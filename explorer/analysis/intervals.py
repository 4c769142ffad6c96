"""Half-open integer intervals `[start, end)`: the only place that merges, subtracts or intersects time.

Inputs are int64 arrays of equal length, in any order; an interval with end <= start covers nothing. Outputs are int64 arrays in the
same unit (nanoseconds everywhere in trnscope).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Int = NDArray[np.int64]


def union(start: ArrayLike, end: ArrayLike) -> tuple[Int, Int]:
    """Starts and ends of the merged intervals, sorted and disjoint; touching ones are joined."""
    s, e = np.asarray(start, np.int64), np.asarray(end, np.int64)
    keep = e > s
    s, e = s[keep], e[keep]
    if len(s) == 0:
        return s, e
    order = np.argsort(s, kind="stable")
    s, reach = s[order], np.maximum.accumulate(e[order])
    first = np.concatenate(([True], s[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return s[first], reach[last]


def busy(start: ArrayLike, end: ArrayLike) -> int:
    """Time covered by at least one interval."""
    s, e = union(start, end)
    return int((e - s).sum())


def gaps(start: ArrayLike, end: ArrayLike, first: int, last: int) -> tuple[Int, Int]:
    """Starts and ends of what the intervals leave uncovered in `[first, last)`."""
    s, e = union(np.clip(np.asarray(start, np.int64), first, last), np.clip(np.asarray(end, np.int64), first, last))
    gap_start, gap_end = np.concatenate(([first], e)), np.concatenate((s, [last]))
    keep = gap_end > gap_start
    return gap_start[keep], gap_end[keep]


def intersect(a: tuple[ArrayLike, ArrayLike], b: tuple[ArrayLike, ArrayLike]) -> tuple[Int, Int]:
    """Starts and ends of the time covered by both sets of intervals, sorted and disjoint."""
    (a_start, a_end), (b_start, b_end) = union(*a), union(*b)
    edges = np.concatenate((a_start, b_start, a_end, b_end))
    step = np.concatenate((np.ones(len(a_start) + len(b_start), np.int64), -np.ones(len(a_end) + len(b_end), np.int64)))
    order = np.lexsort((step, edges))
    edges, depth = edges[order], np.cumsum(step[order])
    inside = np.flatnonzero(depth[:-1] == 2)
    return union(edges[inside], edges[inside + 1])


def overlap(a: tuple[ArrayLike, ArrayLike], b: tuple[ArrayLike, ArrayLike]) -> int:
    """Time covered by both sets of intervals."""
    s, e = intersect(a, b)
    return int((e - s).sum())


def subtract(a: tuple[ArrayLike, ArrayLike], b: tuple[ArrayLike, ArrayLike]) -> tuple[Int, Int]:
    """Starts and ends of the time covered by `a` and not by `b`, sorted and disjoint."""
    a_start, a_end = union(*a)
    if len(a_start) == 0:
        return a_start, a_end
    return intersect((a_start, a_end), gaps(*b, int(a_start[0]), int(a_end[-1])))
