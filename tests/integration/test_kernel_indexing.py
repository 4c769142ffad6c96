"""Indexing of both generations against numpy, for any coefficients, masks, patterns and slices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emulator.errors import EmulatorError
from emulator.run import load_kernel, run_kernel

FILE = Path(__file__).parents[1] / "kernels" / "parametric.py"
small = st.integers(1, 5)


@pytest.fixture(scope="module")
def kernels() -> dict[str, Any]:
    names = ("affine_gather", "affine_scatter", "masked_copy", "access_pattern", "hbm_pattern", "sliced")
    return {name: load_kernel(FILE, name) for name in names}


def _numbers(*shape: int) -> Any:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


@settings(max_examples=60, deadline=None)
@given(rows=small, outer=small, inner=small, outer_step=st.integers(0, 6), inner_step=st.integers(0, 6), offset=st.integers(0, 3))
def test_index_expressions_read_as_numpy(
    kernels: dict[str, Any], rows: int, outer: int, inner: int, outer_step: int, inner_step: int, offset: int
) -> None:
    columns = offset + outer_step * np.arange(outer)[:, None] + inner_step * np.arange(inner)
    x = _numbers(rows, int(columns.max()) + 1)
    result = run_kernel(kernels["affine_gather"], (x, outer, inner, outer_step, inner_step, offset)).outputs
    np.testing.assert_array_equal(result, x[:, columns])


@settings(max_examples=60, deadline=None)
@given(rows=small, outer=small, inner=small, outer_step=st.integers(1, 6), inner_step=st.integers(1, 6), offset=st.integers(0, 3))
def test_index_expressions_write_as_numpy(
    kernels: dict[str, Any], rows: int, outer: int, inner: int, outer_step: int, inner_step: int, offset: int
) -> None:
    columns = (offset + outer_step * np.arange(outer)[:, None] + inner_step * np.arange(inner)).reshape(-1)
    assume(len(set(columns.tolist())) == len(columns))
    x, width = _numbers(rows, outer * inner), int(columns.max()) + 3
    expected = np.zeros((rows, width), np.float32)
    expected[:, columns] = x
    result = run_kernel(kernels["affine_scatter"], (x, width, outer, inner, outer_step, inner_step, offset)).outputs
    np.testing.assert_array_equal(result, expected)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    tile=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    first=st.integers(0, 8),
    last=st.integers(0, 20),
    column=st.integers(0, 20),
)
def test_masks_select_as_numpy(
    kernels: dict[str, Any], shape: tuple[int, int], tile: tuple[int, int], first: int, last: int, column: int
) -> None:
    last, column = min(last, shape[0]), min(column, shape[1])
    x = _numbers(*shape)
    expected = np.full(shape, np.nan, np.float32)
    expected[first:last, :column] = -x[first:last, :column]
    result = run_kernel(kernels["masked_copy"], (x, *tile, first, last, column)).outputs
    np.testing.assert_array_equal(result, expected)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(2, 6),
    width=st.integers(2, 12),
    partitions=small,
    free=st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), min_size=1, max_size=3),
    offset=st.integers(0, 8),
)
def test_access_patterns_walk_as_strides(
    kernels: dict[str, Any], rows: int, width: int, partitions: int, free: list[tuple[int, int]], offset: int
) -> None:
    x = _numbers(rows, width)
    reach = sum(stride * (count - 1) for stride, count in free)
    assume(offset + reach < width and partitions <= rows)
    pattern = [[width, partitions], *map(list, free)]
    strides = [4 * stride for stride, _ in pattern]
    expected = np.lib.stride_tricks.as_strided(x.reshape(-1)[offset:], [count for _, count in pattern], strides)
    for name in ("access_pattern", "hbm_pattern"):
        np.testing.assert_array_equal(run_kernel(kernels[name], (x, pattern, offset)).outputs, expected)


@settings(max_examples=40, deadline=None)
@given(pattern=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=2, max_size=3), offset=st.integers(0, 30))
def test_patterns_outside_the_tensor_are_refused(kernels: dict[str, Any], pattern: list[tuple[int, int]], offset: int) -> None:
    x = _numbers(4, 6)
    end = offset + sum(stride * (count - 1) for stride, count in pattern)
    assume(end >= x.size)
    with pytest.raises(EmulatorError, match="x"):
        run_kernel(kernels["hbm_pattern"], (x, [list(pair) for pair in pattern], offset))


@st.composite
def _keys(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=2, max_size=4)))
    key: list[Any] = []
    for size in shape:
        start = draw(st.integers(0, size - 1))
        key.append(
            draw(
                st.sampled_from(
                    [start, slice(start, draw(st.integers(start + 1, size))), slice(start, size, draw(small)), slice(None)]
                )
            )
        )
    return shape, tuple(key[: draw(st.integers(1, len(key)))])


@settings(max_examples=80, deadline=None)
@given(case=_keys())
def test_slices_select_as_numpy_with_a_partition_dimension(
    kernels: dict[str, Any], case: tuple[tuple[int, ...], tuple[Any, ...]]
) -> None:
    shape, key = case
    x = _numbers(*shape)
    kept = (slice(key[0], key[0] + 1), *key[1:]) if isinstance(key[0], int) else key
    expected = x[kept]
    result = run_kernel(kernels["sliced"], (x, key)).outputs
    np.testing.assert_array_equal(result, expected if expected.ndim > 1 else expected[:, None])
