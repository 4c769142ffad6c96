"""Lanes: no overlap, as few as possible, the same whether rows come at once or in chunks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from explorer.export.perfetto.lanes import Lanes

ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8), st.integers(0, 2)), max_size=60)


def arrays(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, length, track = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    return np.ascontiguousarray(start), np.ascontiguousarray(start + length), np.ascontiguousarray(track)


@given(rows=ROWS, apart=st.booleans(), cut=st.integers(0, 60))
def test_slices_of_a_lane_follow_each_other(rows: list[tuple[int, int, int]], apart: bool, cut: int) -> None:
    start, end, track = arrays(rows)
    lanes = Lanes(apart=apart)
    lane = lanes.pack(start, end, track, 3)
    for key in set(zip(track.tolist(), lane.tolist(), strict=True)):
        mine = (track == key[0]) & (lane == key[1])
        gap = start[mine][1:] - end[mine][:-1]
        assert (gap >= int(apart)).all()
    piecewise = Lanes(apart=apart)
    parts = [piecewise.pack(start[p], end[p], track[p], 3) for p in (slice(0, cut), slice(cut, None))]
    assert (np.concatenate(parts) == lane).all()
    assert (piecewise.used == lanes.used).all()


@given(rows=ROWS)
def test_no_more_lanes_than_run_at_once(rows: list[tuple[int, int, int]]) -> None:
    start, end, track = arrays([(s, length + 1, t) for s, length, t in rows])
    lanes = Lanes()
    lanes.pack(start, end, track, 3)
    for number in range(3):
        mine = track == number
        running = [int(((start[mine] <= t) & (end[mine] > t)).sum()) for t in start[mine]]
        assert lanes.used[number] == max(running, default=0)


def test_many_lanes() -> None:
    start = np.arange(500, dtype=np.int64)
    lane = Lanes().pack(start, np.full(500, 1000), np.zeros(500, np.int64), 1)
    assert (lane == np.arange(500)).all()
