"""The real program in a real terminal, through tmux."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from explorer.analysis.source_text import Sources
from explorer.commands import main
from explorer.store import reader, writer
from explorer.tui.app import Explorer
from explorer.tui.model import Model
from explorer.tui.screen import Start
from tests.tui import small
from tests.tui.opened import LARGE, ROOT, explorer, settled, text

_TRNSCOPE = [sys.executable, "-c", "import sys; from explorer.commands import main; sys.exit(main())"]


def _typed(words: str) -> str:
    """The program as it is typed in a shell."""
    return f"PYTHONPATH={Path(__file__).parents[2]} {shlex.join(_TRNSCOPE)} {words}"


class Terminal:
    """A tmux session with a shell in it."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux.socket")
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": "$ "}
        size = ["-x", "100", "-y", "30"]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(folder), "sh", environment=environment)

    def _tmux(self, *words: str, environment: dict[str, str] | None = None) -> str:
        run = subprocess.run(["tmux", "-S", self._socket, *words], capture_output=True, text=True, check=True, env=environment)
        return run.stdout

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def value(self, name: str) -> str:
        return self._tmux("display-message", "-p", f"#{{{name}}}").strip()

    def wait(self, seen: Callable[[str], bool], seconds: float = 20) -> str:
        """The screen as soon as it satisfies `seen`."""
        end = time.monotonic() + seconds
        while not seen(shown := self.screen()):
            assert time.monotonic() < end, shown
            time.sleep(0.05)
        return shown

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def test_it_starts_answers_keys_and_leaves_the_terminal_as_it_was(terminal: Terminal, tmp_path: Path) -> None:
    writer.write(tmp_path / "p", small.tables())
    terminal.type(f"stty -g > before; {_typed('tui p --select 4')}; echo left with $?; stty -g > after")
    terminal.press("Enter")
    shown = terminal.wait(lambda s: "waited for (2)" in s and "tile" in s)
    assert "emulated" in shown
    assert "MATMUL 3" in shown
    assert [terminal.value(m) for m in ("alternate_on", "mouse_any_flag")] == ["1", "1"]
    terminal.press("[")
    terminal.wait(lambda s: "trnscope tui p --select 3" in s)
    terminal.press("w", "w", "2")
    terminal.wait(lambda s: "Layers" in s and "load" in s)
    terminal.press("?")
    terminal.wait(lambda s: "zoom in about the cursor" in s)
    terminal.press("q")
    terminal.wait(lambda s: "zoom in about the cursor" not in s)
    terminal.press("q")
    terminal.wait(lambda s: "left with 0" in s)
    terminal.type("echo sane")
    terminal.press("Enter")
    terminal.wait(lambda s: "\nsane" in s)
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
    modes = ("alternate_on", "mouse_any_flag", "mouse_button_flag", "cursor_flag")
    assert [terminal.value(m) for m in modes] == ["0", "0", "0", "1"]


@pytest.mark.parametrize(
    ("words", "line"),
    [("--select 4000", "--select '4000': p draws no such row"), ("--at 99s..100s", "--at '99s..100s': p has nothing there")],
)
def test_a_mistake_is_one_line_before_the_screen_is_touched(terminal: Terminal, tmp_path: Path, words: str, line: str) -> None:
    writer.write(tmp_path / "p", small.tables())
    terminal.type(f"{_typed(f'tui p {words}')}; echo left with $?")
    terminal.press("Enter")
    shown = terminal.wait(lambda s: "left with 2" in s)
    assert line in shown
    assert "Traceback" not in shown


