"""Reductions, scans and statistics along the free dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator.errors import broken_rule
from emulator.nki import alu, dtypes
from emulator.nki.access import issue, same_tile, values_on
from emulator.nki.constants import reduce_cmd
from emulator.nki.ops import accumulators
from emulator.nki.ops.elementwise import apply, rows, scalar_operand, scalar_value
from emulator.nki.tensor import View
from emulator.program import InstructionFlag

#: Elements per partition that bn_stats takes (aws-neuron-sdk nki/api/nki/isa/__init__.py).
BN_STATS_ELEMENTS = 512
_REDUCTIONS = ("add", "multiply", "maximum", "minimum")


def free_axes(call: str, data: View, axis: Any) -> tuple[int, ...]:
    """The axes to reduce, counted with the partition dimension first. Raises `RuleError` for the partition dimension."""
    ndim = max(data.ndim, 2)
    axes = tuple(sorted({int(a) % ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,))}))
    if 0 in axes and data.on_chip:
        broken_rule(
            f"{call}: axis 0 of {data.name} is the partition dimension; reduce free axes, "
            "and transpose or multiply by ones to sum partitions"
        )
    return axes


def reduced_shape(data: View, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The result's shape, at least two-dimensional, partition dimension first."""
    shape = tile_shape(data)
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return kept if len(kept) > 1 else (*kept, 1)


def tile_shape(data: View) -> tuple[int, ...]:
    """The view's shape with the partition dimension first, of at least two dimensions."""
    if data.paxis is None:
        return (1, *data.shape) if data.shape else (1, 1)
    shape = (data.shape[data.paxis], *data.shape[: data.paxis], *data.shape[data.paxis + 1 :])
    return shape if len(shape) > 1 else (*shape, 1)


def tensor_reduce(
    dst: View,
    op: Any,
    data: View,
    axis: Any,
    negate: bool = False,
    *,
    where: Any = None,
    call: str = "nki.isa.tensor_reduce",
) -> int:
    """The row of a reduction over free axes."""
    operation = alu.find(op)
    axes = free_axes(call, data, axis)
    shape = reduced_shape(data, axes, False)
    if dst.partitions != data.partitions or dst.size != int(np.prod(shape)):
        broken_rule(
            f"{call}: dst {dst.name} {list(dst.shape)} has to hold {list(shape)}, what is left of {data.name} {list(data.shape)}"
        )
    detail = (("op", accumulators.PLAIN.get(operation.name, operation.name)),)
    row = issue(call, "tensor_reduce", None, (dst,), (data,), data.free, data.partitions, detail=detail)
    if values_on():
        result = alu.reduction(operation)(data.tile(), axes, where=where)
        dst.write(-result if negate else result)
    return row


def tensor_scalar_reduce(
    dst: View,
    data: View,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: View | None = None,
    reverse0: bool = False,
    command: Any = reduce_cmd.reset_reduce,
    reduce_init: Any = None,
    reduce_res_negate: bool = False,
) -> int:
    """The row of `data op0 operand0`, reduced per partition into the Vector engine's registers."""
    call = "nki.isa.tensor_scalar_reduce"
    same_tile(call, dst, data)
    first, second = alu.find(op0), alu.find(reduce_op)
    name = accumulators.PLAIN.get(second.name, second.name)
    if name not in _REDUCTIONS:
        broken_rule(f"{call}: reduce_op is {second}; it can be add, multiply, max or min")
    accumulators.check_load(call, "reduce_init", command, reduce_init)
    reads = (data, *scalar_operand(call, "operand0", operand0, data), *scalar_operand(call, "reduce_init", reduce_init, data))
    writes: tuple[View, ...] = (dst,)
    flags = 0
    if reduce_res is not None:
        scalar_operand(call, "reduce_res", reduce_res, data)
        writes = (dst, reduce_res)
        flags = int(InstructionFlag.READ_ACCUMULATOR)
    detail = (("op0", first.name), ("reduce_op", second.name))
    row = issue(call, "tensor_scalar_reduce", None, writes, reads, data.free, data.partitions, flags=flags, detail=detail)
    if not values_on():
        return row
    result = apply(first, rows(data), scalar_value(operand0), reverse0)
    dst.write(result)
    initial = None if reduce_init is None else scalar_value(reduce_init)
    before = accumulators.begin(call, name, command, data.partitions, initial)
    part = alu.alu(name)(before, alu.reduction(name)(result, (1,)))
    accumulators.keep(call, part)
    if reduce_res is not None:
        reduce_res.write((-part if reduce_res_negate else part)[:, None])
    return row


