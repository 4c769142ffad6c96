"""Each pane driven by its keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.binding import Binding
from textual.events import MouseScrollUp as _Wheel

from explorer.tui.app import Explorer
from explorer.tui.keys import KEYS, spelled
from explorer.tui.screen import Main
from tests.tui import small
from tests.tui.opened import LARGE, SMALL, explorer, settled, text


def _selected(app: Explorer) -> tuple[str, int] | None:
    ref = app.main.selected
    return None if ref is None else (ref.table, int(app.main.model.events[ref.table].ids[ref.row]))


async def test_zoom_pan_and_fit() -> None:
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        whole = app.main.view
        await pilot.press("w", "w")
        assert app.main.view.span * 4 == pytest.approx(whole.span, abs=4)
        await pilot.press("d")
        assert app.main.view.first == whole.first + app.main.view.span // 4
        await pilot.press("a", "s", "minus")
        assert app.main.view.is_whole
        await pilot.press("l", "f")
        assert app.main.view.span < whole.span // 10
        await pilot.press("f")
        assert app.main.view.is_whole


async def test_the_cursor_stays_where_it_is_while_zooming() -> None:
    app = explorer(select=40)
    async with app.run_test(size=LARGE) as pilot:
        cells = []
        for _ in range(4):
            cells.append(app.main.timeline.cell_of(app.main.view.cursor))
            await pilot.press("w")
        assert max(cells) - min(cells) <= 1


async def test_events_and_rows() -> None:
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        await pilot.press("l")
        assert _selected(app) == ("Instruction", 2)
        await pilot.press("l", "full_stop")
        assert _selected(app) == ("Instruction", 14)
        await pilot.press("h", "comma", "h")
        assert _selected(app) == ("Instruction", 2)
        await pilot.press("j")
        assert _selected(app) == ("Instruction", 3)
        await pilot.press("down", "j", "j", "j", "j", "j")
        assert _selected(app)[0] == "DmaPacketAggregated"  # type: ignore[index]
        await pilot.press("k", "up", "G")
        assert _selected(app) == ("Instruction", 72)
        await pilot.press("g")
        assert _selected(app) == ("Instruction", 1)


async def test_dependencies_are_followed_and_back_returns() -> None:
    app = explorer(select=4)
    async with app.run_test(size=SMALL) as pilot:
        seen = []
        for key in ["left_square_bracket"] * 5:
            await pilot.press(key)
            seen.append(_selected(app))
        chain = [("Instruction", 3), ("Instruction", 2), ("DmaPacketAggregated", 1001), ("Instruction", 1), ("Instruction", 1)]
        assert seen == chain
        assert "no predecessor" in text(app)
        await pilot.press("right_square_bracket")
        assert _selected(app) == ("DmaPacketAggregated", 1001)
        await pilot.press("escape", "escape", "escape", "escape", "escape")
        assert _selected(app) == ("Instruction", 4)


async def test_details_list_the_dependencies_and_enter_goes_there() -> None:
    app = explorer(select=4)
    async with app.run_test(size=LARGE) as pilot:
        shown = text(app)
        for part in ("ACTIVATE", "waited for (2)", "MATMUL 3", "gap 23 ns", "waited for it (2)", "loops: m=0, n=0"):
            assert part in shown
        await pilot.press("3")
        lines = [app.main.details.line(i).plain for i in range(app.main.details.count)]
        at = next(i for i, line in enumerate(lines) if "DMA_DIRECT2D 6" in line)
        await pilot.press(*["j"] * at, "enter")
        assert _selected(app) == ("Instruction", 6)
        await pilot.press("escape")
        assert _selected(app) == ("Instruction", 4)


async def test_layers_open_close_and_light() -> None:
    app = explorer()
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        await pilot.press("2")
        tree = app.main.layer_tree
        assert [tree.line(i).plain.split()[0] for i in range(tree.count)] == ["▾", "load", "matmul", "store", "(no"]
        assert [tree.line(i).plain.split()[-3:] for i in (0, 2)] == [["9.564", "us", "60"], ["3.324", "us", "24"]]
        await pilot.press("h")
        assert tree.count == 2
        await pilot.press("l", "j", "j", "enter")
        assert app.main.lit == "/tile/matmul"
        first, last = app.main.view.first, app.main.view.last
        assert first <= 2_200 < 31_077 <= last
        masks = app.main.timeline._lit
        assert masks["Instruction"].sum() == 24
        assert masks["DmaPacketAggregated"].sum() == 0
        await pilot.press("enter")
        assert app.main.lit is None


async def test_the_layer_of_the_selection_is_found_in_the_tree() -> None:
    app = explorer()
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        await pilot.press("2", "h", "1", "l")
        tree = app.main.layer_tree
        assert tree.line(tree.cursor).plain.split()[0] == "matmul"


async def test_source_follows_the_selection_and_finds_its_instructions() -> None:
    app = explorer(select=4)
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        assert ">10  5.520 us             ops.store(out, m, n, ops" in text(app)
        await pilot.press("j")
        assert _selected(app) == ("Instruction", 5)
        assert "this row names no source line" in text(app)
        await pilot.press("h")
        assert _selected(app) == ("Instruction", 1)
        assert app.main.source._line == 15
        await pilot.press("4", "k", "k", "k", "enter")
        assert "no instruction from that line" in text(app)
        await pilot.press("j", "j", "j", "enter")
        assert "hit 2 of 12" in text(app)
        assert _selected(app) == ("Instruction", 7)


async def test_search_with_next_and_previous() -> None:
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        await pilot.press("n")
        assert "nothing searched" in text(app)
        await pilot.press("slash", *"Activate", "enter")
        assert _selected(app) == ("Instruction", 4)
        assert "hit 1 of 12" in text(app)
        await pilot.press("n", "n")
        assert _selected(app) == ("Instruction", 16)
        await pilot.press("N")
        assert _selected(app) == ("Instruction", 10)
        await pilot.press("slash", *"zzz", "enter")
        assert "nothing found" in text(app)
        await pilot.press("slash", *"qq", "escape")
        assert not app.main.find.display
        assert app.main.focused is app.main.timeline


async def test_panes_are_reached_in_turn_and_the_command_says_the_same() -> None:
    app = explorer(select=4)
    async with app.run_test(size=SMALL) as pilot:
        assert "trnscope tui small --select 4" in text(app)
        commands = []
        for _ in range(4):
            await pilot.press("tab")
            commands.append(app.main.command())
        assert commands == [
            "trnscope layers small",
            'trnscope query small "SELECT * FROM Instruction WHERE id = 4"',
            "trnscope source small --file kernels/tiled.py",
            "trnscope tui small --select 4",
        ]
        await pilot.press("w")
        view = app.main.view
        assert app.main.command() == f"trnscope tui small --at {view.first}ns..{view.last}ns --select 4"


async def test_one_pane_can_have_the_screen() -> None:
    app = explorer(select=4)
    async with app.run_test(size=LARGE) as pilot:
        await pilot.press("4", "z")
        assert [p.id for p in app.main.panes if p.display and (p is app.main.timeline or p.parent.display)] == ["source"]  # type: ignore[union-attr]
        await pilot.press("tab")
        assert app.main.timeline.display
        await pilot.press("z")
        assert all(p.display for p in app.main.panes)


async def test_a_stretch_of_time_and_a_row_can_be_asked_for() -> None:
    app = explorer(at=(5_000, 9_000), select=None)
    async with app.run_test(size=SMALL):
        assert (app.main.view.first, app.main.view.last) == (5_000, 9_000)
    app = explorer(at=(None, 9_000), select=16)
    async with app.run_test(size=SMALL):
        assert app.main.view.first == app.main.model.extent[0]
        assert _selected(app) == ("Instruction", 16)


async def test_colours_turn() -> None:
    app = explorer()
    async with app.run_test(size=LARGE) as pilot:
        keys = []
        for _ in range(4):
            keys.append(text(app).splitlines()[9].split(":")[0].strip("│ "))
            await pilot.press("c")
            await pilot.pause()
        assert keys == ["opcode", "layer", "track", "opcode"]


async def test_the_mouse_selects_and_zooms() -> None:
    app = explorer()
    async with app.run_test(size=LARGE) as pilot:
        timeline = app.main.timeline
        x, y = timeline.gutter.left + timeline.label_width, timeline.gutter.top + 1
        cell = timeline.cell_of(2_300)
        await pilot.click(timeline, offset=(x + cell, y + 1))
        assert _selected(app) == ("Instruction", 3)
        await pilot.click(timeline, offset=(x + timeline.cell_of(30_000), y))
        assert _selected(app) in (("Instruction", 68), None)
        await pilot._post_mouse_events([_Wheel], timeline, (x + cell, y), button=0)
        await pilot.pause()
        assert app.main.view.span * 2 == pytest.approx(app.main.model.extent[1] - app.main.model.extent[0], abs=2)
        assert abs(timeline.cell_of(2_300) - cell) <= 1
        await pilot.click(timeline, offset=(x + timeline.cell_of(2_300), y + 1), times=2)
        assert app.main.view.first <= 2_264 < 2_477 <= app.main.view.last
        assert app.main.view.span < 300


async def test_help_shows_every_action() -> None:
    app = explorer()
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        shown = text(app)
        assert [k.action for k in KEYS if k.help not in shown] == []
        await pilot.press("escape")
        assert app.screen is app.main
        await pilot.press("q")
    assert app.return_code == 0


def test_no_key_has_two_meanings() -> None:
    keys = [k for key in KEYS for k in key.keys]
    assert len(keys) == len(set(keys))
    assert len({k.action for k in KEYS}) == len(KEYS)
    bound = [k for b in Main.BINDINGS if isinstance(b, Binding) for k in b.key.split(",")]
    assert sorted(bound) == sorted(keys)


async def test_what_was_not_captured_is_said() -> None:
    app = explorer(small.profile(without=("Flow", "DmaPacketAggregated")), select=4)
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        shown = text(app)
        assert "DMA transfers: not captured" in shown
        assert "waited for: not captured" in shown
        await pilot.press("left_square_bracket")
        assert "dependencies: not captured" in text(app)
    app = explorer(small.profile(without=("Instruction", "DmaPacketAggregated", "Summary")))
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        await pilot.press("j", "l", "w", "enter", "f", "G", "left_square_bracket", "slash", *"x", "enter")
        shown = text(app)
        assert "instructions and DMA transfers: not captured" in shown
        assert "layers: not captured" in shown
        assert "total time not captured" in shown


@pytest.mark.parametrize("measured", [True, False])
async def test_the_head_says_whether_it_was_measured(measured: bool) -> None:
    app = explorer(small.profile(measured=measured))
    async with app.run_test(size=SMALL):
        assert ("  measured  " in text(app)) is measured
        assert ("  emulated  " in text(app)) is not measured


def test_the_docs_list_the_same_keys() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tui.md").read_text()
    rows = [f"| {' '.join(f'`{spelled(k)}`' for k in key.keys)} | {key.help} |" for key in KEYS]
    assert [row for row in rows if row not in page] == []
