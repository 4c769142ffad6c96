"""DMA that adds its sources on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import EmulatorError
from emulator.simulate import simulate
from tests.unit.nki_names import access, nisa, nki, nl, oisa, old, onl, opcodes, run


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(1, 128), st.integers(1, 20), st.booleans(), st.integers(0, 2**31))
def test_it_adds_in_fp32_from_either_memory(count: int, p: int, f: int, on_chip: bool, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((count, p, f)).astype(np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((p, f), nl.bfloat16, buffer=nl.shared_hbm)
        nisa.dma_compute(out, [nl.load(x[i]) if on_chip and i else x[i] for i in range(count)], nl.add)
        return out

    out = run(kernel, x).outputs.astype(np.float64)
    np.testing.assert_allclose(out, x.astype(np.float64).sum(0), rtol=2**-8, atol=1e-6 * count)


def test_the_first_generation_adds_to_what_is_there() -> None:
    x = np.random.default_rng(1).standard_normal((128, 16)).astype(np.float32)

    @old.jit
    def kernel(x):
        out = onl.ndarray((128, 16), onl.float32, buffer=onl.shared_hbm)
        tile = onl.load(x)
        onl.store(out, tile)
        i, j = onl.mgrid[0:128, 0:16]
        oisa.dma_copy(dst=out[i, j], src=tile[i, j], dst_rmw_op=np.add, mask=i < 100)
        return out

    made = run(kernel, x)
    expected = x.astype(np.float64)
    expected[:100] *= 2
    np.testing.assert_allclose(made.outputs, expected, rtol=1e-7)
    row = opcodes(made.program).index("DMA_COMPUTE")
    assert access(made.program, row) == [2, 1, 1]
    deps = simulate(made.program).dependencies
    assert row - 1 in deps.producer[deps.ptr[row] : deps.ptr[row + 1]]


def test_each_source_is_read_and_a_copy_is_faster() -> None:
    x = np.zeros((4, 128, 512), np.float32)

    @nki.jit
    def kernel(x):
        tile = nl.ndarray((128, 512), nl.float32)
        nisa.dma_copy(dst=tile, src=x[0])
        nisa.dma_compute(tile, [x[1], x[2], x[3]], nl.add, scales=[1.0, 1.0, 1.0])

    moves = simulate(run(kernel, x).program).transfers
    assert moves.read_bytes.tolist() == [128 * 2048, 3 * 128 * 2048] and moves.write_bytes.tolist() == [128 * 2048] * 2
    copy, compute = (moves.end - moves.start).tolist()
    assert compute > copy


REFUSED: list[tuple[Any, str]] = [
    (lambda x, t: nisa.dma_compute(t, [x, x], nl.multiply), r"reduce_op is multiply; the DMA engines can only add"),
    (lambda x, t: nisa.dma_compute(t, [x, x], nl.add, scales=[1.0, 2.0]), r"all have to be 1.0"),
    (lambda x, t: nisa.dma_compute(t, [x] * 17, nl.add), r"17 sources; it takes 1 to 16"),
    (lambda x, t: nisa.dma_compute(t, [x, x[0:4]], nl.add), r"has 16 elements and t.* has 32"),
    (lambda x, t: nisa.dma_compute(t, [x, 3.0], nl.add), r"srcs\[1\] is float, not a tensor"),
    (
        lambda x, t: nisa.dma_compute(nl.ndarray((8, 4), nl.float32, buffer=nl.psum), [x], nl.add),
        r"in PSUM, which DMA cannot reach",
    ),
]


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_refused(body: Any, message: str) -> None:
    @nki.jit
    def kernel(x):
        t = nl.load(x)
        body(x, t)

    with pytest.raises(EmulatorError, match=rf"test_nki_dma_compute.py:\d+: nki.isa.dma_compute.*{message}"):
        run(kernel, np.zeros((8, 4), np.float32))
