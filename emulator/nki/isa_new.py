"""`nki.isa` of the current generation: the destination comes first.

Signatures follow aws-neuron-sdk nki/api/nki/isa/__init__.py.
"""

from __future__ import annotations

from math import prod
from typing import Any

from emulator.errors import broken_rule
from emulator.nki import constants as c
from emulator.nki.constants import engine as _engine
from emulator.nki.constants import reduce_cmd as _reduce_cmd
from emulator.nki.ops import dma, elementwise, matmul, patterns, reduce, scalar
from emulator.nki.session import current
from emulator.nki.tensor import View, need_view
from emulator.program import Space

_unknown = _engine.unknown


def dma_copy(
    dst: View,
    src: View,
    priority: Any = None,
    oob_mode: Any = None,
    dge_mode: Any = None,
    engine: Any = _unknown,
    name: Any = None,
    **extra: Any,
) -> None:
    """Copy between HBM and SBUF."""
    _only_known("dma_copy", extra)
    dma.dma_copy(_dst(dst, "dma_copy"), _tile(src, "dma_copy", "src"), engine=engine, dge_mode=dge_mode, oob=oob_mode)


def dma_transpose(
    dst: View,
    src: View,
    axes: Any = None,
    priority: Any = None,
    dge_mode: Any = None,
    oob_mode: Any = None,
    name: Any = None,
    **extra: Any,
) -> None:
    """Transpose on the way between HBM and SBUF."""
    _only_known("dma_transpose", extra)
    dma.dma_transpose(_dst(dst, "dma_transpose"), _tile(src, "dma_transpose", "src"), axes, dge_mode=dge_mode)


def tensor_copy(dst: View, src: View, engine: Any = _unknown, name: Any = None, **extra: Any) -> None:
    """Copy on chip."""
    _only_known("tensor_copy", extra)
    elementwise.tensor_copy(_dst(dst, "tensor_copy"), _tile(src, "tensor_copy", "src"), engine=engine)


def memset(dst: View, value: Any, engine: Any = _unknown, name: Any = None, **extra: Any) -> None:
    """Fill with a constant."""
    _only_known("memset", extra)
    elementwise.memset(_dst(dst, "memset"), value, engine=engine)


def tensor_tensor(dst: View, data1: View, data2: View, op: Any, engine: Any = _unknown, name: Any = None, **extra: Any) -> None:
    """`data1 op data2`."""
    _only_known("tensor_tensor", extra)
    call = "tensor_tensor"
    elementwise.tensor_tensor(_dst(dst, call), _tile(data1, call, "data1"), _tile(data2, call, "data2"), op, engine=engine)


def tensor_scalar(
    dst: View,
    data: View,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    engine: Any = _unknown,
    name: Any = None,
    **extra: Any,
) -> None:
    """`(data op0 operand0) op1 operand1`."""
    _only_known("tensor_scalar", extra)
    call = "tensor_scalar"
    elementwise.tensor_scalar(
        _dst(dst, call), _tile(data, call, "data"), op0, operand0, reverse0, op1, operand1, reverse1, engine=engine
    )


def scalar_tensor_tensor(
    dst: View,
    data: View,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: View,
    reverse0: bool = False,
    reverse1: bool = False,
    name: Any = None,
    **extra: Any,
) -> None:
    """`(data op0 operand0) op1 operand1`, `operand1` a tile."""
    _only_known("scalar_tensor_tensor", extra)
    call = "scalar_tensor_tensor"
    elementwise.scalar_tensor_tensor(
        _dst(dst, call), _tile(data, call, "data"), op0, operand0, op1, _tile(operand1, call, "operand1"), reverse0, reverse1
    )


def reciprocal(dst: View, data: View, name: Any = None, **extra: Any) -> None:
    """1 / data."""
    _only_known("reciprocal", extra)
    elementwise.reciprocal(_dst(dst, "reciprocal"), _tile(data, "reciprocal", "data"))


def tensor_copy_predicated(
    dst: View, src: Any, predicate: View, reverse_pred: bool = False, name: Any = None, **extra: Any
) -> None:
    """Copy where the predicate is not zero."""
    _only_known("tensor_copy_predicated", extra)
    call = "tensor_copy_predicated"
    elementwise.tensor_copy_predicated(_dst(dst, call), src, _tile(predicate, call, "predicate"), reverse_pred)


def activation(
    dst: View,
    op: Any,
    data: View,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Any = None,
    reduce_cmd: Any = _reduce_cmd.idle,
    name: Any = None,
    **extra: Any,
) -> None:
    """`op(data * scale + bias)` on the Scalar engine."""
    _only_known("activation", extra)
    call = "activation"
    scalar.activation(_dst(dst, call), op, _tile(data, call, "data"), bias, scale, reduce_op, reduce_res, reduce_cmd)


def activation_reduce(
    dst: View,
    op: Any,
    data: View,
    reduce_op: Any,
    reduce_res: View,
    bias: Any = None,
    scale: Any = 1.0,
    name: Any = None,
    **extra: Any,
) -> None:
    """`activation`, and the sum of its result per partition."""
    _only_known("activation_reduce", extra)
    call = "activation_reduce"
    scalar.activation(
        _dst(dst, call),
        op,
        _tile(data, call, "data"),
        bias,
        scale,
        reduce_op,
        _tile(reduce_res, call, "reduce_res"),
        _reduce_cmd.reset_reduce,
        call=f"nki.isa.{call}",
    )


