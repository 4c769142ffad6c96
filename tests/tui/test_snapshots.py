"""What each pane looks like, as pictures that are compared; `pytest --snapshot-update` accepts new ones, after a look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from explorer.store.reader import Profile
from tests.tui import small
from tests.tui.opened import LARGE, SMALL, explorer, settled

Compare = Callable[..., bool]
_SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])


def _same(snap_compare: Compare, size: tuple[int, int], *keys: str, profile: Profile | None = None, **start: Any) -> bool:
    async def prepare(pilot: Pilot[None]) -> None:
        await settled(pilot)
        for key in keys:
            await pilot.press(key)
        await settled(pilot)

    return snap_compare(explorer(profile, **start), terminal_size=size, run_before=prepare)


@_SIZES
def test_main(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert _same(snap_compare, size, select=4)


@_SIZES
def test_zoomed_with_dependencies(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert _same(snap_compare, size, "w", "w", "right_square_bracket", select=4)


@_SIZES
def test_layers(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert _same(snap_compare, size, "2", "j", "j", "enter")


@_SIZES
def test_details(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert _same(snap_compare, size, "3", "j", "j", "j", "j", "j", "j", select=4)


@_SIZES
def test_source(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert _same(snap_compare, size, "4", select=4)


@_SIZES
def test_ascii(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert _same(snap_compare, size, "w", select=4, ascii_only=True)


def test_help(snap_compare: Compare) -> None:
    assert _same(snap_compare, SMALL, "question_mark")


def test_search(snap_compare: Compare) -> None:
    assert _same(snap_compare, SMALL, "slash", *"matm", "enter", "slash", *"ac")


def test_one_pane_alone(snap_compare: Compare) -> None:
    assert _same(snap_compare, SMALL, "4", "z", select=4)


def test_measured_and_hardly_anything_captured(snap_compare: Compare) -> None:
    bare = small.profile(measured=True, without=("DmaPacketAggregated", "Flow", "KernelInstructions", "Summary"))
    assert _same(snap_compare, LARGE, "l", profile=bare)


def test_colours_by_layer(snap_compare: Compare) -> None:
    assert _same(snap_compare, LARGE, "c")
