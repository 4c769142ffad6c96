"""Colours."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color

from explorer.tui import palette


def _luminance(color: Color) -> float:
    parts = [c / 255 for c in color.get_truecolor()]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("number", range(8))
def test_names_in_slices_can_be_read(number: int, second: bool) -> None:
    on = palette.shade(number, second)
    light, dark = sorted((_luminance(on), _luminance(palette.ink(on))), reverse=True)
    # WCAG 2 asks for 4.5 in small text and 3 in bold or large text.
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_a_hue_is_the_same_in_another_process() -> None:
    code = "from explorer.tui import palette; print(palette.hue('SELECT_REDUCE'), palette.hue('MATMUL'))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(palette.hue("SELECT_REDUCE")), str(palette.hue("MATMUL"))]


@given(st.lists(st.text(), unique=True, max_size=20))
def test_names_share_a_hue_only_when_all_are_taken(names: list[str]) -> None:
    hues = palette.hues(names)
    assert len(hues) == len(names)
    assert len(set(hues)) >= min(len(names), palette.NAMELESS)
    if names:
        assert hues[0] == palette.hue(names[0])