def tensor_reduce(
    dst: View, op: Any, data: View, axis: Any, negate: bool = False, keepdims: bool = False, name: Any = None, **extra: Any
) -> None:
    """Reduce free axes."""
    _only_known("tensor_reduce", extra)
    reduce.tensor_reduce(_dst(dst, "tensor_reduce"), op, _tile(data, "tensor_reduce", "data"), axis, negate)


def tensor_partition_reduce(dst: View, op: Any, data: View, name: Any = None, **extra: Any) -> None:
    """Reduce across partitions."""
    _only_known("tensor_partition_reduce", extra)
    reduce.tensor_partition_reduce(_dst(dst, "tensor_partition_reduce"), op, _tile(data, "tensor_partition_reduce", "data"))


def tensor_scalar_reduce(
    dst: View,
    data: View,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: Any = None,
    reverse0: bool = False,
    reduce_cmd: Any = _reduce_cmd.reset_reduce,
    reduce_init: Any = None,
    reduce_res_negate: bool = False,
    name: Any = None,
    **extra: Any,
) -> None:
    """`data op0 operand0`, and its reduction per partition."""
    _only_known("tensor_scalar_reduce", extra)
    call = "tensor_scalar_reduce"
    reduce.tensor_scalar_reduce(
        _dst(dst, call),
        _tile(data, call, "data"),
        op0,
        operand0,
        reduce_op,
        reduce_res,
        reverse0,
        reduce_cmd,
        reduce_init,
        reduce_res_negate,
    )


def tensor_tensor_scan(
    dst: View,
    data0: View,
    data1: View,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: Any = None,
    **extra: Any,
) -> None:
    """`r[i] = op1(op0(data0[i], r[i - 1]), data1[i])`."""
    _only_known("tensor_tensor_scan", extra)
    call = "tensor_tensor_scan"
    reduce.tensor_tensor_scan(
        _dst(dst, call), _tile(data0, call, "data0"), _tile(data1, call, "data1"), initial, op0, op1, reverse0, reverse1
    )


def max8(dst: View, src: View, name: Any = None, **extra: Any) -> None:
    """The 8 largest values per partition."""
    _only_known("max8", extra)
    reduce.max8(_dst(dst, "max8"), _tile(src, "max8", "src"))


def bn_stats(dst: View, data: View, name: Any = None, **extra: Any) -> None:
    """Statistics of even and odd elements."""
    _only_known("bn_stats", extra)
    reduce.bn_stats(_dst(dst, "bn_stats"), _tile(data, "bn_stats", "data"))


def bn_aggr(dst: View, data: View, name: Any = None, **extra: Any) -> None:
    """Mean and variance from statistics."""
    _only_known("bn_aggr", extra)
    reduce.bn_aggr(_dst(dst, "bn_aggr"), _tile(data, "bn_aggr", "data"))


def nc_matmul(
    dst: View,
    stationary: View,
    moving: View,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: Any = (),
    tile_size: Any = (),
    perf_mode: Any = c.matmul_perf_mode.none,
    name: Any = None,
    **extra: Any,
) -> None:
    """`dst (+)= stationary.T @ moving`."""
    _only_known("nc_matmul", extra)
    call = "nc_matmul"
    matmul.nc_matmul(
        _dst(dst, call),
        _tile(stationary, call, "stationary"),
        _tile(moving, call, "moving"),
        is_transpose=is_transpose,
        accumulate=accumulate,
        tile_position=tile_position,
        tile_size=tile_size,
        perf_mode=perf_mode,
    )


def nc_transpose(dst: View, data: View, engine: Any = _unknown, name: Any = None, **extra: Any) -> None:
    """Transpose partitions and free elements on the Tensor or the Vector engine."""
    _only_known("nc_transpose", extra)
    target, source = _dst(dst, "nc_transpose"), _tile(data, "nc_transpose", "data")
    if (target.space is Space.SBUF and engine is _unknown) or patterns.by_vector(source, target.space, engine):
        patterns.transpose_by_vector(target, source)
    else:
        matmul.transpose_by_tensor(target, source)


def iota(dst: View, pattern: Any, offset: int = 0, channel_multiplier: int = 0, name: Any = None, **extra: Any) -> None:
    """An affine pattern of integers."""
    _only_known("iota", extra)
    target = _dst(dst, "iota")
    patterns.iota(
        target,
        lambda: patterns.pattern_values(pattern, offset, channel_multiplier, target.partitions),
        prod(count for _, count in pattern),
    )


def affine_select(
    dst: View,
    pattern: Any,
    channel_multiplier: int,
    on_true_tile: View,
    on_false_value: float,
    cmp_op: Any = "equal",
    offset: int = 0,
    name: Any = None,
    **extra: Any,
) -> None:
    """`on_true_tile` where an affine pattern compares with 0, a constant elsewhere."""
    _only_known("affine_select", extra)
    target = _dst(dst, "affine_select")
    patterns.affine_select(
        target,
        lambda: patterns.compare_pattern(patterns.pattern_values(pattern, offset, channel_multiplier, target.partitions), cmp_op),
        prod(count for _, count in pattern),
        _tile(on_true_tile, "affine_select", "on_true_tile"),
        on_false_value,
    )


def _only_known(call: str, extra: dict[str, Any]) -> None:
    for name, value in extra.items():
        if name == "dtype":
            current().recorder.warn(f"nki.isa.{call} has no argument dtype in this generation; dst's dtype counts")
        elif value is not None:
            broken_rule(f"nki.isa.{call} has no argument {name!r} in this generation")


def _dst(value: Any, call: str) -> View:
    return need_view(value, f"nki.isa.{call}", "dst")


def _tile(value: Any, call: str, argument: str) -> View:
    return need_view(value, f"nki.isa.{call}", argument)
