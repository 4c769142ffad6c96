"""Which instruction has to wait for which: flow, anti and output dependencies from the bytes that operands touch.

Accesses of a tensor are looked through from the newest back and only as far as a write that covers the access: whatever is
older is ordered by that write already. Edges are exact up to that; patterns whose overlap takes too long to decide count as
overlapping and are reported.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emulator.memory import Layout
from emulator.program import ENGINES, Access, Dependencies, Program, Space
from emulator.regions import find, normalise


def find_dependencies(program: Program, layout: Layout, is_dma: NDArray[np.bool_]) -> tuple[Dependencies, tuple[str, ...]]:
    """All edges of a program, buffer reuse included, and warnings. `is_dma` marks rows whose work a DMA queue does."""
    operands = program.operands
    pattern = normalise(operands.offset, operands.itemsize.astype(np.int64), operands.size, operands.stride)
    on_chip = np.array([tensor.space != Space.HBM for tensor in program.tensors], dtype=np.bool_)
    written = np.zeros(len(program.tensors), dtype=np.bool_)
    written[operands.tensor[(operands.access & Access.WRITE) != 0]] = True
    part_lo = operands.partition_start.astype(np.int64)
    # In HBM there are no partitions: one for all.
    part_hi = part_lo + np.maximum(operands.partitions.astype(np.int64), 1)
    degree, edges, undecided = find(
        operands.ptr,
        operands.tensor.astype(np.int64),
        operands.access.astype(np.int64),
        part_lo,
        part_hi,
        pattern,
        written | on_chip,
        layout.address,
        np.array([max(tensor.partition_bytes, 1) for tensor in program.tensors], dtype=np.int64),
        layout.previous_ptr,
        layout.previous,
        program.core.astype(np.int64) * len(ENGINES) + program.engine,
        is_dma,
    )
    ptr = np.concatenate(([0], np.cumsum(degree))).astype(np.int64)
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0], np.repeat(np.arange(len(program)), degree)))]
    found = Dependencies(ptr, edges[:, 0].astype(np.int32), edges[:, 1].astype(np.int8), edges[:, 2] != 0)
    warnings: tuple[str, ...] = ()
    if undecided:
        warnings = (f"{undecided:,} pairs of access patterns were too intricate to compare and count as overlapping",)
    return found, warnings
