"""Element by element: copies, fills, and the ALU operations of the Vector, Scalar and GpSimd engines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule
from emulator.nki import alu, dtypes
from emulator.nki.access import issue, same_tile, values_on
from emulator.nki.session import current
from emulator.nki.tensor import View
from emulator.program import InstructionFlag, Space

Array = NDArray[Any]


def rows(view: View) -> Array:
    """The view's elements in place or copied, one row for each partition."""
    return view.tile().reshape(view.partitions, view.free)


def scalar_operand(call: str, name: str, value: Any, data: View) -> tuple[View, ...]:
    """The operand as a region to read, if it is a tensor. Raises `RuleError` unless it has one element per partition of `data`."""
    if not isinstance(value, View):
        return ()
    if value.free != 1 or value.partitions != data.partitions:
        broken_rule(
            f"{call}: {name} {value.name} {list(value.shape)} has to be a number or [{data.partitions}, 1]: "
            f"one element for each partition of {data.name}"
        )
    return (value,)


def scalar_value(value: Any) -> Any:
    """The operand for arithmetic: a number, or a column."""
    if isinstance(value, View):
        return rows(value)
    return value


def tensor_copy(dst: View, src: View, *, engine: Any = None, call: str = "nki.isa.tensor_copy") -> int:
    """The row of a copy within on-chip memory, partition by partition; bits are kept where the types agree."""
    same_tile(call, dst, src)
    if getattr(engine, "name", engine) == "scalar" and current(call).target == "trn1":
        broken_rule(f"{call}: the scalar engine of trn1 has no tensor_copy; use nki.isa.activation with op=nl.copy")
    row = issue(call, "tensor_copy", engine, (dst,), (src,), dst.free, dst.partitions)
    if values_on():
        dst.write(rows(src))
    return row


def memset(dst: View, value: Any, *, engine: Any = None) -> int:
    """The row of a fill with a constant."""
    if not isinstance(value, (bool, int, float, np.generic)):
        what = f"the tensor {value.name}" if isinstance(value, View) else type(value).__name__
        broken_rule(f"nki.isa.memset: value is {what}; it has to be a number")
    flags = 0 if value else int(InstructionFlag.ZERO_FILL)
    row = issue(
        "nki.isa.memset", "memset", engine, (dst,), (), dst.free, dst.partitions, flags=flags, detail=(("value", f"{value:g}"),)
    )
    fill(dst, value)
    return row


def fill(dst: View, value: Any) -> None:
    """Set every element, if values are kept."""
    if values_on():
        tile = dst.tile()
        tile[...] = dtypes.cast(np.asarray(value, dtype=np.float64 if isinstance(value, float) else None), dst.dtype)


def tensor_tensor(dst: View, data1: View, data2: View, op: Any, *, engine: Any = None, call: str = "nki.isa.tensor_tensor") -> int:
    """The row of `data1 op data2`."""
    same_tile(call, data1, data2)
    same_tile(call, dst, data1)
    operation = alu.find(op)
    if data1.space is Space.PSUM and data2.space is Space.PSUM:
        broken_rule(f"{call}: {data1.name} and {data2.name} are both in PSUM; copy one of them to SBUF first")
    engine = engine if _given(engine) else _integer_engine(operation, dst, data1, data2)
    row = issue(
        call, "tensor_tensor", engine, (dst,), (data1, data2), data1.free, data1.partitions, detail=(("op", operation.name),)
    )
    if values_on():
        dst.write(_binary(operation, data1, data2, dst))
    return row


def _given(engine: Any) -> bool:
    return engine is not None and getattr(engine, "name", engine) != "unknown"


def _integer_engine(operation: alu.Op, *views: View) -> Any:
    # 32-bit integers are exact on GpSimd only; it cannot reach PSUM (stub of `tensor_tensor`). `power` runs there alone.
    whole = all(dtypes.name(view.dtype) in ("int32", "uint32") for view in views)
    if any(view.space is Space.PSUM for view in views):
        return None
    return "gpsimd" if operation.name == "power" or (whole and not operation.bitwise) else None


