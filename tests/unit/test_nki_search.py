"""Searches, shuffles and running reductions, against independent references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import RuleError
from tests.unit.nki_names import nisa, nki, nl, oisa, old, onl, opcodes, operands, run

NOWHERE = 0xFFFFFFFF


def found(data: list[float], wanted: list[float]) -> list[int]:
    """Each value's first place that no earlier slot of the same value has taken."""
    left: dict[float, list[int]] = {}
    for place, value in enumerate(data):
        left.setdefault(value, []).append(place)
    return [left[value].pop(0) if left.get(value) else NOWHERE for value in wanted]


def replaced(data: list[float], wanted: list[float], imm: float) -> tuple[list[float], list[int]]:
    now, places = list(data), [NOWHERE] * 8
    for slot in reversed(range(8)):
        if wanted[slot] in now:
            places[slot] = now.index(wanted[slot])
            now[places[slot]] = imm
    return now, places


@nki.jit
def search_current(x, vals):
    p, f = x.shape
    index = nl.ndarray((p, 8), nl.uint32, buffer=nl.shared_hbm)
    places = nl.ndarray((p, 8), nl.uint32, buffer=nl.shared_hbm)
    out = nl.ndarray((p, f), nl.float32, buffer=nl.shared_hbm)
    tile, wanted = nl.load(x), nl.load(vals)
    at, at2, dst = nl.ndarray((p, 8), nl.uint32), nl.ndarray((p, 8), nl.uint32), nl.ndarray((p, f), nl.float32)
    nisa.nc_find_index8(at, tile, wanted)
    nisa.nc_match_replace8(dst, tile, wanted, -1.0, dst_idx=at2)
    nl.store(index, at)
    nl.store(places, at2)
    nl.store(out, dst)
    return index, places, out


@old.jit
def search_legacy(x, vals):
    p, f = x.shape
    index = onl.ndarray((p, 8), onl.uint32, buffer=onl.shared_hbm)
    places = onl.ndarray((p, 8), onl.uint32, buffer=onl.shared_hbm)
    out = onl.ndarray((p, f), onl.float32, buffer=onl.shared_hbm)
    tile, wanted = onl.load(x), onl.load(vals)
    at2 = onl.ndarray((onl.par_dim(p), 8), onl.uint32)
    onl.store(index, oisa.nc_find_index8(data=tile, vals=wanted))
    onl.store(out, oisa.nc_match_replace8(data=tile, vals=wanted, imm=-1.0, dst_idx=at2))
    onl.store(places, at2)
    return index, places, out


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(8, 40), st.integers(2, 60), st.integers(0, 2**31))
def test_searches_in_both_generations(p: int, f: int, distinct: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, distinct, (p, f)).astype(np.float32)
    vals = rng.integers(0, distinct, (p, 8)).astype(np.float32)
    for kernel in (search_current, search_legacy):
        index, places, out = run(kernel, x, vals).outputs
        for lane in range(p):
            data, wanted = x[lane].tolist(), vals[lane].tolist()
            assert index[lane].tolist() == found(data, wanted)
            assert (out[lane].tolist(), places[lane].tolist()) == replaced(data, wanted, -1.0)


def test_duplicates_of_a_match_take_their_places_from_the_last_slot_on() -> None:
    x = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    vals = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    index, places, _ = run(search_current, x, vals).outputs
    assert places.tolist() == [[2, 10, 9, 8, 7, 6, 5, 4]]
    assert index.tolist() == [[2, 4, 5, 6, 7, 8, 9, 10]]


def test_a_mask_of_the_first_generation_leaves_the_rest_alone() -> None:
    x = np.random.default_rng(5).permutation(64 * 32).reshape(64, 32).astype(np.float32)

    @old.jit
    def kernel(x):
        out = onl.ndarray((32, 16), onl.float32, buffer=onl.shared_hbm)
        ix, iy = onl.mgrid[0:64, 0:32]
        tile = onl.load(x)
        inside = (ix < 32) & (iy < 16)
        top = oisa.max8(src=tile[ix, iy], mask=inside)
        kept = oisa.nc_match_replace8(data=tile[ix, iy], vals=top, imm=0.0, mask=inside)
        onl.store(out, kept[0:32, 0:16])
        return out

    part = x[:32, :16].copy()
    for line in part:
        line[np.argsort(line)[-8:]] = 0.0
    np.testing.assert_array_equal(run(kernel, x).outputs, part)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([32, 64, 128, 20, 50]), st.lists(st.sampled_from([*range(32), 255, 255]), min_size=32, max_size=32))
