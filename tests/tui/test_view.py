"""Zoom and pan without a screen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from explorer.tui.view import SMALLEST, View

EXTENTS = st.tuples(st.integers(0, 10**6), st.integers(1, 10**9)).map(lambda e: (e[0], e[0] + e[1]))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("zoom"), st.sampled_from([0.125, 0.5, 2, 8])),
        st.tuples(st.just("pan"), st.sampled_from([-1, -0.25, 0.25, 1])),
        st.tuples(st.just("at"), st.integers(-5, 2 * 10**9)),
    ),
    max_size=30,
)


@given(EXTENTS, STEPS)
def test_no_step_leaves_the_profile(extent: tuple[int, int], steps: list[tuple[str, float]]) -> None:
    view = View.whole(extent)
    for name, value in steps:
        view = getattr(view, name)(value)
        assert extent[0] <= view.first < view.last <= extent[1]
        assert extent[0] <= view.cursor < extent[1]
        assert view.span >= min(SMALLEST, extent[1] - extent[0])


def test_the_cursor_keeps_its_place_while_zooming() -> None:
    view = View.whole((0, 1_000_000)).at(300_000)
    for _ in range(6):
        view = view.zoom(2)
        assert abs((view.cursor - view.first) / view.span - 0.3) < 0.001
    assert view.span == 1_000_000 // 64


def test_zooming_out_ends_at_the_whole() -> None:
    view = View.whole((100, 5_000)).at(4_000).zoom(8).zoom(8)
    for _ in range(8):
        view = view.zoom(0.5)
    assert view.is_whole


def test_a_pan_moves_by_its_share_and_stops_at_the_end() -> None:
    view = View.whole((0, 1_000)).at(500).zoom(10)
    assert view.pan(1).first == view.first + view.span
    assert view.pan(100).last == 1_000


def test_what_is_seen_already_is_not_moved() -> None:
    view = View.whole((0, 100_000)).at(50_000).zoom(10)
    assert view.reveal(view.first + 1, view.first + 2) == view
    moved = view.reveal(90_000, 90_100)
    assert moved.first <= 90_000 < moved.last
    assert moved.span == view.span


def test_a_fit_holds_its_stretch_with_a_margin() -> None:
    fitted = View.whole((0, 100_000)).fit(40_000, 50_000)
    assert (fitted.first, fitted.last) == (39_000, 51_000)
