"""Matmuls in float32, which take four passes where bfloat16 takes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from explorer.rules.draft import Draft
from explorer.rules.facts import Facts
from explorer.rules.thresholds import ENGINE_SHARE, FP32_FACTOR

NAME = "fp32_matmul"
ENGINES: tuple[str, ...] = ("tensor",)
NEEDS: Mapping[str, tuple[str, ...]] = {
    "Instruction": ("start_ts", "end_ts", "engine", "opcode", "raw_flops", "adjusted_flops"),
}
ADVICE = (
    "Multiply in bfloat16 if the result allows it: let the load convert the operands (dma_copy into a bfloat16 tile); the sums in "
    "PSUM stay float32. Check the values: products lose 16 bits of mantissa."
)


def find(facts: Facts) -> Iterator[Draft]:
    """One finding for each source line whose matmuls' adjusted FLOPs are at least `FP32_FACTOR` times their FLOPs.

    They count where they take at least `ENGINE_SHARE` of the Tensor engine's busy time; all but one pass of that can be gained.
    """
    at = facts.instructions
    if "tensor" not in at.engines:
        return
    engine = at.engines.index("tensor")
    raw, adjusted = facts.column("raw_flops"), facts.column("adjusted_flops")
    turned = facts.column("flops_transpose")
    matmul = at.works & (at.engine == engine) & (turned <= 0)
    wide = matmul & (raw > 0) & (adjusted >= FP32_FACTOR.value * raw)
    some = matmul & np.isin(at.place.codes, at.place.codes[wide])
    for code in facts.groups(at.place.codes, some, ENGINE_SHARE.value * facts.busy(engine)):
        here = matmul & (at.place.codes == code)
        rows = np.flatnonzero(wide & here)
        # The loads of the stationary operand take as many passes, and count no FLOPs.
        mask = here & (wide | (raw <= 0)) if (wide | (raw <= 0))[here].all() else wide & here
        busy, rest = facts.busy_without(engine, mask)
        if busy - rest < ENGINE_SHARE.value * busy:
            continue
        gain = round((busy - rest) * (1 - 1 / FP32_FACTOR.value))
        yield Draft(
            title=f"{len(rows):,} matmuls in float32",
            where=facts.where(rows, engine="tensor"),
            gain_ns=gain,
            advice=ADVICE,
            evidence={
                "instructions": len(rows),
                "flops": int(raw[rows].sum()),
                "adjusted_flops": int(adjusted[rows].sum()),
                "engine_time_ns": busy - rest,
                "share_of_engine_percent": round(100 * (busy - rest) / busy, 2),
            },
            removed={"tensor": gain},
        )
