"""Transfers so small that starting them costs more than moving their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from explorer.analysis import intervals
from explorer.analysis.rows import Int
from explorer.rules.draft import Draft
from explorer.rules.facts import Facts, Transfers, length
from explorer.rules.finding import Where
from explorer.rules.thresholds import DESCRIPTOR_BYTES, DMA_EFFICIENCY, TRANSFER_BYTES

NAME = "small_dma_transfers"
ENGINES: tuple[str, ...] = ()
NEEDS: Mapping[str, tuple[str, ...]] = {
    "DmaPacketAggregated": ("start_ts", "end_ts", "transfer_bytes", "queue_name"),
    "Metadata": ("dma_ddr_bandwidth",),
}
ADVICE = (
    "Move more with each transfer: load a wider tile once and slice it in SBUF, or reorder the layout in HBM so that each "
    f"partition's bytes are contiguous; aim at {DESCRIPTOR_BYTES.value // 1024:.0f} KiB or more per partition and "
    f"{TRANSFER_BYTES.value // 1024:.0f} KiB or more per transfer."
)


def find(facts: Facts) -> Iterator[Draft]:
    """One finding for each source line (or, where lines are unknown, queue) that starts such transfers.

    A transfer is small below `TRANSFER_BYTES`; then it owns its queue from its start-up on. A larger one cut into descriptors below
    `DESCRIPTOR_BYTES` owns it while it moves. They are a fault where they reach less than `DMA_EFFICIENCY` of the bandwidth. Only
    the time in which no engine computes can be gained.
    """
    moves = facts.transfers
    bandwidth = facts.profile.metadata("dma_ddr_bandwidth")
    if len(moves.start) == 0 or not bandwidth:
        return
    small = (moves.nbytes > 0) & (moves.nbytes < TRANSFER_BYTES.value)
    narrow = ~small & (moves.descriptor_bytes > 0) & (moves.descriptor_bytes < DESCRIPTOR_BYTES.value)
    begin = np.where(small, owned_from(moves), moves.start)
    place = facts.of_starter(facts.instructions.place)
    key = np.where(place >= 0, place, -2 - moves.queue.codes)
    for code in np.unique(key[small | narrow]):
        rows = np.flatnonzero((small | narrow) & (key == code))
        spans = intervals.union(begin[rows], moves.end[rows])
        nbytes = int(moves.nbytes[rows].sum())
        ideal = round(nbytes / bandwidth * 1e9)
        taken = length(spans)
        if taken == 0 or ideal / taken >= DMA_EFFICIENCY.value:
            continue
        exposed = length(intervals.subtract(spans, facts.computing))
        yield Draft(
            title=f"{len(rows):,} small DMA transfers, {nbytes // len(rows):,} bytes each on average",
            where=_where(facts, rows),
            gain_ns=max(exposed - ideal, 0),
            advice=ADVICE,
            evidence={
                "transfers": len(rows),
                "mean_transfer_bytes": nbytes // len(rows),
                **_descriptors(moves, rows),
                "time_with_start_up_ns": taken,
                "time_while_nothing_computes_ns": exposed,
                "time_at_full_bandwidth_ns": ideal,
                "bandwidth_used_percent": round(100 * ideal / taken, 2),
            },
            removed={"dma": max(intervals.busy(moves.start[rows], moves.end[rows]) - ideal, 0)},
        )


def owned_from(moves: Transfers) -> Int:
    """Since when each transfer has its queue to itself: its trigger, or the end of the one before it if that is later."""
    before = np.full(len(moves.start), np.iinfo(np.int64).min)
    for queue in np.unique(moves.queue.codes):
        rows = np.flatnonzero(moves.queue.codes == queue)
        before[rows[1:]] = np.maximum.accumulate(moves.end[rows])[:-1]
    since: Int = np.minimum(np.maximum(moves.trigger, before), moves.start)
    return since


def _where(facts: Facts, rows: Int) -> Where:
    moves = facts.transfers
    started = moves.instruction[rows]
    if (started >= 0).any():
        known = rows[started >= 0]
        return facts.where(moves.instruction[known], engine="dma", by=moves.end[known] - moves.start[known])
    return Where(engine="dma", start_ns=int(moves.start[rows].min()), end_ns=int(moves.end[rows].max()))


def _descriptors(moves: Transfers, rows: Int) -> dict[str, int]:
    sizes = moves.descriptor_bytes[rows]
    return {"largest_descriptor_bytes": int(sizes.max())} if (sizes > 0).any() else {}