def test_a_shuffle_in_both_generations(p: int, mask: list[int]) -> None:
    x = np.arange(128 * 6, dtype=np.float32).reshape(128, 6)
    expected = np.full((p, 6), -1.0)
    for to in range(p):
        if mask[to % 32] != 255:
            expected[to] = x[to // 32 * 32 + mask[to % 32]]

    @nki.jit
    def current(x):
        out = nl.ndarray((p, 6), nl.float32, buffer=nl.shared_hbm)
        dst = nl.full((p, 6), -1.0, nl.float32)
        nisa.nc_stream_shuffle(dst, nl.load(x), mask)
        nl.store(out, dst)
        return out

    @old.jit
    def legacy(x):
        out = onl.ndarray((p, 6), onl.float32, buffer=onl.shared_hbm)
        dst = onl.full((p, 6), -1.0, onl.float32)
        oisa.nc_stream_shuffle(src=onl.load(x), dst=dst, shuffle_mask=mask)
        onl.store(out, dst)
        return out

    if all(mask[to % 32] == 255 for to in range(p)):
        with pytest.raises(RuleError, match="moves nothing"):
            run(current, x)
        return
    np.testing.assert_array_equal(run(current, x).outputs, expected)
    np.testing.assert_array_equal(run(legacy, x).outputs, expected)


def test_a_shuffle_in_place_and_its_exact_regions() -> None:
    x = np.random.default_rng(1).standard_normal((64, 4)).astype(np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((64, 4), nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nisa.nc_stream_shuffle(tile, tile, [(i - 1) % 32 for i in range(32)])
        nisa.nc_stream_shuffle(tile, tile, [0, *[255] * 30, 0])
        nl.store(out, tile)
        return out

    rolled = np.roll(x.reshape(2, 32, 4), 1, axis=1)
    rolled[:, 31] = rolled[:, 0]
    made = run(kernel, x)
    np.testing.assert_array_equal(made.outputs, rolled.reshape(64, 4))
    rows = [row for row, name in enumerate(opcodes(made.program)) if name == "NC_STREAM_SHUFFLE"]
    places = [[(entry[1], *entry[2:4]) for entry in operands(made.program, row)] for row in rows]
    assert places == [[(2, 0, 64), (1, 0, 64)], [(2, 0, 1), (2, 31, 2), (2, 63, 1), (1, 0, 1), (1, 32, 1)]]


REDUCE = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "subtract": np.subtract}
START = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["add", "multiply", "subtract"]),
    st.sampled_from(sorted(REDUCE)),
    st.sampled_from(["reset_reduce", "load_reduce"]),
    st.integers(1, 128),
    st.integers(2, 30),
    st.integers(0, 2**31),
)
def test_a_running_reduction_goes_on_where_the_one_before_ended(
    op0: str, op1: str, command: str, p: int, f: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 1.5, (p, 2 * f)).astype(np.float32)
    scalar, start = (rng.uniform(0.5, 1.5, (p, 1)).astype(np.float32) for _ in range(2))

    @nki.jit
    def kernel(x, scalar, start):
        out = nl.ndarray((p, 2 * f), nl.float32, buffer=nl.shared_hbm)
        tile, dst, by, initial = nl.load(x), nl.ndarray((p, 2 * f), nl.float32), nl.load(scalar), nl.load(start)
        commands = nisa.reduce_cmd
        nisa.tensor_scalar_cumulative(
            dst[:, 0:f],
            tile[:, 0:f],
            getattr(nl, op0),
            getattr(nl, op1),
            by,
            initial if command == "load_reduce" else None,
            reduce_cmd=commands[command],
        )
        nisa.tensor_scalar_cumulative(
            dst[:, f : 2 * f], tile[:, f : 2 * f], getattr(nl, op0), getattr(nl, op1), by, reduce_cmd=commands.reduce
        )
        nl.store(out, dst)
        return out

    state = start[:, 0].astype(np.float64) if command == "load_reduce" else np.full(p, START[op1])
    expected = np.empty((p, 2 * f))
    for column in range(2 * f):
        state = REDUCE[op1](REDUCE[op0](x[:, column].astype(np.float64), scalar[:, 0]), state)
        expected[:, column] = state
    np.testing.assert_allclose(run(kernel, x, scalar, start).outputs, expected, rtol=2e-5, atol=2e-5)


CURRENT: list[tuple[Any, str]] = [
    (lambda t: nisa.nc_find_index8(nl.ndarray((8, 8), nl.int32), t, t[:, 0:8]), r"dst .* is int32; it has to be uint32 or uint16"),
    (
        lambda t: nisa.nc_find_index8(nl.ndarray((8, 8), nl.uint32), t[:, 0:4], t[:, 0:8]),
        r"has 4 elements per partition; it takes 8",
    ),
    (lambda t: nisa.nc_match_replace8(t, t, t[:, 0:4], 0.0), r"vals .* has to be \[8, 8\]"),
    (lambda t: nisa.nc_stream_shuffle(t, t, [0] * 31), r"shuffle_mask has 31 entries; it needs 32"),
    (lambda t: nisa.nc_stream_shuffle(t, t, [32] * 32), r"has the entry 32; entries are 0 to 31, or 255"),
    (lambda t: nisa.nc_stream_shuffle(t, t, [9] * 32), r"asks for partition 9 of tile, which has 8"),
    (lambda t: nisa.nc_stream_shuffle(nl.ndarray((8, 16), nl.bfloat16), t, [0] * 32), r"a shuffle keeps the type"),
    (lambda t: nisa.tensor_scalar_cumulative(t, t, nl.add, nl.divide, 1.0), r"op1 is divide; it can be add, subtract"),
    (
        lambda t: nisa.tensor_scalar_cumulative(nl.ndarray((8, 16), nl.int32), t, nl.add, nl.add, 1.0),
        r"is int32, which it does not",
    ),
    (
        lambda t: nisa.tensor_scalar_cumulative(t, t, nl.add, nl.add, 1.0, reduce_cmd=nisa.reduce_cmd.load_reduce),
        r"reduce_cmd.load_reduce needs the value to load",
    ),
]


@pytest.mark.parametrize(("body", "message"), CURRENT, ids=[str(i) for i in range(len(CURRENT))])
def test_what_they_refuse(body: Any, message: str) -> None:
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        body(tile)

    with pytest.raises(RuleError, match=rf"test_nki_search.py:\d+: nki.isa.*{message}") as caught:
        run(kernel, np.zeros((8, 16), np.float32))
    assert "\n" not in str(caught.value)