def test_ascii_and_no_mouse(terminal: Terminal, tmp_path: Path) -> None:
    writer.write(tmp_path / "p", small.tables())
    terminal.type(f"{_typed('tui p --ascii --no-mouse --at 2us..5us')}; echo left with $?")
    terminal.press("Enter")
    shown = terminal.wait(lambda s: "EVENT_SEMAPHORE" in s or "MATMUL" in s)
    assert shown.isascii()
    assert "3.000 us from 2.000 us" in shown
    assert terminal.value("mouse_any_flag") == "0"
    terminal.press("q")
    terminal.wait(lambda s: "left with 0" in s)


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["nowhere"], 3, "nowhere: no such profile"),
        (["p", "--at", "5us"], 2, "'5us' is no time range; write it as 1.2ms..1.4ms, 1.2ms.. or ..1.4ms"),
    ],
)
def test_mistakes_without_a_terminal(tmp_path: Path, words: list[str], code: int, line: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run([*_TRNSCOPE, "tui", *words], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert ran.returncode == code
    assert ran.stderr.startswith(f"trnscope: {line}")
    assert len(ran.stderr.splitlines()) == 1


def test_without_a_terminal_it_prints_the_report(tmp_path: Path) -> None:
    writer.write(tmp_path / "p", small.tables())
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    texts = []
    for verb in ("tui", "report"):
        ran = subprocess.run([*_TRNSCOPE, verb, "p"], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
        texts.append(ran.stdout)
    assert texts[0] == texts[1]
    assert "emulated" in texts[0].lower()
    assert "\x1b" not in texts[0]


async def test_the_commands_it_shows_print_what_it_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer.write(tmp_path / "p q", small.tables())
    model = Model(reader.open(tmp_path / "p q"))
    app = Explorer(model, Start(str(tmp_path / "p q"), None, model.find("Instruction", 4), ROOT, str(ROOT)))
    commands = {}
    async with app.run_test(size=LARGE) as pilot:
        await settled(pilot)
        for pane in ("2", "3", "4"):
            await pilot.press(pane)
            commands[pane] = shlex.split(app.main.command())
        screen = text(app)
    shown = {}
    for pane, words in commands.items():
        assert words[0] == "trnscope"
        assert main(words[1:]) == 0
        shown[pane] = capsys.readouterr().out
    for layer, figure in (("matmul", "3.324 us"), ("store", "5.520 us")):
        assert any(layer in line and figure in line for line in screen.splitlines())
        assert any(layer in line and figure in line for line in shown["2"].splitlines())
    assert "ACTIVATE" in shown["3"]
    assert "inst.4" in shown["3"]
    line = next(line for line in shown["4"].splitlines() if line.split()[:1] == ["10"])
    assert "5.520 us" in line
    assert "ops.store(out, m, n" in line
    assert any(">10  5.520 us" in row for row in screen.splitlines())


def test_after_suspend_all_is_drawn_again_and_a_kill_leaves_the_terminal_as_it_was(terminal: Terminal, tmp_path: Path) -> None:
    writer.write(tmp_path / "p", small.tables())
    terminal.type(f"set -m; stty -g > before; {_typed('tui p --select 4')}")
    terminal.press("Enter")
    parts = ("total 34.10 us", "time ", "TensorMatrix", "opcode: ", "waited for (2)", "\ntrnscope tui p --select 4", "? help")
    terminal.wait(lambda s: all(part in s for part in parts))
    terminal.press("C-z")
    terminal.wait(lambda s: "Stopped" in s)
    terminal.type("clear; jobs -p > pid; fg; echo left with $?; stty -g > after")
    terminal.press("Enter")
    terminal.wait(lambda s: all(part in s for part in parts))
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    terminal.wait(lambda s: "left with 143" in s)
    assert [terminal.value(m) for m in ("alternate_on", "mouse_any_flag", "cursor_flag")] == ["0", "0", "1"]
    terminal.wait(lambda _: (tmp_path / "after").exists() and (tmp_path / "after").read_text() != "")
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()


def test_the_listing_and_the_screen_look_for_text_in_the_same_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write(tmp_path / "p", small.tables())
    for folder, found in ((tmp_path, False), (ROOT, True)):
        monkeypatch.chdir(folder)
        assert main(["source", str(tmp_path / "p")]) == 0
        listed = capsys.readouterr().out
        assert ("ops.store(out, m, n" in listed) is found
        assert bool(Sources(Start("p").source_root).listing("kernels/tiled.py").lines) is found


async def test_half_a_command_does_not_look_whole() -> None:
    app = explorer(select=4)
    async with app.run_test(size=(45, 24)) as pilot:
        await pilot.press("w", "w", "w")
        assert app.main.command() not in text(app)
        assert text(app).splitlines()[-2].rstrip().endswith("…")
