"""Times as people write and read them. Inside, every time is an integer number of nanoseconds."""

from __future__ import annotations

import re
from fractions import Fraction

from explorer.store.errors import UsageError

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)?\s*")


def parse_time(text: str) -> int:
    """`1.2ms`, `800us`, `3s` or `1200` (nanoseconds) as nanoseconds, rounded down. Raises UsageError on anything else."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no time; write it as 1200ns, 1.2us, 3.4ms or 5s")
    return int(Fraction(match[1]) * _UNITS[match[2] or "ns"])


def parse_range(text: str) -> tuple[int | None, int | None]:
    """`T0..T1` as nanoseconds; either end may be left out (None). Raises UsageError if it is no range or ends before it begins."""
    first, dots, last = text.partition("..")
    if not dots or not (first.strip() or last.strip()):
        raise UsageError(f"{text!r} is no time range; write it as 1.2ms..1.4ms, 1.2ms.. or ..1.4ms")
    begin = parse_time(first) if first.strip() else None
    end = parse_time(last) if last.strip() else None
    if begin is not None and end is not None and end <= begin:
        raise UsageError(f"{text!r} ends before it begins; write the earlier time first")
    return begin, end


def format_time(ns: int) -> str:
    """Nanoseconds to four significant digits or better in the unit that reads best: `812 ns`, `12.35 us`, `1.868 ms`."""
    sign, size = ("-", -ns) if ns < 0 else ("", ns)
    if size < 1_000:
        return f"{sign}{size} ns"
    units = (("us", 1_000), ("ms", 1_000_000))
    unit, factor = next(((u, f) for u, f in units if size < 999_950 * f // 1_000), ("s", 1_000_000_000))
    value = size / factor
    return f"{sign}{value:.{3 if value < 9.9995 else 2 if value < 99.995 else 1}f} {unit}"
