"""Views: every kind of index gives the elements that numpy gives, as an exact region, with or without values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.errors import RuleError, UnsupportedCall
from emulator.nki.access import allocate
from emulator.nki.constants import MemoryRegion
from emulator.nki.index import Affine, MGrid, Slice, arange
from emulator.nki.session import Session, launched
from emulator.nki.tensor import View, compressed
from emulator.recorder import Recorder
from tests.unit.nki_names import nisa, nki, nl, oisa, old, onl, operands, run


def tensor(shape: tuple[int, ...], region: MemoryRegion = MemoryRegion.sbuf, *, legacy: bool = False, paxis: int = 0) -> View:
    with launched(Session(Recorder("test", "trn2"), "trn2", values=True, legacy=legacy)):
        made = allocate(shape, "float32", region, legacy=legacy, paxis=paxis, name="t")
    made.array()[...] = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return made


@st.composite
def slices(draw: Any, size: int) -> slice:
    start = draw(st.integers(0, size - 1))
    stop = draw(st.integers(start + 1, size))
    return slice(draw(st.sampled_from([start, start - size])), stop, draw(st.integers(1, 3)))


@st.composite
def shape_and_key(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    key = tuple(draw(st.one_of(slices(size), st.integers(-size, size - 1))) for size in shape[: draw(st.integers(0, len(shape)))])
    return shape, key


@given(shape_and_key())
@settings(max_examples=200)
def test_hbm_slices_are_numpys(case: tuple[tuple[int, ...], tuple[Any, ...]]) -> None:
    shape, key = case
    view = tensor(shape, MemoryRegion.hbm)
    np.testing.assert_array_equal(view[key].array(), view.array()[key])


@given(shape_and_key())
@settings(max_examples=200)
def test_on_chip_slices_keep_the_partition_dimension(case: tuple[tuple[int, ...], tuple[Any, ...]]) -> None:
    shape, key = case
    view = tensor(shape)
    found = view[key]
    assert found.ndim >= 2 or len(shape) == 1 == found.ndim
    assert found.paxis == 0
    np.testing.assert_array_equal(found.array().reshape(-1), view.array()[key].reshape(-1))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
@settings(max_examples=200)
def test_index_expressions_are_numpys_fancy_indexing(sizes: list[int], data: Any) -> None:
    shape = tuple(sizes)
    view = tensor(shape, MemoryRegion.hbm, legacy=True)
    keys: list[Any] = []
    plain: list[Any] = []
    for axis, size in enumerate(shape):
        count = data.draw(st.integers(1, size))
        step = data.draw(st.integers(1, max(1, (size - 1) // max(1, count - 1)) if count > 1 else 1))
        start = data.draw(st.integers(0, size - 1 - (count - 1) * step))
        form = tuple(slice(None) if a == axis else None for a in range(len(shape)))
        keys.append(start + step * arange(count)[form])
        plain.append((start + step * np.arange(count))[form])
    found = view[tuple(keys)]
    np.testing.assert_array_equal(found.array(), view.array()[tuple(plain)])
    assert not found.limits


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-3, 3)), min_size=1, max_size=3), st.integers(-4, 4), st.integers(-3, 3))
def test_affine_arithmetic_is_exact(dims: list[tuple[int, int]], offset: int, factor: int) -> None:
    expression: Any = Affine(0, tuple((size, coefficient, -1) for size, coefficient in dims))
    values = expression.array()
    np.testing.assert_array_equal((expression * factor + offset).array(), values * factor + offset)
    np.testing.assert_array_equal((offset - expression).array(), offset - values)
    np.testing.assert_array_equal((expression + expression).array(), values + values)
    assert expression.bounds() == (values.min(), values.max())
    np.testing.assert_array_equal((expression < offset).array(), values < offset)
    np.testing.assert_array_equal((expression // 2).array(), values // 2)
    np.testing.assert_array_equal((expression % 3).array(), values % 3)


def test_mgrid_axes_have_names() -> None:
    grid = MGrid()[0:4, 0:5, 0:6]
    assert grid.p.shape == (4, 1, 1) and grid.x.shape == (1, 1, 6) and grid.y.shape == (1, 5, 1)
    with pytest.raises(AttributeError, match="has no axis 'w'"):
        _ = grid.w


def test_array_dimensions_come_before_slices() -> None:
    view = tensor((4, 5, 6), MemoryRegion.hbm, legacy=True)
    found = view[arange(4)[:, None], 0:5, arange(3)[None, :]]
    assert found.shape == (4, 3, 5)
    np.testing.assert_array_equal(found.array(), view.array()[:, :, :3].transpose(0, 2, 1))


def test_integers_drop_a_dimension_in_hbm_and_for_the_first_generation_only() -> None:
    assert tensor((4, 5, 6), MemoryRegion.hbm)[1].shape == (5, 6)
    assert tensor((4, 5, 6))[1].shape == (1, 5, 6)
    assert tensor((4, 5, 6))[..., 2].shape == (4, 5)
    assert tensor((4, 5))[:, 2].shape == (4, 1)
    block = tensor((3, 4, 5), legacy=True, paxis=1)
    assert block[1].shape == (4, 5) and block[1].paxis == 0
    assert tensor((4, 5), legacy=True)[0:4, 2].shape == (4,)


def test_block_dimensions_lie_within_the_partition() -> None:
    block = tensor((3, 4, 5), legacy=True, paxis=1)
    assert (block.storage.partitions, block.storage.partition_bytes) == (4, 3 * 5 * 4)
    second = block[1]
    assert divmod(second.offset, block.storage.partition_bytes) == (0, 20)
    np.testing.assert_array_equal(second.array(), np.arange(20, 40, dtype=np.float32).reshape(4, 5))


@pytest.mark.parametrize("key", [slice(0, 200), slice(5, 5), slice(130, 131), 128, -129, (0, 0, 0), Slice(120, 9)])
def test_indices_outside_the_tensor_are_refused(key: Any) -> None:
    with pytest.raises(RuleError):
        _ = tensor((128, 64))[key]


def test_reshape_keeps_the_layout_or_refuses() -> None:
    view = tensor((4, 6, 8))
    np.testing.assert_array_equal(view.reshape((4, 48)).array(), view.array().reshape(4, 48))
    np.testing.assert_array_equal(view.reshape(shape=(4, 2, 3, 8)).array(), view.array().reshape(4, 2, 3, 8))
    np.testing.assert_array_equal(view.reshape((4, -1, 4)).array(), view.array().reshape(4, 12, 4))
    with pytest.raises(RuleError, match="needs a copy"):
        view[:, :, 0:4].reshape((4, 24))
    with pytest.raises(RuleError, match="keeps the partition dimension"):
        view.reshape((24, 8))
    with pytest.raises(RuleError, match="192 elements"):
        view.reshape((4, 47))


@given(st.permutations([4, 2, 3, 5]), st.integers(0, 3))
def test_reshape_of_any_order_is_numpys_or_refused(sizes: list[int], split: int) -> None:
    view = tensor((4, 2, 3, 5), MemoryRegion.hbm).permute((0, 2, 1, 3))
    wanted = tuple(sizes[:split]) + ((int(np.prod(sizes[split:])),) if split < 4 else ())
    try:
        found = view.reshape(wanted)
    except RuleError:
        return
    np.testing.assert_array_equal(found.array(), view.array().reshape(wanted))


def test_dimension_methods_are_views() -> None:
    view = tensor((4, 6, 8))
    values = view.array()
    np.testing.assert_array_equal(view.permute((0, 2, 1)).array(), values.transpose(0, 2, 1))
    np.testing.assert_array_equal(view.expand_dim(1).broadcast(1, 3).array(), np.broadcast_to(values[:, None], (4, 3, 6, 8)))
    np.testing.assert_array_equal(view.reshape_dim(1, (2, -1)).array(), values.reshape(4, 2, 3, 8))
    np.testing.assert_array_equal(view.flatten_dims(1, 2).array(), values.reshape(4, 48))
    np.testing.assert_array_equal(view.slice(2, 1, 7, 2).array(), values[:, :, 1:7:2])
    np.testing.assert_array_equal(view.select(1, 3).array(), values[:, 3])
    np.testing.assert_array_equal(
        view.rearrange(("p", ("a", "b"), "c"), ("p", "c", ("a", "b")), {"a": 2}).array(), values.transpose(0, 2, 1)
    )
    assert view.expand_dim(1).squeeze_dim(1).shape == view.shape
    assert view.get_pattern() == [[48, 4], [8, 6], [1, 8]]
    assert view.is_contiguous() and not view[:, :, 0:3].is_contiguous()
    assert view.view("uint8").shape == (4, 6, 32) and view.view("uint8").view("float32").same_region(view)
    with pytest.raises(RuleError):
        view.permute((1, 0, 2))
    with pytest.raises(RuleError):
        view.broadcast(1, 3)


def test_access_patterns_walk_the_storage_within_bounds() -> None:
    view = tensor((4, 12))
    np.testing.assert_array_equal(
        view.ap([[12, 4], [1, 3], [4, 3]]).array(), view.array().reshape(4, 3, 4).transpose(0, 2, 1)[:, :3]
    )
    np.testing.assert_array_equal(view.ap([[12, 2], [2, 3]], offset=13).array(), view.array()[1:3, 1:7:2])
    with pytest.raises(RuleError, match="reaches outside"):
        view.ap([[12, 4], [1, 13]])
    with pytest.raises(RuleError, match="is in SBUF; with vector_offset it has to be in HBM"):
        view.ap([[12, 4], [1, 3]], vector_offset=view)
    with pytest.raises(UnsupportedCall):
        view.ap([[12, 4], [1, 3]], scalar_offset=view)


def test_an_index_out_of_bounds_is_legal_under_a_mask_only() -> None:
    @old.jit
    def masked(x):
        out = onl.ndarray(x.shape, dtype=x.dtype, buffer=onl.shared_hbm)
        i_p, i_f = onl.mgrid[0:128, 0:64]
        inside = (i_p < 100) & (i_f < 50)
        onl.store(out[i_p, i_f], onl.load(x[i_p, i_f], mask=inside), mask=inside)
        return out

    @old.jit
    def unmasked(x):
        i_p, i_f = onl.mgrid[0:128, 0:64]
        onl.load(x[i_p, i_f])

    x = np.random.default_rng(1).standard_normal((100, 50)).astype(np.float32)
    result = run(masked, x)
    np.testing.assert_array_equal(result.outputs, x)
    assert operands(result.program, 0)[0][2:] == (0, 100, 0, [50], [4])
    with pytest.raises(RuleError, match=r"index 127 is outside a dimension of 100 elements; mask it"):
        run(unmasked, x)


def test_what_a_mask_leaves_out_is_nan() -> None:
    @old.jit
    def kernel(x):
        out = onl.ndarray((128, 64), dtype=x.dtype, buffer=onl.shared_hbm)
        i_p, i_f = onl.mgrid[0:128, 0:64]
        onl.store(out, onl.load(x[i_p, i_f], mask=i_p < 100))
        return out

    result = run(kernel, np.ones((100, 64), np.float32)).outputs
    assert np.isnan(result[100:]).all() and (result[:100] == 1).all()


def test_masks_name_indices_not_positions() -> None:
    """A row index that both operands of a matmul share masks the contraction; the column index masks the product's columns."""

    @old.jit
    def kernel(a, b):
        out = onl.ndarray((64, 96), dtype=onl.float32, buffer=onl.shared_hbm)
        i_k, i_m, i_n = onl.arange(128)[:, None], onl.arange(64)[None, :], onl.arange(96)[None, :]
        left, right = onl.load(a[i_k, i_m], mask=i_k < 100), onl.load(b[i_k, i_n], mask=i_k < 100)
        product = oisa.nc_matmul(left[i_k, i_m], right[i_k, i_n], mask=i_k < 100)
        onl.store(out, oisa.tensor_copy(product))
        return out

    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((100, 64)).astype(np.float16), rng.standard_normal((100, 96)).astype(np.float16)
    result = run(kernel, a, b)
    np.testing.assert_allclose(result.outputs, a.astype(float).T @ b.astype(float), rtol=1e-3, atol=1e-2)
    assert int(result.program.k[3]) == 100


