"""CSV: every value comes back, no cell is a formula, no file lands elsewhere."""

from __future__ import annotations

import csv as reading
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.export import csv
from explorer.export.window import Window
from explorer.store.errors import ProfileError, UsageError
from explorer.store.reader import Profile
from tests import synthetic


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(reading.DictReader(file))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.one_of(st.none(), st.text(), st.sampled_from(synthetic.HOSTILE)), min_size=1, max_size=20))
def test_texts_come_back_and_are_no_formulas(tmp_path: Path, texts: list[str | None]) -> None:
    profile = Profile.from_tables({"TsNotes": pa.table({"text": pa.array(texts, pa.string()), "row": range(len(texts))})})
    csv.export_table(profile, "TsNotes", tmp_path / "t.csv", force=True)
    found = read(tmp_path / "t.csv")
    assert [int(r["row"]) for r in found] == list(range(len(texts)))
    for row, text in zip(found, texts, strict=True):
        assert row["text"][:1] not in ("=", "+", "-", "@", "\t", "\r", "\n")
        neutral = f"'{text}" if text and text[0] in "=+-@\t\r\n" else text or ""
        assert row["text"] == neutral


def test_numbers_nulls_and_lists(tmp_path: Path) -> None:
    rows: dict[str, Any] = {
        "ts_i": [-(2**63), None],
        "ts_f": [0.1, None],
        "ts_b": [True, None],
        "ts_l": [["=a", "b"], None],
        "ts_s": ["", None],
        "ts_u": pa.array([2**64 - 1, None], pa.uint64()),
    }
    csv.export_table(Profile.from_tables({"TsOdd": pa.table(rows)}), "TsOdd", tmp_path / "t.csv")
    first, second = (tmp_path / "t.csv").read_text().splitlines()[1:]
    assert first == f'{-(2**63)},0.1,true,"[""=a"", ""b""]","",{2**64 - 1}'
    assert second == ",,,,,"


def test_every_table_in_a_folder(tmp_path: Path) -> None:
    profile = synthetic.profile(300, 3)
    done = csv.export_all(profile, tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == sorted(f"{t}.csv" for t in profile.tables)
    for table in profile.tables:
        found = read(tmp_path / "out" / f"{table}.csv")
        assert len(found) == profile.rows(table) == done.rows[table]
        whole = profile.table(table)
        assert whole is not None
        assert list(found[0]) == whole.column_names
    ids = [int(r["id"]) for r in read(tmp_path / "out" / "Instruction.csv")]
    whole = profile.table("Instruction", ["id"])
    assert whole is not None
    assert ids == whole["id"].to_pylist()


def test_a_folder_is_replaced_only_if_it_is_an_export(tmp_path: Path) -> None:
    profile = synthetic.profile(5)
    csv.export_all(profile, tmp_path / "out")
    with pytest.raises(UsageError, match="--force"):
        csv.export_all(profile, tmp_path / "out")
    csv.export_all(profile, tmp_path / "out", force=True)
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not replaced"):
        csv.export_all(profile, tmp_path / "out", force=True)
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
    assert os.listdir(tmp_path) == ["out"]


def test_an_export_that_fails_leaves_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    csv.export_all(synthetic.profile(5), tmp_path / "out")
    before = {f.name: f.read_bytes() for f in (tmp_path / "out").iterdir()}

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(csv, "_write", full)
    with pytest.raises(ProfileError, match="No space left"):
        csv.export_all(synthetic.profile(9), tmp_path / "out", force=True)
    assert os.listdir(tmp_path) == ["out"]
    assert {f.name: f.read_bytes() for f in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize("name", [".", "..", "/"])
def test_a_folder_has_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="a name of its own"):
        csv.export_all(synthetic.profile(5), Path(name), force=True)


def test_window(tmp_path: Path) -> None:
    profile = synthetic.profile(500, 1)
    csv.export_table(profile, "Instruction", tmp_path / "t.csv", at=Window(10_000, 20_000))
    whole = profile.table("Instruction", ["id", "start_ts", "end_ts"])
    assert whole is not None
    expected = [r["id"] for r in whole.to_pylist() if r["start_ts"] < 20_000 and max(r["end_ts"], r["start_ts"] + 1) > 10_000]
    assert [int(r["id"]) for r in read(tmp_path / "t.csv")] == expected
    assert 0 < len(expected) < 500
