"""`trnscope capture`: a kernel's file becomes a profile, or one line says why not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import explorer
from explorer.commands import main
from explorer.store import nulls, schema

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl

from helper import load


@nki.jit
def scale(x, factor=2.0):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(x.shape[1] // 128):
        tile = load(x, i)
        apply(tile, factor)
        nisa.dma_copy(dst=out[:, nl.ds(i * 128, 128)], src=tile)
    return out


def apply(tile, factor):
    nisa.tensor_scalar(
        dst=tile, data=tile, op0=nl.multiply,
        operand0=factor,
    )


@nki.jit
def broken(x):
    return load(x, 0)[None].nothing
"""
HELPER = """\
import nki.isa as nisa
import nki.language as nl


def load(x, i):
    tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * 128, 128)])
    return tile
"""
ARGUMENTS = ("--arg", "x=bf16[128,512]")
Folder = Callable[[str], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    def make(name: str) -> Path:
        path = tmp_path / name
        path.mkdir(parents=True)
        (path / "kernel.py").write_text(KERNEL)
        (path / "helper.py").write_text(HELPER)
        return path

    return make


def rows(profile: Path, table: str, *columns: str) -> list[dict[str, Any]]:
    found = explorer.open(profile).table(table, columns or None)
    assert found is not None
    listed: list[dict[str, Any]] = found.to_pylist()
    return listed


def test_a_kernel_becomes_a_profile(folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = folder("k") / "kernel.py"
    assert main(["capture", f"{kernel}:scale", *ARGUMENTS, "-o", str(tmp_path / "p")]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "emulated profile" in err and "12 instructions and 8 transfers" in err
    assert f"trnscope tui {tmp_path / 'p'}" in err and "export perfetto" in err
    found = rows(tmp_path / "p", "Instruction", "opcode", "nki_source_location", "ts_end_line", "layer", "ts_loop")
    by_opcode = {r["opcode"]: r for r in found}
    lines = KERNEL.splitlines()
    at = 1 + next(i for i, line in enumerate(lines) if "tensor_scalar" in line)
    applied = by_opcode["TENSOR_SCALAR"]
    assert (applied["nki_source_location"], applied["ts_end_line"]) == (f"kernel.py:{at}", at + 3)
    assert applied["layer"] == "/scale/apply"
    loads = [r for r in found if r["nki_source_location"] == "helper.py:7"]
    assert [r["layer"] for r in loads] == ["/scale/load"] * 4
    assert [r["ts_loop"] for r in loads] == ["i=0", "i=1", "i=2", "i=3"]
    (metadata,) = rows(tmp_path / "p", "Metadata")
    assert metadata["is_simulation"] and metadata["ts_kernel_file"] == "kernel.py" and metadata["ts_seed"] == 0
    assert metadata["ts_arguments"] == '{"x": "bf16[128,512]"}'


def test_the_same_input_gives_the_same_bytes_in_any_folder(folder: Folder, tmp_path: Path) -> None:
    code = "import sys; from explorer.commands import main; sys.exit(main(sys.argv[1:]))"
    for name in ("here", "else/where"):
        kernel = folder(name) / "kernel.py"
        # A new process each: nothing may depend on what ran before, on hashing or on the working directory.
        command = [sys.executable, "-c", code, "capture", f"{kernel}:scale", *ARGUMENTS, "-o", str(kernel.parent / "p")]
        subprocess.run(command, check=True, cwd=kernel.parent, env={**os.environ, "PYTHONHASHSEED": str(len(name))})
    one, other = (tmp_path / name / "p" for name in ("here", "else/where"))
    files = sorted(p.name for p in one.iterdir())
    assert files == sorted(p.name for p in other.iterdir()) and len(files) > 15
    for file in files:
        assert (one / file).read_bytes() == (other / file).read_bytes(), file
    assert str(tmp_path).encode() not in b"".join((one / f).read_bytes() for f in files)


def test_a_source_root_above_the_kernel_shows_in_the_paths(folder: Folder, tmp_path: Path) -> None:
    kernel = folder("src/kernels") / "kernel.py"
    command = ["capture", f"{kernel}:scale", *ARGUMENTS, "-o", str(tmp_path / "p"), "--source-root", str(tmp_path / "src")]
    assert main(command) == 0
    places = {r["nki_source_location"].partition(":")[0] for r in rows(tmp_path / "p", "Instruction", "nki_source_location")}
    assert places == {"kernels/kernel.py", "kernels/helper.py"}


def test_values_do_not_change_when_things_run(folder: Folder, tmp_path: Path) -> None:
    kernel = folder("k") / "kernel.py"
    assert main(["capture", f"{kernel}:scale", *ARGUMENTS, "-o", str(tmp_path / "with")]) == 0
    assert main(["capture", f"{kernel}:scale", *ARGUMENTS, "--no-values", "-o", str(tmp_path / "without")]) == 0
    assert rows(tmp_path / "with", "Instruction") == rows(tmp_path / "without", "Instruction")
    (metadata,) = rows(tmp_path / "without", "Metadata", "ts_values", "ts_seed")
    assert metadata == {"ts_values": False, "ts_seed": None}


def test_scalars_and_files_are_arguments_too(folder: Folder, tmp_path: Path) -> None:
    kernel = folder("k") / "kernel.py"
    np.save(tmp_path / "x.npy", np.ones((128, 256), np.float32))
    command = ["capture", f"{kernel}:scale", "--arg", f"x=@{tmp_path / 'x.npy'}", "--arg", "factor=3", "-o", str(tmp_path / "p")]
    assert main(command) == 0
    (metadata,) = rows(tmp_path / "p", "Metadata", "ts_arguments", "ts_seed")
    assert metadata == {"ts_arguments": '{"x": "float32[128,256]", "factor": "3"}', "ts_seed": None}


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_every_target_gives_tables_of_the_schema_with_the_listed_nulls(target: str, folder: Folder, tmp_path: Path) -> None:
    kernel = folder("k") / "kernel.py"
    assert main(["capture", f"{kernel}:scale", *ARGUMENTS, "--target", target, "-o", str(tmp_path / "p")]) == 0
    profile = explorer.open(tmp_path / "p")
    listed = {(n.table, n.column) for n in nulls.NULLS["nki"]}
    for name in profile.tables:
        table = profile.table(name)
        assert table is not None
        for column in schema.tables()[name].columns:
            if column.required and name != "SchemaFields":
                assert table[column.name].null_count == 0 or (name, column.name) in listed, f"{name}.{column.name}"
            if column.name in table.column_names:
                assert table.schema.field(column.name).type == column.arrow


def test_a_grid_runs_every_instance(folder: Folder, tmp_path: Path) -> None:
    kernel = folder("k") / "kernel.py"
    assert main(["capture", f"{kernel}:scale", *ARGUMENTS, "--grid", "2", "-o", str(tmp_path / "p")]) == 0
    assert len(rows(tmp_path / "p", "Instruction", "id")) == 24
    assert rows(tmp_path / "p", "Metadata", "ts_grid") == [{"ts_grid": "[2]"}]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["none.py"], 3, "none.py: no such file"),
        (["{k}/kernel.py"], 3, "several kernels"),
        (["{k}/kernel.py:other"], 3, "no kernel 'other'"),
        (["{k}/kernel.py:scale"], 2, "scale(x, factor=2.0) needs x; for example --arg x=bf16[128,512]"),
        (["{k}/kernel.py:scale", "--arg", "y=1"], 2, "has no parameter y"),
        (["{k}/kernel.py:scale", "--arg", "x=zz[4]"], 2, "unknown element type"),
        (["{k}/kernel.py:scale", "--arg", "x=@none.npy"], 3, "none.npy"),
        (["{k}/kernel.py:scale", "--arg", "x=bf16[256,512]"], 3, "helper.py:7: nki.isa.dma_copy"),
        (["{k}/kernel.py:scale", *ARGUMENTS, "--grid", "two"], 2, "--grid two"),
        (["{k}/kernel.py:scale", *ARGUMENTS, "--seed", "-1"], 2, "--seed -1"),
        (["{k}/empty.py"], 3, "empty.py"),
        (["{k}/syntax.py"], 3, "syntax.py"),
        (["{k}"], 3, "no such file"),
    ],
)
def test_what_cannot_be_captured_gets_one_line(
    arguments: list[str], code: int, said: str, folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    k = folder("k")
    (k / "empty.py").write_text("")
    (k / "syntax.py").write_text("def broken(:\n")
    before = sorted(tmp_path.iterdir())
    assert main(["capture", *(a.format(k=k) for a in arguments), "-o", str(tmp_path / "p")]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("trnscope: ") and err.count("\n") == 1
    assert said in err
    assert sorted(tmp_path.iterdir()) == before


def test_a_kernel_that_raises_shows_its_own_traceback(folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = folder("k") / "kernel.py"
    kernel.write_text(
        KERNEL.replace("return load(x, 0)[None].nothing", "raise_here(x)\n\n\ndef raise_here(x):\n    [][len(x.shape)]")
    )
    assert main(["capture", f"{kernel}:broken", *ARGUMENTS, "-o", str(tmp_path / "p")]) == 3
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err and "[][len(x.shape)]" in err
    files = [line for line in err.splitlines() if line.lstrip().startswith("File ")]
    assert len(files) == 2 and all(str(kernel) in line for line in files)
    assert err.splitlines()[-1].startswith("trnscope: IndexError") and "nothing was written" in err
    assert not (tmp_path / "p").exists()


def test_an_existing_profile_stays_without_force(folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = folder("k") / "kernel.py"
    command = ["capture", f"{kernel}:scale", "-o", str(tmp_path / "p")]
    assert main([*command, *ARGUMENTS]) == 0
    before = (tmp_path / "p" / "Instruction.parquet").read_bytes()
    assert main([*command, "--arg", "x=bf16[128,128]"]) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "p" / "Instruction.parquet").read_bytes() == before
    assert main([*command, "--arg", "x=bf16[256,128]", "--force"]) == 3
    assert (tmp_path / "p" / "Instruction.parquet").read_bytes() == before
    assert main([*command, "--arg", "x=bf16[128,128]", "--force"]) == 0
    assert len(rows(tmp_path / "p", "Instruction", "id")) == 3
    shutil.rmtree(tmp_path / "p")


def test_progress_is_for_terminals_only(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    kernel = folder("k") / "kernel.py"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["capture", f"{kernel}:scale", *ARGUMENTS, "-o", str(tmp_path / "p")]) == 0
    err = capsys.readouterr().err
    assert "running scale for trn2" in err and "timing 12 instructions" in err


ODD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def nothing(x):
    return x


@nki.jit
def no_transfer(x):
    tile = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    return x


@nki.jit
def casting(x):
    tile = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return x


@nki.jit
def too_big(x):
    tiles = []
    for i in nl.affine_range(20):
        tile = nl.ndarray((128, 8192), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=tile, value=0.0)
        tiles.append(tile)
    for tile in tiles:
        nisa.tensor_tensor(dst=tiles[0], data1=tile, data2=tile, op=nl.add)
    return x


@nki.jit
def raises(x):
    raise ValueError("\\x1b[31mred\\nline two")
"""


@pytest.mark.parametrize(
    ("kernel", "absent", "present"),
    [
        ("nothing", {"Instruction", "Flow", "DmaPacket", "SbufUsage", "FrameworkNode"}, {"Metadata", "TensorInfo", "Warning"}),
        (
            "no_transfer",
            {"Flow", "DmaPacket", "DmaUsage", "PendingDma", "SemaphoreUpdate"},
            {"Instruction", "SbufUsage", "FrameworkNode"},
        ),
    ],
)
def test_tables_without_rows_are_not_written(kernel: str, absent: set[str], present: set[str], tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    assert main(["capture", f"{tmp_path}/odd.py:{kernel}", "--arg", "x=f32[128,64]", "-o", str(tmp_path / "p")]) == 0
    profile = explorer.open(tmp_path / "p")
    assert not absent & set(profile.tables) and present <= set(profile.tables)
    assert absent <= set(profile.not_captured)


def test_a_transfer_that_casts_writes_other_bytes_than_it_reads(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    assert main(["capture", f"{tmp_path}/odd.py:casting", "--arg", "x=f32[128,64]", "-o", str(tmp_path / "p")]) == 0
    (transfer,) = rows(tmp_path / "p", "DmaPacketAggregated", "read_bytes", "write_bytes", "transfer_bytes")
    assert transfer == {"read_bytes": 128 * 64 * 4, "write_bytes": 128 * 64 * 2, "transfer_bytes": 128 * 64 * 4}
    packets = rows(tmp_path / "p", "DmaPacket", "read_bytes", "write_bytes")
    assert [sum(p[c] for p in packets) for c in ("read_bytes", "write_bytes")] == [128 * 64 * 4, 128 * 64 * 2]


@pytest.mark.parametrize(
    ("kernel", "said"), [("too_big", "odd.py:29: SBUF exhausted: tensor"), ("raises", "ValueError at"), ("raises", "\\x1b[31mred")]
)
def test_what_a_kernel_does_wrong_ends_the_capture(
    kernel: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    assert main(["capture", f"{tmp_path}/odd.py:{kernel}", "--arg", "x=f32[128,64]", "-o", str(tmp_path / "p")]) == 3
    err = capsys.readouterr().err
    assert said in err.splitlines()[-1] and "\x1b" not in err
    assert not (tmp_path / "p").exists()


def test_the_user_hears_of_sources_that_the_paths_do_not_lead_to(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = folder("k") / "kernel.py"
    (tmp_path / "other").mkdir()
    command = ["capture", f"{kernel}:scale", *ARGUMENTS, "-o", str(tmp_path / "p"), "--source-root", str(tmp_path / "other")]
    assert main(command) == 0
    err = capsys.readouterr().err
    assert "warning: kernel.py: source outside the source root" in err and "warning: helper.py: source outside" in err
    assert str(tmp_path / "k") not in str(rows(tmp_path / "p", "KernelStackFrames"))
