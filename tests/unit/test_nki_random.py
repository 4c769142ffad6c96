"""Random numbers: their spread, that they repeat, and what may draw them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import RuleError
from tests.unit.nki_names import nisa, nki, nl, oisa, old, onl, opcodes, run

X = np.random.default_rng(2).uniform(1.0, 2.0, (128, 512)).astype(np.float32)


@nki.jit
def uniform():
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.rand((128, 512), nl.float32))
    return out


def test_numbers_are_even_and_begin_where_the_seed_says() -> None:
    first, again, other = (run(uniform, seed=seed).outputs for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.min() >= 0 and first.max() < 1
    # 65,536 draws: each of 16 bins holds 4,096 of them, give or take five standard deviations of 62.
    counts = np.histogram(first, bins=16, range=(0, 1))[0]
    assert np.abs(counts - 4096).max() < 5 * 62
    assert opcodes(run(uniform, values=False).program) == ["RNG", "TENSOR_SCALAR", "DMA_DIRECT2D"]


def test_a_kernels_seed_repeats_its_numbers() -> None:
    @nki.jit
    def kernel(seed):
        out = nl.ndarray((3, 8, 32), nl.uint32, buffer=nl.shared_hbm)
        held = nl.load(seed)
        for i in range(3):
            bits = nl.ndarray((8, 32), nl.uint32)
            if i != 1:
                nl.random_seed(held)
            nisa.rng(bits)
            nl.store(out[i], bits)
        return out

    given = np.array([[42]], np.int32)
    first, second, third = run(kernel, given, seed=5).outputs
    np.testing.assert_array_equal(first, third)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, run(kernel, given, seed=6).outputs[0])
    assert not np.array_equal(first, run(kernel, given + 1).outputs[0])


@settings(max_examples=10, deadline=None)
@given(st.floats(0.0, 1.0), st.booleans())
def test_dropout_zeroes_its_share_in_both_generations(share: float, column: bool) -> None:
    prob = np.full((128, 1), share, np.float32)

    @nki.jit
    def current(x, prob):
        out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nisa.dropout(tile, tile, nl.load(prob) if column else share)
        nl.store(out, tile)
        return out

    @old.jit
    def legacy(x, prob):
        out = onl.ndarray((128, 512), onl.float32, buffer=onl.shared_hbm)
        onl.store(out, oisa.dropout(onl.load(x), prob=onl.load(prob) if column else share))
        return out

    for kernel in (current, legacy):
        out = run(kernel, X, prob).outputs
        dropped = out == 0
        np.testing.assert_array_equal(out[~dropped], X[~dropped])
        # Five standard deviations of a share of 65,536.
        assert abs(dropped.mean() - share) <= 5 * np.sqrt(share * (1 - share) / X.size) + 1e-7


def test_certain_dropout_and_none() -> None:
    @nki.jit
    def kernel(x, prob):
        out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.dropout(nl.load(x), nl.load(prob)))
        return out

    prob = (np.arange(128) % 2).astype(np.float32)[:, None]
    np.testing.assert_array_equal(run(kernel, X, prob).outputs, np.where(prob == 1, 0, X))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_bits_fill_their_type(dtype: str) -> None:
    @nki.jit
    def kernel():
        out = nl.ndarray((64, 64), dtype, buffer=nl.shared_hbm)
        bits = nl.ndarray((64, 64), dtype)
        nisa.rng(bits)
        nl.store(out, bits)
        return out

    bits = run(kernel).outputs
    share = np.unpackbits(np.ascontiguousarray(bits).view(np.uint8)).mean()
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(bits.nbytes * 8)
    info = np.iinfo(dtype)
    assert bits.min() < info.min + (int(info.max) - int(info.min)) / 64


def test_a_range_on_the_newest_core_only() -> None:
    @nki.jit
    def kernel(low):
        out = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((64, 64), nl.float32)
        nisa.rand2(tile, nl.load(low), 3.0)
        nl.store(out, tile)
        return out

    low = np.linspace(-5, 2, 64, dtype=np.float32)[:, None]
    out = run(kernel, low, target="trn3").outputs
    assert np.all(out >= low) and np.all(out <= 3) and np.all(np.abs(out.mean(axis=1) - (low[:, 0] + 3) / 2) < 2)
    with pytest.raises(
        RuleError, match=r"rand2 does not exist on trn2; it needs NeuronCore-v4 or newer: capture with --target trn3"
    ):
        run(kernel, low)


REFUSED: list[tuple[Any, str]] = [
    (lambda t: nisa.rng(t), r"dst .* is float32; it has to be uint32"),
    (lambda t: nisa.dropout(nl.ndarray((8, 4), nl.bfloat16), t, 0.5), r"dst .* is bfloat16; it has to be float32"),
    (lambda t: nisa.dropout(t, t, t), r"prob .* has to be a number or \[8, 1\]"),
    (lambda t: nl.random_seed(t), r"has to be \[1, 1\] of a 32-bit type"),
    (lambda t: nl.rand((8, 4), nl.float32, buffer=nl.hbm), r"random numbers are made on chip"),
]


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_they_refuse(body: Any, message: str) -> None:
    @nki.jit
    def kernel(x):
        body(nl.load(x))

    with pytest.raises(RuleError, match=rf"test_nki_random.py:\d+: .*{message}"):
        run(kernel, np.zeros((8, 4), np.float32))


def test_the_gpsimd_engine_of_the_oldest_core_draws_nothing() -> None:
    @nki.jit
    def kernel():
        nisa.rng(nl.ndarray((8, 4), nl.uint32), engine=nisa.gpsimd_engine)

    run(kernel)
    with pytest.raises(RuleError, match="rng on the gpsimd engine does not exist on trn1"):
        run(kernel, target="trn1")