def test_regions_are_the_same_without_values() -> None:
    @nki.jit
    def kernel(x):
        tile = nl.ndarray((128, 8, 16), nl.bfloat16)
        nisa.dma_copy(dst=tile[0:64, 2:6, 0:16:2], src=x[0:64, 0:4, 0:8])
        nisa.tensor_copy(dst=tile[64:96, 0], src=tile[64:96, 1])

    x = np.zeros((64, 4, 8), np.float32)
    for values in (True, False):
        program = run(kernel, x, values=values).program
        dst, src = operands(program, 0)
        assert dst == ("tile", 2, 0, 64, 64, [32], [4])
        assert src == ("x", 1, 0, 0, 0, [2048], [4])
        assert operands(program, 1) == [("tile", 2, 64, 32, 0, [16], [2]), ("tile", 1, 64, 32, 32, [16], [2])]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), min_size=1, max_size=4))
def test_fewer_dimensions_address_the_same_bytes(dims: list[tuple[int, int]]) -> None:
    shape, strides = tuple(size for size, _ in dims), tuple(stride for _, stride in dims)

    def addresses(sizes: tuple[int, ...], steps: tuple[int, ...]) -> list[int]:
        return [sum(i * s for i, s in zip(index, steps, strict=True)) for index in np.ndindex(*sizes)]

    assert addresses(*compressed(shape, strides)) == addresses(shape, strides)
