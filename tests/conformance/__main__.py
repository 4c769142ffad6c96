"""Public kernels, unmodified, against float64: `python -m tests.conformance PATH_TO_NKI_SAMPLES`.

Runs the kernels of a checkout of aws-neuron/nki-samples on the emulator and prints one row for each kernel and shape: largest
absolute and relative error, the largest error as a share of what rounding allows (tests/bounds.py), instructions. It also checks
that each instruction's call stack goes from the kernel's entry to a statement in the checkout. Exit 0 if all required kernels
pass, 1 if one fails, 2 if the path is no checkout of nki-samples.
"""

from __future__ import annotations

import linecache
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emulator.program import Frame
from tests.bounds import Bounded, excess
from tests.conformance.cases import BEYOND, LANDMARK, REQUIRED, Case
from tests.conformance.execute import Execution, execute

_HEADER = ("kernel", "inputs", "max abs", "max rel", "of allowed", "instructions", "result")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the table. `problem` is empty if the kernel passed."""

    kernel: str
    inputs: str
    absolute: float | None
    relative: float | None
    #: The largest error as a multiple of its bound.
    share: float | None
    instructions: int | None
    problem: str

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        figures = ["-" if figure is None else f"{figure:.2e}" for figure in (self.absolute, self.relative)]
        share = "-" if self.share is None else f"{self.share:.3f}"
        count = "-" if self.instructions is None else f"{self.instructions:,}"
        return (self.kernel, self.inputs, *figures, share, count, self.problem or "pass")


def compare(case: Case, inputs: tuple[Any, ...], execution: Execution, checkout: Path) -> Outcome:
    """The outcome of a kernel that ran."""
    expected = case.reference(*inputs)
    problem = stack_problem(case, execution, checkout)
    given = np.asarray(execution.result)
    share = excess(given, expected)
    absolute = relative = None
    if given.shape != expected.value.shape:
        problem = f"FAIL: shape {list(given.shape)} instead of {list(expected.value.shape)}"
    else:
        absolute, relative = errors(given, expected)
        if share > 1:
            problem = "FAIL: values differ"
    return Outcome(label(case), describe(inputs), absolute, relative, share, len(execution.program), problem)


def errors(given: Any, expected: Bounded) -> tuple[float, float]:
    """The largest absolute error, and the largest one relative to the reference's largest magnitude."""
    difference = np.abs(given.astype(np.float64) - expected.value)
    absolute = float("inf") if np.isnan(difference).any() else float(difference.max(initial=0.0))
    return absolute, absolute / float(np.abs(expected.value).max(initial=1e-300))


def stack_problem(case: Case, execution: Execution, checkout: Path) -> str:
    """What is wrong with the first bad call stack, "" if there is none."""
    program = execution.program
    entry = execution.kernel or case.entry or case.function
    if len(program) == 0:
        return "FAIL: no instructions"
    for row, stack in enumerate(program.stack.tolist()):
        frames = program.stacks[stack] if stack >= 0 else ()
        if not frames:
            return f"FAIL: instruction {row} has no stack"
        if frames[0].function != entry:
            return f"FAIL: stack of instruction {row} begins in {frames[0].function}, not {entry}"
        if not Path(frames[-1].file).resolve().is_relative_to(checkout):
            return f"FAIL: stack of instruction {row} ends in {frames[-1].file}"
        if not is_statement(frames[-1]):
            return f"FAIL: stack of instruction {row} ends where there is no statement: {frames[-1].file}:{frames[-1].line}"
    return ""


def is_statement(frame: Frame) -> bool:
    """Whether the frame's line holds code."""
    text = linecache.getline(frame.file, frame.line).strip()
    return bool(text) and not text.startswith("#")


def label(case: Case) -> str:
    """The kernel as the table names it: folder and function."""
    return f"{Path(case.file).parent.name}/{case.function}"


def describe(inputs: tuple[Any, ...]) -> str:
    """Arguments as the table shows them."""
    shown = (f"{x.dtype}[{','.join(map(str, x.shape))}]" if isinstance(x, np.ndarray) else str(x) for x in inputs)
    return " ".join(shown)


def attempt(case: Case, checkout: Path) -> list[Outcome]:
    """The outcomes of a case, one for each of its inputs; a kernel that cannot run says why."""
    outcomes = []
    for seed, make in enumerate(case.inputs):
        inputs = make(np.random.default_rng(seed))
        execution = execute(checkout / case.file, case.function, inputs)
        if isinstance(execution, str):
            outcomes.append(Outcome(label(case), describe(inputs), None, None, None, None, f"FAIL: {execution}"))
        else:
            outcomes.append(compare(case, inputs, execution, checkout))
    return outcomes


def table(outcomes: list[Outcome]) -> str:
    """The outcomes in columns."""
    rows = [_HEADER, *(outcome.cells() for outcome in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER) - 1)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append("  ".join((*cells, row[-1])).rstrip())
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """The exit code."""
    parser = ArgumentParser(prog="python -m tests.conformance", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("checkout", type=Path, help="a checkout of https://github.com/aws-neuron/nki-samples")
    parser.add_argument("--only", default="", help="run only kernels whose name contains this text")
    given = parser.parse_args(arguments)
    checkout = given.checkout.resolve()
    if not (checkout / LANDMARK).is_file():
        print(
            f"{given.checkout}: no checkout of aws-neuron/nki-samples (it lacks {LANDMARK}); "
            "git clone https://github.com/aws-neuron/nki-samples and pass its path: make conformance NKI_SAMPLES=PATH",
            file=sys.stderr,
        )
        return 2
    required = [outcome for case in REQUIRED if given.only in label(case) for outcome in attempt(case, checkout)]
    print(table(required))
    beyond = [
        outcome
        for case in BEYOND
        if given.only in label(case)
        if (checkout / case.file).is_file()
        for outcome in attempt(case, checkout)
    ]
    failed = sum(bool(outcome.problem) for outcome in required)
    print(f"\n{len(required) - failed} of {len(required)} pass")
    if beyond:
        print(
            f"\nbeyond what is required, {sum(not outcome.problem for outcome in beyond)} of {len(beyond)} pass:\n{table(beyond)}"
        )
    return 1 if failed or not required else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
