"""Rows that indices in memory choose: `tensor.ap(..., vector_offset=...)`, and the DMA that gathers or scatters them.

Source: aws-neuron-sdk nki/api/nki/isa/__init__.py, `dma_copy` ("Indirect addressing"). Each row that is touched is an operand of
its own, so regions and bytes are exact. Without values the indices are not known: the first rows stand for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.errors import broken_rule, unsupported
from emulator.nki import dtypes
from emulator.nki.access import READ, WRITE, operand, values_on
from emulator.nki.constants import oob_mode
from emulator.nki.ops import dma
from emulator.nki.session import current
from emulator.nki.tensor import View
from emulator.program import Access, Space


@dataclass(frozen=True, slots=True)
class Rows:
    """The first dimension of a view follows `index`, one number for each partition: times `step` bytes, below `limit`."""

    index: View
    step: int
    limit: int


def rows_of(base: View, pattern: Any, start: int, index: Any, dim: int, kind: Any) -> View:
    """The view of `base` whose first dimension follows `index`; of the pattern's first pair only the count matters.

    Raises `RuleError` unless `base` is in HBM and `index` holds one integer for each row in SBUF.
    """
    call = "tensor.ap"
    if base.space is not Space.HBM:
        broken_rule(f"{call}: {base.name} is in {base.space.name}; with vector_offset it has to be in HBM")
    if not isinstance(index, View):
        broken_rule(f"{call}: vector_offset is {type(index).__name__}, not a tensor; use scalar_offset for one offset")
    count = int(pattern[0][1])
    if index.space is not Space.SBUF or index.free != 1 or index.partitions != count or not dtypes.is_integer(index.dtype):
        broken_rule(
            f"{call}: vector_offset {index.name} {list(index.shape)} {dtypes.name(index.dtype)} has to be integers in SBUF "
            f"of shape [{count}, 1], one for each row of the pattern"
        )
    if not 0 <= dim < base.ndim:
        broken_rule(f"{call}: indirect_dim {dim} is no dimension of {base.name} {list(base.shape)}")
    itemsize = dtypes.itemsize(kind)
    shape = tuple(int(size) for _, size in pattern)
    strides = (base.strides[dim], *(int(stride) * itemsize for stride, _ in pattern[1:]))
    made = base.derive(start, shape, strides, None, kind)
    made.indirect = Rows(index, base.strides[dim], base.shape[dim])
    return made


def dma_copy(dst: View, src: View, *, engine: Any, dge_mode: Any, oob: Any, call: str) -> int:
    """The row of a DMA in which indices choose the rows of `src` (gather) or of `dst` (scatter).

    Raises `RuleError` for an index out of bounds unless `oob` is `oob_mode.skip`, which leaves its row alone.
    """
    if dst.indirect is not None and src.indirect is not None:
        unsupported(f"{call} with vector_offset on both sides")
    scatters = dst.indirect is not None
    chosen, other = (dst, src) if scatters else (src, dst)
    found: Rows = chosen.indirect
    if (mode := getattr(dge_mode, "name", None) or "unknown") not in ("unknown", "swdge"):
        broken_rule(f"{call}: dge_mode is {mode}; with vector_offset descriptors come from the GpSimd engine: use swdge")
    count = chosen.shape[0]
    if other.shape[0] != count or other.size != chosen.size:
        broken_rule(
            f"{call}: {other.name} {list(other.shape)} has to hold {count} rows of {chosen.size // count} elements, "
            f"one for each index of {found.index.name}"
        )
    places = _places(call, chosen, found, skips=oob is oob_mode.skip)
    taken = [(position, _row(call, chosen, found, place)) for position, place in enumerate(places) if place is not None]
    access = int((WRITE if scatters else READ) | Access.INDIRECT)
    rows = [operand(view, access) for _, view in taken]
    index = operand(found.index, READ)
    # Where nothing is moved, one row of the other side stands for the instruction.
    parts = [other] if len(taken) == count else [other[position : position + 1] for position, _ in taken] or [other[0:1]]
    partly = 0 if len(taken) == count else int(Access.INDIRECT)
    moved = [operand(view, (READ if scatters else WRITE) | partly) for view in parts]
    # Operands that are written come first; of those that are read, what moves comes before the indices.
    operands = [*rows, *moved, index] if scatters else [*moved, *rows, index]
    row = dma.transfer("dma_copy", call, dst, src, engine or "gpsimd", dge_mode, operands=operands)
    if values_on():
        for position, view in taken:
            target, source = (view, other) if scatters else (other, view)
            into, values = target.array(), source.array()
            into, values = (into, values[position]) if scatters else (into[position], values)
            into[...] = dtypes.cast(values, target.dtype).reshape(into.shape)
    return row


def _places(call: str, chosen: View, found: Rows, *, skips: bool) -> list[int | None]:
    if not values_on():
        current(call).recorder.warn(f"without values, rows of {chosen.name} that indices choose are taken to be the first ones")
        return list(range(min(chosen.shape[0], found.limit)))
    places: list[int | None] = []
    for partition, place in enumerate(np.ravel(found.index.tile()).astype(np.int64).tolist()):
        inside = 0 <= place < found.limit
        if not inside and not skips:
            broken_rule(
                f"{call}: index {place} in partition {partition} of {found.index.name} is outside the {found.limit} rows of "
                f"{chosen.name}; correct it, or leave such rows out with oob_mode=nki.isa.oob_mode.skip"
            )
        places.append(place if inside else None)
    if all(place is None for place in places):
        current(call).recorder.warn(f"{call}: every index of {found.index.name} is out of bounds; nothing is moved")
    return places


def _row(call: str, chosen: View, found: Rows, place: int) -> View:
    shape, strides = chosen.shape[1:] or (1,), chosen.strides[1:] or (chosen.itemsize,)
    view = View(chosen.storage, chosen.dtype, chosen.offset + place * found.step, shape, strides, None, chosen.legacy)
    last = view.offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + view.itemsize
    if last > view.storage.nbytes:
        broken_rule(f"{call}: the row at index {place} reaches outside the {view.storage.nbytes} bytes of {view.name}")
    return view
