"""`nki.isa` of the first generation (`neuronxcc.nki.isa`): calls return tiles and take masks.

Signatures follow aws-neuron-sdk nki/api/nki/isa/__init__.py at release 2.26.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emulator.errors import broken_rule, unsupported
from emulator.nki import constants as c
from emulator.nki import dtypes
from emulator.nki.access import allocate
from emulator.nki.assign import ON_CHIP, fresh
from emulator.nki.constants import MemoryRegion
from emulator.nki.constants import engine as _engine
from emulator.nki.constants import reduce_cmd as _reduce_cmd
from emulator.nki.index import Affine, Gathered, Mask
from emulator.nki.indexing import boxed, crop, mask_box
from emulator.nki.ops import dma, elementwise, matmul, patterns, reduce, scalar
from emulator.nki.ops.reduce import tile_shape
from emulator.nki.tensor import View, need_view
from emulator.program import Space

_unknown = _engine.unknown


def _result(data: View, shape: tuple[int, ...], dtype: Any, region: MemoryRegion = MemoryRegion.sbuf) -> View:
    made = allocate(shape, data.dtype if dtype is None else dtype, region, legacy=True)
    if data.symbols and len(data.symbols) == len(shape):
        # The result's dimensions are the data's, partition dimension first, so masks on its indices apply to it.
        order = [data.paxis or 0, *(axis for axis in range(data.ndim) if axis != (data.paxis or 0))]
        made.symbols = tuple(data.symbols[axis] for axis in order)
    return made


def _issue(result: View, mask: Any, inputs: tuple[View, ...], run: Callable[..., Any], spaces: tuple[Space, ...] = ON_CHIP) -> View:
    if mask is None:
        row = run(result, *inputs)
        result.symbols = ()
        return fresh(result, row if isinstance(row, tuple) else (row,), spaces=spaces)
    part = mask_box(result, mask)
    masked = [crop(view, mask) for view in inputs]
    if part is None or any(view is None for view in masked):
        result.valid = ()
        return result
    row = run(boxed(result, part), *masked)
    result.symbols = ()
    result.valid = part
    return fresh(result, row if isinstance(row, tuple) else (row,), spaces=spaces)


def _tile(value: Any, call: str, argument: str = "data") -> View:
    return need_view(value, f"nki.isa.{call}", argument)


def tensor_copy(src: View, *, mask: Any = None, dtype: Any = None, engine: Any = _unknown, **ignored: Any) -> View:
    """A copy of `src` on chip."""
    src = _tile(src, "tensor_copy", "src")
    result = _result(src, tile_shape(src), dtype)
    return _issue(result, mask, (src,), lambda d, s: elementwise.tensor_copy(d, s, engine=engine))


def memset(shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = _unknown, **ignored: Any) -> View:
    """A tile filled with a constant."""
    result = allocate(tuple(shape), dtype, MemoryRegion.sbuf, legacy=True)
    return _issue(result, mask, (), lambda d: elementwise.memset(d, value, engine=engine))


def tensor_tensor(
    data1: View, data2: View, op: Any, *, dtype: Any = None, mask: Any = None, engine: Any = _unknown, **ignored: Any
) -> View:
    """`data1 op data2`."""
    left, right = _tile(data1, "tensor_tensor", "data1"), _tile(data2, "tensor_tensor", "data2")
    result = _result(left, tile_shape(left), dtype or dtypes.promote(left.dtype, right.dtype))
    return _issue(result, mask, (left, right), lambda d, a, b: elementwise.tensor_tensor(d, a, b, op, engine=engine))


def tensor_scalar(
    data: View,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = _unknown,
    **ignored: Any,
) -> View:
    """`(data op0 operand0) op1 operand1`."""
    data = _tile(data, "tensor_scalar")
    result = _result(data, tile_shape(data), dtype)

    def run(d: View, x: View) -> int:
        first, second = _column(operand0, mask), _column(operand1, mask)
        return elementwise.tensor_scalar(d, x, op0, first, reverse0, op1, second, reverse1, engine=engine)

    return _issue(result, mask, (data,), run)


def scalar_tensor_tensor(
    *,
    data: View,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    dtype: Any = None,
    mask: Any = None,
    **ignored: Any,
) -> View:
    """`(data op0 operand0) op1 operand1`, `operand1` a tile."""
    data, other = _tile(data, "scalar_tensor_tensor"), _tile(operand1, "scalar_tensor_tensor", "operand1")
    result = _result(data, tile_shape(data), dtype or dtypes.promote(data.dtype, other.dtype))
    return _issue(
        result,
        mask,
        (data, other),
        lambda d, x, y: elementwise.scalar_tensor_tensor(d, x, op0, _column(operand0, mask), op1, y, reverse0, reverse1),
    )


def reciprocal(data: View, *, dtype: Any = None, mask: Any = None, **ignored: Any) -> View:
    """1 / data."""
    data = _tile(data, "reciprocal")
    return _issue(_result(data, tile_shape(data), dtype), mask, (data,), elementwise.reciprocal)


def tensor_copy_predicated(
    *, src: Any, dst: View, predicate: View, reverse_pred: bool = False, mask: Any = None, dtype: Any = None, **ignored: Any
) -> None:
    """Copy into `dst` where the predicate is not zero."""
    call = "tensor_copy_predicated"
    views = [crop(view, mask) for view in (_tile(dst, call, "dst"), _tile(predicate, call, "predicate"))]
    source = crop(src, mask) if isinstance(src, View) else src
    if views[0] is not None and views[1] is not None and source is not None:
        elementwise.tensor_copy_predicated(views[0], source, views[1], reverse_pred)


def activation(
    op: Any,
    data: View,
    *,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Any = None,
    reduce_cmd: Any = _reduce_cmd.idle,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> View:
    """`op(data * scale + bias)` on the Scalar engine."""
    data = _tile(data, "activation")

    def run(d: View, x: View) -> int:
        res = _column(reduce_res, mask)
        return scalar.activation(d, op, x, _column(bias, mask), _column(scale, mask), reduce_op, res, reduce_cmd)

    return _issue(_result(data, tile_shape(data), dtype), mask, (data,), run)


def activation_reduce(
    op: Any,
    data: View,
    *,
    reduce_op: Any,
    reduce_res: View,
    bias: Any = None,
    scale: Any = 1.0,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> View:
    """`activation`, and the sum of its result per partition in `reduce_res`."""
    return activation(
        op,
        data,
        bias=bias,
        scale=scale,
        reduce_op=reduce_op,
        reduce_res=_tile(reduce_res, "activation_reduce", "reduce_res"),
        reduce_cmd=_reduce_cmd.reset_reduce,
        mask=mask,
        dtype=dtype,
    )


def tensor_reduce(
    op: Any,
    data: View,
    axis: Any,
    *,
    mask: Any = None,
    dtype: Any = None,
    negate: bool = False,
    keepdims: bool = False,
    **ignored: Any,
) -> View:
    """The reduction of free axes."""
    data = _tile(data, "tensor_reduce")
    axes = reduce.free_axes("nki.isa.tensor_reduce", data, axis)
    result = allocate(reduce.reduced_shape(data, axes, keepdims), dtype or data.dtype, MemoryRegion.sbuf, legacy=True)
    if mask is None:
        return fresh(result, (reduce.tensor_reduce(result, op, data, axis, negate),))
    part = mask_box(data, mask)
    if part is None:
        result.valid = ()
        return result
    kept = [pair for index, pair in enumerate(part) if index not in axes]
    if keepdims:
        kept = [(0, 1) if index in axes else pair for index, pair in enumerate(part)]
    result.valid = tuple(kept) if len(kept) > 1 else (*kept, (0, 1))
    row = reduce.tensor_reduce(boxed(result, result.valid), op, boxed(data, part), axis, negate)
    return fresh(result, (row,))


def tensor_partition_reduce(op: Any, data: View, *, mask: Any = None, dtype: Any = None, **ignored: Any) -> View:
    """The reduction across partitions."""
    _no_mask(mask, "tensor_partition_reduce")
    data = _tile(data, "tensor_partition_reduce")
    result = allocate((1, *tile_shape(data)[1:]), dtype or data.dtype, MemoryRegion.sbuf, legacy=True)
    return fresh(result, (reduce.tensor_partition_reduce(result, op, data),))


def tensor_scalar_reduce(
    *,
    data: View,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: View,
    reverse0: bool = False,
    dtype: Any = None,
    mask: Any = None,
    **ignored: Any,
) -> View:
    """`data op0 operand0`, and its reduction per partition in `reduce_res`."""
    data = _tile(data, "tensor_scalar_reduce")
    return _issue(
        _result(data, tile_shape(data), dtype),
        mask,
        (data,),
        lambda d, x: reduce.tensor_scalar_reduce(
            d, x, op0, _column(operand0, mask), reduce_op, _column(reduce_res, mask), reverse0
        ),
    )


def tensor_tensor_scan(
    data0: View,
    data1: View,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    **ignored: Any,
) -> View:
    """`r[i] = op1(op0(data0[i], r[i - 1]), data1[i])`."""
    left, right = _tile(data0, "tensor_tensor_scan", "data0"), _tile(data1, "tensor_tensor_scan", "data1")
    result = _result(left, tile_shape(left), dtype or dtypes.promote(left.dtype, right.dtype))
    return _issue(
        result,
        mask,
        (left, right),
        lambda d, a, b: reduce.tensor_tensor_scan(d, a, b, _column(initial, mask), op0, op1, reverse0, reverse1),
    )


def max8(*, src: View, mask: Any = None, dtype: Any = None, **ignored: Any) -> View:
    """The 8 largest values per partition."""
    return _statistics("max8", src, 8, mask, dtype, reduce.max8)


def bn_stats(data: View, *, mask: Any = None, dtype: Any = None, **ignored: Any) -> View:
    """Statistics of even and odd elements."""
    return _statistics("bn_stats", data, 6, mask, dtype, reduce.bn_stats)


def bn_aggr(data: View, *, mask: Any = None, dtype: Any = None, **ignored: Any) -> View:
    """Mean and variance from statistics."""
    return _statistics("bn_aggr", data, 2, mask, dtype, reduce.bn_aggr)


def _statistics(call: str, data: Any, columns: int, mask: Any, dtype: Any, run: Callable[[View, View], int]) -> View:
    source = _tile(data, call)
    result = allocate((source.partitions, columns), dtype or source.dtype, MemoryRegion.sbuf, legacy=True)
    part = crop(source, mask)
    if part is None:
        result.valid = ()
        return result
    if part.partitions == result.partitions:
        return fresh(result, (run(result, part),))
    result.valid = ((0, part.partitions), (0, columns))
    return fresh(result, (run(boxed(result, result.valid), part),))


def nc_matmul(
    stationary: View,
    moving: View,
    *,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    tile_position: Any = (),
    tile_size: Any = (),
    mask: Any = None,
    **ignored: Any,
) -> View:
    """`stationary.T @ moving` in PSUM."""
    left, right = _tile(stationary, "nc_matmul", "stationary"), _tile(moving, "nc_matmul", "moving")
    kept, columns = crop(left, mask), crop(right, mask)
    dtype = left.dtype if is_transpose else dtypes.float32
    if left.free > matmul.STATIONARY_COLUMNS:
        broken_rule(
            f"nki.isa.nc_matmul: stationary {left.name} has {left.free} columns; at most {matmul.STATIONARY_COLUMNS}: "
            "tile its free dimension"
        )
    result = allocate((left.free, right.free), dtype, MemoryRegion.psum, legacy=True)
    if kept is None or columns is None:
        result.valid = ()
        return result
    target = result
    if mask is not None and (kept.free, columns.free) != result.shape:
        result.valid = ((0, kept.free), (0, columns.free))
        target = boxed(result, result.valid)
    rows = matmul.nc_matmul(
        target,
        kept,
        columns,
        is_transpose=is_transpose,
        accumulate=False,
        tile_position=tile_position,
        tile_size=tile_size,
        perf_mode=ignored.get("perf_mode"),
    )
    return fresh(result, rows, spaces=(Space.PSUM,), matmul=True)


def nc_transpose(data: View, *, mask: Any = None, dtype: Any = None, engine: Any = _unknown, **ignored: Any) -> View:
    """The transpose of partitions and free elements: in PSUM by the Tensor engine, in SBUF by the Vector engine."""
    _no_mask(mask, "nc_transpose")
    data = _tile(data, "nc_transpose")
    kind = dtype or data.dtype
    if patterns.by_vector(data, None, engine):
        result = allocate((data.free, data.partitions), kind, MemoryRegion.sbuf, legacy=True)
        return fresh(result, (patterns.transpose_by_vector(result, data),))
    if data.free > matmul.STATIONARY_COLUMNS:
        broken_rule(
            f"nki.isa.nc_transpose: {data.name} {list(data.shape)} is larger than the [128, 128] "
            "that the Tensor engine transposes: tile it"
        )
    result = allocate((data.free, data.partitions), kind, MemoryRegion.psum, legacy=True)
    return fresh(result, matmul.transpose_by_tensor(result, data), spaces=(Space.PSUM,))


def iota(expr: Any, dtype: Any, *, mask: Any = None, **ignored: Any) -> View:
    """A tile of the values of an index expression."""
    _no_mask(mask, "iota")
    if not isinstance(expr, Affine):
        unsupported("nki.isa.iota of an expression that is not affine")
    shape = expr.shape if expr.ndim > 1 else (*expr.shape, 1)
    result = allocate(shape, dtype, MemoryRegion.sbuf, legacy=True)
    values = lambda: expr.array().reshape(shape[0], -1)  # noqa: E731
    return fresh(result, (patterns.iota(result, values, result.free),), spaces=(Space.SBUF,))


def affine_select(
    pred: Any, on_true_tile: View, on_false_value: float, *, mask: Any = None, dtype: Any = None, **ignored: Any
) -> View:
    """`on_true_tile` where the predicate holds, a constant elsewhere."""
    _no_mask(mask, "affine_select")
    data = _tile(on_true_tile, "affine_select", "on_true_tile")
    if not isinstance(pred, (Mask, Gathered)):
        broken_rule(f"nki.isa.affine_select: pred is {type(pred).__name__}; it has to compare index expressions")
    result = allocate(tile_shape(data), dtype or data.dtype, MemoryRegion.sbuf, legacy=True)
    wide = tile_shape(data)

    def holds() -> Any:
        import numpy as np

        return np.broadcast_to(pred.array(), wide).reshape(wide[0], -1)

    return fresh(result, (patterns.affine_select(result, holds, result.free, data, on_false_value),), spaces=(Space.SBUF,))


def dma_copy(
    *,
    dst: View,
    src: View,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: Any = None,
    dge_mode: Any = c.dge_mode.unknown,
    **ignored: Any,
) -> None:
    """Copy between HBM and SBUF."""
    target, source = crop(_tile(dst, "dma_copy", "dst"), mask), crop(_tile(src, "dma_copy", "src"), mask)
    if target is None or source is None:
        return
    if dst_rmw_op is not None:
        dma.dma_compute(target, (target, source), dst_rmw_op, call="nki.isa.dma_copy with dst_rmw_op")
    else:
        dma.dma_copy(target, source, dge_mode=dge_mode)


def dma_transpose(src: View, *, axes: Any = None, mask: Any = None, dtype: Any = None, **ignored: Any) -> View:
    """The transpose of `src`, made by DMA, in SBUF."""
    _no_mask(mask, "dma_transpose")
    src = _tile(src, "dma_transpose", "src")
    order = tuple(axes) if axes is not None else dma.TRANSPOSED.get(src.ndim, ())
    if sorted(order) != list(range(src.ndim)):
        broken_rule(f"nki.isa.dma_transpose: axes {axes} do not permute the {src.ndim} dimensions of {src.name}")
    result = allocate(tuple(src.shape[axis] for axis in order), dtype or src.dtype, MemoryRegion.sbuf, legacy=True)
    return fresh(result, (dma.dma_transpose(result, src, order),), spaces=(Space.SBUF,))


def _column(value: Any, mask: Any) -> Any:
    if not isinstance(value, View) or mask is None:
        return value
    part = crop(value, mask)
    return value if part is None else part


def _no_mask(mask: Any, call: str) -> None:
    if mask is not None:
        unsupported(f"nki.isa.{call} with a mask")
