"""Where instructions come from, as a profile stores it."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.nki.source import Paths
from tests.unit import collect_program as made
from tests.unit.collect_program import TILES, rows


def test_paths_below_the_root_are_relative_to_it(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert paths.stored(str(tmp_path / "a" / "kernel.py")) == "a/kernel.py"
    assert not paths.outside(str(tmp_path / "kernel.py"))


def test_a_link_to_the_root_is_the_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for root, file in (("link", "real"), ("real", "link")):
        paths = Paths(tmp_path / root)
        assert paths.stored(str(tmp_path / file / "helper.py")) == "helper.py"
        assert not paths.outside(str(tmp_path / file / "helper.py"))


def test_other_paths_are_named_as_python_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "site" / "pkg" / "mod.py"
    paths = Paths(tmp_path / "kernels")
    assert paths.stored(str(library)) == "mod.py"
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert paths.stored(str(library)) == "pkg/mod.py"
    assert paths.outside(str(library))
    assert paths.stored("<stdin>") == "<stdin>" and not paths.outside("<stdin>")


def test_every_instruction_leads_to_its_statement_stack_and_loop() -> None:
    frames = {r["stack_frame_id"]: r for r in rows("KernelStackFrames")}
    loops = {r["iteration_variable_id"]: r for r in rows("KernelIterationVariables")}
    calls = {r["kernel_instruction_name"]: r for r in rows("KernelInstructions")}
    found = rows("Instruction")
    assert len(calls) == 4 * TILES
    for i, row in enumerate(found):
        call = calls[row["kernel_instruction_name"]]
        inner = frames[call["stack_frame_id"]]
        assert (
            row["nki_source_location"] == f"{inner['file_path']}:{inner['ts_line']}" == f"collect_program.py:{call['line_number']}"
        )
        chain = [call["stack_frame_id"]]
        while (parent := frames[chain[-1]]["parent_stack_frame_id"]) is not None:
            chain.append(parent)
        assert row["stack_frame_ids"] == str(chain[::-1])
        assert call["stack_frame_depth"] == len(chain)
        loop = loops[call["iteration_variables_id"]]
        assert (loop["variable_name"], loop["variable_value"], call["iteration_variable_depth"]) == ("i", i // 5, 1)
        assert row["ts_loop"] == f"i={i // 5}"
    assert calls["inst.1"]["line_number"] == calls["inst.5"]["line_number"]
    assert found[1]["kernel_instruction_name"] == found[2]["kernel_instruction_name"] == "inst.1"


def test_a_frame_says_where_its_function_is_defined_and_where_it_was() -> None:
    text = Path(made.__file__).read_text(encoding="utf-8").splitlines()
    inner = next(r for r in rows("KernelStackFrames") if r["fully_qualified_function_name"] == "program")
    assert text[inner["line_number"] - 1].startswith("def program(")
    assert "recorder.emit(" in text[inner["ts_line"] - 1] or "recorder." in text[inner["ts_line"] - 1]
