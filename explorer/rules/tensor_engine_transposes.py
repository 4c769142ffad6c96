"""Transposes that take a good part of the Tensor engine's work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow.compute as pc

from explorer.rules.draft import Draft
from explorer.rules.facts import Facts
from explorer.rules.thresholds import TRANSPOSE_SHARE
from explorer.store.arrays import rows_equal

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

    What can be gained is the time that the Tensor engine is busy with nothing else; copies of the results out of PSUM come on top.
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
    for code in np.unique(at.place.codes[turns]):
        mask = turns & (at.place.codes == code)
        rows = np.flatnonzero(mask)
        busy, rest = facts.busy_without(engine, mask)
        yield Draft(
            title=f"{int((flops[rows] > 0).sum()):,} transposes on the Tensor engine",
            where=facts.where(rows, engine="tensor"),
            gain_ns=busy - rest,
            advice=ADVICE,
            evidence={
                "transposes": int((flops[rows] > 0).sum()),
                "transpose_flops": int(flops[rows].sum()),
                "all_transpose_flops": turned,
                "other_matmul_flops": rest_flops,
                "transpose_over_matmul_percent": round(100 * turned / rest_flops, 2) if rest_flops else "no other matmul",
                "engine_time_ns": busy - rest,
            },
            removed={"tensor": busy - rest},
        )
