"""The stretch of time on the screen: zoom, pan and fit, without a screen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

#: Nanoseconds that the screen shows at the deepest zoom.
SMALLEST = 16
#: Share of the screen left free on either side of what is fitted.
_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class View:
    """The window `[first, last)` and the cursor, in nanoseconds, always within the profile's `extent`."""

    extent: tuple[int, int]
    first: int
    last: int
    cursor: int

    @classmethod
    def whole(cls, extent: tuple[int, int]) -> Self:
        """All of the profile, with the cursor at its start."""
        return cls(extent, *extent, extent[0])

    @property
    def span(self) -> int:
        return self.last - self.first

    @property
    def is_whole(self) -> bool:
        return (self.first, self.last) == self.extent

    def show(self, first: int, last: int) -> Self:
        """That window, widened to the least that can be shown and moved into the extent."""
        whole = self.extent[1] - self.extent[0]
        span = min(max(last - first, SMALLEST), whole)
        middle = first + (last - first) // 2
        begin = min(max(middle - span // 2, self.extent[0]), self.extent[1] - span)
        return replace(self, first=begin, last=begin + span)

    def zoom(self, factor: float, about: int | None = None) -> Self:
        """Shows `factor` times less time (more, if below 1); `about`, by default the cursor, keeps its place on the screen."""
        fixed = self.cursor if about is None else about
        if not self.first <= fixed < self.last:
            fixed = self.first + self.span // 2
        whole = self.extent[1] - self.extent[0]
        span = min(max(round(self.span / factor), min(SMALLEST, whole)), whole)
        first = fixed - round(span * ((fixed - self.first) / self.span))
        return self.show(first, first + span)

    def pan(self, screens: float) -> Self:
        """Moves by that many screens; the cursor keeps its place on the screen."""
        step = round(self.span * screens) or (1 if screens > 0 else -1)
        moved = self.show(self.first + step, self.last + step)
        return moved.at(self.cursor + moved.first - self.first)

    def at(self, cursor: int) -> Self:
        """The same window with the cursor there."""
        return replace(self, cursor=min(max(cursor, self.extent[0]), self.extent[1] - 1))

    def reveal(self, first: int, last: int) -> Self:
        """The same window if it shows some of `[first, last)`; else moved, not zoomed, so that its start is seen."""
        if first < self.last and max(last, first + 1) > self.first:
            return self
        quarter = self.span // 4
        return self.show(first - quarter, first - quarter + self.span)

    def fit(self, first: int, last: int) -> Self:
        """A window that holds `[first, last)` with a margin."""
        margin = max(int((last - first) * _MARGIN), 1)
        return self.show(first - margin, last + margin)
