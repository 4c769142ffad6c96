"""Tensors in HBM that are loaded into SBUF again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from explorer.analysis import intervals
from explorer.rules.draft import Draft
from explorer.rules.facts import Facts, length
from explorer.rules.finding import Where
from explorer.rules.thresholds import REPEAT_FACTOR

NAME = "reloaded_inputs"
ENGINES: tuple[str, ...] = ()
_COLUMNS = ("variable_name", "size", "load_to_sbuf_total_size_bytes", "load_to_sbuf_repeat_factor")
NEEDS: Mapping[str, tuple[str, ...]] = {
    "TensorInfo": _COLUMNS,
    "DmaPacketAggregated": ("start_ts", "end_ts", "transfer_bytes", "variable"),
}
ADVICE = (
    "Load the tensor once, before the loop, and keep it in SBUF; if it does not fit, block the loops so that each panel is loaded "
    "once and used by everything that needs it before the next one."
)


def find(facts: Facts) -> Iterator[Draft]:
    """One finding for each tensor whose repeat factor is at least `REPEAT_FACTOR`, at the line that loads most of it.

    What can be gained is the time of the surplus bytes at the pace that DMA kept in this run, as far as it moved data while nothing
    computed.
    """
    table, moves = facts.profile.table("TensorInfo", list(_COLUMNS)), facts.transfers
    moving = length(facts.moving)
    exposed = length(intervals.subtract(facts.moving, facts.computing))
    everything = int(moves.nbytes[moves.nbytes > 0].sum())
    if table is None or everything == 0:
        return
    for row in table.to_pylist():
        name, size, loaded, factor = (row[c] for c in _COLUMNS)
        if None in (name, size, loaded, factor) or factor < REPEAT_FACTOR.value:
            continue
        surplus = loaded - size
        removed = min(round(moving * surplus / everything), moving)
        yield Draft(
            title=f"Tensor loaded {factor:.3g} times over",
            where=_where(facts, name),
            gain_ns=min(removed, exposed),
            advice=ADVICE,
            evidence={
                "tensor": name,
                "tensor_bytes": size,
                "loaded_bytes": loaded,
                "repeat_factor": round(factor, 3),
                "surplus_dma_ns": removed,
                "dma_while_nothing_computes_ns": exposed,
            },
            removed={"dma": removed},
        )


def _where(facts: Facts, name: str) -> Where:
    moves = facts.transfers
    code = moves.variable.names.index(name) if name in moves.variable.names else -2
    rows = np.flatnonzero((moves.variable.codes == code) & moves.to_sbuf)
    known = rows[moves.instruction[rows] >= 0]
    if len(known):
        return facts.where(moves.instruction[known], engine="dma", by=moves.nbytes[known])
    if len(rows):
        return Where(engine="dma", start_ns=int(moves.start[rows].min()), end_ns=int(moves.end[rows].max()))
    return Where(engine="dma")
