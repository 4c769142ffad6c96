"""The emulator: 100,000 instructions of a kernel with values off, from the kernel to the written profile, and the clock alone."""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: `matmul_unblocked` of this size is 111,744 instructions.
SIZE = 6144
MIN_INSTRUCTIONS = 100_000
MAX_CAPTURE_S = 10.0
MAX_MEMORY = 1 << 30
MAX_CLOCK_S = 1.0


def run() -> list[tuple[str, str, str, bool]]:
    """Rows of (what, measured, required, met)."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = _apart(_compile, str(Path(folder, "numba")))
        _apart(_simulate, 512)
        rows, edges, packets, seconds = _apart(_simulate, SIZE)
        captured, capture_seconds, size, memory = _apart(_capture, str(Path(folder, "profile")))
    clock = seconds * MIN_INSTRUCTIONS / rows
    capture = capture_seconds * MIN_INSTRUCTIONS / captured
    return [
        ("Capture of 100,000 instructions, values off", f"{capture:.2f} s", f"<= {MAX_CAPTURE_S:.0f} s", capture <= MAX_CAPTURE_S),
        ("  instructions, profile", f"{captured:,}, {size / 1e6:,.0f} MB in {capture_seconds:.2f} s", "", True),
        ("  peak memory of the process", f"{memory / 1e6:,.0f} MB", f"<= {MAX_MEMORY / 1e6:,.0f} MB", memory <= MAX_MEMORY),
        ("Clock of 100,000 instructions", f"{clock:.2f} s", f"<= {MAX_CLOCK_S:.0f} s", clock <= MAX_CLOCK_S),
        ("  instructions, dependencies, packets", f"{rows:,}, {edges:,}, {packets:,} in {seconds:.2f} s", "", True),
        ("  first compilation of the clock", f"{compiled:.1f} CPU s, once", "", True),
    ]


def _apart(function: Callable[..., Any], *arguments: object) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _compile(cache: str) -> float:
    """CPU seconds that a first small simulation takes beyond a second one, with an empty cache of compiled code."""
    os.environ["NUMBA_CACHE_DIR"] = cache
    from emulator.simulate import simulate
    from tests.programs import matmul_unblocked

    program = matmul_unblocked(512)
    begin = time.process_time()
    simulate(program)
    middle = time.process_time()
    simulate(program)
    return 2 * middle - begin - time.process_time()


def _simulate(size: int) -> tuple[int, int, int, float]:
    """Instructions, dependencies, packets and seconds of the clock alone, after compilation."""
    from emulator.simulate import simulate
    from tests.programs import matmul_unblocked

    simulate(matmul_unblocked(512))
    program = matmul_unblocked(size)
    begin = time.perf_counter()
    timeline = simulate(program)
    return len(program), len(timeline.dependencies.producer), len(timeline.packets.start), time.perf_counter() - begin


def _capture(path: str) -> tuple[int, float, int, int]:
    """Instructions, seconds, bytes of the profile and peak memory of running, timing and writing the bundled kernel."""
    import ml_dtypes
    import numpy as np

    from collectors.nki.capture import capture
    from emulator import targets
    from emulator.run import load_kernel, run_kernel
    from emulator.simulate import simulate
    from explorer.store import writer

    shape = np.broadcast_to(np.zeros((), dtype=ml_dtypes.bfloat16), (SIZE, SIZE))
    begin = time.perf_counter()
    kernels = Path(__file__).parents[2] / "emulator" / "kernels"
    kernel = load_kernel(kernels / "matmul.py", "matmul_unblocked")
    program = run_kernel(kernel, (shape, shape), values=False).program
    captured = capture(program, simulate(program), targets.load("trn2"), source_root=kernels)
    writer.write(path, captured.tables, descriptions=captured.descriptions)
    seconds = time.perf_counter() - begin
    size = sum(file.stat().st_size for file in Path(path).rglob("*.parquet"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if os.uname().sysname == "Darwin" else 1024)
    return len(program), seconds, size, peak
