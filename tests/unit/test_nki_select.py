"""Selects by column and by predicate, against references in numpy's float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import RuleError
from emulator.program import InstructionFlag
from emulator.simulate import simulate
from tests.unit.nki_names import nisa, nki, nl, oisa, old, onl, opcodes, operands, run

MIN = float(np.finfo(np.float32).min)
COMPARISONS = {
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


def selected(x: Any, low: Any, high: Any, first: str, second: str, start: int) -> Any:
    column = start + np.arange(x.shape[1], dtype=np.float64)[None, :]
    return np.where(COMPARISONS[first](column, low) & COMPARISONS[second](column, high), x.astype(np.float64), MIN)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 128),
    st.integers(1, 40),
    st.sampled_from(sorted(COMPARISONS)),
    st.sampled_from(sorted(COMPARISONS)),
    st.integers(-5, 30),
    st.integers(0, 2**31),
)
def test_range_select_in_both_generations(p: int, f: int, first: str, second: str, start: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((p, f)).astype(np.float32)
    low, high = (rng.integers(-5, f + 30, (p, 1)).astype(np.float32) for _ in range(2))

    @nki.jit
    def current(x, low, high):
        out = nl.ndarray((p, f), nl.float32, buffer=nl.shared_hbm)
        top = nl.ndarray((p, 1), nl.float32, buffer=nl.shared_hbm)
        dst, res = nl.ndarray((p, f), nl.float32), nl.ndarray((p, 1), nl.float32)
        nisa.range_select(
            dst,
            nl.load(x),
            getattr(nl, first),
            getattr(nl, second),
            nl.load(low),
            nl.load(high),
            reduce_res=res,
            range_start=start,
        )
        nl.store(out, dst)
        nl.store(top, res)
        return out, top

    @old.jit
    def legacy(x, low, high):
        out = onl.ndarray((p, f), onl.float32, buffer=onl.shared_hbm)
        top = onl.ndarray((p, 1), onl.float32, buffer=onl.shared_hbm)
        res = onl.ndarray((onl.par_dim(p), 1), onl.float32)
        tile = onl.ndarray((onl.par_dim(p), f), onl.float32)
        tile[...] = oisa.range_select(
            on_true_tile=onl.load(x),
            comp_op0=getattr(np, first),
            comp_op1=getattr(np, second),
            bound0=onl.load(low),
            bound1=onl.load(high),
            reduce_cmd=oisa.reduce_cmd.reset_reduce,
            reduce_res=res,
            reduce_op=np.max,
            range_start=start,
            on_false_value=onl.fp32.min,
        )
        onl.store(out, tile)
        onl.store(top, res)
        return out, top

    expected = selected(x, low, high, first, second, start)
    for kernel in (current, legacy):
        out, top = run(kernel, x, low, high).outputs
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(top, expected.max(axis=1, keepdims=True))


def test_a_chain_of_selects_keeps_its_maximum_in_the_registers() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((128, 96)).astype(np.float32)
    bounds = np.stack((np.full(128, 10.0), rng.integers(0, 96, 128)), axis=1).astype(np.float32)

    @nki.jit
    def kernel(x, bounds):
        top = nl.ndarray((128, 1), nl.float32, buffer=nl.shared_hbm)
        tile, low = nl.load(x), nl.load(bounds)
        res, dst = nl.ndarray((128, 1), nl.float32), nl.ndarray((128, 32), nl.bfloat16)
        for i in range(3):
            nisa.range_select(
                dst,
                tile[:, nl.ds(32 * i, 32)],
                nl.greater_equal,
                nl.less,
                low[:, 0:1],
                low[:, 1:2],
                reduce_cmd=nisa.reduce_cmd.reset_reduce if i == 0 else nisa.reduce_cmd.reduce,
                reduce_res=res if i == 2 else None,
                range_start=32 * i,
            )
        nl.store(top, res)
        return top

    made = run(kernel, x, bounds)
    expected = selected(x, bounds[:, :1], bounds[:, 1:], "greater_equal", "less", 0).max(axis=1, keepdims=True)
    np.testing.assert_array_equal(made.outputs, expected)
    rows = [row for row, name in enumerate(opcodes(made.program)) if name == "RANGE_SELECT"]
    reads = [bool(made.program.flags[row] & InstructionFlag.READ_ACCUMULATOR) for row in rows]
    assert reads == [False, False, True]
    # dst, then the tile and both bounds.
    assert [entry[3:6] for entry in operands(made.program, rows[1])] == [
        (128, 0, [32]),
        (128, 128, [32]),
        (128, 0, []),
        (128, 4, []),
    ]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 128), st.integers(1, 40), st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_select_reduce_in_both_generations(p: int, f: int, column: bool, reverse: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((p, f)).astype(np.float32)
    predicate = rng.integers(0, 3, (p, f)).astype(np.uint8)
    other = rng.standard_normal((p, 1)).astype(np.float32)

    def body(isa: Any, lang: Any, x: Any, predicate: Any, other: Any) -> Any:
        out = lang.ndarray((p, f), lang.float32, buffer=lang.shared_hbm)
        top = lang.ndarray((p, 1), lang.float32, buffer=lang.shared_hbm)
        dst, res = lang.ndarray((p, f), lang.float32), lang.ndarray((p, 1), lang.float32)
        isa.select_reduce(
            dst=dst,
            predicate=lang.load(predicate),
            on_true=lang.load(x),
            on_false=lang.load(other) if column else -2.5,
            reduce_res=res,
            reduce_cmd=isa.reduce_cmd.reset_reduce,
            reduce_op=lang.maximum,
            reverse_pred=reverse,
        )
        lang.store(out, dst)
        lang.store(top, res)
        return out, top

    @nki.jit
    def current(x, predicate, other):
        return body(nisa, nl, x, predicate, other)

    @old.jit
    def legacy(x, predicate, other):
        return body(oisa, onl, x, predicate, other)

    expected = np.where((predicate == 0) if reverse else (predicate != 0), x.astype(np.float64), other if column else -2.5)
    for kernel in (current, legacy):
        out, top = run(kernel, x, predicate, other).outputs
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(top, expected.max(axis=1, keepdims=True))


def test_what_they_refuse() -> None:
    x = np.zeros((8, 4), np.float32)

    def attempt(**changes: Any) -> Any:
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            given = {"dst": tile, "on_true_tile": tile, "comp_op0": nl.less, "comp_op1": nl.less} | changes
            nisa.range_select(bound0=tile[:, 0:1], bound1=tile[:, 1:2], **given)

        return kernel

    with pytest.raises(
        RuleError, match=r"test_nki_select.py:\d+: nki.isa.range_select does not exist on trn1; it needs NeuronCore-v3"
    ):
        run(attempt(), x, target="trn1")
    with pytest.raises(RuleError, match=r"add is no comparison that it has"):
        run(attempt(comp_op0=nl.add), x)
    with pytest.raises(RuleError, match=r"on_false_value is 0; the hardware only writes nl.fp32.min"):
        run(attempt(on_false_value=0.0), x)
    with pytest.raises(RuleError, match=r"reduce_res is given and reduce_cmd is idle"):
        run(_idle(), x)


def _idle() -> Any:
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        mask = nl.ndarray((8, 4), nl.uint8)
        nisa.select_reduce(tile, mask, tile, 0.0, reduce_res=nl.ndarray((8, 1), nl.float32))

    return kernel


def test_a_cost_that_nobody_published_is_said() -> None:
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        mask = nl.ndarray((8, 4), nl.uint8)
        nisa.memset(mask, 1)
        nisa.select_reduce(tile, mask, tile, 0.0)

    warnings = simulate(run(kernel, np.zeros((8, 4), np.float32)).program).warnings
    assert "the cost of SELECT_REDUCE is not published: priced as one element per cycle and partition" in warnings
    assert not any("MEMSET" in text for text in warnings)
