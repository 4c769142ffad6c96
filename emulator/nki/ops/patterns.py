"""GpSimd instructions on affine patterns, and transposes by the Vector engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule
from emulator.nki import alu, dtypes
from emulator.nki.access import issue, same_tile, values_on
from emulator.nki.ops.elementwise import rows
from emulator.nki.tensor import View
from emulator.program import InstructionFlag, Space

#: Rows and columns that the Vector engine transposes (aws-neuron-sdk nki/api/nki/isa/__init__.py, `nc_transpose`).
VECTOR_TRANSPOSE = 32


def pattern_values(pattern: Any, offset: int, channel_multiplier: int, partitions: int) -> NDArray[np.int64]:
    """`offset + partition * channel_multiplier + sum(step * index)`, one row for each partition."""
    line: NDArray[np.int64] = np.full(1, offset, dtype=np.int64)
    for step, count in pattern:
        line = (line[:, None] + np.arange(count) * step).reshape(-1)
    return line[None, :] + np.arange(partitions)[:, None] * channel_multiplier


def iota(dst: View, values: Any, elements: int) -> int:
    """The row that writes an affine pattern; `values()` makes it, one row of `elements` for each partition."""
    call = "nki.isa.iota"
    if elements != dst.free:
        broken_rule(
            f"{call}: the pattern has {elements} elements and {dst.name} {list(dst.shape)} has {dst.free} in each partition"
        )
    row = issue(call, "iota", None, (dst,), (), dst.free, dst.partitions)
    if values_on():
        dst.write(values().astype(np.int32))
    return row


def affine_select(dst: View, predicate: Any, elements: int, on_true: View, on_false: float) -> int:
    """The row that keeps `on_true` where `predicate()`, `elements` for each partition, holds, and writes `on_false` elsewhere."""
    call = "nki.isa.affine_select"
    same_tile(call, dst, on_true)
    if elements != dst.free:
        broken_rule(
            f"{call}: the pattern has {elements} elements and {dst.name} {list(dst.shape)} has {dst.free} in each partition"
        )
    row = issue(call, "affine_select", None, (dst,), (on_true,), dst.free, dst.partitions)
    if values_on():
        holds = np.broadcast_to(predicate(), (dst.partitions, dst.free))
        dst.write(np.where(holds, dtypes.to_float32(rows(on_true)), np.float32(on_false)))
    return row


def partition_broadcast(dst: View, row: View) -> int:
    """The row that gives every partition of `dst` the elements of `row`, which is in one."""
    call = "nki.language.broadcast_to"
    number = issue(call, "partition_broadcast", None, (dst,), (row,), dst.free, dst.partitions)
    if values_on():
        dst.write(np.broadcast_to(rows(row), (dst.partitions, dst.free)))
    return number


def compare_pattern(pattern: NDArray[np.int64], op: Any) -> NDArray[np.bool_]:
    """Where `pattern op 0` holds."""
    return np.asarray(alu.alu(op)(pattern.astype(np.float32), np.float32(0)), dtype=np.bool_)


def transpose_by_vector(dst: View, data: View) -> int:
    """The row of a transpose of up to 32 by 32 elements on the Vector engine."""
    call = "nki.isa.nc_transpose"
    k, m = data.partitions, data.free
    if max(k, m) > VECTOR_TRANSPOSE:
        broken_rule(
            f"{call}: {data.name} [{k}, {m}] is larger than the [32, 32] that the Vector engine transposes; use the Tensor engine"
        )
    if dst.partitions != m or dst.free != k:
        broken_rule(f"{call}: dst {dst.name} {list(dst.shape)} has to be [{m}, {k}]")
    row = issue(call, "nc_transpose_vector", None, (dst,), (data,), m, k, flags=int(InstructionFlag.TRANSPOSE))
    if values_on():
        dst.write(np.ascontiguousarray(rows(data).T))
    return row


def by_vector(data: View, dst_space: Space | None, engine: Any) -> bool:
    """Whether a transpose runs on the Vector engine: as asked, else if it fits there and PSUM or the size does not speak for it."""
    name = getattr(engine, "name", engine) or "unknown"
    if name != "unknown":
        return bool(name == "vector")
    small = max(data.partitions, data.free) <= VECTOR_TRANSPOSE
    return small and (dst_space is not Space.PSUM or data.space is Space.PSUM)
