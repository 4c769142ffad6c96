"""DMA transfers, their packets and their queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from collectors.nki.ids import Ids
from collectors.nki.operands import elements
from collectors.nki.rows import Int, ints, rank_within, sum_by, take, unique_rows
from collectors.nki.semaphores import semaphore_names
from collectors.nki.traffic import operand_bytes, tensor_spaces
from emulator.program import Access, Operands, Packets, Program, Space, TensorSpec, Timeline

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Ends:
    """For each transfer the operand it reads first and the one it writes first, as rows of `Program.operands`; -1: none."""

    read: Int
    write: Int


def ends(program: Program, timeline: Timeline, ids: Ids) -> Ends:
    """Both ends of each transfer. An index is read too, but is no end: what it addresses is, or else the bigger operand."""
    ops = program.operands
    owner = ids.transfer_of[np.repeat(np.arange(len(program)), np.diff(ops.ptr))]
    size = operand_bytes(program)
    result = []
    for wanted in (Access.READ, Access.WRITE):
        some = np.flatnonzero((owner >= 0) & ((ops.access & wanted) != 0))
        plain = (ops.access[some] & Access.INDIRECT) == 0
        some = some[np.lexsort((some, -size[some], plain, owner[some]))]
        found, first = np.unique(owner[some], return_index=True)
        end = np.full(len(timeline.transfers.instruction), -1, np.int64)
        end[found] = some[first]
        result.append(end)
    return Ends(*result)


def location(tensor: TensorSpec) -> str:
    """What kind of memory a transfer's end is, in hardware's words where a public profile or AWS's reference shows one."""
    if tensor.space != Space.HBM:
        return "[SB]" if tensor.space == Space.SBUF else "[PSUM]"
    return {"input": "[INPUT]", "output": "[OUTPUT]", "constant": "[WEIGHT]"}.get(tensor.role, "[DRAM]")


def dma_packet_aggregated(program: Program, timeline: Timeline, ids: Ids, both: Ends) -> pa.Table:
    """`DmaPacketAggregated`: a row for each transfer, from its first packet's start to its last one's end.

    `trigger` and `completion` are the start and end of the instruction that started it, as published; when the waiting engine
    sees the completion stands in `ts_visible_ts`.
    """
    moves = timeline.transfers
    duration = moves.end - moves.start
    size = np.maximum(moves.read_bytes, moves.write_bytes)
    issuer = moves.instruction
    names = [queue.name for queue in timeline.queues]
    transpose = np.array(["TRANSPOSE" in o for o in program.opcodes] or [False])[program.opcode[issuer]]
    return pa.table(
        {
            "start_ts": ints(moves.start),
            "end_ts": ints(moves.end),
            "duration_ns": ints(duration),
            "id": ints(ids.transfer),
            "pcore_idx": ints(program.core[issuer]),
            "block_id": ints(rank_within(moves.queue), type=pa.int32()),
            "queue_idx": ints(np.array([q.index for q in timeline.queues] or [0], np.int64)[moves.queue]),
            "queue_name": take(names, moves.queue),
            "queue_type": take([q.type for q in timeline.queues], moves.queue),
            "op": take(["copy", "transpose"], transpose.astype(np.int64)),
            "variable": take([t.name for t in program.tensors], variables(program, both)),
            "read_bytes": ints(moves.read_bytes),
            "write_bytes": ints(moves.write_bytes),
            "transfer_bytes": ints(size),
            "throughput": throughput(size, duration),
            "source": _of_end(program, both.read, location),
            "dest": _of_end(program, both.write, location),
            "semaphore_id": take(semaphore_names(timeline), timeline.semaphore[issuer]),
            **_shapes(program, "read", both.read),
            **_shapes(program, "write", both.write),
            "is_transpose_mode": pa.array(transpose),
            "trigger": ints(timeline.start[issuer]),
            "completion": ints(timeline.end[issuer]),
            "ts_instruction_id": ints(ids.instruction[issuer]),
            "ts_visible_ts": ints(moves.completion),
            "ts_descriptors": ints(moves.descriptors),
            "ts_descriptor_bytes": ints(moves.descriptor_bytes),
            "ts_source_tensor": _of_end(program, both.read, lambda t: t.name),
            "ts_dest_tensor": _of_end(program, both.write, lambda t: t.name),
        }
    )


DESCRIPTIONS = {
    "DmaPacketAggregated.ts_instruction_id": "Instruction.id of the instruction that started the transfer.",
    "DmaPacketAggregated.ts_visible_ts": "When a waiting engine sees the transfer complete, in nanoseconds.",
    "DmaPacketAggregated.ts_descriptors": "Descriptors of the transfer.",
    "DmaPacketAggregated.ts_descriptor_bytes": "Contiguous bytes that one descriptor moves.",
    "DmaPacketAggregated.ts_source_tensor": "Tensor that is read.",
    "DmaPacketAggregated.ts_dest_tensor": "Tensor that is written.",
}


def variables(program: Program, both: Ends) -> Int:
    """The tensor that a transfer is about: its end in HBM, the one written where both or neither are there; -1: none."""
    ops = program.operands
    hbm = np.array([t.space == Space.HBM for t in program.tensors] or [False])
    read, write = (np.where(end >= 0, ops.tensor[np.maximum(end, 0)], -1) for end in (both.read, both.write))
    use_read = (read >= 0) & ((write < 0) | (hbm[read] & ~hbm[write]))
    return np.where(use_read, read, write)


def throughput(size: Int, duration: Int) -> pa.Array:
    """Bytes a second; null where the duration is 0."""
    none = duration <= 0
    return pa.array(size * float(_NANOSECONDS) / np.where(none, 1, duration), pa.float64(), mask=none)


