"""How short the whole could be if nothing ever waited: the busiest engine still has to do its work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from explorer.analysis import intervals
from explorer.analysis.rows import work
from explorer.store.arrays import integers
from explorer.store.reader import Profile

#: Name under which all DMA queues of a core count together.
DMA = "dma"


@dataclass(frozen=True, slots=True)
class LowerBound:
    """Nanoseconds: `total_ns` from the first start to the last end, `busy_ns` by engine (and all DMA together) the time each was at
    work, waits left out, of the core where it was longest; `bound_ns` the largest of them and `engine` whose it is.
    """

    total_ns: int
    bound_ns: int
    engine: str
    busy_ns: Mapping[str, int]

    @property
    def headroom_ns(self) -> int:
        """What perfect overlap could gain without less work on any engine."""
        return max(self.total_ns - self.bound_ns, 0)


def lower_bound(profile: Profile) -> LowerBound | None:
    """The bound, or None where no instruction at work was captured with its engine and times."""
    rows = work(profile)
    if rows is None or rows.is_wait.all():
        return None
    cores = profile.table("Instruction", ["pcore_idx"])
    core = np.zeros(len(rows), np.int64) if cores is None else integers(cores["pcore_idx"], 0)
    doing = ~rows.is_wait
    busy: dict[str, int] = {}
    for code, name in enumerate(rows.engines):
        mine = doing & (rows.engine == code)
        if mine.any():
            on_core = (mine & (core == c) for c in np.unique(core[mine]))
            busy[name] = max(intervals.busy(rows.start[here], rows.end[here]) for here in on_core)
    first, last = int(rows.start[doing].min()), int(rows.end[doing].max())
    transfers = profile.table("DmaPacketAggregated", ["start_ts", "end_ts", "pcore_idx"])
    packets = profile.table("DmaPacket", ["start_ts", "end_ts", "pcore_idx"])
    moved = packets if packets is not None else transfers
    if moved is not None:
        moved = moved.filter(pc.and_(pc.is_valid(moved["start_ts"]), pc.is_valid(moved["end_ts"])))
    if moved is not None and moved.num_rows:
        start, end = integers(moved["start_ts"], 0), integers(moved["end_ts"], 0)
        on = integers(moved["pcore_idx"], 0)
        busy[DMA] = max(intervals.busy(start[on == c], end[on == c]) for c in np.unique(on))
        first, last = min(first, int(start.min())), max(last, int(end.max()))
    if not busy:
        return None
    engine = max(busy, key=lambda name: busy[name])
    return LowerBound(last - first, busy[engine], engine, busy)
