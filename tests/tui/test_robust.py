"""Names that mean harm, terminals of any size, start-up that loads only what it needs."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from textual.app import App

from explorer.commands import main
from explorer.store import reader, writer
from explorer.tui.keys import KEYS
from tests import synthetic
from tests.synthetic import HOSTILE
from tests.tui import small
from tests.tui.opened import LARGE, explorer, settled, text

_KEYS = ("l", "j", "w", "left_square_bracket", "2", "j", "enter", "3", "G", "4", "c", "1", "f", "question_mark", "escape")


def _raw(app: App[None]) -> str:
    """Everything that the screen would send as text, without its own control sequences."""
    return "".join(segment.text for strip in app.screen._compositor.render_strips() for segment in strip)


async def test_no_name_acts_on_the_terminal() -> None:
    app = explorer(small.profile(*HOSTILE, "幅 wide 🔥"), select=4)
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        for key in _KEYS:
            await pilot.press(key)
            assert {strip.cell_length for strip in app.screen._compositor.render_strips()} == {LARGE[0]}
            for char in _raw(app):
                assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


async def test_markup_in_names_is_shown_as_it_is() -> None:
    app = explorer(small.profile("[red]x[/red]"), select=1)
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        assert "[red]x[/red]/load" in text(app).replace("\n", "")


async def test_no_size_crashes() -> None:
    app = explorer(select=4)
    async with app.run_test(size=(1, 1)) as pilot:
        await settled(pilot)
        for size in ((1, 1), (2, 50), (39, 15), (300, 100), (300, 2)):
            await pilot.resize_terminal(*size)
            for key in ("l", "2", "4", "slash", "escape"):
                await pilot.press(key)
            assert app.is_running


async def test_ascii_is_ascii() -> None:
    app = explorer(small.profile("né⚡"), select=4, ascii_only=True)
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        for key in _KEYS:
            await pilot.press(key)
            assert text(app).isascii()
        assert "n\\xe9\\u26a1" in text(app)


def test_start_up_imports_nothing_heavy(tmp_path: Path) -> None:
    writer.write(tmp_path / "p", small.tables())
    code = """
import asyncio, sys
from pathlib import Path
from explorer.commands import tui
from explorer.store import reader
from explorer.tui.app import Explorer
from explorer.tui.model import Model
from explorer.tui.screen import Start

async def first_frame(path):
    model = Model(reader.open(path))
    app = Explorer(model, Start(path, None, model.find("Instruction", 4), Path(path).parent))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.press("l", "w", "j")

asyncio.run(first_frame(sys.argv[1]))
print(*sorted({m.partition(".")[0] for m in sys.modules} & {"numba", "pandas", "duckdb", "torch", "jax", "perfetto"}))
"""
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "p")], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


async def test_a_frame_of_a_large_profile_is_drawn_at_once() -> None:
    app = explorer(synthetic.profile(200_000))
    async with app.run_test(size=LARGE) as pilot:
        await pilot.pause()
        timeline, took = app.main.timeline, []
        for _ in range(12):
            app.main.action_zoom(2)
            app.main.action_pan(0.25)
            begin = time.process_time()
            for y in range(timeline.content_size.height):
                timeline.render_line(y)
            took.append(time.process_time() - begin)
        assert statistics.median(took) < 0.05


async def test_a_damaged_table_is_said_and_the_rest_works(tmp_path: Path) -> None:
    writer.write(tmp_path / "p", small.tables())
    profile = reader.open(tmp_path / "p")
    file = tmp_path / "p" / "Flow.parquet"
    data = file.read_bytes()
    file.write_bytes(b"\0" * (len(data) // 2) + data[len(data) // 2 :])
    app = explorer(profile, select=4)
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        assert "damaged Parquet file" in text(app)
        await pilot.press("w", "l", "2", "j", "enter")
        assert "ACTIVATE" in text(app)


async def test_the_palette_offers_every_action() -> None:
    app = explorer(select=4)
    async with app.run_test(size=LARGE):
        offered = {command.title: command.callback for command in app.get_system_commands(app.screen)}
        assert set(offered) == {key.help for key in KEYS}
        await offered["zoom in faster"]()
        assert app.main.view.span < 5_000


async def test_a_real_profile_is_measured_and_every_key_works(tmp_path: Path) -> None:
    file = "profile_128x128x1024.json"
    source = Path(__file__).parents[2].parent / "shared" / "data" / "neuron_profile" / file
    if not source.exists():
        pytest.skip(f"needs {file} of the shared data")
    assert main(["import", str(source), "-o", str(tmp_path / "p")]) == 0
    app = explorer(reader.open(tmp_path / "p"))
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        shown = text(app)
        for part in ("measured", "inf2.xlarge", "total 1.8", "TensorMatrix", "Q0"):
            assert part in shown
        for key in _KEYS:
            await pilot.press(key)
        assert app.is_running
