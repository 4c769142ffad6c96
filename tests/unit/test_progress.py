"""Progress is for terminals, and leaves no trace on them."""

from __future__ import annotations

import sys
import threading

import pytest

from explorer.commands import progress


def test_nothing_is_shown_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Progress() as say:
        say("working")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_what_is_done_and_for_how_long(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "_TICK", 0.01)
    with progress.Progress() as say:
        say("working")
        threading.Event().wait(0.1)
    shown = capsys.readouterr().err
    assert shown.startswith("\r\x1b[Kworking...\r\x1b[Kworking... 0 s")
    assert shown.endswith("\r\x1b[K")
