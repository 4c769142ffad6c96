"""Arithmetic on tiles: which instruction a language function or an operator becomes, and the tile that it returns."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from emulator.errors import broken_rule, unsupported
from emulator.nki import activations, dtypes
from emulator.nki.access import allocate
from emulator.nki.assign import fresh
from emulator.nki.constants import MemoryRegion
from emulator.nki.index import Affine, Gathered
from emulator.nki.indexing import boxed, crop, mask_box
from emulator.nki.language.broadcast import broadcast_partitions, broadcast_view
from emulator.nki.ops import elementwise, reduce, scalar
from emulator.nki.ops.reduce import tile_shape
from emulator.nki.tensor import View
from emulator.program import Space

#: Functions whose result is boolean by default (first generation).
COMPARISONS: Final = (
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
)


def binary(name: str, x: Any, y: Any, dtype: Any = None, mask: Any = None, *, legacy: bool) -> View:
    """The tile `x name y`; one of the two may be a number, or have one element per partition, or broadcast."""
    for value in (x, y):
        if isinstance(value, (Affine, Gathered)):
            unsupported("an index computed from a value in memory")
    if not isinstance(x, View) and not isinstance(y, View):
        broken_rule(f"nki.language.{name} works on tiles; got {type(x).__name__} and {type(y).__name__}")
    kinds = [value.dtype if isinstance(value, View) else dtypes.scalar_dtype(value) for value in (x, y)]
    if dtype is None:
        dtype = dtypes.bool_ if legacy and name in COMPARISONS else dtypes.promote(*kinds)
    shape = _common_shape(f"nki.language.{name}", (x, y))
    result = allocate(shape, dtype, MemoryRegion.sbuf, legacy=legacy, unnamed=name)
    if mask is not None:
        return _masked(name, result, x, y, mask)
    row = _binary_into(result, name, x, y)
    return fresh(result, (row,))


def _common_shape(call: str, values: tuple[Any, ...]) -> tuple[int, ...]:
    tiles = [value for value in values if isinstance(value, View)]
    try:
        return np.broadcast_shapes(*(tile_shape(tile) for tile in tiles))
    except ValueError:
        if len({tile.size for tile in tiles}) == len({tile.partitions for tile in tiles}) == 1:
            return tile_shape(tiles[0])
        broken_rule(
            f"{call}: " + " and ".join(f"{tile.name} {list(tile.shape)}" for tile in tiles) + " do not broadcast to one shape"
        )


def _masked(name: str, result: View, x: Any, y: Any, mask: Any) -> View:
    model = next((value for value in (x, y) if isinstance(value, View) and tile_shape(value) == result.shape), None)
    if model is not None and not model.paxis:
        result.symbols = model.symbols
    result.valid = part = mask_box(result, mask) or ()
    result.symbols = ()
    if part == ():
        return result
    left, right = (crop(value, mask) if isinstance(value, View) and value.size > 1 else value for value in (x, y))
    return fresh(result, (_binary_into(boxed(result, part), name, left, right),))


def into(target: View, name: str, x: View, y: Any) -> View:
    """`target = x name y` in place."""
    _binary_into(target, name, x, y)
    return target


def _binary_into(result: View, name: str, x: Any, y: Any) -> int:
    call = f"nki.language.{name}"
    if not isinstance(x, View):
        return elementwise.tensor_scalar(result, y, name, x, True, call=call)
    if not isinstance(y, View):
        return elementwise.tensor_scalar(result, x, name, y, call=call)
    first, second = tile_shape(x), tile_shape(y)
    if first != second and prod(first) != prod(second):
        if y.free == 1 and y.partitions == x.partitions == result.partitions:
            return elementwise.tensor_scalar(result, x, name, y, call=call)
        if x.free == 1 and x.partitions == y.partitions == result.partitions:
            return elementwise.tensor_scalar(result, y, name, x, True, call=call)
        x, y = (broadcast_partitions(broadcast_view(value, result.shape), result.legacy) for value in (x, y))
    elif first != second and (x.partitions != y.partitions):
        broken_rule(f"{call}: {x.name} {list(first)} and {y.name} {list(second)} do not match")
    if x.space is Space.PSUM and y.space is Space.PSUM:
        copied = allocate(tile_shape(y), y.dtype, MemoryRegion.sbuf, name=f"{name}.copy", legacy=result.legacy)
        elementwise.tensor_copy(copied, y, call=call)
        y = copied
    return elementwise.tensor_tensor(result, x, y, name, call=call)


def unary(name: str, x: Any, dtype: Any = None, mask: Any = None, *, legacy: bool) -> View:
    """The tile `name(x)`: an activation function, or an operation of the Vector engine."""
    if not isinstance(x, View):
        broken_rule(f"nki.language.{name} works on tiles; got {type(x).__name__}")
    if dtype is None:
        dtype = dtypes.bool_ if legacy and name in COMPARISONS else x.dtype
    result = allocate(tile_shape(x), dtype, MemoryRegion.sbuf, legacy=legacy, unnamed=name)
    target, source = result, x
    if mask is not None:
        result.symbols = x.symbols if not x.paxis else ()
        result.valid = mask_box(result, mask) or ()
        result.symbols = ()
        part = crop(x, mask)
        if result.valid == () or part is None:
            return result
        target, source = boxed(result, result.valid), part
    return fresh(result, (_unary_into(target, name, source),))


def _unary_into(target: View, name: str, source: View) -> int:
    call = f"nki.language.{name}"
    if name == "copy":
        return elementwise.tensor_copy(target, source, call=call)
    if name == "negative":
        return elementwise.tensor_scalar(target, source, "multiply", -1.0, call=call)
    if name == "reciprocal":
        return elementwise.reciprocal(target, source)
    if name in activations.FUNCTIONS:
        return scalar.activation(target, name, source, call=call)
    return elementwise.tensor_scalar(target, source, name, 0, call=call)


def reduction(name: str, x: Any, axis: Any, dtype: Any = None, mask: Any = None, keepdims: bool = False, *, legacy: bool) -> View:
    """The tile of `x` reduced over free axes."""
    call = f"nki.language.{name}"
    if not isinstance(x, View):
        broken_rule(f"{call} works on tiles; got {type(x).__name__}")
    axes = reduce.free_axes(call, x, axis)
    shape = reduce.reduced_shape(x, axes, keepdims)
    if dtype is None:
        dtype = dtypes.float32 if name in ("mean", "var") and dtypes.is_integer(x.dtype) else x.dtype
    result = allocate(shape, dtype, MemoryRegion.sbuf, legacy=legacy, unnamed=name)
    data, target = x, result
    if mask is not None:
        part = mask_box(x, mask)
        if part is None:
            result.valid = ()
            return result
        kept = [(0, 1) if index in axes else pair for index, pair in enumerate(part) if keepdims or index not in axes]
        result.valid = tuple(kept) if len(kept) > 1 else (*kept, (0, 1))
        data, target = boxed(x, part), boxed(result, result.valid)
    count = prod(tile_shape(data)[index] for index in axes)
    if name == "mean":
        total = allocate(tile_shape(target), dtypes.float32, MemoryRegion.sbuf, name="mean.sum", legacy=legacy)
        reduce.tensor_reduce(total, "add", data, axis, call=call)
        return fresh(result, (elementwise.tensor_scalar(target, total, "multiply", 1.0 / count, call=call),))
    if name == "var":
        return _variance(result, target, data, axis, count, legacy)
    return fresh(result, (reduce.tensor_reduce(target, name, data, axis, call=call),))


def _variance(result: View, target: View, data: View, axis: Any, count: int, legacy: bool) -> View:
    call = "nki.language.var"
    axes = reduce.free_axes(call, data, axis)
    mean = allocate(reduce.reduced_shape(data, axes, True), dtypes.float32, MemoryRegion.sbuf, name="var.mean", legacy=legacy)
    reduce.tensor_reduce(mean, "add", data, axis, call=call)
    elementwise.tensor_scalar(mean, mean, "multiply", 1.0 / count, call=call)
    centred = allocate(tile_shape(data), dtypes.float32, MemoryRegion.sbuf, name="var.centred", legacy=legacy)
    _binary_into(centred, "subtract", data, mean)
    scalar.activation(centred, "square", centred, call=call)
    total = allocate(tile_shape(target), dtypes.float32, MemoryRegion.sbuf, name="var.sum", legacy=legacy)
    reduce.tensor_reduce(total, "add", centred, axis, call=call)
    return fresh(result, (elementwise.tensor_scalar(target, total, "multiply", 1.0 / count, call=call),))


def where(condition: Any, x: Any, y: Any, dtype: Any = None, mask: Any = None, *, legacy: bool) -> View:
    """`x` where the condition holds, else `y`: a copy of `y`, then a predicated copy of `x`."""
    if mask is not None:
        unsupported("nki.language.where with a mask")
    if not isinstance(condition, View):
        broken_rule(f"nki.language.where: the condition is {type(condition).__name__}, not a tile")
    shape = _common_shape("nki.language.where", (condition, x, y))
    kinds = [value.dtype if isinstance(value, View) else dtypes.scalar_dtype(value) for value in (x, y)]
    result = allocate(shape, dtype or dtypes.promote(*kinds), MemoryRegion.sbuf, legacy=legacy, unnamed="where")
    call = "nki.language.where"
    if isinstance(y, View):
        elementwise.tensor_copy(result, broadcast_partitions(broadcast_view(y, shape), legacy), call=call)
    else:
        elementwise.memset(result, y)
    predicate = condition
    if not dtypes.is_integer(condition.dtype):
        predicate = allocate(tile_shape(condition), dtypes.uint8, MemoryRegion.sbuf, name="where.predicate", legacy=legacy)
        elementwise.tensor_scalar(predicate, condition, "not_equal", 0, call=call)
    predicate = broadcast_partitions(broadcast_view(predicate, shape), legacy)
    if isinstance(x, View):
        x = broadcast_partitions(broadcast_view(x, shape), legacy)
    return fresh(result, (elementwise.tensor_copy_predicated(result, x, predicate),))
