"""Spans on one timeline row, sampled to terminal cells: a frame reads what it draws, however many spans there are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from explorer.analysis import intervals

Int = NDArray[np.int64]
Index = NDArray[np.int32]

#: Parts of a cell that a block character can tell apart.
PARTS = 8
#: Spans of one block of the range-maximum table: small enough to scan, large enough to keep the table small.
_BLOCK = 16
#: Outranks any duration: a lit span wins its cell over a longer one that is not.
_LIT = np.int64(1) << 61


class Kind(IntEnum):
    """What a cell shows."""

    IDLE = 0
    FULL = 1  # one span covers it, or a short one lies alone in it
    SPLIT = 2  # `left` covers `eighths` of it, `right` the rest; either may be idle
    SHARED = 3  # several spans lie in it: the longest, and how much of the cell is busy in `eighths`


@dataclass(frozen=True, slots=True)
class Cells:
    """One value per cell. `left` and `right` are positions in `Spans` or -1; `eighths` is 1 to 7 where the kind uses it."""

    kind: NDArray[np.uint8]
    left: Index
    right: Index
    eighths: NDArray[np.uint8]
    count: Int


class Spans:
    """Half-open spans `[start, end)` in nanoseconds, sorted by start; they may overlap. One without length is drawn as well."""

    def __init__(self, start: Int, end: Int) -> None:
        order = np.argsort(start, kind="stable")
        self.order: Int = order
        self.start: Int = start[order]
        self.end: Int = np.maximum(end[order], self.start)
        drawn = np.maximum(self.end, self.start + 1)
        self._ends: Int = np.sort(drawn)
        self._reach: Int = np.maximum.accumulate(drawn)
        furthest = np.concatenate(([True], self._reach[1:] > self._reach[:-1])) if len(start) else np.zeros(0, bool)
        self._reacher: Index = np.maximum.accumulate(np.where(furthest, np.arange(len(start)), 0)).astype(np.int32)
        busy_start, busy_end = intervals.union(self.start, self.end)
        # As floats from the first start on: exact for 104 days, wherever the profile's clock began.
        self._origin = int(self.start[0]) if len(start) else 0
        self._busy_at = (np.column_stack((busy_start, busy_end)).ravel() - self._origin).astype(np.float64)
        self._busy = np.repeat(np.concatenate(([0], np.cumsum(busy_end - busy_start))), 2)[1:-1].astype(np.float64)
        self.light(None)

    def __len__(self) -> int:
        return len(self.start)

    def light(self, lit: NDArray[np.bool_] | None) -> None:
        """Let the spans that `lit` marks, in sorted order, win their cells; None: all are equal and the longest wins."""
        rank = self.end - self.start
        self._rank: Int = rank if lit is None else rank + np.where(lit, _LIT, np.int64(0))
        self._table = _range_table(self._rank)

    def at(self, first: int, last: int) -> int:
        """The span that `sample` would show in `[first, last)`, or -1."""
        cells = self.sample(first, max(last, first + 1), 1)
        return int(cells.left[0] if cells.left[0] >= 0 else cells.right[0])

    def distance(self, span: int, time: int) -> int:
        """Nanoseconds between a span and a time; 0 where it lies over it."""
        return max(int(self.start[span]) - time, time - int(self.end[span]), 0)

    def nearest(self, time: int) -> int:
        """The span over `time`, else the one that begins or ends nearest to it; -1 without any."""
        if not len(self):
            return -1
        after = int(np.searchsorted(self.start, time, "right"))
        if after and self._reach[after - 1] > time:
            return int(self._reacher[after - 1])
        if after == len(self):
            return int(self._reacher[-1])
        if after and time - self._reach[after - 1] <= self.start[after] - time:
            return int(self._reacher[after - 1])
        return after

    def sample(self, first: int, last: int, width: int) -> Cells:
        """What each of `width` cells over `[first, last)` shows.

        Of the spans that begin in an eighth of a cell, the longest shows; of those that run on into it, the one that ends last.
        """
        parts = width * PARTS
        # Edges between parts, rounded down and up: in whole nanoseconds, so that none is off by one at any zoom.
        at = (last - first) * np.arange(parts + 1)
        low, high = first + at // parts, first - (-at // parts)
        shown = self._longest(low, high).reshape(width, PARTS)
        low, high = low[::PARTS], high[::PARTS]
        # Spans touching [a, b): those that began before b, less those that ended by a.
        count = np.searchsorted(self.start, high[1:]) - np.searchsorted(self._ends, low[:-1], "right")
        exact = first - self._origin + (last - first) * np.arange(width + 1) / width
        busy = np.diff(np.interp(exact, self._busy_at, self._busy)) if len(self._busy) else np.zeros(width)
        return self._cells(shown, low, high, count, busy / ((last - first) / width))

    def _longest(self, low: Int, high: Int) -> Index:
        """Position of the span that shows between each two edges, or -1."""
        if not len(self):
            return np.full(len(low) - 1, -1, np.int32)
        begin = np.searchsorted(self.start, high)
        before, after = begin[:-1], begin[1:]
        earlier = np.maximum(before - 1, 0)
        runs_on = (before > 0) & (self._reach[earlier] > low[:-1])
        shown: Index = np.where(runs_on, self._reacher[earlier], -1).astype(np.int32)
        begins = np.flatnonzero(after > before)
        if len(begins):
            new = _range_max(self._rank, self._table, before[begins], after[begins])
            old = shown[begins]
            shown[begins] = np.where((old < 0) | (self._rank[new] > self._rank[old]), new, old)
        return shown

    def _cells(self, shown: Index, low: Int, high: Int, count: Int, busy: NDArray[np.float64]) -> Cells:
        width = len(count)
        head, tail = shown[:, 0], shown[:, -1]
        best = np.where(shown >= 0, self._rank[shown] if len(self) else -1, -1).argmax(axis=1)
        top = shown[np.arange(width), best]
        kind = np.where(count > 1, Kind.SHARED, np.where(count == 1, Kind.FULL, Kind.IDLE)).astype(np.uint8)
        left, right = top.copy(), top.copy()
        eighths = np.clip(np.rint(busy * PARTS), 1, PARTS - 1).astype(np.uint8)
        covered, in_head, in_tail = ((shown == one[:, None]).sum(axis=1) for one in (top, head, tail))
        if len(self):
            inside = (self.start[top] >= high[:-1]) & (np.maximum(self.end[top], self.start[top] + 1) <= low[1:])
            alone = (count == 1) & ~inside & (covered < PARTS)
            at_left, at_right = alone & (head == top), alone & (head != top)
            kind[alone] = Kind.SPLIT
            right[at_left], eighths[at_left] = -1, covered[at_left]
            left[at_right], eighths[at_right] = -1, PARTS - covered[at_right]
        idle = PARTS - in_head - in_tail
        pair = (count == 2) & (head >= 0) & (tail >= 0) & (head != tail) & (idle == (shown < 0).sum(axis=1))
        kind[pair] = Kind.SPLIT
        left[pair], right[pair], eighths[pair] = head[pair], tail[pair], in_head[pair]
        # A gap stays visible: the shorter of its two neighbours makes room, and is still seen in the next cell.
        gap = pair & (idle > 0)
        keep_head, keep_tail = gap & (in_head >= in_tail), gap & (in_head < in_tail)
        right[keep_head] = -1
        left[keep_tail], eighths[keep_tail] = -1, (PARTS - in_tail)[keep_tail]
        blank = kind == Kind.IDLE
        left[blank] = right[blank] = -1
        return Cells(kind, left, right, eighths, count)


def _range_table(rank: Int) -> list[Index]:
    """Position of the highest rank of every 1, 2, 4, ... neighbouring blocks."""
    n = len(rank)
    if not n:
        return []
    padded = np.concatenate((rank, np.full(-n % _BLOCK, -1, np.int64))).reshape(-1, _BLOCK)
    level = (padded.argmax(axis=1) + np.arange(len(padded)) * _BLOCK).astype(np.int32)
    table = [level]
    step = 1
    while step * 2 <= len(level):
        low, high = table[-1][:-step], table[-1][step:]
        table.append(np.where(rank[high] > rank[low], high, low))
        step *= 2
    return table


def _range_max(rank: Int, table: list[Index], first: Int, last: Int) -> Index:
    """Position of the highest rank in each non-empty `[first, last)`."""
    low, high = -(-first // _BLOCK), last // _BLOCK
    whole = high > low
    offsets = np.arange(_BLOCK)
    # Up to a block at either end is scanned; a range within one block or two is covered by its two ends.
    scan = np.concatenate((first[:, None] + offsets, last[:, None] - 1 - offsets), axis=1)
    scan = np.clip(scan, first[:, None], last[:, None] - 1)
    best = scan[np.arange(len(scan)), rank[scan].argmax(axis=1)]
    inner = np.flatnonzero(whole)
    if len(inner):
        length = (high - low)[inner]
        level = np.frexp(length)[1] - 1
        for depth in np.unique(level):
            here = inner[level == depth]
            one, two = table[depth][low[here]], table[depth][high[here] - (1 << int(depth))]
            middle = np.where(rank[two] > rank[one], two, one)
            best[here] = np.where(rank[middle] > rank[best[here]], middle, best[here])
    found: Index = best.astype(np.int32)
    return found
