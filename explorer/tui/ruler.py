"""Round times along the top of the timeline."""

from __future__ import annotations

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))
#: Cells from one mark to the next, at least: what the longest label needs.
_APART = 14


def ticks(first: int, last: int, width: int) -> list[tuple[int, str]]:
    """Cells and labels of the marks over `[first, last)`; labels are as precise as their distance asks for."""
    if width < 1 or last <= first:
        return []
    step = _round_up(max(1, -(-(last - first) * _APART // width)))
    factor, unit = next(((f, u) for f, u in _UNITS if last >= 2 * f), (1, "ns"))
    digits, part = 0, factor
    while step % part:
        digits, part = digits + 1, part // 10
    begin = -(-first // step) * step
    return [((t - first) * width // (last - first), f"{t / factor:.{digits}f} {unit}") for t in range(begin, last, step)]


def _round_up(least: int) -> int:
    """The first of 1, 2, 5, 10, 20, 50, ... that is not below `least`."""
    power = 1
    while power * 10 <= least:
        power *= 10
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least)
