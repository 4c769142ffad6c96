"""The clock as a whole, against what devices measured and what a schedule has to show. All times are emulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emulator import targets
from emulator.run import load_kernel, run_kernel
from emulator.simulate import simulate
from tests.measurements import engine_busy, published, table, traces
from tests.programs import Builder, matmul_blocked, matmul_unblocked, total

TRN1, TRN2 = targets.load("trn1"), targets.load("trn2")
KERNELS = Path(__file__).parents[2] / "emulator" / "kernels"
TRACES = Path(__file__).parents[3] / "shared" / "data" / "neuron_profile"


def test_back_to_back_matmuls_reach_98_per_cent_of_peak() -> None:
    b = Builder("trn2")
    stationary, moving = b.tile(128, 128), b.tile(128, 512)
    sums = [b.psum() for _ in range(8)]
    for turn in range(2048):
        b.matmul(sums[turn % 8], stationary, moving)
    program = b.program()
    share = program.raw_flops.sum() / (total(simulate(program)) * 1e-9) / TRN2.peak_flops
    assert share == pytest.approx(0.98, rel=0.05)


def test_a_large_add_takes_what_it_took_on_trn1() -> None:
    b = Builder("trn1")
    b.op("vector", "tensor_tensor", *(b.tile(64, 8192, "float32") for _ in range(3)), op="add")
    timeline = simulate(b.program())
    assert timeline.end[0] - timeline.start[0] == pytest.approx(14_968, rel=0.05)


def test_an_fp32_matmul_takes_what_it_took_on_trn2() -> None:
    b = Builder("trn2")
    stationary, moving, sums = b.tile(128, 128, "float32"), b.tile(128, 512, "float32"), b.psum()
    for _ in range(100):
        b.matmul(sums, stationary, moving)
    assert total(simulate(b.program())) / 100 == pytest.approx(859, rel=0.05)


def test_blocking_makes_a_4096_matmul_three_times_faster() -> None:
    slow, fast = (simulate(make(4096)) for make in (matmul_unblocked, matmul_blocked))
    assert total(slow) > 3 * total(fast)


def test_the_bundled_kernels_gain_as_much_and_the_blocked_one_keeps_the_tensor_engine_busy() -> None:
    shape = np.broadcast_to(np.zeros((), dtype=np.float16), (4096, 4096))
    programs = [
        run_kernel(load_kernel(KERNELS / "matmul.py", name), (shape, shape), values=False).program
        for name in ("matmul_unblocked", "matmul_blocked")
    ]
    slow, fast = (simulate(program) for program in programs)
    assert total(slow) > 3 * total(fast)
    assert engine_busy(programs[1], fast, "tensor") > 0.9 * total(fast)
    # Without blocking the DMA sets the pace: the Tensor engine waits.
    assert engine_busy(programs[0], slow, "tensor") < 0.7 * total(slow)


def two_engines(dependent: bool) -> tuple[int, int, int]:
    """Emulated total, and busy time of Vector and Scalar, of two chains that may or may not depend on each other."""
    b = Builder("trn2")
    vector, scalar = b.tile(128, 2048, "float32"), b.tile(128, 2048, "float32")
    for _ in range(8):
        b.op("vector", "tensor_scalar", vector, scalar if dependent else vector, op0="multiply")
        b.op("scalar", "activation", scalar, vector if dependent else scalar, function="copy")
    program = b.program()
    timeline = simulate(program)
    return total(timeline), engine_busy(program, timeline, "vector"), engine_busy(program, timeline, "scalar")


def test_engines_overlap_where_nothing_forbids_it_and_a_serial_chain_does_not() -> None:
    free, vector, scalar = two_engines(False)
    assert free < 1.2 * max(vector, scalar)
    chained, vector, scalar = two_engines(True)
    assert chained >= vector + scalar


def test_loads_run_ahead_of_compute_as_far_as_memory_goes() -> None:
    columns = 2048

    def stall(tiles: int) -> int:
        small = replace(TRN2, sbuf=replace(TRN2.sbuf, partition_bytes=2 * columns * tiles + 64))
        b = Builder("trn2")
        source = b.hbm(128, 24 * columns)
        for turn in range(24):
            tile, result = b.tile(128, columns), b.tile(128, 1)
            b.copy(tile, source[:, turn * columns : (turn + 1) * columns])
            b.op("scalar", "activation", result, tile, function="exp")
        return int(simulate(b.program(), small).wait[1::2].sum())

    one, two, four = (stall(tiles) for tiles in (1, 2, 4))
    assert two < 0.6 * one
    assert four < two


@pytest.mark.skipif(not TRACES.is_dir(), reason="no profiles of a device in ../shared/data/neuron_profile")
def test_instructions_of_traces_that_were_not_fitted() -> None:
    rows = [row for row in traces(TRACES) if row.part == "test"]
    assert len(rows) > 30
    off = {row.what: row.error for row in rows}
    for what, error in off.items():
        limit = 15 if "completion" in what else 10 if "MATMUL" in what else 5
        assert abs(error) <= limit, (what, error)


def test_the_documented_table_is_what_the_clock_says() -> None:
    documented = (Path(__file__).parents[2] / "docs" / "clock.md").read_text()
    assert table(published()) in documented