def _binary(operation: alu.Op, data1: View, data2: View, dst: View) -> Array:
    left, right = rows(data1), rows(data2)
    exact = all(dtypes.name(view.dtype) in ("int32", "uint32") for view in (data1, data2, dst))
    if exact and operation.name in ("add", "subtract", "multiply"):
        wide = getattr(np, operation.name)(left.astype(np.int64), right.astype(np.int64))
        return dtypes.cast(wide, dst.dtype)
    return alu.alu(operation)(left, right)


def tensor_scalar(
    dst: View,
    data: View,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    *,
    engine: Any = None,
    call: str = "nki.isa.tensor_scalar",
) -> int:
    """The row of `(data op0 operand0) op1 operand1` with operands that are numbers or one per partition."""
    same_tile(call, dst, data)
    first = alu.find(op0)
    reads = (data, *scalar_operand(call, "operand0", operand0, data))
    detail = [("op0", first.name)]
    if op1 is not None:
        second = alu.find(op1)
        if second.bitwise != first.bitwise:
            broken_rule(f"{call}: {first} and {second} cannot be combined; both have to be arithmetic or both bitwise")
        reads += scalar_operand(call, "operand1", operand1, data)
        detail.append(("op1", second.name))
    row = issue(call, "tensor_scalar", engine, (dst,), reads, data.free, data.partitions, detail=tuple(detail))
    if values_on():
        result = apply(first, rows(data), scalar_value(operand0), reverse0)
        if op1 is not None:
            result = apply(alu.find(op1), result, scalar_value(operand1), reverse1)
        dst.write(result)
    return row


def apply(operation: alu.Op, data: Array, operand: Any, reverse: bool) -> Array:
    """`data op operand`, or `operand op data`; `op data` if the operation has one operand."""
    function = alu.alu(operation)
    if operation.arity == 1:
        return function(data)
    return function(operand, data) if reverse else function(data, operand)


def scalar_tensor_tensor(
    dst: View,
    data: View,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: View,
    reverse0: bool = False,
    reverse1: bool = False,
) -> int:
    """The row of `(data op0 operand0) op1 operand1`, `operand1` a tile."""
    call = "nki.isa.scalar_tensor_tensor"
    same_tile(call, dst, data)
    same_tile(call, operand1, data)
    if data.space is Space.PSUM and operand1.space is Space.PSUM:
        broken_rule(f"{call}: {data.name} and {operand1.name} are both in PSUM; copy one of them to SBUF first")
    first, second = alu.find(op0), alu.find(op1)
    reads = (data, *scalar_operand(call, "operand0", operand0, data), operand1)
    detail = (("op0", first.name), ("op1", second.name))
    row = issue(call, "scalar_tensor_tensor", None, (dst,), reads, data.free, data.partitions, detail=detail)
    if values_on():
        inner = apply(first, rows(data), scalar_value(operand0), reverse0)
        dst.write(apply(second, inner, rows(operand1), reverse1))
    return row


def reciprocal(dst: View, data: View) -> int:
    """The row of 1 / data."""
    call = "nki.isa.reciprocal"
    same_tile(call, dst, data)
    row = issue(call, "reciprocal", None, (dst,), (data,), data.free, data.partitions)
    if values_on():
        dst.write(alu.activation("reciprocal")(rows(data)))
    return row


def tensor_copy_predicated(dst: View, src: Any, predicate: View, reverse_pred: bool = False) -> int:
    """The row of a copy of the elements whose predicate is not zero (zero, if reversed); the others stay."""
    call = "nki.isa.tensor_copy_predicated"
    same_tile(call, dst, predicate)
    reads: tuple[View, ...] = (predicate,)
    if isinstance(src, View):
        same_tile(call, dst, src)
        if src.space is Space.PSUM and predicate.space is Space.PSUM:
            broken_rule(f"{call}: {src.name} and {predicate.name} are both in PSUM; copy one of them to SBUF first")
        reads = (src, predicate)
    if not dtypes.is_integer(predicate.dtype):
        broken_rule(f"{call}: predicate {predicate.name} is {dtypes.name(predicate.dtype)}; it has to be uint8, uint16 or uint32")
    row = issue(call, "tensor_copy_predicated", None, (dst,), reads, dst.free, dst.partitions)
    if values_on():
        holds = rows(predicate) != 0
        new = dtypes.cast(rows(src), dst.dtype) if isinstance(src, View) else dtypes.cast(np.asarray(float(src)), dst.dtype)
        dst.write(np.where(holds != reverse_pred, new, rows(dst)))
    return row
