"""Instructions that leave most of the partitions idle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from explorer.analysis import intervals
from explorer.analysis.rows import Int
from explorer.rules.draft import Draft
from explorer.rules.facts import Bool, Facts
from explorer.rules.thresholds import ENGINE_SHARE, PARTITIONS, PARTITIONS_SHARE, REPEATED

NAME = "unused_partitions"
ENGINES = ("vector", "scalar", "gpsimd")
NEEDS: Mapping[str, tuple[str, ...]] = {"Instruction": ("start_ts", "end_ts", "engine", "opcode", "ts_partitions")}
ADVICE = (
    "Use all 128 partitions: reshape the tensor so that its first dimension fills them, or put several tiles on different "
    "partitions and work on them with one instruction; transfers of more partitions also use more DMA engines."
)


def find(facts: Facts) -> Iterator[Draft]:
    """One finding for each layer with at least `REPEATED` instructions on `PARTITIONS_SHARE` of the partitions or fewer.

    They count where they take at least `ENGINE_SHARE` of their engine's busy time. If all partitions worked, the same would take
    their time times the share in use; the layer's transfers of as few partitions count alike.
    """
    at, moves = facts.instructions, facts.transfers
    used = facts.column("ts_partitions")
    most = PARTITIONS_SHARE.value * PARTITIONS.value
    elements = facts.column("ts_free_elements")
    wide_enough = (elements > 1) | (elements < 0)
    few = at.computes & (used > 0) & (used <= most) & wide_enough
    sparse = (moves.partitions > 0) & (moves.partitions <= most) & (moves.instruction >= 0)
    layer = facts.of_starter(at.layer)
    found: dict[int, dict[str, Int]] = {}
    removed: dict[int, dict[str, int]] = {}
    for name in ENGINES:
        if name not in at.engines:
            continue
        engine = at.engines.index(name)
        mine = few & (at.engine == engine)
        for code in facts.groups(at.layer.codes, mine, ENGINE_SHARE.value * facts.busy(engine)).tolist():
            mask = mine & (at.layer.codes == code)
            rows = np.flatnonzero(mask)
            busy, rest = facts.busy_without(engine, mask)
            if len(rows) >= REPEATED.value and busy - rest >= ENGINE_SHARE.value * busy:
                found.setdefault(code, {})[name] = rows
                removed.setdefault(code, {})[name] = round((busy - rest) * _idle_share(used[rows]))
    for code, by_engine in sorted(found.items()):
        yield _draft(facts, np.concatenate(list(by_engine.values())), used, sparse & (layer == code), removed[code])


def _draft(facts: Facts, rows: Int, used: Int, moved: Bool, removed: dict[str, int]) -> Draft:
    at, moves = facts.instructions, facts.transfers
    start, end = np.concatenate((at.start[rows], moves.start[moved])), np.concatenate((at.end[rows], moves.end[moved]))
    time = intervals.busy(start, end)
    idle = _idle_share(np.concatenate((used[rows], moves.partitions[moved])))
    if moved.any():
        removed = {
            **removed,
            "dma": round(intervals.busy(moves.start[moved], moves.end[moved]) * _idle_share(moves.partitions[moved])),
        }
    mean = float(used[rows].mean())
    return Draft(
        title=f"{len(rows):,} instructions on {mean:.3g} of {PARTITIONS.value:.0f} partitions",
        where=facts.where(np.sort(rows)),
        gain_ns=round(time * idle),
        advice=ADVICE,
        evidence={
            "instructions": len(rows),
            "mean_partitions": round(mean, 2),
            "transfers": int(moved.sum()),
            "time_ns": time,
            **{f"{name}_time_for_idle_partitions_ns": ns for name, ns in removed.items()},
        },
        removed=removed,
    )


def _idle_share(used: Int) -> float:
    return 1 - float(used.mean()) / PARTITIONS.value
