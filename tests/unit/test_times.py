"""Times as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.store.errors import UsageError
from explorer.times import format_time, parse_range, parse_time


@pytest.mark.parametrize(
    ("text", "ns"),
    [("1200", 1200), ("1200ns", 1200), ("1.2us", 1200), ("1.2 ms", 1_200_000), ("3s", 3_000_000_000), ("0.1µs", 100), ("1.9ns", 1)],
)
def test_a_time_is_read(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize("text", ["", "ns", "-1ns", "1.2.3ms", "1 minute", "1e3", "nan"])
def test_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        parse_time(text)


def test_a_range_may_lack_an_end() -> None:
    assert parse_range("1.2ms..1.4ms") == (1_200_000, 1_400_000)
    assert parse_range("5us..") == (5_000, None)
    assert parse_range("..5us") == (None, 5_000)


@pytest.mark.parametrize("text", ["..", "5us", "5us..5us", "5us..4us", "5us..x"])
def test_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_range(text)


@given(st.integers(0, 10**15))
def test_what_is_shown_reads_back_to_four_digits(ns: int) -> None:
    shown = format_time(ns)
    assert abs(parse_time(shown) - ns) <= max(1, ns * 5e-4)
    assert len(shown.split()[0].replace(".", "")) <= 4 or ns >= 10**12


def test_the_unit_is_the_one_that_reads_best() -> None:
    shown = [format_time(n) for n in (0, 999, 1_000, 12_346, 999_949, 999_950, 1_868_000, 10**9, -5_000)]
    assert shown == ["0 ns", "999 ns", "1.000 us", "12.35 us", "999.9 us", "1.000 ms", "1.868 ms", "1.000 s", "-5.000 us"]
