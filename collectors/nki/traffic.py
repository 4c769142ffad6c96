"""Bytes that each instruction reads and writes in each memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collectors.nki.ids import Ids
from collectors.nki.rows import Int, sum_by
from emulator.program import Access, Program, Space, Timeline


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes over all partitions, by row of the program."""

    read: dict[Space, Int]
    write: dict[Space, Int]


def tensor_spaces(program: Program) -> Int:
    """The memory of each tensor as a number; at least one entry, so that it can be indexed."""
    return np.array([int(t.space) for t in program.tensors] or [-1], np.int64)


def operand_bytes(program: Program) -> Int:
    """Bytes that each operand streams: an element that is walked twice (stride 0) counts twice."""
    ops = program.operands
    elements: Int = np.prod(ops.size, axis=1, dtype=np.int64)
    return elements * np.maximum(ops.partitions.astype(np.int64), 1) * ops.itemsize.astype(np.int64)


def traffic(program: Program, timeline: Timeline, ids: Ids) -> Traffic:
    """Bytes by memory; those of a gather or scatter come from its transfer, because its operand is only the box around it."""
    ops = program.operands
    owner = np.repeat(np.arange(len(program)), np.diff(ops.ptr))
    space = tensor_spaces(program)[ops.tensor]
    size = operand_bytes(program)
    moved = ids.transfer_of[owner]
    indirect = ((ops.access & Access.INDIRECT) != 0) & (moved >= 0)
    # Operands of their own for each row that indices choose are exact; only a box stands for all of its transfer.
    reading = (ops.access & Access.READ) != 0
    for side in (reading, ~reading):
        indirect &= ~side | (np.bincount(owner[side], minlength=len(program))[owner] == 1)
    read_size, write_size = size.copy(), size.copy()
    read_size[indirect] = timeline.transfers.read_bytes[moved[indirect]]
    write_size[indirect] = timeline.transfers.write_bytes[moved[indirect]]
    read, write = {}, {}
    for kind in Space:
        reads = ((ops.access & Access.READ) != 0) & (space == kind)
        writes = ((ops.access & Access.WRITE) != 0) & (space == kind)
        read[kind] = sum_by(owner[reads], read_size[reads], len(program))
        write[kind] = sum_by(owner[writes], write_size[writes], len(program))
    return Traffic(read, write)
