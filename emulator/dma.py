"""What each DMA instruction asks of the queues and the DMA engines, before anything is timed.

A transfer uses one queue on all engines. Each engine serves the partitions that AWS's mapping gives it, so a transfer of few
partitions keeps few engines busy; transfers within HBM spread evenly. Its work is bytes at the engine's rate plus a cost for each
descriptor, a descriptor being the longest run that is contiguous on both sides.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from emulator.costs import Costs
from emulator.program import ENGINES, Access, InstructionFlag, Int, Operands, Program, Queue, Space
from emulator.targets import Target

#: A transfer is cut into at most this many packets per engine; beyond it packets grow.
MAX_PACKETS: Final = 64
#: Queue types in the schema's spelling, and what their queues are called.
_TYPES: Final = ("input", "output", "data", "software_dynamic", "hardware_dynamic")
_STEM: Final = ("IO", "IO", "SpillReload", "Dynamic", "Dynamic")
_INPUT, _OUTPUT, _DATA, _SOFTWARE, _HARDWARE = range(5)
_LABEL: Final = ("Tensor", "Vector", "Scalar", "GpSimd", "Sync")


@dataclass(frozen=True, slots=True)
class Plan:
    """The transfers of a program in program order; times in nanoseconds."""

    instruction: Int
    queue: Int
    read_bytes: Int
    write_bytes: Int
    descriptors: Int
    descriptor_bytes: Int
    #: Partitions that decide which engines work; transfers within HBM use all of them evenly.
    partition_start: Int
    partitions: Int
    #: Time that all the work takes if one engine did it, and the packets that each engine makes of its part.
    work: NDArray[np.float64]
    packets: Int
    #: From the instruction's start until the queue has its descriptors, beyond the trigger itself.
    generation: NDArray[np.float64]
    queues: tuple[Queue, ...]


def _queue_types(program: Program, rows: Int, source: Int, destination: Int) -> Int:
    """The queue type of each transfer, as an index into `_TYPES`."""
    modes = [*(dict(pairs).get("dge_mode", "") for pairs in program.details), ""]
    mode = np.array([2 if name.endswith("swdge") else 1 if name.endswith("hwdge") else 0 for name in modes])[program.detail[rows]]
    owner = np.repeat(np.arange(len(program)), np.diff(program.operands.ptr))
    indirect = np.zeros(len(program), dtype=np.bool_)
    indirect[owner[(program.operands.access & Access.INDIRECT) != 0]] = True
    software = (mode == 2) | indirect[rows] | ((program.flags[rows] & InstructionFlag.DYNAMIC) != 0)
    leaves = np.array([tensor.role == "output" for tensor in program.tensors] or [False])[destination]
    enters = np.array([tensor.role in ("input", "constant") for tensor in program.tensors] or [False])[source]
    return np.select([software, mode == 1, leaves, enters], [_SOFTWARE, _HARDWARE, _OUTPUT, _INPUT], _DATA)


def _queues(program: Program, rows: Int, types: Int, hbm_tensor: Int, limit: int) -> tuple[Int, tuple[Queue, ...]]:
    """The queue of each transfer: one for each tensor in HBM, in order of first use, until half the queues are taken."""
    core, engine = program.core[rows].astype(np.int64), program.engine[rows].astype(np.int64)
    key = np.stack((core, engine, types, hbm_tensor), axis=1)
    streams, first, member = np.unique(key, axis=0, return_index=True, return_inverse=True)
    queues: list[Queue] = []
    groups: dict[tuple[int, int, int], list[int]] = {}
    named: Counter[tuple[int, str]] = Counter()
    extra: Counter[int] = Counter()
    queue_of = np.empty(len(streams), dtype=np.int64)
    for turn, stream in enumerate(np.argsort(first)):
        of_core, of_engine, kind, _ = (int(part) for part in streams[stream])
        mates = groups.setdefault((of_core, of_engine, kind), [])
        if mates and extra[of_core] >= limit // 2:
            queue_of[stream] = mates[turn % len(mates)]
            continue
        extra[of_core] += bool(mates)
        stem = f"q{_LABEL[of_engine]}{_STEM[kind]}"
        queue_of[stream] = len(queues)
        mates.append(len(queues))
        index = sum(queue.core == of_core for queue in queues)
        queues.append(Queue(f"{stem}{named[of_core, stem]}", _TYPES[kind], ENGINES[of_engine], of_core, index))
        named[of_core, stem] += 1
    return queue_of[member.reshape(-1)], tuple(queues)


def _runs(operands: Operands) -> Int:
    """Elements that each operand passes in a row, in the order in which it is walked."""
    run = np.ones(len(operands.tensor), dtype=np.int64)
    going = np.ones(len(run), dtype=np.bool_)
    for d in range(operands.size.shape[1] - 1, -1, -1):
        size = operands.size[:, d]
        going &= (size == 1) | (operands.stride[:, d] == run * operands.itemsize)
        run[going] *= size[going]
    return run


def plan(program: Program, costs: Costs, target: Target) -> Plan:
    """The transfers of all DMA instructions: queue, descriptors and work."""
    operands = program.operands
    rows = np.flatnonzero(costs.is_dma)
    dma = target.dma
    writes = (operands.access & Access.WRITE) != 0
    owner = np.repeat(np.arange(len(program)), np.diff(operands.ptr))
    elements = np.prod(operands.size, axis=1) * np.maximum(operands.partitions, 1)
    nbytes = elements * operands.itemsize
    count = len(program)
    read = np.bincount(owner[~writes], nbytes[~writes], minlength=count).astype(np.int64)[rows]
    written = np.bincount(owner[writes], nbytes[writes], minlength=count).astype(np.int64)[rows]
    moved = np.zeros(count, dtype=np.int64)
    np.maximum.at(moved, owner, elements)
    # What is read beside the first operand, is smaller, and is not itself addressed by data holds indices: it is not moved.
    reads = np.cumsum(~writes)
    before = np.concatenate(([0], reads))[operands.ptr[:-1]]
    plain = ~writes & ((operands.access & Access.INDIRECT) == 0)
    moves = ~(plain & (reads - before[owner] > 1) & (elements < moved[owner]))
    run = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(run, owner[moves], _runs(operands)[moves])
    size = np.zeros(count, dtype=np.int64)
    np.maximum.at(size, owner, operands.itemsize)
    destination, source = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    side = np.full(count, -1)
    space = np.array([int(tensor.space) for tensor in program.tensors] or [0])[operands.tensor]
    # The last assignment wins: the operand named first is the one meant, and partitions are the destination's where it has some.
    back = np.arange(len(owner))[::-1]
    source[owner[back[~writes[back]]]] = operands.tensor[back[~writes[back]]]
    destination[owner[back[writes[back]]]] = operands.tensor[back[writes[back]]]
    for chosen in (~writes, writes):
        index = back[chosen[back] & moves[back] & (space[back] != Space.HBM)]
        side[owner[index]] = index
    run, moved, size, source, destination, side = (column[rows] for column in (run, moved, size, source, destination, side))
    tensor_space = np.array([int(tensor.space) for tensor in program.tensors] or [0])
    from_hbm, to_hbm = tensor_space[source] == Space.HBM, tensor_space[destination] == Space.HBM
    rate = np.where(from_hbm, dma.read_rate, dma.write_rate)
    descriptors = -(-moved // run)
    transposing = np.array([name == "dma_transpose" for name in program.cost_classes] or [False])[program.cost_class[rows]]
    computing = np.array([name == "dma_compute" for name in program.cost_classes] or [False])[program.cost_class[rows]]
    if dma.transpose_share is not None and dma.transpose_share_sbuf is not None:
        rate = np.where(transposing, rate * np.where(from_hbm, dma.transpose_share, dma.transpose_share_sbuf), rate)
        descriptors = np.where(transposing, -(-np.maximum(read, written) // dma.packet_bytes), descriptors)
    rate = np.where(computing, rate * dma.compute_share, rate)
    types = _queue_types(program, rows, source, destination)
    queue, queues = _queues(program, rows, types, np.where(to_hbm, destination, source), dma.queues_per_engine)
    has_side = side >= 0
    first = np.where(has_side, operands.partition_start[side], 0).astype(np.int64)
    partitions = np.where(has_side, operands.partitions[side], target.sbuf.partitions).astype(np.int64)
    per_engine = target.sbuf.partitions // dma.engines
    most = np.minimum(partitions, per_engine)
    load = np.maximum(read, written)
    largest = -(-load * most // np.maximum(partitions, 1))
    generation = np.zeros(len(rows))
    generation[types == _HARDWARE] = dma.hardware_generation or 0.0
    return Plan(
        instruction=rows,
        queue=queue,
        read_bytes=read,
        write_bytes=written,
        descriptors=descriptors,
        descriptor_bytes=run * size,
        partition_start=first,
        partitions=partitions,
        work=load / rate + descriptors * dma.descriptor_cost,
        packets=np.clip(-(-largest // dma.packet_bytes), 1, MAX_PACKETS).astype(np.int64),
        generation=generation,
        queues=queues,
    )


def with_generation(plan: Plan, costs: Costs, program: Program, target: Target) -> Costs:
    """`costs` with the time that an engine spends on building descriptors itself (software DGE)."""
    kinds = np.array([queue.type == "software_dynamic" for queue in plan.queues] or [False])
    rows = plan.instruction[kinds[plan.queue]] if len(plan.instruction) else plan.instruction
    cycles = np.zeros(len(program))
    cycles[rows] = target.dma.software_generation * np.array(target.clocks)[program.engine[rows]]
    return replace(costs, issue=costs.issue + cycles, latency=costs.latency + cycles)
