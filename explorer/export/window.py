"""The part of the time that an export keeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.times import parse_range

Int = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Window:
    """Nanoseconds `[first, last)`. What touches it is kept whole, never cut."""

    first: int
    last: int

    def touches(self, start: Int, end: Int) -> NDArray[np.bool_]:
        """Which of the intervals `[start, end)` share time with it; one of no length is a point in time."""
        return (start < self.last) & (np.maximum(end, start + 1) > self.first)

    def holds(self, time: Int) -> NDArray[np.bool_]:
        """Which points in time are in it."""
        return (time >= self.first) & (time < self.last)


def parse_window(text: str) -> Window:
    """The window that `--at` names; an end that is left out is that of the profile. Raises UsageError if it is no range."""
    first, last = parse_range(text)
    return Window(first or 0, np.iinfo(np.int64).max if last is None else last)
