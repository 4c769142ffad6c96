"""A logical core of two physical ones: what both do is a share of what both can."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.targets import load
from explorer.analysis.summary import summarize
from explorer.commands import main
from explorer.store import reader

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def multiply_again(left, right):
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.private_hbm)
    stationary = nl.ndarray((128, 128), dtype=left.dtype, buffer=nl.sbuf)
    moving = nl.ndarray((128, 512), dtype=right.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=stationary, src=left)
    nisa.dma_copy(dst=moving, src=right)
    for _ in nl.affine_range(200):
        sums = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=stationary, moving=moving)
    held = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=held, src=sums)
    nisa.dma_copy(dst=total, src=held)
    return total
"""
FLOPS = 2 * 128 * 128 * 512 * 200


@pytest.mark.parametrize("cores", [1, 2])
def test_shares_of_the_peak_are_of_all_cores(tmp_path: Path, cores: int) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    arguments = ["--arg", "left=bf16[128,128]", "--arg", "right=bf16[128,512]", "--no-values", "--grid", str(cores)]
    assert main(["capture", str(tmp_path / "kernel.py"), *arguments, "-o", str(tmp_path / "p")]) == 0
    profile = reader.open(tmp_path / "p")
    found = summarize(profile).metrics
    assert found["hardware_flops"] == cores * FLOPS
    whole = found["total_time"]
    assert whole is not None
    assert found["hfu_estimated_percent"] == pytest.approx(FLOPS / (load("trn2").peak_flops * whole))
    nodes = profile.table("FrameworkNode", ["hfu", "ts_active_ns"])
    assert nodes is not None
    for node in nodes.to_pylist():
        assert node["hfu"] == pytest.approx(FLOPS / (load("trn2").peak_flops * node["ts_active_ns"] / 1e9))
