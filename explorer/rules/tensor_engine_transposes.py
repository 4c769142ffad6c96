"""Transposes that take a good part of the Tensor engine's work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow.compute as pc

from explorer.analysis import intervals
from explorer.analysis.rows import Int
from explorer.rules.draft import Draft
from explorer.rules.facts import Bool, Facts, length, positions
from explorer.rules.thresholds import TRANSPOSE_SHARE
from explorer.store.arrays import integers, rows_equal

NAME = "tensor_engine_transposes"
ENGINES: tuple[str, ...] = ("tensor",)
NEEDS: Mapping[str, tuple[str, ...]] = {
    "Instruction": ("start_ts", "end_ts", "engine", "opcode", "tensor_instruction_type", "raw_flops"),
}
ADVICE = (
    "Bring the operand in the layout that the matmul contracts: store it transposed in HBM, swap the stationary and the moving "
    "operand so that the result comes out turned, or let DMA transpose while loading."
)


def find(facts: Facts) -> Iterator[Draft]:
    """One finding for each source line with transposes, if all of them together exceed `TRANSPOSE_SHARE` of other matmul FLOPs.

    What can be gained is the time in which they run, or, where dependencies were captured, the instructions that take their results
    out of PSUM, and the Tensor engine multiplies nothing.
    """
    at = facts.instructions
    table = facts.profile.table("Instruction", ["tensor_instruction_type"])
    if table is None or "tensor" not in at.engines:
        return
    marked = np.zeros(table.num_rows, np.bool_)
    marked[rows_equal(pc.utf8_upper(table["tensor_instruction_type"]), "TRANSPOSE")] = True
    engine = at.engines.index("tensor")
    turns = marked[at.row] & at.works & (at.engine == engine)
    flops = np.maximum(facts.column("raw_flops"), 0)
    turned, rest_flops = int(flops[turns].sum()), int(flops[~turns & (at.engine == engine)].sum())
    if turned <= TRANSPOSE_SHARE.value * rest_flops:
        return
    flow = _flow(facts)
    for code in np.unique(at.place.codes[turns]):
        mask = turns & (at.place.codes == code)
        rows = np.flatnonzero(mask)
        copies = _copies(facts, mask, flow)
        removed = {}
        for name in ("tensor", *sorted({at.engines[e] for e in at.engine[copies]})):
            busy, rest = facts.busy_without(at.engines.index(name), mask | copies)
            removed[name] = busy - rest
        both, others = mask | copies, at.works & (at.engine == engine) & ~turns
        multiplying = intervals.union(at.start[others], at.end[others])
        gain = length(intervals.subtract(intervals.union(at.start[both], at.end[both]), multiplying))
        count = int((flops[rows] > 0).sum())
        yield Draft(
            title=f"{count:,} transposes on the Tensor engine",
            where=facts.where(rows, engine="tensor"),
            gain_ns=gain,
            advice=ADVICE,
            evidence={
                "transposes": count,
                "transpose_flops": int(flops[rows].sum()),
                "all_transpose_flops": turned,
                "other_matmul_flops": rest_flops,
                "transpose_over_matmul_percent": round(100 * turned / rest_flops, 2) if rest_flops else "no other matmul",
                "copies_out_of_psum": int(copies.sum()),
                "time_while_nothing_is_multiplied_ns": gain,
                **{f"{name}_time_ns": ns for name, ns in removed.items()},
            },
            removed=removed,
        )


def _flow(facts: Facts) -> tuple[Int, Int]:
    """Positions of producer and consumer of each dependency on data between instructions; none where they were not captured."""
    table = facts.profile.table("Flow", ["in_id", "out_id", "dependency_type"])
    if table is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = rows_equal(table["dependency_type"], "FLOW_DEPENDENCE")
    producer, consumer = (positions(facts.instructions.id, integers(table[c], -1)[rows]) for c in ("in_id", "out_id"))
    known = (producer >= 0) & (consumer >= 0)
    return producer[known], consumer[known]


def _copies(facts: Facts, turns: Bool, flow: tuple[Int, Int]) -> Bool:
    """The instructions of other engines that depend on those transposes and on nothing else that the Tensor engine made."""
    at = facts.instructions
    producer, consumer = flow
    tensor = at.engine == at.engines.index("tensor")
    found = np.zeros(len(at.row), np.bool_)
    found[consumer[turns[producer]]] = True
    found[consumer[tensor[producer] & ~turns[producer]]] = False
    found &= ~tensor & at.computes
    return found
