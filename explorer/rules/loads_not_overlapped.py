"""DMA and computation that take turns although they could run side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from explorer.analysis import intervals
from explorer.analysis.rows import Int
from explorer.rules.draft import Draft
from explorer.rules.facts import Facts, covered, length
from explorer.rules.finding import Where
from explorer.rules.thresholds import ALTERNATING, ENGINE_ACTIVE

NAME = "loads_not_overlapped"
ENGINES: tuple[str, ...] = ()
NEEDS: Mapping[str, tuple[str, ...]] = {
    "Instruction": ("start_ts", "end_ts", "engine", "opcode"),
    "DmaPacketAggregated": ("start_ts", "end_ts"),
}
ADVICE = (
    "Let the next load run while this tile is computed and the last one stored: give each step its own buffer, two or "
    "three in turn; start the load of step i+1 before the computation of step i; cut long loads into tiles so that the first is of "
    "use early."
)


def find(facts: Facts) -> Iterator[Draft]:
    """At most one finding, at the line whose transfers are exposed longest.

    A transfer is in flight from its trigger until a waiting engine sees it complete. It is a fault where the time with transfers in
    flight and nothing computing, and the time the other way round, are both at least `ALTERNATING` of the whole, and no engine
    is active for `ENGINE_ACTIVE` of it. What can be gained is all that time down to the longer of the two at work, less the
    shortest load and the shortest store: the first and the last can hide behind nothing.
    """
    moves, bound = facts.transfers, facts.bound
    if len(moves.start) == 0 or bound is None or bound.bound_ns >= ENGINE_ACTIVE.value * bound.total_ns:
        return
    flight = covered([intervals.union(moves.trigger, moves.seen), facts.moving])
    computing = facts.computing
    exposed = intervals.subtract(flight, computing)
    alone = length(intervals.subtract(computing, flight))
    if min(length(exposed), alone) < ALTERNATING.value * bound.total_ns:
        return
    both = length(covered([flight, computing]))
    longer = max(length(facts.moving), length(computing))
    in_flight = moves.seen - moves.trigger
    ends = sum(int(in_flight[side].min()) for side in (moves.to_sbuf, ~moves.to_sbuf) if side.any())
    shares = _exposed_each(facts, exposed)
    yield Draft(
        title="DMA and computation take turns",
        where=_where(facts, shares),
        gain_ns=max(both - longer - ends, 0),
        advice=ADVICE,
        evidence={
            "transfers_in_flight_while_nothing_computes_ns": length(exposed),
            "computation_without_transfers_ns": alone,
            "dma_moving_ns": length(facts.moving),
            "computing_ns": length(computing),
            "first_load_and_last_store_ns": ends,
        },
    )


def _exposed_each(facts: Facts, exposed: tuple[Int, Int]) -> Int:
    """For each transfer how much of its flight is in the exposed time."""
    moves = facts.transfers
    start, end = exposed
    total = np.concatenate(([0], np.cumsum(end - start)))

    def before(time: Int) -> Int:
        at = np.searchsorted(start, time, side="right")
        inside = np.where(at > 0, np.minimum(time, end[at - 1]) - start[at - 1], 0)
        return total[np.maximum(at - 1, 0)] * (at > 0) + inside

    if len(start) == 0:
        return np.zeros(len(moves.start), np.int64)
    return before(moves.seen) - before(moves.trigger)


def _where(facts: Facts, shares: Int) -> Where:
    moves = facts.transfers
    known = np.flatnonzero(moves.instruction >= 0)
    if len(known) == 0:
        return Where(engine="dma", start_ns=int(moves.start.min()), end_ns=int(moves.end.max()))
    return facts.where(moves.instruction[known], engine="dma", by=shares[known])
