"""Instructions on so few elements per partition that starting them is all their cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from explorer.analysis import intervals
from explorer.rules.draft import Draft
from explorer.rules.facts import Facts
from explorer.rules.thresholds import ENGINE_SHARE, FIXED_COST_ELEMENTS, REPEATED

NAME = "small_free_dimension"
ENGINES = ("vector", "scalar", "gpsimd")
NEEDS: Mapping[str, tuple[str, ...]] = {
    "Instruction": ("start_ts", "end_ts", "engine", "opcode", "ts_free_elements"),
    "Metadata": tuple(f"{engine}_engine_clock_freq" for engine in ("vector", "scalar", "gpsimd")),
}
ADVICE = (
    "Do more with each instruction: widen the tile along the free dimension, or let one instruction cover several tiles, so that "
    "the cost of starting it is paid once; hundreds of elements per partition make it small."
)


def find(facts: Facts) -> Iterator[Draft]:
    """One finding for each source line, opcode and engine with at least `REPEATED` instructions below `FIXED_COST_ELEMENTS`.

    They count where they take at least `ENGINE_SHARE` of the engine's busy time. What can be gained is that time less one cycle for
    each element, which is what their work costs in an instruction that is long enough.
    """
    at = facts.instructions
    elements = facts.column("ts_free_elements")
    for name in ENGINES:
        if name not in at.engines:
            continue
        engine = at.engines.index(name)
        clock = facts.profile.metadata(f"{name}_engine_clock_freq")
        few = at.computes & (at.engine == engine) & (elements > 0) & (elements < FIXED_COST_ELEMENTS.value)
        if not clock:
            continue
        key = (at.place.codes + 1) * (len(at.opcode.names) + 1) + at.opcode.codes + 1
        for code in facts.groups(key, few, ENGINE_SHARE.value * facts.busy(engine)):
            mask = few & (key == code)
            rows = np.flatnonzero(mask)
            busy, rest = facts.busy_without(engine, mask)
            if len(rows) < REPEATED.value or busy - rest < ENGINE_SHARE.value * busy:
                continue
            work = int(elements[rows].sum())
            ideal = round(work / clock)
            gain = max(busy - rest - ideal, 0)
            yield Draft(
                title=f"{len(rows):,} {name} instructions on {work / len(rows):.3g} elements per partition",
                where=facts.where(rows, engine=name),
                gain_ns=gain,
                advice=ADVICE,
                evidence={
                    "opcode": (*at.opcode.names, "unknown")[at.opcode.codes[rows[0]]],
                    "instructions": len(rows),
                    "mean_elements_per_partition": round(work / len(rows), 2),
                    "time_ns": intervals.busy(at.start[rows], at.end[rows]),
                    "engine_time_ns": busy - rest,
                    "time_at_one_element_per_cycle_ns": ideal,
                    "share_of_engine_percent": round(100 * (busy - rest) / busy, 2),
                },
                removed={name: gain},
            )
