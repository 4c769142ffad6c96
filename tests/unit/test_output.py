"""What verbs print: tables of text and the JSON envelope."""

from __future__ import annotations

import json

from explorer.report import output
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


def test_notes_on_what_was_cut() -> None:
    assert output.cut_note(40, 12345) == "40 of 12,345; --limit 0 for all"
    assert output.cut_note(40, 40) is None
