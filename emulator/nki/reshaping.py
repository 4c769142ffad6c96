"""Views of a tensor in another shape, order or type, never a copy: what the methods of tensors do."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

from emulator.errors import broken_rule, unsupported
from emulator.nki import dtypes
from emulator.nki.tensor import View, contiguous_strides


def reshape(view: View, shape: Any) -> View:
    """The same elements in another shape. Raises `RuleError` if that needs a copy or moves the partition dimension."""
    sizes = [int(size) for size in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = view.size // max(1, -prod(sizes))
    if prod(sizes) != view.size:
        broken_rule(f"{view.name} {list(view.shape)} has {view.size} elements and cannot become {sizes}")
    if view.paxis is None:
        return view.derive(view.offset, tuple(sizes), _strides(view, view.shape, view.strides, sizes), None)
    if view.paxis == 0 and sizes[0] == view.shape[0]:
        free = _strides(view, view.shape[1:], view.strides[1:], sizes[1:])
        return view.derive(view.offset, tuple(sizes), (view.strides[0], *free), 0)
    axis = view.paxis
    if len(sizes) <= axis or prod(sizes[:axis]) != prod(view.shape[:axis]) or sizes[axis] != view.shape[axis]:
        broken_rule(f"{view.name} {list(view.shape)} cannot become {sizes}: a reshape keeps the partition dimension")
    before = _strides(view, view.shape[:axis], view.strides[:axis], sizes[:axis])
    after = _strides(view, view.shape[axis + 1 :], view.strides[axis + 1 :], sizes[axis + 1 :])
    return view.derive(view.offset, tuple(sizes), (*before, view.strides[axis], *after), axis)


def _strides(view: View, shape: tuple[int, ...], strides: tuple[int, ...], wanted: list[int]) -> tuple[int, ...]:
    """Strides of `wanted` over the elements that `shape` and `strides` address."""
    dims = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    if not dims:
        return tuple(view.itemsize for _ in wanted)
    result: list[int] = []
    position, left = len(dims) - 1, 1
    step = dims[-1][1]
    for size in reversed(wanted):
        if size == 1:
            result.append(step)
            continue
        if left == 1:
            step = dims[position][1]
            left = dims[position][0]
        while left % size and position > 0 and dims[position - 1][1] == dims[position][0] * dims[position][1]:
            # The next outer dimension continues this one: they act as one.
            position -= 1
            dims[position] = (dims[position][0] * dims[position + 1][0], dims[position + 1][1])
            left *= dims[position][0] // dims[position + 1][0]
        if left % size:
            broken_rule(
                f"{view.name} {list(view.shape)} cannot become a view of shape {wanted}: "
                "its layout needs a copy (nki.isa.tensor_copy)"
            )
        result.append(step)
        step *= size
        left //= size
        if left == 1:
            position -= 1
    return tuple(reversed(result))


def permute(view: View, dims: Any) -> View:
    """The dimensions in another order; on chip the partition dimension stays first."""
    order = tuple(int(dim) for dim in dims)
    if sorted(order) != list(range(view.ndim)):
        broken_rule(f"{view.name}: {list(order)} does not permute {view.ndim} dimensions")
    if view.on_chip and order[0] != 0:
        broken_rule(f"{view.name}: the partition dimension stays first when dimensions are permuted")
    return view.derive(view.offset, tuple(view.shape[d] for d in order), tuple(view.strides[d] for d in order), view.paxis)


def broadcast(view: View, dim: int, size: int) -> View:
    """A dimension of one element repeated."""
    if view.shape[dim] != 1:
        broken_rule(f"{view.name}: dimension {dim} has {view.shape[dim]} elements; only one can be broadcast")
    if view.on_chip and dim == view.paxis:
        broken_rule(f"{view.name}: the partition dimension cannot be broadcast by a view")
    strides = (*view.strides[:dim], 0, *view.strides[dim + 1 :])
    return view.derive(view.offset, (*view.shape[:dim], size, *view.shape[dim + 1 :]), strides, view.paxis)


def expand_dim(view: View, dim: int) -> View:
    """A new dimension of one element at `dim`."""
    dim = dim + view.ndim + 1 if dim < 0 else dim
    if view.on_chip and dim == 0:
        broken_rule(f"{view.name}: no dimension can come before the partition dimension")
    paxis = view.paxis + 1 if view.paxis is not None and view.paxis >= dim else view.paxis
    shape = (*view.shape[:dim], 1, *view.shape[dim:])
    return view.derive(view.offset, shape, (*view.strides[:dim], view.itemsize, *view.strides[dim:]), paxis)


def squeeze_dim(view: View, dim: int) -> View:
    """Without a dimension of one element."""
    if view.shape[dim] != 1 or (view.on_chip and dim == view.paxis):
        broken_rule(f"{view.name} {list(view.shape)}: dimension {dim} cannot be removed")
    paxis = view.paxis - 1 if view.paxis is not None and view.paxis > dim else view.paxis
    return view.derive(view.offset, view.shape[:dim] + view.shape[dim + 1 :], view.strides[:dim] + view.strides[dim + 1 :], paxis)


def reshape_dim(view: View, dim: int, shape: Any) -> View:
    """One dimension split into several."""
    sizes = [int(size) for size in shape]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = view.shape[dim] // max(1, -prod(sizes))
    if prod(sizes) != view.shape[dim]:
        broken_rule(f"{view.name}: dimension {dim} of {view.shape[dim]} elements cannot become {sizes}")
    if view.on_chip and dim == view.paxis and len(sizes) > 1:
        broken_rule(f"{view.name}: the partition dimension cannot be split")
    steps = tuple(stride // view.itemsize * view.strides[dim] for stride in contiguous_strides(tuple(sizes), view.itemsize))
    paxis = view.paxis + len(sizes) - 1 if view.paxis is not None and view.paxis > dim else view.paxis
    shape = (*view.shape[:dim], *sizes, *view.shape[dim + 1 :])
    return view.derive(view.offset, shape, (*view.strides[:dim], *steps, *view.strides[dim + 1 :]), paxis)


def flatten_dims(view: View, start: int, end: int) -> View:
    """Dimensions `start` to `end`, both included, as one."""
    end = end + view.ndim if end < 0 else end
    if view.on_chip and start <= (view.paxis or 0) <= end:
        broken_rule(f"{view.name}: the partition dimension cannot be merged with others")
    merged = [prod(view.shape[start : end + 1])]
    stride = _strides(view, view.shape[start : end + 1], view.strides[start : end + 1], merged)
    shape = (*view.shape[:start], *merged, *view.shape[end + 1 :])
    return view.derive(view.offset, shape, (*view.strides[:start], *stride, *view.strides[end + 1 :]), view.paxis)


def rearrange(view: View, source: Any, target: Any, fixed_sizes: dict[str, int] | None = None) -> View:
    """Dimensions split, ordered and merged by name."""
    fixed = fixed_sizes or {}
    names: list[str] = []
    split = view
    for item in source:
        group = (item,) if isinstance(item, str) else tuple(item)
        if len(group) > 1:
            sizes = [fixed.get(name, -1) for name in group]
            split = reshape_dim(split, len(names), sizes)
        names += group
    flat = [name for item in target for name in ((item,) if isinstance(item, str) else item)]
    result = permute(split, [names.index(name) for name in flat])
    for position, item in enumerate(target):
        if not isinstance(item, str) and len(item) > 1:
            result = flatten_dims(result, position, position + len(item) - 1)
    return result


def access_pattern(
    view: View,
    pattern: Any,
    offset: int | None = None,
    scalar_offset: Any = None,
    vector_offset: Any = None,
    indirect_dim: int = 0,
    dtype: Any = None,
) -> View:
    """The view's storage walked by `[[stride, count], ...]` in elements, partition dimension first on chip.

    Raises `RuleError` if it reaches outside the tensor.
    """
    if scalar_offset is not None:
        unsupported("tensor.ap with scalar_offset")
    kind = view.dtype if dtype is None else dtypes.as_dtype(dtype)
    itemsize = dtypes.itemsize(kind)
    start = view.offset + (operator.index(offset) if offset is not None else 0) * itemsize
    if vector_offset is not None:
        from emulator.nki.indirect import rows_of

        return rows_of(view, pattern, start, vector_offset, indirect_dim, kind)
    shape = tuple(int(count) for _, count in pattern)
    strides = tuple(int(stride) * itemsize for stride, _ in pattern)
    reach = [stride * (size - 1) for size, stride in zip(shape, strides, strict=True)]
    first = start + sum(r for r in reach if r < 0)
    last = start + sum(r for r in reach if r > 0) + itemsize
    if first < 0 or last > view.storage.nbytes or min(shape) < 1:
        broken_rule(
            f"{view.name}: access pattern {[list(pair) for pair in pattern]} reaches outside its {view.storage.nbytes} bytes"
        )
    return view.derive(start, shape, strides, 0 if view.on_chip else None, kind)


def reinterpret(view: View, dtype: Any) -> View:
    """The same bytes as another type; the last dimension scales."""
    kind = dtypes.as_dtype(dtype)
    new, old = dtypes.itemsize(kind), view.itemsize
    if new == old:
        return view.derive(view.offset, view.shape, view.strides, view.paxis, kind)
    last = view.shape[-1] * old
    if view.strides[-1] != old or last % new:
        broken_rule(f"{view.name} {list(view.shape)} {dtypes.name(view.dtype)} cannot be viewed as {dtypes.name(kind)}")
    return view.derive(view.offset, (*view.shape[:-1], last // new), (*view.strides[:-1], new), view.paxis, kind)


def pattern_of(view: View) -> list[list[int]]:
    """`[[stride, count], ...]` in elements."""
    return [[stride // view.itemsize, size] for size, stride in zip(view.shape, view.strides, strict=True)]


def is_contiguous(view: View) -> bool:
    """Whether the free dimensions (all, in HBM) lie row after row."""
    start = 1 if view.on_chip else 0
    wanted = contiguous_strides(view.shape[start:], view.itemsize)
    return all(
        size == 1 or stride == want for size, stride, want in zip(view.shape[start:], view.strides[start:], wanted, strict=True)
    )
