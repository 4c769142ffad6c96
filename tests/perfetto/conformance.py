"""Exports of public kernels in the real trace processor: `python -m tests.perfetto.conformance PATH_TO_NKI_SAMPLES`.

Runs the required kernels of a checkout of aws-neuron/nki-samples, exports each profile with transfers and with packets, holds the
traces to the profile's rows. Prints one line each; exit 1 if one does not hold.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from collectors.nki.capture import capture
from emulator import targets
from emulator.simulate import simulate
from explorer.store.reader import Profile
from tests.conformance.cases import REQUIRED
from tests.conformance.execute import execute
from tests.perfetto.check import check_emulated
from tests.perfetto.engine import Engine


def main(checkout: Path) -> int:
    """The exit code."""
    target, failures = targets.load("trn2"), 0
    with Engine() as engine, tempfile.TemporaryDirectory() as folder:
        for case in REQUIRED:
            for seed, make in enumerate(case.inputs):
                execution = execute(checkout / case.file, case.function, make(np.random.default_rng(seed)))
                if isinstance(execution, str):
                    problem, rows = f"FAIL: {execution}", 0
                else:
                    captured = capture(execution.program, simulate(execution.program, target), target, source_root=checkout)
                    profile = Profile.from_tables(captured.tables)
                    problem, rows = "", profile.rows("Instruction")
                    try:
                        check_emulated(engine, profile, Path(folder))
                    except AssertionError as error:
                        problem = "FAIL: " + (str(error).splitlines() or ["does not hold"])[0]
                failures += bool(problem)
                print(f"{Path(case.file).parent.name}/{case.function}: {rows:,} instructions: {problem or 'pass'}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
