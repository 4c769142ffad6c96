"""The sample profiles are what their commands make now."""

from __future__ import annotations

from pathlib import Path

import pytest

import explorer
from tests import make_samples

NAMES = sorted(make_samples.COMMANDS)


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_what_its_command_makes(name: str, tmp_path: Path) -> None:
    kept, made = explorer.open(make_samples.SAMPLES / name), explorer.open(make_samples.make(name, tmp_path))
    assert kept.tables == made.tables, "run `make samples`"
    for table in made.tables:
        now, then = made.table(table), kept.table(table)
        assert now is not None and then is not None
        assert now.schema == then.schema, f"{table}: run `make samples`"
        for column in now.column_names:
            assert now[column].to_pylist() == then[column].to_pylist(), f"{table}.{column}: run `make samples`"


def test_the_readme_has_every_command_and_every_profile_has_one() -> None:
    text = (make_samples.SAMPLES / "README.md").read_text(encoding="utf-8")
    for command in make_samples.COMMANDS.values():
        assert f"`{command}`" in text
    assert sorted(p.name for p in make_samples.SAMPLES.iterdir() if p.is_dir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_small(name: str) -> None:
    assert sum(f.stat().st_size for f in (make_samples.SAMPLES / name).iterdir()) < 300_000


def test_blocking_moves_fewer_bytes_in_less_time_for_the_same_work() -> None:
    before, after = (explorer.open(make_samples.SAMPLES / name) for name in ("matmul_unblocked", "matmul_blocked"))

    def metrics(profile: explorer.Profile) -> tuple[int, int, float]:
        table = profile.table("Summary", ["hardware_flops", "hbm_read_bytes", "total_time"])
        assert table is not None
        row = table.to_pylist()[0]
        return row["hardware_flops"], row["hbm_read_bytes"], row["total_time"]

    (flops, read, time), (flops_after, read_after, time_after) = metrics(before), metrics(after)
    assert flops == flops_after
    # Every tile of the right matrix is loaded M / 128 = 4 times, of the left N / 512 = 4 times; blocked: once, and N / 1024 = 2.
    assert read == 4 * (512 * 512 + 512 * 2048) * 2
    assert read_after == (2 * 512 * 512 + 512 * 2048) * 2
    assert time_after < time
