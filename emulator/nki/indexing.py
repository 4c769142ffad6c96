"""`tensor[key]`: basic slices and index expressions, both as exact strided views."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from emulator.errors import broken_rule, unsupported
from emulator.nki.index import ONE, Affine, Gathered, Mask, Slice
from emulator.nki.register import VirtualRegister
from emulator.nki.tensor import View

_EXPRESSIONS = (Affine, Gathered, np.ndarray)


def index(view: View, key: Any) -> View:
    """The view of `view[key]`, by the rules of its API generation. Raises `RuleError` outside its bounds."""
    keys = key if isinstance(key, tuple) else (key,)
    if view.indirect is not None:
        unsupported(f"indexing {view.name} after tensor.ap with vector_offset")
    for item in keys:
        if isinstance(item, _EXPRESSIONS):
            return _by_expressions(view, _full(view, keys))
    if view.limits:
        check_limits(view)
    return _by_slices(view, keys)


def _full(view: View, keys: tuple[Any, ...]) -> list[Any]:
    given = sum(item is not None and item is not Ellipsis for item in keys)
    if given > len(view.shape):
        broken_rule(f"{view.name} has {len(view.shape)} dimensions and is indexed with {given}")
    filled: list[Any] = []
    spread = False
    for item in keys:
        if item is Ellipsis:
            spread = True
            filled += [slice(None)] * (len(view.shape) - given)
        else:
            filled.append(item)
    if not spread:
        filled += [slice(None)] * (len(view.shape) - given)
    return filled


def _by_slices(view: View, keys: tuple[Any, ...]) -> View:
    if Ellipsis in keys or len(keys) < len(view.shape) or None in keys:
        keys = tuple(_full(view, keys))
    elif len(keys) > len(view.shape):
        _full(view, keys)
    keeps_partition = view.on_chip and not view.legacy
    offset = view.offset
    shape: list[int] = []
    strides: list[int] = []
    paxis: int | None = None
    dimension = 0
    for item in keys:
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = view.shape[dimension], view.strides[dimension]
        is_partition = dimension == view.paxis
        if isinstance(item, (slice, Slice)):
            start, count, step = _range(view, dimension, item)
            if is_partition:
                paxis = len(shape)
            offset += start * stride
            shape.append(count)
            strides.append(stride * step)
        else:
            position = _position(view, dimension, item, size)
            offset += position * stride
            if is_partition and keeps_partition:
                paxis = len(shape)
                shape.append(1)
                strides.append(stride)
        dimension += 1
    if keeps_partition and len(shape) == 1:
        shape.append(1)
        strides.append(view.itemsize)
    return view.derive(offset, tuple(shape), tuple(strides), paxis)


def _range(view: View, dimension: int, item: slice | Slice) -> tuple[int, int, int]:
    size = view.shape[dimension]
    if isinstance(item, Slice):
        if not isinstance(item.start, (int, np.integer)) and isinstance(item.start, (View, VirtualRegister)):
            unsupported("nl.ds with a start from memory or a register")
        start, stop, step = operator.index(item.start), operator.index(item.start) + operator.index(item.size), 1
    else:
        step = 1 if item.step is None else operator.index(item.step)
        start = 0 if item.start is None else operator.index(item.start)
        stop = size if item.stop is None else operator.index(item.stop)
        start, stop = start + size if start < 0 else start, stop + size if stop < 0 else stop
    if step < 1:
        broken_rule(f"{view.name} is sliced with step {step} in dimension {dimension}; steps are at least 1")
    if start < 0 or stop > size or start >= stop:
        what = "selects nothing" if start >= stop else f"reaches outside its {size} elements"
        broken_rule(f"{view.name}[{start}:{stop}] {what} in dimension {dimension} of shape {list(view.shape)}")
    return start, (stop - start + step - 1) // step, step


def _position(view: View, dimension: int, item: Any, size: int) -> int:
    if not isinstance(item, (int, np.integer)) and isinstance(item, (View, VirtualRegister)):
        unsupported("indexing with a value from memory or a register")
    try:
        position = operator.index(item)
    except TypeError:
        broken_rule(f"{view.name} is indexed with {type(item).__name__}; use an integer, a slice or nl.ds")
    if position < 0:
        position += size
    if not 0 <= position < size:
        broken_rule(f"{view.name}: index {position} is outside dimension {dimension} of shape {list(view.shape)}")
    return position


def _by_expressions(view: View, keys: list[Any]) -> View:
    expressions = {i: affine(item) for i, item in enumerate(keys) if isinstance(item, _EXPRESSIONS)}
    width = max(expression.ndim for expression in expressions.values())
    shape = [1] * width
    strides = [0] * width
    symbols = [-1] * width
    offset = view.offset
    paxis: int | None = None
    limits: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
    for dimension, expression in expressions.items():
        dims = (ONE,) * (width - expression.ndim) + expression.dims
        offset += expression.const * view.strides[dimension]
        terms = []
        for axis, (size, coefficient, symbol) in enumerate(dims):
            if symbol >= 0:
                symbols[axis] = symbol
            if size == 1:
                continue
            if shape[axis] not in (1, size):
                broken_rule(f"index expressions of {view.name} do not broadcast: sizes {shape[axis]} and {size} in one dimension")
            shape[axis] = size
            strides[axis] += coefficient * view.strides[dimension]
            terms.append((axis, coefficient))
        lowest, highest = expression.bounds()
        if lowest < 0 or highest >= view.shape[dimension]:
            limits.append((view.shape[dimension], expression.const, tuple(terms)))
        if dimension == view.paxis:
            paxis = _partition_axis(view, dims)
    for dimension, item in enumerate(keys):
        if dimension in expressions:
            continue
        stride = view.strides[dimension]
        if isinstance(item, (slice, Slice)):
            start, count, step = _range(view, dimension, item)
            offset += start * stride
            if dimension == view.paxis:
                paxis = len(shape)
            shape.append(count)
            strides.append(stride * step)
            symbols.append(-1)
        else:
            offset += _position(view, dimension, item, view.shape[dimension]) * stride
    result = View(view.storage, view.dtype, offset, tuple(shape), tuple(strides), paxis, view.legacy, tuple(symbols))
    result.limits = tuple(limits)
    return result


def _partition_axis(view: View, dims: tuple[tuple[int, int, int], ...]) -> int | None:
    axes = [axis for axis, (size, coefficient, _) in enumerate(dims) if size > 1 and coefficient]
    if len(axes) > 1:
        unsupported(f"an index of {view.name}'s partition dimension made of two dimensions")
    return axes[0] if axes else next((axis for axis, dim in enumerate(dims) if dim[2] >= 0), None)


def affine(item: Any) -> Affine:
    """`item` as an affine expression. Raises `UnsupportedCall` if it is not one."""
    if isinstance(item, Affine):
        return item
    values = np.asarray(item.array() if isinstance(item, Gathered) else item)
    const = int(values.flat[0])
    dims = []
    for axis, size in enumerate(values.shape):
        second = tuple(1 if a == axis else 0 for a in range(values.ndim))
        dims.append((size, int(values[second]) - const if size > 1 else 0, -1))
    fitted = Affine(const, tuple(dims))
    if not np.array_equal(fitted.array(), values):
        unsupported("indexing with an expression that is not affine")
    return fitted


def check_limits(view: View) -> None:
    """Raise `RuleError` if an index of the view reaches outside its tensor."""
    for size, const, terms in view.limits:
        reach = [coefficient * (view.shape[axis] - 1) for axis, coefficient in terms]
        lowest = const + sum(r for r in reach if r < 0)
        highest = const + sum(r for r in reach if r > 0)
        if lowest < 0 or highest >= size:
            broken_rule(
                f"{view.name}: index {lowest if lowest < 0 else highest} is outside a dimension of {size} elements; "
                "mask it (mask=index < size) or shorten the index range"
            )
    view.limits = ()


Box = tuple[tuple[int, int], ...]


def crop(view: View, mask: Any) -> View | None:
    """The part of `view` where `mask` holds; None if it holds nowhere. Raises `UnsupportedCall` unless that part is a box."""
    if mask is None:
        return view
    part = mask_box(view, mask)
    return None if part is None else boxed(view, part)


def mask_box(view: View, mask: Any) -> Box | None:
    """First index and count of each dimension of `view` where `mask` holds; None if it holds nowhere."""
    part = [(0, size) for size in view.shape]
    if isinstance(mask, (bool, np.bool_)):
        return tuple(part) if mask else None
    if not isinstance(mask, Mask):
        if isinstance(mask, Gathered) and bool(np.all(mask.array())):
            return tuple(part)
        unsupported("a mask that is not made of comparisons of index expressions joined by &")
    for condition in mask.conditions:
        expression = condition.expression
        holds = condition.array()
        if holds.all():
            continue
        if not holds.any():
            return None
        axes = [axis for axis, (size, coefficient, _) in enumerate(expression.dims) if size > 1 and coefficient]
        if len(axes) > 1:
            unsupported("a mask that couples two indices")
        along = np.flatnonzero(holds.reshape(-1))
        first, last = int(along[0]), int(along[-1])
        if last - first + 1 != len(along):
            unsupported("a mask that leaves gaps")
        axis = _masked_axis(view, expression, axes[0])
        if axis is not None:
            begin, count = part[axis]
            low, high = max(begin, first), min(begin + count - 1, last)
            if low > high:
                return None
            part[axis] = (low, high - low + 1)
    return tuple(part)


def boxed(view: View, part: Box) -> View:
    """The part of `view` that a box of the same number of dimensions selects."""
    if view.indirect is not None:
        unsupported(f"a mask on {view.name} after tensor.ap with vector_offset")
    offset = view.offset + sum(first * stride for (first, _), stride in zip(part, view.strides, strict=True))
    shape = tuple(count for _, count in part)
    result = View(view.storage, view.dtype, offset, shape, view.strides, view.paxis, view.legacy, view.symbols)
    result.limits = tuple(
        (size, const + sum(coefficient * part[axis][0] for axis, coefficient in terms), terms) for size, const, terms in view.limits
    )
    return result


def _masked_axis(view: View, expression: Affine, axis: int) -> int | None:
    size, _, symbol = expression.dims[axis]
    if view.symbols:
        return view.symbols.index(symbol) if symbol in view.symbols else None
    if expression.ndim != len(view.shape):
        unsupported(f"a mask of {expression.ndim} dimensions on a tile of {len(view.shape)}")
    return axis if view.shape[axis] == size else None
