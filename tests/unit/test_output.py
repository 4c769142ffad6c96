"""What verbs print: tables of text and the JSON envelope."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from explorer.commands import main
from explorer.report import output
from explorer.store import writer
from explorer.store.reader import Profile


def test_a_table_lines_up_whatever_stands_in_it() -> None:
    text = output.format_table(("name", "n", "kind"), [["a\x1b", 1234567, "x"], [None, None, "longer"], ["é", 0.123456, True]])
    assert text.splitlines() == [
        "name           n    kind",
        "-----  ---------  ------",
        "a\\x1b  1,234,567       x",
        "-              -  longer",
        "é         0.1235     yes",
    ]
    named = output.format_table(("n", "kind"), [[12, "x"], [3, "yy"]], left=("kind",))
    assert named.splitlines() == [" n  kind", "--  ----", "12  x", " 3  yy"]
    assert output.format_table(("a", "b"), []).splitlines() == ["a  b", "-  -"]


def test_answers_share_their_head_and_hold_no_number_that_json_has_not() -> None:
    answer = output.envelope(
        "info", Profile.from_tables({}, "p"), {"a": float("nan"), "b": [float("inf"), 1.5], "c": (2**63,)}, ["w"]
    )
    read = json.loads(output.json_text(answer))
    assert list(read)[:8] == ["tool", "version", "kind", "format", "profile", "evidence", "warnings", "not_captured"]
    assert (read["a"], read["b"], read["c"], read["profile"], read["evidence"]) == (None, [None, 1.5], [2**63], "p", "unknown")
    assert "Instruction" in read["not_captured"] and read["warnings"] == ["w"]


def test_integers_that_readers_would_round_become_texts() -> None:
    assert output.exact([2**53, 2**53 + 1, -(2**53) - 1, True, None, "x"]) == [
        2**53,
        str(2**53 + 1),
        str(-(2**53) - 1),
        True,
        None,
        "x",
    ]


def test_ids_of_a_listing_are_exact_and_its_times_are_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late, big = 1_700_000_000_000_000_001, 2**63 - 1
    row = {"id": [big], "start_ts": [late], "end_ts": [late + 1], "raw_framework_id": [big], "pc": [4]}
    writer.write(tmp_path / "p", {"Instruction": pa.table(row), "Metadata": pa.table({"is_simulation": [False]})})
    assert main(["instructions", str(tmp_path / "p"), "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["rows"]
    assert (shown["id"], shown["raw_framework_id"], shown["start_ts"], shown["pc"]) == (str(big), str(big), late, 4)


def test_notes_on_what_was_cut() -> None:
    assert output.cut_note(40, 12345) == "40 of 12,345; --limit 0 for all"
    assert output.cut_note(40, 40) is None