def _of_end(program: Program, end: Int, what: Callable[[TensorSpec], str]) -> pa.Array:
    texts = [what(t) for t in program.tensors]
    return take(texts or [""], np.where(end >= 0, program.operands.tensor[np.maximum(end, 0)], -1))


def _shapes(program: Program, side: str, end: Int) -> dict[str, pa.Array]:
    """The pattern of one end: shape and steps in elements, outermost dimension first, the offset in bytes."""
    ops = program.operands
    at, none = np.maximum(end, 0), end < 0
    on_chip = tensor_spaces(program)[ops.tensor[at]] != Space.HBM
    keys = (on_chip, ops.itemsize[at], ops.partition_start[at], ops.partitions[at])
    first, inverse = unique_rows([*keys, *ops.size[at].T, *ops.stride[at].T])
    texts = [_pattern(ops, int(at[row]), bool(on_chip[row])) for row in first.tolist()]
    offsets, offset = np.unique(ops.offset[at], return_inverse=True)
    columns: dict[str, pa.Array] = {
        f"{side}_{name}": take([t[i] for t in texts] or [None], inverse, missing=none)
        for i, name in enumerate(("shape", "steps", "sbuf_partitions"))
    }
    columns[f"{side}_offset"] = take([f"[{o:#x}]" for o in offsets.tolist()] or [None], offset, missing=none)
    columns[f"{side}_num_sbuf_partitions"] = ints(np.where(on_chip, ops.partitions[at], 0), missing=none, type=pa.int32())
    return columns


def _pattern(ops: Operands, row: int, on_chip: bool) -> tuple[str, str, str]:
    """Shape, steps and partitions of an operand as text."""
    item = int(ops.itemsize[row]) or 1
    dims = [(n, elements(s, item)) for n, s in zip(ops.size[row].tolist(), ops.stride[row].tolist(), strict=True) if n != 1]
    start, count = int(ops.partition_start[row]), int(ops.partitions[row])
    shape = [count] * on_chip + [n for n, _ in dims]
    partitions = f"{start}-{start + count - 1}" if count > 1 else f"{start}"
    steps = ", ".join(s for _, s in dims) or "1"
    return f"[{', '.join(map(str, shape or [1]))}]", f"[{steps}]", partitions if on_chip else ""


def dma_packet(program: Program, timeline: Timeline, ids: Ids, both: Ends) -> pa.Table:
    """`DmaPacket`: a row for each packet of each transfer."""
    packets, moves = timeline.packets, timeline.transfers
    whole = packets.transfer
    duration = packets.end - packets.start
    queue = moves.queue[whole]
    return pa.table(
        {
            "start_ts": ints(packets.start),
            "end_ts": ints(packets.end),
            "duration_ns": ints(duration),
            "pcore_idx": ints(program.core[moves.instruction][whole]),
            "id": ints(ids.packet),
            "packet_idx": ints(rank_within(whole), type=pa.int32()),
            "packet_aggregation_id": ints(ids.transfer[whole]),
            "engine_idx": ints(packets.engine),
            "read_bytes": ints(share_of(packets, moves.read_bytes)),
            "write_bytes": ints(share_of(packets, moves.write_bytes)),
            "transfer_bytes": ints(packets.nbytes),
            "throughput": throughput(packets.nbytes, duration),
            "queue_type": take([q.type for q in timeline.queues], queue),
            "variable": take([t.name for t in program.tensors], variables(program, both)[whole]),
            "queue_name": take([q.name for q in timeline.queues], queue),
            "queue_idx": ints(np.array([q.index for q in timeline.queues] or [0], np.int64)[queue]),
        }
    )


def share_of(packets: Packets, whole: Int) -> Int:
    """Each packet's part of its transfer's bytes, in proportion to what it moves; the parts add up to the whole."""
    order = np.argsort(packets.transfer, kind="stable")
    transfer, moved = packets.transfer[order], packets.nbytes[order]
    total = sum_by(transfer, moved, len(whole))
    done = np.cumsum(moved) - (np.cumsum(total) - total)[transfer]
    # The product of two sizes of some gigabytes is more than 64 bits hold: then Python's integers.
    wide = int(done.max(initial=0)) * int(whole.max(initial=0)) >= 2**63
    product = done.astype(object if wide else np.int64) * whole[transfer]
    scaled = np.where(total[transfer] > 0, product // np.maximum(total[transfer], 1), 0).astype(np.int64)
    before = np.where(rank_within(transfer) > 0, np.concatenate(([0], scaled[:-1])), 0) if len(order) else scaled
    share = np.empty(len(order), np.int64)
    share[order] = scaled - before
    return share


def dma_queues_info(timeline: Timeline) -> pa.Table:
    """`DmaQueuesInfo`: a row for each queue on each DMA engine that moved a packet of it."""
    packets = timeline.packets
    engines = int(packets.engine.max()) + 1 if len(packets.engine) else 1
    used = np.bincount(timeline.transfers.queue[packets.transfer].astype(np.int64) * engines + packets.engine)
    pairs = np.flatnonzero(used)
    queues = [timeline.queues[q] for q in (pairs // engines).tolist()]
    return pa.table(
        {
            "name": pa.array([q.name for q in queues], pa.string()),
            "type": pa.array([q.type for q in queues], pa.string()),
            "pcore_idx": pa.array([q.core for q in queues], pa.int64()),
            "idx": pa.array([q.index for q in queues], pa.int64()),
            "engine_idx": ints(pairs % engines),
        }
    )
