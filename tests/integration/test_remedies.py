"""Kernels with a fault against the same kernels mended: the remedy has to pay on the emulated clock, and give the same result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator.run import load_kernel, run_kernel
from emulator.simulate import simulate

KERNELS = Path(__file__).parents[1] / "kernels"
BUNDLED = Path(__file__).parents[2] / "emulator" / "kernels"
BF16, F32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)

#: (file, fault, mended, shapes of the arguments, their type).
PAIRS = [
    ("rules_small_transfers", "narrow_loads", "wide_loads", ((128, 8192),), F32),
    ("rules_overlap", "single_buffer", "pipelined", ((128, 16384),), F32),
    ("rules_reload", "reloaded", "hoisted", ((2048, 2048), (128, 2048)), F32),
    ("rules_small_free", "few_elements", "many_elements", ((128, 2048),), F32),
    ("rules_transposes", "transposes_on_tensor_engine", "layout_without_transposes", ((1024, 1024), (1024, 512)), BF16),
    ("rules_matmul_dtype", "float32_matmul", "bfloat16_matmul", ((1024, 512), (1024, 2048)), F32),
    ("rules_partitions", "quarter_of_the_partitions", "all_partitions", ((524288,),), F32),
]


def _nanoseconds(path: Path, function: str, shapes: tuple[tuple[int, ...], ...], dtype: Any, target: str = "trn2") -> int:
    arguments = [np.zeros(shape, dtype) for shape in shapes]
    program = run_kernel(load_kernel(path, function), arguments, target=target, values=False).program
    return int(simulate(program).end.max())


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize(("file", "fault", "mended", "shapes", "dtype"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_the_remedy_pays(file: str, fault: str, mended: str, shapes: Any, dtype: Any, target: str) -> None:
    path = KERNELS / f"{file}.py"
    assert _nanoseconds(path, mended, shapes, dtype, target) < _nanoseconds(path, fault, shapes, dtype, target)


def test_blocking_makes_a_large_matmul_at_least_three_times_faster() -> None:
    shapes = ((4096, 4096), (4096, 4096))
    before = _nanoseconds(BUNDLED / "matmul.py", "matmul_unblocked", shapes, BF16)
    after = _nanoseconds(BUNDLED / "matmul.py", "matmul_blocked", shapes, BF16)
    assert before >= 3 * after
