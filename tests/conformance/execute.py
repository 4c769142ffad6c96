"""One kernel of the checkout on the emulator: its result and program, or why it cannot run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.errors import EmulatorError
from emulator.nki.launch import Kernel
from emulator.program import Program
from emulator.run import load_kernel, run_kernel


@dataclass(frozen=True, slots=True)
class Execution:
    """What a kernel returned, its instructions, and the kernel's name ("" if what ran was a function that launches one)."""

    result: Any
    program: Program
    kernel: str


def execute(file: Path, function: str, inputs: tuple[Any, ...]) -> Execution | str:
    """The execution, or one line that says why there is none (an emulator error, or what the kernel raised)."""
    try:
        loaded = load_kernel(file, function)
        run = run_kernel(loaded, inputs)
    except EmulatorError as error:
        return str(error).replace(f"{file.parent}/", "")
    return Execution(run.outputs, run.program, function if isinstance(loaded, Kernel) else "")
