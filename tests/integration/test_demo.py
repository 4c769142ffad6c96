"""`trnscope demo` is the first thing a newcomer runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import explorer
from explorer.commands import main

KERNEL = Path(__file__).parents[2] / "emulator" / "kernels" / "matmul.py"


def test_the_demo_reports_on_the_kernels_own_lines_and_says_how_to_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "-o", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    assert "emulated" in out.lower() and "\x1b" not in out + err
    lines = KERNEL.read_text(encoding="utf-8").splitlines()
    named = {int(n) for n in re.findall(r"matmul\.py:(\d+)", out)}
    assert named and any("nisa." in lines[n - 1] for n in named)
    profile, trace = tmp_path / "demo" / "matmul_unblocked", tmp_path / "demo" / "matmul_unblocked.pftrace"
    assert explorer.open(profile).evidence == "emulated"
    assert trace.stat().st_size > 10_000
    assert f"trnscope tui {profile}" in err and f"open {trace} at https://ui.perfetto.dev" in err


def test_the_demo_replaces_what_it_wrote_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    assert main(["demo", "-o", str(folder)]) == 0
    first = {p.name: p.read_bytes() for p in (folder / "matmul_unblocked").iterdir() if p.is_file()}
    assert main(["demo", "-o", str(folder)]) == 0
    assert {p.name: p.read_bytes() for p in (folder / "matmul_unblocked").iterdir() if p.is_file()} == first
    assert (folder / "mine.txt").read_text() == "mine"
    (folder / "matmul_unblocked" / "notes.txt").write_text("mine too")
    assert main(["demo", "-o", str(folder)]) == 2
    assert "notes.txt" in capsys.readouterr().err.splitlines()[-1]
    assert (folder / "matmul_unblocked" / "notes.txt").read_text() == "mine too"


def test_what_the_demo_says_to_type_can_be_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a demo"
    assert main(["demo", "-o", str(folder)]) == 0
    err = capsys.readouterr().err
    commands = [
        shlex.split(line.partition("trnscope ")[2]) for line in err.splitlines() if re.match(r"(see|capture) the .*trnscope ", line)
    ]
    assert [c[0] for c in commands] == ["source", "capture"]
    for command in commands:
        assert main(command) == 0, command
    assert "nisa.nc_matmul(" in capsys.readouterr().out
    before, after = (
        explorer.open(folder / name).table("Summary", ["total_time"]) for name in ("matmul_unblocked", "matmul_blocked")
    )
    assert before is not None and after is not None
    assert after["total_time"][0].as_py() < before["total_time"][0].as_py()


def test_where_the_shell_does_not_find_the_program_the_demo_gives_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "env" / "trnscope"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", [str(program), "demo"])
    assert main(["demo"]) == 0
    assert "  env/trnscope tui demo/matmul_unblocked --source-root " in capsys.readouterr().err
