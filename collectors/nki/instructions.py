"""`Instruction`: one row for each row of the program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from collectors.nki.ids import Ids
from collectors.nki.layers import Layers
from collectors.nki.operands import operand_texts
from collectors.nki.rows import Int, ints, rank_within, take
from collectors.nki.semaphores import synchronisation, words
from collectors.nki.source import Sources, call_names, loop_texts
from collectors.nki.traffic import Traffic
from emulator.opcodes import track
from emulator.program import ENGINES, InstructionFlag, Program, Space, Timeline

#: Our own columns and what they hold.
DESCRIPTIONS = {
    "Instruction.ts_latency_cycles": "Engine cycles from start to completion.",
    "Instruction.ts_issue_cycles": "Engine cycles until the engine can start its next instruction.",
    "Instruction.ts_blocked_by": "id of the instruction whose completion this one waited for last; null where it waited for none.",
    "Instruction.ts_end_line": "Last line of the statement in nki_source_location.",
    "Instruction.ts_loop": "Values of the loop variables around the statement, outermost first.",
    "Instruction.ts_free_elements": "Elements per partition that the engine walks; for a matmul the moving columns.",
    "Instruction.ts_stationary_columns": "Columns of a matmul's stationary operand; null for other instructions.",
    "Instruction.ts_partitions": "Partitions in use; for a matmul the rows that are contracted.",
    "Instruction.ts_cost_class": "Name of the timing rule that the emulator applied.",
    "Instruction.ts_engine_chosen": "True where the kernel left the engine open and the emulator chose it.",
    "Instruction.ts_attributes": "Attributes of the call: activation function, ALU operation, hints; key=value.",
}
#: Key of `Program.details` that names the function an ACTIVATE applies.
_FUNCTION = "function"


def instruction(program: Program, timeline: Timeline, ids: Ids, source: Sources, layer: Layers, moved: Traffic) -> pa.Table:
    """The table in program order.

    `start_ts` is when execution begins, after all waits; the wait stands in `evt_wait_time_ns`. Bytes are those of all partitions.
    """
    n = len(program)
    engine = program.engine.astype(np.int64)
    return pa.table(
        {
            "start_ts": ints(timeline.start),
            "end_ts": ints(timeline.end),
            "duration_ns": ints(timeline.end - timeline.start),
            "engine": take(ENGINES, engine),
            "timeline_track": _track(program),
            "pcore_idx": ints(program.core),
            "opcode": take(program.opcodes, program.opcode),
            "operands": _operands(program, timeline),
            "id": ints(ids.instruction),
            "pc": ints(rank_within(program.core.astype(np.int64) * len(ENGINES) + engine)),
            "kernel_instruction_name": call_names(program.call),
            "evt_wait_time_ns": ints(timeline.wait),
            "layer": layer.column(),
            **_places(program, source),
            **_dma(timeline, ids),
            **_bytes(moved),
            **_work(program),
            "scalar_activation_fn": _activation(program),
            "ts_latency_cycles": ints(timeline.latency_cycles),
            "ts_issue_cycles": ints(timeline.issue_cycles),
            "ts_blocked_by": ints(timeline.blocked_by + np.int64(1), missing=timeline.blocked_by < 0),
            "ts_free_elements": ints(program.n),
            "ts_stationary_columns": ints(program.m, missing=program.m == 0),
            "ts_partitions": ints(program.k),
            "ts_cost_class": take(program.cost_classes, program.cost_class),
            "ts_engine_chosen": pa.array((program.flags & InstructionFlag.ENGINE_CHOSEN) != 0),
            "ts_attributes": take(_attributes(program), program.detail),
            "ts_loop": take(loop_texts(program), program.loop) if program.loops else pa.nulls(n, pa.string()),
        }
    )


def _track(program: Program) -> pa.Array:
    distinct, inverse = np.unique(np.column_stack((program.opcode, program.engine)), axis=0, return_inverse=True)
    names = [track(program.opcodes[o], ENGINES[e]) for o, e in distinct.tolist()]
    return take(names, inverse.reshape(-1))


def _attributes(program: Program) -> list[str]:
    return [" ".join(f"{key}={value}" for key, value in detail) for detail in program.details] or [""]


def _operands(program: Program, timeline: Timeline) -> pa.Array:
    details = take(_attributes(program), program.detail)
    return words(synchronisation(timeline), details, operand_texts(program))


@dataclass(frozen=True, slots=True)
class _Innermost:
    place: str | None
    end_line: int | None
    frames: str | None


def _places(program: Program, source: Sources) -> dict[str, pa.Array]:
    """The statement that issued each instruction, and the ids of all frames of its stack, innermost last."""
    known = []
    for ids, stack in zip(source.stacks, program.stacks, strict=True):
        last = stack[-1] if stack else None
        place = f"{source.paths[last.file]}:{last.line}" if last else None
        known.append(_Innermost(place, last.end_line if last else None, f"[{', '.join(map(str, ids))}]" if ids else None))
    known = known or [_Innermost(None, None, None)]
    end_line = pa.array([k.end_line for k in known], pa.int64())
    index = program.stack.astype(np.int64)
    return {
        "stack_frame_ids": take([k.frames for k in known], index),
        "nki_source_location": take([k.place for k in known], index),
        "ts_end_line": end_line.take(pa.array(np.maximum(index, 0), mask=index < 0)),
    }


def _dma(timeline: Timeline, ids: Ids) -> dict[str, pa.Array]:
    row = ids.transfer_of
    none = row < 0
    moves = timeline.transfers

    def column(values: Int) -> pa.Array:
        return ints(np.concatenate((values, [0]))[row], missing=none)

    kind = np.array([queue.type for queue in timeline.queues] or [""])[moves.queue] if len(moves.queue) else np.zeros(0, "U1")
    sizes = {q: np.where(kind == q, moves.read_bytes, 0) for q in ("input", "output", "data")}
    return {
        "dma_trigger_start_ts": column(moves.start),
        "dma_trigger_end_ts": column(moves.end),
        "dma_wait_time_ns": column(moves.start - timeline.end[moves.instruction]),
        "input_queue_bytes": column(sizes["input"]),
        "output_queue_bytes": column(sizes["output"]),
        "weight_queue_bytes": column(sizes["data"]),
    }


def _bytes(moved: Traffic) -> dict[str, pa.Array]:
    columns = {}
    for name, space in (("hbm", Space.HBM), ("sbuf", Space.SBUF), ("psum", Space.PSUM)):
        columns[f"{name}_read_bytes"] = ints(moved.read[space])
        columns[f"{name}_write_bytes"] = ints(moved.write[space])
    evicts = (moved.read[Space.PSUM] > 0) & (moved.write[Space.SBUF] > 0)
    columns["psum_read_sbuf_write_bytes"] = ints(np.where(evicts, moved.read[Space.PSUM], 0))
    return columns


def _work(program: Program) -> dict[str, pa.Array]:
    """FLOPs; null off the Tensor engine, which alone counts them."""
    tensor = program.engine == ENGINES.index("tensor")
    other = ~tensor
    transpose = (program.flags & InstructionFlag.TRANSPOSE) != 0
    return {
        "tensor_instruction_type": take(["REGULAR", "TRANSPOSE"], np.where(transpose, 1, 0), missing=other),
        "tensor_elements": ints(program.raw_flops // 2, missing=other),
        "raw_flops": ints(program.raw_flops, missing=other),
        "adjusted_flops": ints(program.adjusted_flops, missing=other),
        "tensor_elements_transpose": ints(np.where(transpose, program.raw_flops // 2, 0), missing=other),
        "flops_transpose": ints(np.where(transpose, program.raw_flops, 0), missing=other),
        "adjusted_flops_transpose": ints(np.where(transpose, program.adjusted_flops, 0), missing=other),
    }


def _activation(program: Program) -> pa.Array:
    """The function an ACTIVATE applies."""
    names = [dict(detail).get(_FUNCTION) for detail in program.details]
    activates = np.array([opcode == "ACTIVATE" for opcode in program.opcodes] or [False])[program.opcode]
    return take(names or [None], program.detail, missing=~activates)
