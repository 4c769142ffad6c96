"""Cells against a reading of every span."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis import intervals
from explorer.tui.spans import PARTS, Kind, Spans

SPANS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 80)), max_size=60)
WINDOWS = st.tuples(st.integers(-50, 400), st.integers(1, 500), st.integers(1, 25))


def _spans(pairs: list[tuple[int, int]]) -> Spans:
    start = np.array([s for s, _ in pairs], np.int64)
    return Spans(start, start + np.array([n for _, n in pairs], np.int64))


def _touching(spans: Spans, first: Fraction, last: Fraction) -> list[int]:
    ends = np.maximum(spans.end, spans.start + 1)
    return [i for i in range(len(spans)) if spans.start[i] < last and ends[i] > first]


@given(SPANS, WINDOWS)
def test_each_cell_counts_and_shows_the_spans_in_it(pairs: list[tuple[int, int]], window: tuple[int, int, int]) -> None:
    spans, (first, length, width) = _spans(pairs), window
    cells = spans.sample(first, first + length, width)
    for at in range(width):
        left, right = (first + Fraction(length * i, width) for i in (at, at + 1))
        inside = _touching(spans, left, right)
        assert cells.count[at] == len(inside)
        assert (cells.kind[at] == Kind.IDLE) == (not inside)
        shown = {int(cells.left[at]), int(cells.right[at])} - {-1}
        assert shown <= set(inside)
        assert bool(shown) == bool(inside)
        if len(inside) == 1:
            assert cells.kind[at] in (Kind.FULL, Kind.SPLIT)
        if cells.kind[at] in (Kind.SPLIT, Kind.SHARED):
            assert 1 <= cells.eighths[at] <= PARTS - 1


@given(SPANS, WINDOWS)
def test_a_shared_cell_is_as_high_as_it_is_busy(pairs: list[tuple[int, int]], window: tuple[int, int, int]) -> None:
    spans, (first, length, width) = _spans(pairs), window
    cells = spans.sample(first, first + length, width)
    for at in np.flatnonzero(cells.kind == Kind.SHARED):
        left, right = (first + Fraction(length * int(i), width) for i in (at, at + 1))
        merged = zip(*intervals.union(spans.start, spans.end), strict=True)
        busy = sum((max(Fraction(0), min(right, int(e)) - max(left, int(s))) for s, e in merged), Fraction(0))
        assert abs(busy / (right - left) * PARTS - int(cells.eighths[at])) <= Fraction(1, 2) + Fraction(1, 10**6) or (
            int(cells.eighths[at]) in (1, PARTS - 1)
        )


@given(SPANS)
def test_a_span_alone_is_never_thinner_than_a_cell(pairs: list[tuple[int, int]]) -> None:
    for start, ns in pairs:
        cells = _spans([(start, ns)]).sample(0, 100_000, 10)
        assert (cells.kind != Kind.IDLE).sum() == 1
        assert (cells.kind == Kind.FULL).sum() == 1


def test_a_gap_of_an_eighth_of_a_cell_is_seen() -> None:
    # Two spans of 14 and 9 with a gap of 1, in cells of 8.
    cells = _spans([(0, 14), (15, 9)]).sample(0, 24, 3)
    assert cells.kind.tolist() == [Kind.FULL, Kind.SPLIT, Kind.FULL]
    assert (cells.left[1], cells.right[1], cells.eighths[1]) == (0, -1, 6)


@given(SPANS, WINDOWS, st.sampled_from([-(10**9), 10**15, 1_700_000_000 * 10**9]))
def test_cells_do_not_depend_on_when_the_clock_began(
    pairs: list[tuple[int, int]], window: tuple[int, int, int], began: int
) -> None:
    first, length, width = window
    here = _spans(pairs).sample(first, first + length, width)
    there = _spans([(s + began, n) for s, n in pairs]).sample(first + began, first + began + length, width)
    for column in ("kind", "left", "right", "eighths", "count"):
        assert getattr(here, column).tolist() == getattr(there, column).tolist()


def test_edges_of_neighbours_share_a_cell() -> None:
    cells = _spans([(0, 11), (11, 13)]).sample(0, 24, 3)
    assert cells.kind.tolist() == [Kind.FULL, Kind.SPLIT, Kind.FULL]
    assert (cells.left[1], cells.right[1], cells.eighths[1]) == (0, 1, 3)


def test_the_longest_of_a_cell_gives_its_colour_unless_another_is_lit() -> None:
    spans = _spans([(0, 10), (10, 30), (40, 20)])
    assert spans.sample(0, 100, 1).left[0] == 1
    spans.light(np.array([True, False, False]))
    assert spans.sample(0, 100, 1).left[0] == 0
    spans.light(None)
    assert spans.sample(0, 100, 1).left[0] == 1


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=400), st.integers(1, 40))
def test_the_longest_is_found_among_many(lengths: list[int], width: int) -> None:
    pairs = list(zip(np.cumsum([0, *lengths[:-1]]).tolist(), lengths, strict=True))
    spans = _spans(pairs)
    last = sum(lengths) + 1
    cells = spans.sample(0, last, width)
    for at in np.flatnonzero(cells.kind == Kind.SHARED):
        left, right = Fraction(last * int(at), width), Fraction(last * (int(at) + 1), width)
        starting = [int(spans.end[i] - spans.start[i]) for i in _touching(spans, left, right)]
        assert int(spans.end[cells.left[at]] - spans.start[cells.left[at]]) == max(starting)


@given(SPANS.filter(bool), st.integers(-10, 600))
def test_the_nearest_span_lies_over_the_time_if_any_does(pairs: list[tuple[int, int]], time_ns: int) -> None:
    spans = _spans(pairs)
    near = spans.nearest(time_ns)
    over = [i for i in range(len(spans)) if spans.start[i] <= time_ns < max(spans.end[i], spans.start[i] + 1)]
    if over:
        assert near in over
    else:
        distance = [max(s - time_ns, time_ns - e) for s, e in zip(spans.start.tolist(), spans.end.tolist(), strict=True)]
        assert distance[near] <= min(distance) + 1


def test_a_row_of_a_million_spans_costs_milliseconds() -> None:
    rng = np.random.default_rng(1)
    start = np.cumsum(rng.integers(1, 300, 1_000_000))
    spans = Spans(start, start + rng.integers(0, 400, len(start)))
    for length in (int(spans.end[-1]), 10_000_000, 100_000):
        took = []
        for _ in range(5):
            begin = time.process_time()
            spans.sample(0, length, 160)
            took.append(time.process_time() - begin)
        assert min(took) < 0.02
