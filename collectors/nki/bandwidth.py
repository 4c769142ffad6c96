"""What DMA moves, over time: throughput, running totals, transfers under way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collectors.nki.rows import Int, ints, sum_by
from collectors.nki.traffic import Traffic
from emulator.program import Program, Space, Timeline

_NANOSECONDS = 1_000_000_000


def _over_time(core: NDArray[Any], start: Int, end: Int, nbytes: Int) -> pa.Table:
    """Rate and running total whenever a packet starts or ends, by core. Rates are whole bytes a second, so that they end at 0."""
    duration = end - start
    rate = np.where(duration > 0, np.rint(nbytes * float(_NANOSECONDS) / np.maximum(duration, 1)), 0).astype(np.int64)
    tables = []
    for c in np.unique(core).tolist():
        mine = slice(None) if (core == c).all() else np.flatnonzero(core == c)
        when = np.union1d(start[mine], end[mine])
        current = _summed(start[mine], rate[mine], when) - _summed(end[mine], rate[mine], when)
        tables.append(
            pa.table(
                {
                    "timestamp": ints(when),
                    "current_throughput": pa.array(current.astype(np.float64)),
                    "total_transfer_bytes": ints(_summed(end[mine], nbytes[mine], when)),
                    "pcore_idx": ints(np.full(len(when), c)),
                }
            )
        )
    return pa.concat_tables(tables) if tables else pa.table({"timestamp": pa.array([], pa.int64())})


def _summed(time: Int, amount: Int, when: Int) -> Int:
    """What the amounts at or before each moment add up to."""
    return np.cumsum(sum_by(np.searchsorted(when, time), amount, len(when)))


def dma_usage(program: Program, timeline: Timeline) -> pa.Table:
    """`DmaUsage`: what all DMA engines of a core move, over time."""
    packets = timeline.packets
    core = program.core[timeline.transfers.instruction][packets.transfer]
    return _over_time(core, packets.start, packets.end, packets.nbytes)


def hbm_usage(program: Program, timeline: Timeline, moved: Traffic) -> pa.Table:
    """`HbmUsage`: what goes to and from HBM, over time. A packet counts for each of its ends that is there."""
    packets = timeline.packets
    issuer = timeline.transfers.instruction[packets.transfer]
    sides = (moved.read[Space.HBM][issuer] > 0).astype(np.int64) + (moved.write[Space.HBM][issuer] > 0)
    some = slice(None) if (sides > 0).all() else np.flatnonzero(sides)
    return _over_time(program.core[issuer][some], packets.start[some], packets.end[some], (packets.nbytes * sides)[some])


def pending_dma(program: Program, timeline: Timeline) -> pa.Table:
    """`PendingDma`: transfers that were started and have not ended, whenever that number changes, by core."""
    moves = timeline.transfers
    core = program.core[moves.instruction]
    tables = []
    for c in np.unique(core).tolist():
        mine = core == c
        one = np.ones(int(mine.sum()), np.int64)
        when = np.union1d(moves.trigger[mine], moves.end[mine])
        pending = _summed(moves.trigger[mine], one, when) - _summed(moves.end[mine], one, when)
        table = {"timestamp": ints(when), "value": ints(pending, type=pa.int32())}
        tables.append(pa.table({**table, "pcore_idx": ints(np.full(len(when), c))}))
    return pa.concat_tables(tables) if tables else pa.table({"timestamp": pa.array([], pa.int64())})
