"""When two access patterns touch a common byte, when one covers the other, and which instructions that ties: exact and compiled.

What calls each other compiled stands in this one file: numba's cache knows a function by the file it is in, not by what it calls.

A normalised pattern is a row of integers: the bytes it spans (`LO` to `HI`), the contiguous bytes of its innermost run (`WIDTH`),
the number of its dimensions (`COUNT`), their sizes (from `SIZE` on) and their strides (from `STRIDE` on, falling and positive).
Dimensions that are contiguous with what is inside them, or broadcast, are not among them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from emulator.compiled import compiled
from emulator.program import PATTERN_DIMS, Access, Dependency

LO: Final = 0
HI: Final = 1
WIDTH: Final = 2
COUNT: Final = 3
SIZE: Final = 4
STRIDE: Final = SIZE + PATTERN_DIMS
COLUMNS: Final = STRIDE + PATTERN_DIMS
#: Steps of the search for a common byte after which two patterns count as overlapping.
SEARCH_LIMIT: Final = 4096
_READ, _WRITE, _ACCUMULATE, _INDIRECT = int(Access.READ), int(Access.WRITE), int(Access.ACCUMULATE), int(Access.INDIRECT)
#: Accesses in a block.
_BLOCK = 64
_FLOW, _ANTI = int(Dependency.FLOW_DEPENDENCE), int(Dependency.ANTI_DEPENDENCE)
_OUTPUT = int(Dependency.OUTPUT_DEPENDENCE)


@compiled
def normalise(offset: Any, itemsize: Any, size: Any, stride: Any) -> Any:
    """The normalised patterns of all operands, one row each."""
    n, dims = size.shape
    result = np.zeros((n, COLUMNS), dtype=np.int64)
    s, k = np.empty(dims, dtype=np.int64), np.empty(dims, dtype=np.int64)
    for p in range(n):
        low = offset[p]
        used = 0
        empty = False
        for d in range(dims):
            empty |= size[p, d] <= 0
            step = stride[p, d]
            if size[p, d] <= 1 or step == 0:
                continue
            if step < 0:
                low += step * (size[p, d] - 1)
                step = -step
            at = used
            while at > 0 and s[at - 1] > step:  # ascending: innermost first
                s[at], k[at] = s[at - 1], k[at - 1]
                at -= 1
            s[at], k[at] = step, size[p, d]
            used += 1
        w = itemsize[p]
        kept = 0
        for d in range(used):
            if kept == 0 and s[d] <= w:
                w += s[d] * (k[d] - 1)
            elif kept > 0 and s[d] % s[kept - 1] == 0 and s[d] <= s[kept - 1] * k[kept - 1]:
                # Together they are one evenly spaced row.
                k[kept - 1] += s[d] // s[kept - 1] * (k[d] - 1)
            else:
                s[kept], k[kept] = s[d], k[d]
                kept += 1
        span = w
        for d in range(kept):
            result[p, SIZE + d], result[p, STRIDE + d] = k[kept - 1 - d], s[kept - 1 - d]
            span += s[d] * (k[d] - 1)
        result[p, LO], result[p, HI] = low, low if empty else low + span
        result[p, WIDTH], result[p, COUNT] = w, kept
    return result


@compiled
def overlap(a: Any, b: Any, shift: Any) -> Any:
    """1 where patterns a and b (moved up by `shift`) share a byte, 0 where not, 2 where the search was given up."""
    if b[LO] + shift >= a[HI] or b[HI] + shift <= a[LO]:
        return 0
    if a[COUNT] == 0 and b[COUNT] == 0:
        return 1
    # Find x with  -width_b < delta + sum(x * step) < width_a,  a's dimensions counting down, b's up, equal steps together.
    step, least, most = np.empty(10, dtype=np.int64), np.empty(10, dtype=np.int64), np.empty(10, dtype=np.int64)
    i, j, dims = 0, 0, 0
    while i < a[COUNT] or j < b[COUNT]:
        of_a = a[STRIDE + i] if i < a[COUNT] else 0
        of_b = b[STRIDE + j] if j < b[COUNT] else 0
        step[dims], least[dims], most[dims] = max(of_a, of_b), 0, 0
        if of_a == step[dims]:
            least[dims] = 1 - a[SIZE + i]
            i += 1
        if of_b == step[dims]:
            most[dims] = b[SIZE + j] - 1
            j += 1
        dims += 1
    below, above, common = np.zeros(11, dtype=np.int64), np.zeros(11, dtype=np.int64), np.zeros(11, dtype=np.int64)
    for d in range(dims - 1, -1, -1):
        divisor, rest = step[d], common[d + 1]
        while rest:
            divisor, rest = rest, divisor % rest
        common[d] = divisor
        below[d] = below[d + 1] + least[d] * step[d]
        above[d] = above[d + 1] + most[d] * step[d]
    value, x, end = np.empty(11, dtype=np.int64), np.empty(10, dtype=np.int64), np.empty(10, dtype=np.int64)
    value[0] = b[LO] + shift - a[LO]
    level, fresh = 0, True
    for _ in range(SEARCH_LIMIT):
        if fresh:
            # Only those x from which the inner dimensions can still reach the window.
            x[level] = max(least[level], (-b[WIDTH] - above[level + 1] - value[level]) // step[level] + 1)
            end[level] = min(most[level], -((below[level + 1] + value[level] - a[WIDTH]) // step[level]) - 1)
            # And only if the window has a value at a distance that the steps left can make up.
            if value[level] + (a[WIDTH] - 1 - value[level]) // common[level] * common[level] <= -b[WIDTH]:
                end[level] = x[level] - 1
        if x[level] > end[level]:
            if level == 0:
                return 0
            level -= 1
            x[level] += 1
            fresh = False
            continue
        if level == dims - 1:
            return 1
        value[level + 1] = value[level] + x[level] * step[level]
        level += 1
        fresh = True
    return 2


@compiled
def covers(a: Any, b: Any, shift: Any) -> Any:
    """True only if pattern a touches every byte of pattern b (moved up by `shift`); False where that is not plain."""
    rest = b[LO] + shift - a[LO]
    if rest < 0 or b[HI] + shift > a[HI]:
        return False
    if a[COUNT] == 0:
        return True
    need = b[WIDTH]
    inner = a[WIDTH]
    for d in range(a[COUNT] - 1, -1, -1):  # a's elements must not interleave for the division below to be the only one
        if a[STRIDE + d] < inner:
            return False
        inner += a[STRIDE + d] * (a[SIZE + d] - 1)
    j = 0
    for d in range(a[COUNT]):
        while j < b[COUNT] and b[STRIDE + j] > a[STRIDE + d]:
            need += b[STRIDE + j] * (b[SIZE + j] - 1)
            j += 1
        repeats = 1
        if j < b[COUNT] and b[STRIDE + j] == a[STRIDE + d]:
            repeats = b[SIZE + j]
            j += 1
        index = rest // a[STRIDE + d]
        rest -= index * a[STRIDE + d]
        if index + repeats > a[SIZE + d]:
            return False
    while j < b[COUNT]:
        need += b[STRIDE + j] * (b[SIZE + j] - 1)
        j += 1
    return rest + need <= a[WIDTH]


@compiled
def _roomier(edges: Any) -> Any:
    """`edges` with as much room again behind them."""
    larger = np.empty((2 * len(edges), 3), dtype=np.int64)
    for i in range(len(edges)):
        for column in range(3):
            larger[i, column] = edges[i, column]
    return larger


@compiled
def find(  # type: ignore[no-untyped-def]
    ptr, tensor, access, part_lo, part_hi, pattern, kept, address, size, previous_ptr, previous, engine, is_dma
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
    # Tensors to look through for one access, for which access each was last put there, and which of its bytes lie in the tensor.
    todo, marked = np.empty(tensors, dtype=np.int64), np.full(tensors, -1, dtype=np.int64)
    clip_lo, clip_hi = np.zeros(tensors, dtype=np.int64), np.zeros(tensors, dtype=np.int64)
    # A pattern without holes over those bytes.
    box = np.zeros(COLUMNS, dtype=np.int64)
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
            # The tensor itself, those whose bytes it took over, and theirs: each branch down to a write that covers the access.
            todo[0], marked[own] = own, use
            clip_lo[own], clip_hi[own] = pattern[use, LO], pattern[use, HI]
            branches, where = 1, -1
            while branches:
                branches -= 1
                other = todo[branches]
                where = 0 if other != own else -1
                shift = address[own] - address[other] if where >= 0 else np.int64(0)
                box[LO], box[HI], box[WIDTH] = clip_lo[other], clip_hi[other], clip_hi[other] - clip_lo[other]
                settled = False
                oldest = np.int64(-1)
                for reads in range(2 if writing else 1):
                    # The access before in the list; where a block was passed over it is not known (`lost`).
                    before, lost = np.int64(-1), False
                    old = head[reads, other]
                    while old >= 0 and (reads == 0 or row_of[old] > oldest):
                        block = block_of[reads, old]
                        if block_lo[block] >= box[HI] + shift or block_hi[block] <= box[LO] + shift:
                            before, old = np.int64(-1), block_below[block]
                            lost = True
                            continue
                        following = below[reads, old]
                        # Most accesses are far apart: that is seen here, without the price of a call.
                        apart = pattern[old, LO] >= box[HI] + shift or pattern[old, HI] <= box[LO] + shift
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
                        if direct and (covers(pattern[old], pattern[use], shift) or covers(pattern[old], box, shift)):
                            oldest = producer
                            settled = True
                            break
                        old = following
                if not writing or settled:
                    continue
                for at in range(previous_ptr[other], previous_ptr[other + 1]):
                    before_that = previous[at]
                    begin_at = address[before_that] - address[own]
                    low = max(clip_lo[other], begin_at)
                    high = min(clip_hi[other], begin_at + size[before_that])
                    if low >= high:
                        continue
                    if marked[before_that] == use:
                        if clip_lo[before_that] <= low and high <= clip_hi[before_that]:
                            continue
                        low, high = min(low, clip_lo[before_that]), max(high, clip_hi[before_that])
                        waiting = False
                        for i in range(branches):
                            waiting |= todo[i] == before_that
                    else:
                        waiting = False
                    marked[before_that], clip_lo[before_that], clip_hi[before_that] = use, low, high
                    if not waiting:
                        todo[branches] = before_that
                        branches += 1
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
