"""What an export leaves behind when it cannot finish, and what `trnscope export` says then."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from explorer.commands import main
from explorer.export import perfetto
from explorer.export.files import whole_file
from explorer.export.perfetto import Window
from explorer.store import writer
from explorer.store.errors import ProfileError, UsageError
from explorer.store.reader import Profile
from tests import synthetic


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "profile"
    writer.write(path, synthetic.tables(50))
    return path


def test_nothing_is_left_of_a_file_that_was_interrupted(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    for name in ("old", "new"):
        with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / name, force=True) as file:
            file.write(b"half")
            raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_what_killed_writers_left_is_removed_and_what_others_write_is_not(tmp_path: Path) -> None:
    dead, alive = tmp_path / ".t.4194305.partial", tmp_path / f".t.{os.getppid()}.partial"
    for left in (dead, alive):
        left.write_text("half")
    perfetto.export(synthetic.profile(10), tmp_path / "t")
    assert sorted(os.listdir(tmp_path)) == sorted(["t", alive.name])


def test_an_existing_file_is_kept_without_force(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(UsageError, match="--force"):
        perfetto.export(synthetic.profile(10), tmp_path / "old")
    assert (tmp_path / "old").read_text() == "old"
    perfetto.export(synthetic.profile(10), tmp_path / "old", force=True)
    assert (tmp_path / "old").stat().st_size > 1000


def test_a_failing_write_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ProfileError, match="No space left on device; nothing was written"):
        perfetto.export(synthetic.profile(10), tmp_path / "t")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("profile", "options", "says"),
    [
        (Profile.from_tables({"Metadata": pa.table({"is_simulation": [True]})}), {}, "neither Instruction nor DMA rows"),
        (synthetic.profile(10), {"at": Window(10**15, 10**16)}, "no instruction or DMA row"),
    ],
    ids=["no rows", "empty window"],
)
def test_nothing_to_export_is_said_and_nothing_written(
    tmp_path: Path, profile: Profile, options: dict[str, Window], says: str
) -> None:
    with pytest.raises(ProfileError, match=says):
        perfetto.export(profile, tmp_path / "t", at=options.get("at"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["export", "perfetto", "{profile}", "-o", "{out}/t"], 0, "emulated profile"),
        (["export", "perfetto", "{profile}", "-o", "{out}/t", "--at", "10us..20us", "--flows", "--dma", "packets"], 0, "DmaPacket"),
        (["export", "perfetto", "{out}/none", "-o", "{out}/t"], 3, "no such profile"),
        (["export", "perfetto", "{profile}", "-o", "{out}"], 2, "is not a file"),
        (["export", "perfetto", "{profile}", "-o", "{out}/no/folder"], 3, "nothing was written"),
        (["export", "perfetto", "{profile}", "-o", "{out}/t", "--at", "soon"], 2, "no time range"),
        (["export", "perfetto", "{profile}", "-o", "{out}/t", "--table", "Flow"], 2, "--table belongs"),
        (["export", "csv", "{profile}", "-o", "{out}/t", "--flows"], 2, "--flows belong"),
        (["export", "csv", "{profile}", "-o", "{out}/t", "--table", "Nope"], 2, "no table 'Nope'"),
        (["export", "csv", "{profile}", "-o", "{out}/t", "--table", "../Flow"], 2, "no table"),
        (["export", "csv", "{profile}", "-o", "{out}/t"], 0, "50 Instruction"),
    ],
)
def test_command(
    stored: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str
) -> None:
    assert main([a.format(profile=stored, out=tmp_path) for a in arguments]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert says in err
    assert all(line.startswith("trnscope: ") for line in err.splitlines())
    if code:
        assert len(err.splitlines()) == 1
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "verb", [["export", "perfetto"], ["export", "csv", "--table", "Instruction"], ["report"]], ids=["perfetto", "csv", "report"]
)
@pytest.mark.parametrize("name", ["Instruction.parquet", "New_0.parquet"])
def test_no_output_takes_the_place_of_a_profiles_table(
    verb: list[str], name: str, stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {p.name: p.read_bytes() for p in stored.iterdir()}
    assert main([*verb, str(stored), "-o", str(stored / name), "--force"]) == 2
    assert "give another -o" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in stored.iterdir()} == before


def test_no_folder_of_csv_takes_the_place_of_a_profile(stored: Path) -> None:
    before = {p.name: p.read_bytes() for p in stored.iterdir()}
    assert main(["export", "csv", str(stored), "-o", str(stored), "--force"]) == 2
    assert {p.name: p.read_bytes() for p in stored.iterdir()} == before
