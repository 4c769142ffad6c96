"""`trnscope import`, `summary` and `explain` as a user runs them, bad input included."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

from explorer.commands import main
from explorer.store import reader
from tests.unit.neuron_document import REAL, document, write


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    assert main(["import", str(write(tmp_path / "p.json", document())), "-o", str(tmp_path / "out")]) == 0
    return tmp_path / "out"


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Exit code and the one line of a call that fails."""
    capsys.readouterr()
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and err.startswith("trnscope: ")
    return code, err


def ntff(path: Path, version: int = 5) -> Path:
    """A file with the head of an NTFF."""
    path.write_bytes(bytes([version]) + (16).to_bytes(8, "little") + bytes(119 + 16))
    return path


def test_import_says_what_it_wrote_and_keeps_stdout_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(write(tmp_path / "p.json", document())), "-o", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "measured profile" in err and "5 Instruction" in err


def test_an_existing_profile_is_replaced_only_by_force(profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, before = tmp_path / "p.json", sorted(profile.iterdir())
    code, line = fails(capsys, "import", source, "-o", profile)
    assert code == 2 and "--force" in line
    assert sorted(profile.iterdir()) == before
    assert main(["import", str(source), "-o", str(profile), "--force"]) == 0


def bad_inputs() -> dict[str, tuple[bytes | None, str]]:
    """What people give by mistake, and what the line must say."""
    whole = json.dumps(document()).encode()
    return {
        "missing": (None, "No such file"),
        "empty": (b"", "empty file"),
        "blank": (b" \n", "empty file"),
        "cut": (whole[: len(whole) // 2], "cut off"),
        "cut in a string": (whole[: whole.index(b'"MATMUL"') + 3], "cut off"),
        "damaged": (whole.replace(b'"instruction": [', b'"instruction": [,', 1), "damaged JSON in line 1"),
        "chrome": (b'{"traceEvents": []}', "a Chrome trace"),
        "chrome list": (b'[{"ph": "X", "ts": 1}]', "a Chrome trace"),
        "torch": (b'{"schemaVersion": 1, "traceEvents": []}', "torch.profiler"),
        "system": (b'{"trace_events": [], "mem_usage": []}', "system profile"),
        "summary-json": (b'{"n_12ab": {"total_time": 1}}', "summary-json"),
        "other object": (b'{"speedscope": 1}', '"speedscope"'),
        "empty object": (b"{}", "an empty JSON object"),
        "number": (b"12", "a JSON int"),
        "text": (b"hello", "not JSON"),
        "binary": (b"\x00\x01\x02", "a binary file"),
        "gzip": (gzip.compress(whole), "unpack it first"),
        "parquet": (b"PAR1....", "a Parquet table"),
        "no rows": (b'{"instruction": 7}', "no list of rows"),
        "deep": (b'{"instruction": ' + b"[" * 200_000, "nested too deep"),
        "escape": (b'{"\\u001b[31mred": 1}', "\\u001b"),
    }


@pytest.mark.parametrize("name", bad_inputs())
def test_bad_input_gets_one_line_and_nothing_is_written(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, said = bad_inputs()[name]
    path = tmp_path / "in.json"
    if content is not None:
        path.write_bytes(content)
    code, line = fails(capsys, "import", path, "-o", tmp_path / "out")
    assert code == 3
    assert str(path) in line and said in line
    assert "\x1b" not in line
    assert [p for p in tmp_path.iterdir() if p != path] == []


def test_two_exports_at_once_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (write(tmp_path / n, document()) for n in ("a.json", "b.json"))
    code, line = fails(capsys, "import", one, two, "-o", tmp_path / "out")
    assert code == 2 and "one by one" in line


def test_bytes_that_are_no_utf8_are_mended_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(json.dumps(document()).encode().replace(b"_dot.3", b"_d\xfft\n3"))
    assert main(["import", str(path), "-o", str(tmp_path / "out")]) == 0
    assert "no UTF-8" in capsys.readouterr().err
    layers = reader.open(tmp_path / "out").table("Instruction", ["layer"])
    assert layers is not None and "_d\ufffdt\n3" in layers["layer"].to_pylist()


def test_raw_captures_without_the_tool_name_version_and_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    (tmp_path / "my graph.neff").write_bytes(b"neff")
    ntff(tmp_path / "run.ntff")
    for given in ([tmp_path], [tmp_path / "my graph.neff", tmp_path / "run.ntff"]):
        code, line = fails(capsys, "import", *given, "-o", tmp_path / "out")
        assert code == 3 and "NTFF version 5" in line
        command = shlex.split(line.split("`")[1])
        assert command[:6] == ["neuron-explorer", "view", "-n", str(tmp_path / "my graph.neff"), "-s", str(tmp_path / "run.ntff")]
        assert command[6:] == ["--output-format", "json", "--output-file", "profile.json"]
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not REAL.is_dir(), reason=f"no real NTFF at {REAL}")
def test_a_real_ntff_tells_its_version(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, line = fails(capsys, "import", next(REAL.glob("*.ntff")), "-o", tmp_path / "out")
    assert code == 3 and "needs a NEFF and an NTFF; found 1 .ntff" in line
    assert "NTFF version 5" in line and "neuron-explorer view -n FILE.neff -s " in line


@pytest.mark.parametrize(
    ("files", "code", "said"),
    [
        ((), 3, "no file"),
        (("a.neff",), 3, "found 1 .neff"),
        (("a.neff", "b.neff", "a.ntff"), 2, "2 .neff, 1 .ntff"),
        (("a.neff", "a.ntff", "b.ntff"), 2, "2 .ntff"),
        (("notes.txt", "x.pb"), 3, "1 .pb, 1 other"),
        (("Instruction.parquet",), 3, "open as they are"),
    ],
)
def test_a_folder_that_is_no_capture_says_what_it_holds(
    files: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    for name in files:
        ntff(folder / name)
    found, line = fails(capsys, "import", folder, "-o", tmp_path / "out")
    assert (found, said in line) == (code, True), line


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "empty"), (b"\x05" * 20, "cut off"), (b"\x05" + b"\xff" * 200, "not a whole NTFF")]
)
def test_an_ntff_that_is_none_is_refused(content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.neff").write_bytes(b"neff")
    (tmp_path / "a.ntff").write_bytes(content)
    code, line = fails(capsys, "import", tmp_path / "a.neff", tmp_path / "a.ntff", "-o", tmp_path / "out")
    assert code == 3 and said in line


def tool(folder: Path, script: str) -> None:
    """A stand-in for neuron-explorer on PATH."""
    folder.mkdir()
    path = folder / "neuron-explorer"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_raw_captures_go_through_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = write(tmp_path / "exported.json", document())
    tool(tmp_path / "bin", f'echo "$@" > {tmp_path}/called; cp {exported} "$9"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    capture = tmp_path / "capture; touch hacked"
    (capture / "deep").mkdir(parents=True)
    (capture / "deep" / "g.neff").write_bytes(b"neff")
    ntff(capture / "deep" / "g.ntff")
    assert main(["import", str(capture), "-o", str(tmp_path / "out")]) == 0
    assert reader.open(tmp_path / "out").rows("Instruction") == 5
    assert (
        (tmp_path / "called").read_text().startswith(f"view -n {capture}/deep/g.neff -s {capture}/deep/g.ntff --output-format json")
    )
    assert not list(tmp_path.rglob("hacked"))


@pytest.mark.parametrize(
    ("script", "said"), [("echo unsupported NTFF >&2; exit 7", "exit 7): unsupported NTFF"), ("exit 0", "it said nothing")]
)
def test_a_tool_that_fails_is_quoted(
    script: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "g.neff").write_bytes(b"neff")
    code, line = fails(capsys, "import", tmp_path / "g.neff", ntff(tmp_path / "g.ntff"), "-o", tmp_path / "out")
    assert code == 3 and said in line
    assert not (tmp_path / "out").exists()


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main([str(a) for a in arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_summary_as_json(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "summary", profile, "--json")
    assert (found["kind"], found["evidence"], found["warnings"]) == ("summary", "measured", [])
    assert found["metrics"]["matmul_instruction_count"] == 2
    assert found["metrics"]["adjusted_hardware_flops"] is None
    assert found["units"]["total_time"] == "seconds"
    assert found["origins"]["total_time"] == "reported by the source"
    assert found["capture"]["instance_type"] == "inf2.xlarge"


def test_summary_as_text(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["summary", str(profile)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{profile}: measured profile"
    cells = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert cells["total_time"] == ["10.00", "us", "reported", "by", "the", "source"]
    assert cells["tensor_engine_active_time_percent"] == ["6", "%", "computed"]
    assert cells["trace_count"] == ["20", "reported", "by", "the", "source"]
    assert cells["total_row_count"] == ["-", "not", "captured"]


def test_explain_shows_formula_numbers_and_sql_that_runs(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import duckdb

    found = answer(capsys, "explain", "tensor_engine_active_time_percent", profile, "--json")
    assert found["formula"] == "tensor_engine_active_time / total_time"
    assert found["with_numbers"] == "6e-07 / 1e-05"
    assert found["tables"] == ["Instruction", "Summary"]
    database = duckdb.connect()
    for file in profile.glob("*.parquet"):
        database.execute(f"CREATE VIEW {file.stem} AS SELECT * FROM read_parquet('{file}')")
    assert database.execute(found["sql"]).fetchone() == (found["value"],)


def test_explain_of_what_was_not_captured_says_what_is_lacking(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "explain", "adjusted_hardware_flops", profile, "--json")
    assert (found["value"], found["sql"], found["missing"]) == (None, None, ["Instruction.adjusted_flops"])
    assert main(["explain", "adjusted_hardware_flops", str(profile)]) == 0
    assert "not captured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("hfu", "hfu_estimated_percent"), ("total_tme", "total_time"), ("TENSOR_ENGINE_ACTIVE_TIME", "tensor_engine_active_time")],
)
def test_an_unknown_metric_gets_the_nearest_names(
    asked: str, nearest: str, profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = fails(capsys, "explain", asked, profile)
    assert code == 2 and nearest in line
