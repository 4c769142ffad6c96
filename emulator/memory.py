"""Where each on-chip tensor lies: liveness in program order, and an address for every tensor of SBUF and PSUM.

Addresses rotate through the memory, so that a loop's buffers follow each other and the next iteration's load does not wait for
this iteration's readers until the memory has been used once. Where that leaves only fragments, a second try takes the smallest
gap that fits. Which tensor held an address before is kept: `dependencies` makes buffer-reuse hazards of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from emulator.compiled import compiled
from emulator.errors import EmulatorError
from emulator.program import Frame, Int, Program, Space
from emulator.targets import Target

#: When space is short, tensors of at most this fraction of the memory lie at its top.
_SMALL_SHARE: Final = 64
#: How many of the tensors that fill the memory an error lists.
_LISTED: Final = 5


class MemoryExhausted(EmulatorError):
    """The tensors that are live at one time do not fit the memory; the text names the tensor, the need and what is live."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Per tensor: bytes within a partition (-1: none given), first and last row that uses it (-1: unused).

    The tensors that held a part of tensor i's bytes just before it are `previous[previous_ptr[i]:previous_ptr[i + 1]]`.
    """

    address: Int
    first_use: Int
    last_use: Int
    previous_ptr: Int
    previous: Int


@compiled
def _place(order, size, first, last, capacity, alignment, bank, best_fit, address, before, after):  # type: ignore[no-untyped-def]
    """Gives `address` to the tensors in `order`; the pairs (before, after) are who lay there last.

    Comes back as (tensor that did not fit or -1, number of pairs).
    """
    n = len(order)
    # Live tensors by address, with one element before and after as walls.
    live = np.empty(n + 1, dtype=np.int64)
    n_live = 0
    # Who was the last to lie at each piece of memory, by address: begin of the piece and its tensor (-1: nobody).
    piece_begin = np.empty(2 * n + 4, dtype=np.int64)
    piece_owner = np.empty(2 * n + 4, dtype=np.int64)
    piece_begin[0], piece_owner[0] = 0, -1
    n_pieces = 1
    pairs = 0
    pointer = 0
    for at in range(n):
        tensor = order[at]
        need = size[tensor]
        kept = 0
        for i in range(n_live):
            if last[live[i]] >= first[tensor]:
                live[kept] = live[i]
                kept += 1
        n_live = kept
        chosen, slot, waste = -1, 0, capacity + 1
        # Two passes: from the pointer on, then anywhere.
        for attempt in range(2):
            for i in range(n_live + 1):
                begin = address[live[i - 1]] + size[live[i - 1]] if i > 0 else 0
                end = address[live[i]] if i < n_live else capacity
                if attempt == 0 and not best_fit:
                    begin = max(begin, pointer)
                begin = (begin + alignment - 1) // alignment * alignment
                if bank > 0 and (need > bank or begin // bank != (begin + need - 1) // bank):
                    begin = (begin + bank - 1) // bank * bank
                if begin + need > end:
                    continue
                if best_fit and bank == 0 and need <= capacity // _SMALL_SHARE:
                    # Small tensors keep to the top, so that they do not cut the space of large ones.
                    chosen, slot = (end - need) // alignment * alignment, i
                elif best_fit:
                    if end - begin - need < waste:
                        chosen, slot, waste = begin, i, end - begin - need
                else:
                    chosen, slot = begin, i
                    break
            if chosen >= 0 or best_fit:
                break
        if chosen < 0:
            return tensor, pairs
        address[tensor] = chosen
        for i in range(n_live, slot, -1):
            live[i] = live[i - 1]
        live[slot] = tensor
        n_live += 1
        pointer = chosen + need
        # Replace the pieces under [chosen, chosen + need).
        begin, end = chosen, chosen + need
        low = 0
        high = n_pieces
        while low < high:
            middle = (low + high) // 2
            if piece_begin[middle] <= begin:
                low = middle + 1
            else:
                high = middle
        head = low - 1
        tail = head
        while tail < n_pieces and piece_begin[tail] < end:
            owner = piece_owner[tail]
            if owner >= 0:
                known = False
                for i in range(pairs - 1, -1, -1):
                    if after[i] != tensor:
                        break
                    if before[i] == owner:
                        known = True
                        break
                if not known:
                    before[pairs], after[pairs] = owner, tensor
                    pairs += 1
            tail += 1
        rest = piece_owner[tail - 1]
        rest_end = piece_begin[tail] if tail < n_pieces else capacity
        keep_head = 1 if piece_begin[head] < begin else 0
        keep_tail = 1 if rest_end > end else 0
        shift = keep_head + 1 + keep_tail - (tail - head)
        if shift > 0:
            for i in range(n_pieces - 1, tail - 1, -1):
                piece_begin[i + shift], piece_owner[i + shift] = piece_begin[i], piece_owner[i]
        elif shift < 0:
            for i in range(tail, n_pieces):
                piece_begin[i + shift], piece_owner[i + shift] = piece_begin[i], piece_owner[i]
        n_pieces += shift
        new = head + keep_head
        piece_begin[new], piece_owner[new] = begin, tensor
        if keep_tail:
            piece_begin[new + 1], piece_owner[new + 1] = end, rest
    return -1, pairs


def _uses(program: Program) -> tuple[Int, Int]:
    count = len(program.tensors)
    row = np.repeat(np.arange(len(program)), np.diff(program.operands.ptr))
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, -1)
    np.minimum.at(first, program.operands.tensor, row)
    np.maximum.at(last, program.operands.tensor, row)
    first[last < 0] = -1
    return first, last


def _line(program: Program, tensor: int) -> str:
    stack = program.tensors[tensor].stack
    frames: tuple[Frame, ...] = program.stacks[stack] if stack >= 0 else ()
    return f"{frames[-1].file}:{frames[-1].line}" if frames else program.kernel


def _exhausted(
    program: Program, tensor: int, space: Space, capacity: int, size: Int, first: Int, last: Int, same: Int
) -> Exception:
    spec = program.tensors[tensor]
    live = [int(other) for other in same if other != tensor and first[other] <= first[tensor] <= last[other]]
    live.sort(key=lambda other: (-int(size[other]), other))
    listed = ", ".join(f"{program.tensors[other].name} {size[other]:,} ({_line(program, other)})" for other in live[:_LISTED])
    more = f" and {len(live) - _LISTED} more" if len(live) > _LISTED else ""
    free = max(capacity - sum(int(size[other]) for other in live), 0)
    fragments = " but not in one piece" if free >= size[tensor] else ""
    return MemoryExhausted(
        f"{_line(program, tensor)}: {space.name} exhausted: tensor {spec.name} {list(spec.shape)} {spec.dtype} needs "
        f"{size[tensor]:,} bytes per partition, {free:,} of {program.target}'s {capacity:,} are free{fragments}; "
        f"live: {listed or 'nothing else'}{more}; use smaller tiles, or let fewer of them live at one time"
    )


def lay_out(program: Program, target: Target) -> Layout:
    """Addresses and liveness of all tensors. Raises `MemoryExhausted` where live tensors do not fit SBUF or PSUM."""
    count = len(program.tensors)
    first, last = _uses(program)
    address = np.full(count, -1)
    size = np.array([max(tensor.partition_bytes, 1) for tensor in program.tensors], dtype=np.int64)
    space = np.array([int(tensor.space) for tensor in program.tensors], dtype=np.int64)
    core = np.array([tensor.core for tensor in program.tensors], dtype=np.int64)
    befores, afters = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    sbuf, psum = target.sbuf, target.psum
    memories = (
        (Space.SBUF, sbuf.partition_bytes, sbuf.alignment, 0),
        (Space.PSUM, psum.partition_bytes, sbuf.alignment, psum.bank_bytes),
    )
    for kind, capacity, alignment, bank in memories:
        for owner in np.unique(core[space == kind]):
            same = np.flatnonzero((space == kind) & (core == owner) & (last >= 0))
            order = same[np.argsort(first[same], kind="stable")]
            for best_fit in (False, True):
                # A tensor finds at most every piece under it; each allocation adds at most two pieces.
                before, after = np.empty(3 * len(order) + 1, dtype=np.int64), np.empty(3 * len(order) + 1, dtype=np.int64)
                lost, pairs = _place(order, size, first, last, capacity, alignment, bank, best_fit, address, before, after)
                if lost < 0:
                    break
            if lost >= 0:
                raise _exhausted(program, int(lost), kind, capacity, size, first, last, same)
            befores.append(before[:pairs])
            afters.append(after[:pairs])
    before, after = np.concatenate(befores), np.concatenate(afters)
    by_tensor = np.argsort(after, kind="stable")
    ptr = np.concatenate(([0], np.cumsum(np.bincount(after, minlength=count)[:count]))).astype(np.int64)
    return Layout(address, first, last, ptr, before[by_tensor])
