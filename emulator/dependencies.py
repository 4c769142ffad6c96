"""Which instruction has to wait for which: flow, anti and output dependencies from the bytes that operands touch.

Accesses of a tensor are looked through from the newest back and only as far as a write that covers the access: whatever is
older is ordered by that write already. Edges are exact up to that; patterns whose overlap takes too long to decide count as
overlapping and are reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from emulator.memory import Layout
from emulator.program import ENGINES, Access, Dependencies, Dependency, Program, Space
from emulator.regions import HI, LO, covers, normalise, overlap

_READ, _WRITE, _ACCUMULATE, _INDIRECT = int(Access.READ), int(Access.WRITE), int(Access.ACCUMULATE), int(Access.INDIRECT)
#: Accesses in a block.
_BLOCK = 64
_FLOW, _ANTI = int(Dependency.FLOW_DEPENDENCE), int(Dependency.ANTI_DEPENDENCE)
_OUTPUT = int(Dependency.OUTPUT_DEPENDENCE)


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _roomier(edges: Any) -> Any:
    """`edges` with as much room again behind them."""
    larger = np.empty((2 * len(edges), 3), dtype=np.int64)
    for i in range(len(edges)):
        for column in range(3):
            larger[i, column] = edges[i, column]
    return larger


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _find(  # type: ignore[no-untyped-def]
    ptr, tensor, access, part_lo, part_hi, pattern, kept, address, previous_ptr, previous, engine, is_dma
) -> Any:
    """(edge count per row, edges by consumer, undecided overlaps)."""
    rows = len(ptr) - 1
    tensors = len(address)
    # Newest-first lists of accesses by tensor: [0] writes, [1] reads; an access is named by its operand.
    head = np.full((2, tensors), -1, dtype=np.int64)
    below = np.full((2, len(tensor)), -1, dtype=np.int64)
    gone = np.zeros((2, len(tensor)), dtype=np.bool_)
    # Accesses of a list in blocks of neighbours, with what they span together: one look passes over a block that is far away.
    block_of = np.zeros((2, len(tensor)), dtype=np.int64)
    in_block = np.zeros((2, tensors), dtype=np.int64)
    most = 2 * (len(tensor) // _BLOCK + tensors + 1)
    block_lo, block_hi, block_below = (
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
    )
    newest = np.zeros((2, tensors), dtype=np.int64)
    blocks = 0
    row_of = np.zeros(len(tensor), dtype=np.int64)
    seen = np.full((3, rows), -1, dtype=np.int64)
    degree = np.zeros(rows, dtype=np.int64)
    # Producer, kind, whether the consumer waits.
    edges = np.empty((4 * rows + 16, 3), dtype=np.int64)
    total = 0
    undecided = 0
    for row in range(rows):
        begin = total
        for use in range(ptr[row], ptr[row + 1]):
            row_of[use] = row
        # What is only read first: a write drops the accesses that it covers.
        for turn in range(2 * (ptr[row + 1] - ptr[row])):
            use = ptr[row] + turn % (ptr[row + 1] - ptr[row])
            own = tensor[use]
            writing = (access[use] & _WRITE) != 0
            if not kept[own] or writing != (turn >= ptr[row + 1] - ptr[row]):
                continue
            accumulating = (access[use] & _ACCUMULATE) != 0
            # The tensor itself, then those whose bytes it took over.
            settled = False
            for where in range(-1, previous_ptr[own + 1] - previous_ptr[own] if writing else 0):
                if settled:
                    break
                other = own if where < 0 else previous[previous_ptr[own] + where]
                shift = np.int64(0) if where < 0 else address[own] - address[other]
                oldest = np.int64(-1)
                for reads in range(2 if writing else 1):
                    # The access before in the list; where a block was passed over it is not known (`lost`).
                    before, lost = np.int64(-1), False
                    old = head[reads, other]
                    while old >= 0 and (reads == 0 or row_of[old] > oldest):
                        block = block_of[reads, old]
                        if block_lo[block] >= pattern[use, HI] + shift or block_hi[block] <= pattern[use, LO] + shift:
                            before, old = np.int64(-1), block_below[block]
                            lost = True
                            continue
                        following = below[reads, old]
                        # Most accesses are far apart: that is seen here, without the price of a call.
                        apart = pattern[old, LO] >= pattern[use, HI] + shift or pattern[old, HI] <= pattern[use, LO] + shift
                        apart |= part_lo[old] >= part_hi[use] or part_hi[old] <= part_lo[use]
                        if apart or gone[reads, old] or row_of[old] == row:
                            before, old, lost = old, following, False
                            continue
                        common = overlap(pattern[old], pattern[use], shift)
                        if common == 0:
                            before, old, lost = old, following, False
                            continue
                        undecided += common == 2
                        producer = row_of[old]
                        if reads == 1:
                            kind = _ANTI
                        elif where < 0 and ((access[use] & _READ) != 0 or accumulating):
                            kind = _FLOW
                        else:
                            kind = _OUTPUT
                        if seen[kind, producer] != row:
                            seen[kind, producer] = row
                            if total == len(edges):
                                edges = _roomier(edges)
                            # An engine reads and writes in order; only what it reads has to be complete.
                            in_order = engine[producer] == engine[row] and not is_dma[producer] and not is_dma[row]
                            edges[total, 0], edges[total, 1] = producer, kind
                            edges[total, 2] = not (in_order and (kind != _FLOW or accumulating))
                            total += 1
                        # What this write covers is never looked at again; what covers this access settles it.
                        outside = part_lo[use] <= part_lo[old] and part_hi[use] >= part_hi[old]
                        direct = where < 0 and writing and (access[use] & _INDIRECT) == 0
                        if direct and outside and covers(pattern[use], pattern[old], shift):
                            gone[reads, old] = True
                            if before >= 0:
                                below[reads, before] = following
                            elif not lost:
                                head[reads, other] = following
                        else:
                            before, lost = old, False
                        inside = part_lo[old] <= part_lo[use] and part_hi[old] >= part_hi[use]
                        direct = reads == 0 and inside and (access[old] & _INDIRECT) == 0
                        if direct and covers(pattern[old], pattern[use], shift):
                            oldest = producer
                            settled |= where < 0
                            break
                        old = following
        for use in range(ptr[row], ptr[row + 1]):
            if kept[tensor[use]] and pattern[use, HI] > pattern[use, LO]:
                for reads in range(2):
                    if (access[use] & (_READ if reads == 1 else _WRITE)) == 0:
                        continue
                    own = tensor[use]
                    if in_block[reads, own] % _BLOCK == 0:
                        block_lo[blocks], block_hi[blocks] = pattern[use, LO], pattern[use, HI]
                        block_below[blocks] = head[reads, own]
                        block_of[reads, use] = blocks
                        blocks += 1
                    else:
                        block = block_of[reads, newest[reads, own]]
                        block_of[reads, use] = block
                        block_lo[block] = min(block_lo[block], pattern[use, LO])
                        block_hi[block] = max(block_hi[block], pattern[use, HI])
                    in_block[reads, own] += 1
                    newest[reads, own] = use
                    below[reads, use], head[reads, own] = head[reads, own], use
        degree[row] = total - begin
    return degree, edges[:total], undecided


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
    degree, edges, undecided = _find(
        operands.ptr,
        operands.tensor.astype(np.int64),
        operands.access.astype(np.int64),
        part_lo,
        part_hi,
        pattern,
        written | on_chip,
        layout.address,
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
