"""Selects of the Vector engine: by column index or by predicate, with the maximum of the result on request."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule
from emulator.nki import alu, dtypes
from emulator.nki.access import issue, same_tile, values_on
from emulator.nki.constants import fp32, nc_version, reduce_cmd
from emulator.nki.ops import accumulators
from emulator.nki.ops.elementwise import rows, scalar_operand, scalar_value
from emulator.nki.ops.limits import needs_dtype, needs_generation, not_both_in_psum
from emulator.nki.tensor import View

_COMPARISONS: Final = ("equal", "less", "less_equal", "greater", "greater_equal")
_REDUCING: Final = (reduce_cmd.reset_reduce, reduce_cmd.reduce)


def range_select(
    dst: View,
    on_true: View,
    comp_op0: Any,
    comp_op1: Any,
    bound0: View,
    bound1: View,
    command: Any = reduce_cmd.reset_reduce,
    reduce_res: View | None = None,
    reduce_op: Any = "max",
    range_start: int = 0,
    on_false: float = fp32.min,
) -> int:
    """The row that keeps the elements whose column number plus `range_start` compares with both bounds; fp32.min elsewhere."""
    call = "nki.isa.range_select"
    needs_generation(call, nc_version.gen3)
    same_tile(call, dst, on_true)
    first, second = alu.find(comp_op0), alu.find(comp_op1)
    for operation in (first, second):
        if operation.name not in _COMPARISONS:
            broken_rule(f"{call}: {operation} is no comparison that it has; use {', '.join(_COMPARISONS)}")
    if np.float32(on_false) != np.float32(fp32.min):
        broken_rule(f"{call}: on_false_value is {on_false:g}; the hardware only writes nl.fp32.min")
    if not dtypes.is_float(on_true.dtype):
        broken_rule(f"{call}: on_true_tile {on_true.name} is {dtypes.name(on_true.dtype)}; it has to be a float type")
    bounds: tuple[View, ...] = ()
    for name, bound in (("bound0", bound0), ("bound1", bound1)):
        needs_dtype(call, name, bound, "float32")
        bounds += scalar_operand(call, name, bound, on_true)
    _only_maximum(call, reduce_op, command)
    further, flags = accumulators.result_operand(call, reduce_res, command, on_true)
    detail = (("op0", first.name), ("op1", second.name))
    reads = (on_true, *bounds)
    row = issue(call, "range_select", None, (dst, *further), reads, on_true.free, on_true.partitions, flags=flags, detail=detail)
    if values_on():
        column = np.arange(on_true.free, dtype=np.float32)[None, :] + np.float32(range_start)
        holds = (alu.alu(first)(column, rows(bound0)) != 0) & (alu.alu(second)(column, rows(bound1)) != 0)
        result = np.where(holds, dtypes.to_float32(rows(on_true)), np.float32(fp32.min))
        _finish(call, dst, result, command, reduce_res)
    return row


def select_reduce(
    dst: View,
    predicate: View,
    on_true: View,
    on_false: Any,
    reduce_res: View | None = None,
    command: Any = reduce_cmd.idle,
    reduce_op: Any = "max",
    reverse_pred: bool = False,
) -> int:
    """The row that takes `on_true` where the predicate is not zero (zero, if reversed), `on_false` elsewhere."""
    call = "nki.isa.select_reduce"
    same_tile(call, dst, on_true)
    same_tile(call, dst, predicate)
    needs_dtype(call, "predicate", predicate, "uint8", "int8", "uint16", "int16", "bool")
    if dtypes.name(on_true.dtype) in ("tfloat32", "int32", "uint32"):
        broken_rule(f"{call}: on_true {on_true.name} is {dtypes.name(on_true.dtype)}, which it does not take; cast it first")
    not_both_in_psum(call, on_true, predicate)
    _only_maximum(call, reduce_op, command)
    further, flags = accumulators.result_operand(call, reduce_res, command, on_true)
    reads = (on_true, predicate, *scalar_operand(call, "on_false", on_false, on_true))
    row = issue(call, "select_reduce", None, (dst, *further), reads, on_true.free, on_true.partitions, flags=flags)
    if values_on():
        holds = (rows(predicate) != 0) != reverse_pred
        other = dtypes.to_float32(np.asarray(scalar_value(on_false)))
        _finish(call, dst, np.where(holds, dtypes.to_float32(rows(on_true)), other), command, reduce_res)
    return row


def _only_maximum(call: str, reduce_op: Any, command: Any) -> None:
    if alu.find(reduce_op).name not in ("max", "maximum"):
        broken_rule(f"{call}: reduce_op is {alu.find(reduce_op)}; it can only be nl.maximum")
    if command is reduce_cmd.load_reduce:
        broken_rule(f"{call}: it has no value to load; use reduce_cmd.reset_reduce or reduce")


def _finish(call: str, dst: View, result: NDArray[Any], command: Any, reduce_res: View | None) -> None:
    dst.write(result)
    if command not in _REDUCING:
        accumulators.forget(call, dst.partitions)
        return
    before = accumulators.begin(call, "maximum", command, dst.partitions)
    largest = np.maximum(before, result.max(axis=1))
    accumulators.keep(call, largest)
    if reduce_res is not None:
        reduce_res.write(largest[:, None])
