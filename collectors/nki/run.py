"""Run an NKI kernel of a file on the emulator and make its profile."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from collectors.nki import arguments
from collectors.nki.capture import Captured, capture
from collectors.nki.metadata import Origin
from collectors.nki.source import Paths
from emulator import targets
from emulator.nki.ops.random import DRAWS
from emulator.run import load_kernel, run_kernel
from emulator.simulate import simulate


@dataclass(frozen=True, slots=True)
class Request:
    """What to capture: a kernel of a Python file, its arguments as texts (`x=bf16[128,512]`), and how to run it."""

    file: Path
    function: str | None = None
    arguments: Sequence[str] = ()
    target: str = "trn2"
    grid: tuple[int, ...] = ()
    seed: int = 0
    values: bool = True
    source_root: Path | None = None


def split(kernel: str) -> tuple[Path, str | None]:
    """File and function of `KERNEL.py[:function]`."""
    file, colon, function = kernel.rpartition(":")
    return (Path(file), function) if colon and function.isidentifier() and file else (Path(kernel), None)


def record(request: Request, say: Callable[[str], None] = lambda text: None) -> Captured:
    """The profile's tables. `say` hears what is being done.

    Raises what `emulator.run` and `emulator.simulate` raise (all `EmulatorError`), UsageError for arguments that are none or do not
    fit the kernel, ProfileError for an array file that cannot be read.
    """
    target = targets.load(request.target)
    with contextlib.redirect_stdout(sys.stderr):
        kernel = load_kernel(request.file, request.function)
    name = getattr(kernel, "__name__", request.function or request.file.stem)
    given = arguments.parse(request.arguments, seed=request.seed, values=request.values)
    arguments.check(kernel, name, given)
    say(f"running {name} for {target.name}")
    # stdout is for data: what the kernel prints is talk.
    with contextlib.redirect_stdout(sys.stderr):
        ran = run_kernel(
            kernel,
            kwargs={key: a.value for key, a in given.items()},
            target=target.name,
            grid=request.grid or None,
            values=request.values,
            seed=request.seed,
        )
    say(f"timing {len(ran.program):,} instructions")
    timeline = simulate(ran.program, target)
    root = Path(os.path.abspath(request.source_root or request.file.parent))
    origin = Origin(
        kernel_file=Paths(root).stored(str(request.file)),
        arguments={key: a.text for key, a in given.items()},
        grid=request.grid,
        seed=request.seed if any(a.random for a in given.values()) or DRAWS.intersection(ran.program.opcodes) else None,
        values=request.values,
    )
    return capture(ran.program, timeline, target, source_root=root, origin=origin)
