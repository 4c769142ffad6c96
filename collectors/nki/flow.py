"""`Flow`: who waited for whom."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from collectors.nki.ids import Ids
from collectors.nki.rows import ints, take
from emulator.program import Dependency, Program, Timeline

_TABLES = ("Instruction", "DmaPacketAggregated")
_KINDS = tuple(kind.name for kind in Dependency)
DESCRIPTIONS = {
    "Flow.ts_waits": "True where the consumer's engine waits for the producer; false for accumulation in PSUM, which does not.",
    "Flow.ts_last": "True for the dependency that the consumer waited for last.",
}


def flow(program: Program, timeline: Timeline, ids: Ids) -> pa.Table:
    """A row for each dependency, from the producer (`in_*`) to the consumer (`out_*`), then one from each instruction that starts
    a transfer to its transfer, with `dependency_type` null because no data pass.

    Where the producer starts a transfer, the transfer is the producer: its data are there when it ends, not when its instruction
    does. A consumer that starts a transfer waits before it starts it, so the instruction is the consumer. `gap_time` is the
    consumer's start minus the producer's end.
    """
    edges, moves = timeline.dependencies, timeline.transfers
    consumer = np.repeat(np.arange(len(program)), np.diff(edges.ptr))
    producer = edges.producer.astype(np.int64)
    transfer = ids.transfer_of[producer]
    moved = transfer >= 0
    at = np.maximum(transfer, 0)
    end = timeline.end[producer]
    in_id = ids.instruction[producer]
    if len(moves.end):
        end = np.where(moved, moves.end[at], end)
        in_id = np.where(moved, ids.transfer[at], in_id)
    last = timeline.blocked_by[consumer] == producer
    started = np.arange(len(moves.end))
    return pa.table(
        {
            "in_id": ints(np.concatenate((in_id, ids.instruction[moves.instruction]))),
            "out_id": ints(np.concatenate((ids.instruction[consumer], ids.transfer))),
            "in_table": take(_TABLES, np.concatenate((moved.astype(np.int64), np.zeros(len(started), np.int64)))),
            "out_table": take(_TABLES, np.concatenate((np.zeros(len(consumer), np.int64), np.ones(len(started), np.int64)))),
            "dependency_type": take(_KINDS, np.concatenate((edges.kind.astype(np.int64), np.full(len(started), -1)))),
            "gap_time": ints(np.concatenate((timeline.start[consumer] - end, moves.start - timeline.end[moves.instruction]))),
            "ts_waits": pa.array(np.concatenate((edges.waits, np.ones(len(started), np.bool_)))),
            "ts_last": pa.array(np.concatenate((last, np.ones(len(started), np.bool_)))),
        }
    )
