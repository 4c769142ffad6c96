"""The Scalar engine: activation functions, with its reduction registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator.errors import broken_rule
from emulator.nki import activations, alu, dtypes
from emulator.nki.access import issue, same_tile, values_on
from emulator.nki.constants import reduce_cmd
from emulator.nki.ops.elementwise import rows, scalar_operand, scalar_value
from emulator.nki.session import current
from emulator.nki.tensor import View
from emulator.program import InstructionFlag


def activation(
    dst: View,
    op: Any,
    data: View,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: View | None = None,
    command: Any = reduce_cmd.idle,
    *,
    call: str = "nki.isa.activation",
) -> int:
    """The row of `op(data * scale + bias)`, summed per partition into the engine's registers as `command` says."""
    same_tile(call, dst, data)
    function = alu.find(op)
    if function.name not in activations.FUNCTIONS:
        broken_rule(f"{call}: {function} is no activation function of the Scalar engine")
    reads = (data, *scalar_operand(call, "bias", bias, data), *scalar_operand(call, "scale", scale, data))
    if reduce_op is not None and alu.find(reduce_op).name not in ("add", "sum"):
        broken_rule(f"{call}: reduce_op is {alu.find(reduce_op)}; the Scalar engine can only add")
    writes: tuple[View, ...] = (dst,)
    flags = 0
    if reduce_res is not None:
        scalar_operand(call, "reduce_res", reduce_res, data)
        writes = (dst, reduce_res)
        flags = int(InstructionFlag.READ_ACCUMULATOR)
    reduces = command not in (reduce_cmd.idle, reduce_cmd.reset)
    spec = "activation_reduce" if reduces else "activation"
    row = issue(call, spec, None, writes, reads, data.free, data.partitions, flags=flags, detail=(("function", function.name),))
    if values_on():
        _compute(call, dst, function, data, bias, scale, reduce_res, command)
    return row


def _compute(call: str, dst: View, op: alu.Op, data: View, bias: Any, scale: Any, reduce_res: View | None, command: Any) -> None:
    session = current(call)
    inner = dtypes.to_float32(rows(data))
    if isinstance(scale, View) or scale != 1.0:
        inner = inner * dtypes.to_float32(np.asarray(scalar_value(scale)))
    if bias is not None:
        inner = inner + dtypes.to_float32(np.asarray(scalar_value(bias)))
    if activations.outside_valid_range(op.name, inner):
        low, high = activations.VALID_RANGE[op.name]
        session.recorder.warn(f"{op.name} of values outside [{low:g}, {high:g}], where the Scalar engine's result is not defined")
    result = alu.activation(op)(inner)
    dst.write(result)
    registers = session.accumulators.get("scalar")
    if command in (reduce_cmd.reset, reduce_cmd.reset_reduce) or registers is None:
        registers = np.zeros(128, dtype=np.float32)
    if command in (reduce_cmd.reduce, reduce_cmd.reset_reduce):
        total = result.sum(axis=1, dtype=np.float32)
        registers = registers.copy()
        registers[: len(total)] += total
    session.accumulators["scalar"] = registers
    if reduce_res is not None:
        reduce_res.write(registers[: data.partitions, None])
