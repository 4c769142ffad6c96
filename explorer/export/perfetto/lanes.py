"""Splits tracks into lanes on which no two slices overlap: on one track they would swap their ends, without an error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.export.perfetto.compiled import compiled

Int = NDArray[np.int64]
_FREE = np.iinfo(np.int64).min


class Lanes:
    """First-fit lanes of any number of tracks, filled chunk by chunk.

    Rows come sorted by start. A slice may begin where its lane's last one ends; with `apart` it begins later, so that the order in
    which slices stand in the file does not matter.
    """

    def __init__(self, *, apart: bool = False) -> None:
        self._apart = apart
        self._ends = np.full((0, 1), _FREE, np.int64)
        #: Number of lanes in use, by track.
        self.used = np.zeros(0, np.int64)

    def pack(self, start: Int, end: Int, track: Int, tracks: int) -> Int:
        """The lane of each row, from 0, among those of its track; tracks are numbered below `tracks`."""
        new = tracks - len(self.used)
        if new > 0:
            self.used = np.concatenate((self.used, np.zeros(new, np.int64)))
            self._ends = np.concatenate((self._ends, np.full((new, self._ends.shape[1]), _FREE)))
        lane = np.empty(len(start), np.int64)
        row = 0
        while (row := _pack(start, end, track, self._ends, self.used, lane, row, int(self._apart))) < len(start):
            self._ends = np.concatenate((self._ends, np.full_like(self._ends, _FREE)), axis=1)
        return lane


@compiled
def _pack(start: Int, end: Int, track: Int, ends: Int, used: Int, lane: Int, first: int, distance: int) -> int:
    """Fills `lane` from row `first`; returns the row that needs a lane more than `ends` has room for, or the number of rows."""
    for row in range(first, len(start)):
        mine = ends[track[row]]
        here = 0
        while here < used[track[row]] and mine[here] > start[row] - distance:
            here += 1
        if here == len(mine):
            return row
        used[track[row]] = max(used[track[row]], here + 1)
        mine[here] = end[row]
        lane[row] = here
    return len(start)
