"""Gathers, nonzero places and segment bounds, against independent references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import RuleError
from emulator.program import Access
from tests.unit.nki_names import access, nisa, nki, nl, oisa, old, onl, opcodes, operands, run


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 128), st.integers(1, 20), st.integers(1, 30), st.integers(0, 2**31))
def test_a_gather_in_each_partition(p: int, f: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((p, 2, f)).astype(np.float32)
    at = rng.integers(0, 2 * f, (p, n)).astype(np.uint32)

    @nki.jit
    def current(x, at):
        out = nl.ndarray((p, n), nl.float32, buffer=nl.shared_hbm)
        again = nl.ndarray((p, n), nl.float32, buffer=nl.shared_hbm)
        dst, tile, places = nl.ndarray((p, n), nl.float32), nl.load(x), nl.load(at)
        nisa.nc_n_gather(dst, tile, places)
        nl.store(out, dst)
        nl.store(again, nl.gather_flattened(tile, places))
        return out, again

    @old.jit
    def legacy(x, at):
        out = onl.ndarray((p, n), onl.float32, buffer=onl.shared_hbm)
        onl.store(out, onl.gather_flattened(data=onl.load(x), indices=onl.load(at)))
        return out

    expected = np.array([[x[lane].reshape(-1)[place] for place in at[lane]] for lane in range(p)])
    for result in (*run(current, x, at).outputs, run(legacy, x, at).outputs):
        np.testing.assert_array_equal(result, expected)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([16, 48, 128]), st.integers(1, 4), st.sampled_from([1, 2, 4]), st.integers(0, 15), st.integers(0, 2**31))
def test_a_gather_in_each_group_of_partitions(p: int, columns: int, per_index: int, left_out: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((p, 50)).astype(np.float32)
    index = rng.integers(0, 50 - per_index + 1, (p, columns)).astype(np.uint16)
    count = 16 * columns - left_out

    @nki.jit
    def current(x, index):
        out = nl.ndarray((p, count * per_index), nl.float32, buffer=nl.shared_hbm)
        dst = nl.ndarray((p, count * per_index), nl.float32)
        nisa.local_gather(dst, nl.load(x), nl.load(index), per_index, count)
        nl.store(out, dst)
        return out

    @old.jit
    def legacy(x, index):
        out = onl.ndarray((p, count * per_index), onl.float32, buffer=onl.shared_hbm)
        onl.store(out, oisa.local_gather(onl.load(x), onl.load(index), per_index, count))
        return out

    expected = np.empty((p, count * per_index))
    for lane in range(p):
        begin = lane // 16 * 16
        for number in range(count):
            column, row = divmod(number, 16)
            place = index[begin + row, column]
            expected[lane, number * per_index : (number + 1) * per_index] = x[lane, place : place + per_index]
    np.testing.assert_array_equal(run(current, x, index).outputs, expected)
    np.testing.assert_array_equal(run(legacy, x, index).outputs, expected)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([1, 17, 128]), st.integers(1, 40), st.sampled_from(["float32", "int32"]), st.integers(0, 2**31))
def test_nonzero_places_of_every_16th_partition(p: int, f: int, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, (p, f)).astype(dtype)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((p, f + 1), nl.int32, buffer=nl.shared_hbm)
        dst = nl.full((p, f + 1), 77, nl.int32)
        nisa.nonzero_with_count(dst, nl.load(x), index_offset=5, padding_val=-9)
        nl.store(out, dst)
        return out

    expected = np.full((p, f + 1), 77)
    for lane in range(0, p, 16):
        places = [place + 5 for place, value in enumerate(x[lane]) if value]
        expected[lane] = [*places, *[-9] * (f - len(places)), len(places)]
    made = run(kernel, x)
    np.testing.assert_array_equal(made.outputs, expected)
    row = opcodes(made.program).index("NONZERO_WITH_COUNT")
    touched = [(entry[1], entry[2], entry[3]) for entry in operands(made.program, row)]
    lanes = range(0, p, 16)
    assert touched == [*((2, lane, 1) for lane in lanes), *((1, lane, 1) for lane in lanes)]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=10), st.sampled_from(["float32", "int32"]))
def test_segment_bounds_in_both_generations(segments: list[tuple[int, int]], dtype: str) -> None:
    ids = [value for value, length in segments for _ in range(length)]
    n = len(ids)
    x = np.array([ids], dtype=dtype)

    @nki.jit
    def current(x):
        out = nl.ndarray((1, 2, n), x.dtype, buffer=nl.shared_hbm)
        dst = nl.ndarray((1, 2, n), x.dtype)
        nisa.sequence_bounds(dst, nl.load(x))
        nl.store(out, dst)
        return out

    @old.jit
    def legacy(x):
        out = onl.ndarray((1, 2, n), x.dtype, buffer=onl.shared_hbm)
        onl.store(out, oisa.sequence_bounds(segment_ids=onl.load(x)))
        return out

    starts, ends = [], []
    for place, value in enumerate(ids):
        low, high = place, place + 1
        while low and ids[low - 1] == value:
            low -= 1
        while high < n and ids[high] == value:
            high += 1
        starts.append(low if value else n)
        ends.append(high if value else -1)
    for kernel in (current, legacy):
        np.testing.assert_array_equal(run(kernel, x).outputs, [[starts, ends]])


def test_what_is_gathered_from_is_addressed_by_data_and_needs_no_values() -> None:
    @nki.jit
    def kernel(x, at):
        dst = nl.ndarray((8, 4), nl.float32)
        nisa.nc_n_gather(dst, nl.load(x), nl.load(at))

    program = run(kernel, np.zeros((8, 16), np.float32), np.zeros((8, 4), np.uint32), values=False).program
    row = opcodes(program).index("NC_N_GATHER")
    assert access(program, row) == [int(Access.WRITE), int(Access.READ | Access.INDIRECT), int(Access.READ)]
    assert program.n[row] == 4


REFUSED: list[tuple[Any, str]] = [
    (lambda t, i: nisa.nc_n_gather(t, t, t), r"indices .* is float32; it has to be uint32"),
    (lambda t, i: nisa.nc_n_gather(nl.ndarray((16, 4), nl.float32), t, i), r"index 9 in partition 0 is outside the 4 elements"),
    (lambda t, i: nisa.nc_n_gather(nl.ndarray((16, 4), nl.bfloat16), t, i), r"dst .* is bfloat16; it has to be float32"),
    (lambda t, i: nisa.local_gather(t, t, i), r"index .* is uint32; it has to be uint16"),
    (lambda t, i: nisa.local_gather(t, t, i, num_elem_per_idx=3), r"num_elem_per_idx is 3; it can be 1, 2, 4"),
    (lambda t, i: nisa.local_gather(t, t, i, num_valid_indices=65), r"65 indices for each core; .* has 64"),
    (lambda t, i: nisa.nonzero_with_count(t, t), r"has to be \[16, 5\]: one more element"),
    (lambda t, i: nisa.sequence_bounds(t, t), r"have to be \[1, n\] and \[1, 2, n\]"),
]


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_they_refuse(body: Any, message: str) -> None:
    @nki.jit
    def kernel(x, at):
        body(nl.load(x), nl.load(at))

    with pytest.raises(RuleError, match=rf"test_nki_gather.py:\d+: nki.isa.*({message})"):
        run(kernel, np.zeros((16, 4), np.float32), np.full((16, 4), 9, np.uint32))


def test_older_cores_have_no_nonzero() -> None:
    @nki.jit
    def kernel(x):
        nisa.nonzero_with_count(nl.ndarray((1, 5), nl.int32), nl.load(x))

    with pytest.raises(RuleError, match="does not exist on trn1; it needs NeuronCore-v3 or newer"):
        run(kernel, np.zeros((1, 4), np.float32), target="trn1")
