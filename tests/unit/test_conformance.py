"""The conformance runner: what it counts as a pass, on a checkout made here of kernels of our own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.program import Frame
from tests.bounds import exact
from tests.conformance import __main__ as runner
from tests.conformance.cases import Case
from tests.conformance.execute import Execution, execute

_KERNELS = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from helper import doubled

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, doubled(nl.load(x)))
    return out

@nki.jit
def unsupported(x):
    return nl.loop_reduce(nl.load(x), op=nl.add, loop_indices=[0])
"""
_HELPER = """
def doubled(tile):
    return tile + tile
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernels.py").write_text(_KERNELS)
    (tmp_path / "helper.py").write_text(_HELPER)
    monkeypatch.setattr(runner, "BEYOND", ())
    monkeypatch.setattr(runner, "LANDMARK", "kernels.py")
    return tmp_path


def _case(factor: float, function: str = "double") -> Case:
    return Case(
        "kernels.py", function, (lambda rng: (rng.standard_normal((4, 8)).astype(np.float32),),), lambda x: exact(x) * factor
    )


def _run(checkout: Path, monkeypatch: pytest.MonkeyPatch, *cases: Case) -> int:
    monkeypatch.setattr(runner, "REQUIRED", cases)
    return runner.main([str(checkout)])


def test_right_values_pass(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert _run(checkout, monkeypatch, _case(2.0)) == 0
    assert "1 of 1 pass" in capsys.readouterr().out


def test_one_wrong_kernel_fails_the_run(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert _run(checkout, monkeypatch, _case(2.0), _case(2.00001)) == 1
    assert "values differ" in capsys.readouterr().out


def test_a_call_that_is_not_there_is_named(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert _run(checkout, monkeypatch, _case(2.0, "unsupported")) == 1
    assert "kernels.py:14: nki.language.loop_reduce is not emulated yet" in capsys.readouterr().out


def test_kernels_beyond_do_not_fail_the_run(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(runner, "BEYOND", (_case(3.0),))
    assert _run(checkout, monkeypatch, _case(2.0)) == 0
    assert "0 of 1 pass" in capsys.readouterr().out


@pytest.mark.parametrize("path", ["", "nowhere"])
def test_what_is_no_checkout_is_a_usage_error(path: str, capsys: Any) -> None:
    assert runner.main([path]) == 2
    assert "no checkout of aws-neuron/nki-samples" in capsys.readouterr().err


def test_stacks_have_to_go_from_the_entry_into_the_checkout(checkout: Path) -> None:
    case, inputs = _case(2.0), (np.ones((4, 8), np.float32),)
    execution = execute(checkout / "kernels.py", "double", inputs)
    assert not isinstance(execution, str)
    assert runner.stack_problem(case, execution, checkout) == ""
    assert "begins in double, not other" in runner.stack_problem(case, replace(execution, kernel="other"), checkout)
    stacks = execution.program.stacks
    moved = _with_stacks(execution, tuple((*stack, Frame("/elsewhere.py", 1, 1, "f")) for stack in stacks))
    assert "/elsewhere.py" in runner.stack_problem(case, moved, checkout)
    blank = _with_stacks(execution, tuple((*stack[:-1], replace(stack[-1], line=1)) for stack in stacks))
    assert "no statement" in runner.stack_problem(case, blank, checkout)


def _with_stacks(execution: Execution, stacks: tuple[tuple[Frame, ...], ...]) -> Execution:
    return replace(execution, program=replace(execution.program, stacks=stacks))
