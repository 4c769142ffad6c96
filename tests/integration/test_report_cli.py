"""`trnscope report` end to end: a kernel captured by the command line, its report as people and machines read it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import explorer.report
from collectors import neuron_profile
from explorer.commands import main
from explorer.store import writer
from tests import make_samples

KERNELS = Path(__file__).parents[1] / "kernels"
SAMPLES = make_samples.SAMPLES
HARDWARE = Path(__file__).parents[3] / "shared" / "data" / "neuron_profile"
SCHEMA = json.loads((Path(explorer.report.__path__[0]) / "schemas" / "report.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel with a fault, captured as a user does."""
    path = tmp_path_factory.mktemp("report") / "overlap"
    command = ["capture", f"{KERNELS / 'rules_overlap.py'}:single_buffer", "--arg", "x=f32[128,16384]", "-o", str(path)]
    assert main([*command, "--no-values"]) == 0
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["report", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_the_report_names_kernel_line_and_evidence(captured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, str(captured), "--source-root", str(KERNELS))
    assert out.startswith("# trnscope report: `single_buffer`\n\n**Emulated** on `trn2`")
    text = " ".join(out.split())
    assert "**critical** up to" in text and "loads\\_not\\_overlapped" not in out and "loads_not_overlapped" in out
    assert "`rules_overlap.py:34` in layer `/single_buffer/_step`" in text
    assert "- `rules_overlap.py:34`: `nisa.dma_copy(dst=tile, src=x[:, span])`" in out
    assert "- arguments: `x=f32[128,16384]`" in out
    assert max(len(line) for line in out.splitlines() if not line.startswith(("- `Emulator`", "- profile:"))) <= 80


def test_json_is_valid_and_says_the_same(captured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(printed(capsys, str(captured), "--json"))
    jsonschema.Draft202012Validator(SCHEMA).validate(answer)
    worst = answer["findings"][0]
    assert (worst["rule"], worst["where"]["file"], worst["where"]["line"]) == ("loads_not_overlapped", "rules_overlap.py", 34)
    assert worst["gain_ns"] <= answer["lower_bound"]["headroom_ns"] == answer["total_ns"] - answer["lower_bound"]["bound_ns"]
    assert answer["lines"][0]["file"] == "rules_overlap.py"


@pytest.mark.parametrize("name", sorted(make_samples.COMMANDS))
def test_every_sample_has_a_report(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(printed(capsys, str(SAMPLES / name), "--json")))
    out = printed(capsys, str(SAMPLES / name))
    assert "**Emulated**" in out and "**Measured**" not in out


def test_every_real_profile_has_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not HARDWARE.is_dir():
        pytest.skip(f"real profiles are not in {HARDWARE}")
    files = sorted(HARDWARE.glob("*.json"))
    assert len(files) == 13
    for file in files:
        writer.write(tmp_path / file.stem, neuron_profile.load([file]).tables)
        out = printed(capsys, str(tmp_path / file.stem))
        assert "**Measured** on `inf2.xlarge`" in out and "mulated" not in out
        assert "- unused_partitions: not captured: Instruction.ts_partitions" in out
        assert "Not captured: no instruction names its source line." in out
        jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(printed(capsys, str(tmp_path / file.stem), "--json")))


def test_the_same_profile_gives_the_same_report(captured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, str(captured)) == printed(capsys, str(captured))


def test_a_pipe_that_closes_is_no_error(captured: Path) -> None:
    program = "import sys; from explorer.commands import main; sys.exit(main(sys.argv[1:]))"
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [sys.executable, "-c", program, "report", str(captured)], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_folder_that_is_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1


def test_a_damaged_table_is_one_line(captured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in captured.glob("*.parquet"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "Instruction.parquet").write_bytes((captured / "Instruction.parquet").read_bytes()[:500])
    assert main(["report", str(tmp_path)]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "Instruction.parquet" in err