def tensor_scalar_cumulative(
    dst: View, src: View, op0: Any, op1: Any, imm0: Any, imm1: Any = None, command: Any = reduce_cmd.reset_reduce
) -> int:
    """The row of `r[i] = op1(op0(src[i], imm0), r[i - 1])` along the free dimension; r is kept in the Vector engine's registers."""
    call = "nki.isa.tensor_scalar_cumulative"
    same_tile(call, dst, src)
    first, second = alu.find(op0), alu.find(op1)
    name = accumulators.PLAIN.get(second.name, second.name)
    if name not in accumulators.IDENTITY:
        broken_rule(f"{call}: op1 is {second}; it can be add, subtract, multiply, max or min")
    if first.bitwise:
        broken_rule(f"{call}: op0 is {first}; it has to be an arithmetic operation")
    for view in (dst, src):
        if dtypes.name(view.dtype) in ("int32", "uint32"):
            broken_rule(f"{call}: {view.name} is {dtypes.name(view.dtype)}, which it does not take; use float32")
    if command not in (reduce_cmd.reset_reduce, reduce_cmd.reduce, reduce_cmd.load_reduce):
        broken_rule(f"{call}: reduce_cmd is {command.name}; it can be reset_reduce, reduce or load_reduce")
    accumulators.check_load(call, "imm1", command, imm1)
    reads = (src, *scalar_operand(call, "imm0", imm0, src), *scalar_operand(call, "imm1", imm1, src))
    detail = (("op0", first.name), ("op1", name))
    row = issue(call, "tensor_scalar_cumulative", None, (dst,), reads, src.free, src.partitions, detail=detail)
    if values_on():
        start = accumulators.begin(call, name, command, src.partitions, None if imm1 is None else scalar_value(imm1))
        inner = apply(first, rows(src), scalar_value(imm0), False)
        result = alu.scan(name, "bypass", inner, np.zeros_like(inner), start)
        dst.write(result)
        accumulators.keep(call, result[:, -1])
    return row


def tensor_tensor_scan(
    dst: View, data0: View, data1: View, initial: Any, op0: Any, op1: Any, reverse0: bool = False, reverse1: bool = False
) -> int:
    """The row of the recurrence `r[i] = op1(op0(data0[i], r[i - 1]), data1[i])` along the free dimension."""
    call = "nki.isa.tensor_tensor_scan"
    same_tile(call, data0, data1)
    same_tile(call, dst, data0)
    first, second = alu.find(op0), alu.find(op1)
    reads = (data0, data1, *scalar_operand(call, "initial", initial, data0))
    detail = (("op0", first.name), ("op1", second.name))
    row = issue(call, "tensor_tensor_scan", None, (dst,), reads, data0.free, data0.partitions, detail=detail)
    if values_on():
        start = np.broadcast_to(np.asarray(scalar_value(initial)), (data0.partitions, 1))
        dst.write(alu.scan(first, second, rows(data0), rows(data1), start, reverse0=reverse0, reverse1=reverse1))
    return row


def max8(dst: View, src: View) -> int:
    """The row that finds the 8 largest values of each partition, in descending order."""
    call = "nki.isa.max8"
    if dst.free != 8 or dst.partitions != src.partitions:
        broken_rule(f"{call}: dst {dst.name} {list(dst.shape)} has to be [{src.partitions}, 8]")
    if not 8 <= src.free <= 16384:
        broken_rule(f"{call}: {src.name} has {src.free} elements per partition; it takes 8 to 16384")
    row = issue(call, "max8", None, (dst,), (src,), src.free, src.partitions)
    if values_on():
        dst.write(-np.sort(-dtypes.to_float32(rows(src)), axis=1)[:, :8])
    return row


def bn_stats(dst: View, data: View) -> int:
    """The row that makes (count, mean, variance * count) of the even and of the odd elements of each partition."""
    call = "nki.isa.bn_stats"
    if data.free > BN_STATS_ELEMENTS:
        broken_rule(
            f"{call}: {data.name} has {data.free} elements per partition; at most {BN_STATS_ELEMENTS}: "
            "split it, and join with bn_aggr"
        )
    if dst.free != 6 or dst.partitions != data.partitions:
        broken_rule(f"{call}: dst {dst.name} {list(dst.shape)} has to be [{data.partitions}, 6]")
    row = issue(call, "bn_stats", None, (dst,), (data,), data.free, data.partitions)
    if values_on():
        values = dtypes.to_float32(rows(data))
        statistics = []
        for part in (values[:, 0::2], values[:, 1::2]):
            count = part.shape[1]
            mean = part.mean(axis=1) if count else np.zeros(len(part), dtype=np.float32)
            spread = ((part - mean[:, None]) ** 2).sum(axis=1)
            statistics += [np.full_like(mean, count), mean, spread]
        dst.write(np.stack(statistics, axis=1))
    return row


def bn_aggr(dst: View, data: View) -> int:
    """The row that joins (count, mean, variance * count) triples into mean and variance of each partition."""
    call = "nki.isa.bn_aggr"
    if data.free % 3:
        broken_rule(f"{call}: {data.name} has {data.free} elements per partition; it takes triples of bn_stats")
    if dst.free != 2 or dst.partitions != data.partitions:
        broken_rule(f"{call}: dst {dst.name} {list(dst.shape)} has to be [{data.partitions}, 2]")
    row = issue(call, "bn_aggr", None, (dst,), (data,), data.free, data.partitions)
    if values_on():
        count, mean, spread = np.moveaxis(dtypes.to_float32(rows(data)).reshape(data.partitions, -1, 3), 2, 0)
        total = count.sum(axis=1)
        whole = (count * mean).sum(axis=1) / total
        variance = (spread + count * (mean - whole[:, None]) ** 2).sum(axis=1) / total
        dst.write(np.stack([whole, variance], axis=1))
    return row


def tensor_partition_reduce(dst: View, op: Any, data: View) -> int:
    """The row of a reduction across partitions into one."""
    call = "nki.isa.tensor_partition_reduce"
    operation = alu.find(op)
    if dst.partitions != 1 or dst.free != data.free:
        broken_rule(f"{call}: dst {dst.name} {list(dst.shape)} has to be [1, {data.free}]")
    row = issue(
        call, "tensor_partition_reduce", None, (dst,), (data,), data.free, data.partitions, detail=(("op", operation.name),)
    )
    if values_on():
        dst.write(alu.reduction(operation)(rows(data), (0,), keepdims=True))
    return row
