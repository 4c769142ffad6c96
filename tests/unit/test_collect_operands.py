"""Operands as text say exactly which elements an instruction touches."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.nki.operands import elements, short_dtype, slices
from collectors.nki.rows import rank_within, sum_by, unique_rows
from tests.unit import collect_program


@st.composite
def cuts(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, int, int]]]:
    """A shape, and for each dimension start, count and step of what is taken."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    taken = []
    for size in shape:
        start = draw(st.integers(0, size - 1))
        step = draw(st.integers(1, 3))
        taken.append((start, draw(st.integers(1, (size - 1 - start) // step + 1)), step))
    return shape, taken


def _touched(shape: tuple[int, ...], texts: list[str]) -> set[int]:
    index: Any = tuple(slice(*(int(part) for part in t.split(":"))) if ":" in t else int(t) for t in texts)
    return set(np.arange(math.prod(shape)).reshape(shape)[index].reshape(-1).tolist())


@given(cuts())
def test_slices_touch_what_the_pattern_touches(case: tuple[tuple[int, ...], list[tuple[int, int, int]]]) -> None:
    shape, taken = case
    weights = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    offset = sum(start * w for (start, _, _), w in zip(taken, weights, strict=True))
    pattern = tuple((count, step * w) for (_, count, step), w in zip(taken, weights, strict=True) if count > 1)
    texts = slices(shape, offset, pattern)
    assert texts is not None
    assert _touched(shape, texts) == _elements(offset, pattern)


def _elements(offset: int, pattern: tuple[tuple[int, int], ...]) -> set[int]:
    walks = itertools.product(*(range(n) for n, _ in pattern))
    return {offset + sum(i * s for i, (_, s) in zip(walk, pattern, strict=True)) for walk in walks}


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.integers(0, 60),
    st.lists(st.tuples(st.integers(2, 6), st.integers(1, 12)), max_size=3),
)
def test_slices_of_any_pattern_are_right_or_none(shape: list[int], offset: int, pattern: list[tuple[int, int]]) -> None:
    texts = slices(tuple(shape), offset, tuple(pattern))
    if texts is not None:
        assert _touched(tuple(shape), texts) == _elements(offset, tuple(pattern))


def test_flattened_dimensions_become_whole_slices() -> None:
    assert slices((4, 128, 512), 0, ((4 * 128 * 512, 1),)) == ["0:4", "0:128", "0:512"]
    assert slices((4, 128, 512), 128 * 512, ((128 * 512, 1),)) == ["1", "0:128", "0:512"]
    assert slices((8, 512), 0, ((512, 1), (8, 512))) is None


def test_distances_are_exact() -> None:
    assert elements(4 * 1_048_577, 4) == "1048577"
    assert elements(-8, 2) == "-4"
    assert elements(5, 2) == "5/2"


def test_operands_name_tensor_type_and_region() -> None:
    texts = [r["operands"] for r in collect_program.rows("Instruction", "id", "operands")]
    assert texts[0] == "S[5] (qSyncIO0)+=16@complete src=bf16@x[0:128, 0:512] dst=bf16@tile[0:128, 0:512]"
    second = texts[5]
    assert isinstance(second, str) and "src=bf16@x[0:128, 512:1024]" in second
    assert texts[3] == (
        "S[0] (Tensor)>=1 S[2] (Scalar)++@complete function=exp src=fp32@sums[0:128, 0:512] dst=bf16@result[0:128, 0:512]"
    )


def test_dtypes_have_hardwares_spelling() -> None:
    spelled = [short_dtype(d) for d in ("float32", "bfloat16", "float16", "float8_e4m3", "int32", "uint8")]
    assert spelled == ["fp32", "bf16", "fp16", "fp8e4m3", "int32", "uint8"]


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2), st.integers(0, 1)), max_size=60))
def test_unique_rows_finds_each_row_again(values: list[tuple[int, int, int]]) -> None:
    matrix = np.array(values, np.int64).reshape(-1, 3)
    first, inverse = unique_rows(list(matrix.T))
    assert len(first) == len(set(values))
    assert np.array_equal(matrix[first][inverse], matrix)


@given(st.lists(st.integers(0, 4), max_size=60))
def test_rank_within_counts_earlier_rows_of_the_group(groups: list[int]) -> None:
    assert rank_within(np.array(groups, np.int64)).tolist() == [groups[:i].count(g) for i, g in enumerate(groups)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**60), 2**60)), max_size=4))
def test_sums_are_exact(pairs: list[tuple[int, int]]) -> None:
    groups, values = np.array([g for g, _ in pairs], np.int64), np.array([v for _, v in pairs], np.int64)
    assert sum_by(groups, values, 4).tolist() == [sum(v for g, v in pairs if g == k) for k in range(4)]
