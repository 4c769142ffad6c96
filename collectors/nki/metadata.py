"""What a profile says about itself: the target, the kernel and its arguments, what the emulator does not model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import explorer
from emulator.program import Program, Timeline
from emulator.targets import Target
from explorer.store import schema


@dataclass(frozen=True, slots=True)
class Origin:
    """What was captured, in words that are the same on every machine.

    `kernel_file` is the stored path of the kernel, `arguments` each argument as text, `grid` the SPMD grid, `seed` what arrays were
    made from (None: from no seed), `values` whether the kernel's values were computed.
    """

    kernel_file: str | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    grid: Sequence[int] = ()
    seed: int | None = None
    values: bool | None = None


DESCRIPTIONS = {
    "Metadata.ts_target": "NeuronCore generation that was emulated.",
    "Metadata.ts_neuroncore": "AWS's name of that generation.",
    "Metadata.ts_kernel": "The kernel function.",
    "Metadata.ts_kernel_file": "Its file, relative to the source root.",
    "Metadata.ts_arguments": "The kernel's arguments by name as JSON.",
    "Metadata.ts_grid": "The SPMD grid as JSON; null without one.",
    "Metadata.ts_seed": "Seed of the random arguments; null where there are none.",
    "Metadata.ts_values": "Whether the kernel's values were computed (true) or only its instructions (false).",
    "Metadata.ts_made_by": "The program that wrote the profile, with its version.",
}


def span(timeline: Timeline) -> tuple[int, int]:
    """First start and last end of all that ran, in nanoseconds; zeros if nothing did."""
    start = np.concatenate((timeline.start, timeline.transfers.start))
    end = np.concatenate((timeline.end, timeline.transfers.end))
    return (int(start.min()), int(end.max())) if len(start) else (0, 0)


def cores(program: Program) -> int:
    """Physical cores that the program runs on."""
    return int(program.core.max()) + 1 if len(program) else 1


def metadata(program: Program, timeline: Timeline, target: Target, origin: Origin) -> pa.Table:
    """`Metadata`: one row. Clocks, sizes and bandwidths are the target's; no clock, host or user name is stored."""
    first, last = span(timeline)
    row = {
        "profile_schema_version": schema.VERSION,
        "num_physical_cores": cores(program),
        "vnc_enabled": cores(program) > 1,
        "first_hw_timestamp": first,
        "last_hw_timestamp": last,
        "dma_ddr_bandwidth": target.dma.core_bandwidth,
        "num_dma_engines_per_neuroncore": target.dma.engines,
        "hbm_ddr_bandwidth": target.hbm.stack_bandwidth,
        "tensor_engine_num_rows": target.tensor.rows,
        "tensor_engine_num_cols": target.tensor.columns,
        "tensor_engine_clock_freq": target.tensor.clock,
        "vector_engine_clock_freq": target.vector.clock,
        "vector_engine_num_channels": target.vector.lanes,
        "scalar_engine_clock_freq": target.scalar.clock,
        "scalar_engine_num_channels": target.scalar.lanes,
        "gpsimd_engine_clock_freq": target.gpsimd.clock,
        "gpsimd_engine_num_channels": target.gpsimd.lanes,
        "neuroncore_clock_freq": target.core.clock,
        "profile_name": program.kernel,
        "is_simulation": True,
    }
    spec = schema.tables()["Metadata"]
    columns = {c.name: pa.array([row[c.name]], c.arrow) for c in spec.columns if c.name in row}
    own = {
        "ts_target": target.name,
        "ts_neuroncore": target.neuroncore,
        "ts_kernel": program.kernel,
        "ts_kernel_file": origin.kernel_file,
        "ts_arguments": json.dumps(dict(origin.arguments)),
        "ts_grid": json.dumps(list(origin.grid)) if origin.grid else None,
        "ts_made_by": f"trnscope {explorer.__version__}",
    }
    columns |= {name: pa.array([value], pa.string()) for name, value in own.items()}
    return pa.table(
        {
            **columns,
            "ts_seed": pa.array([origin.seed], pa.int64()),
            "ts_values": pa.array([origin.values], pa.bool_()),
        }
    )


def execution_info(timeline: Timeline) -> pa.Table:
    """`ExecutionInfo`: the one run of the kernel."""
    first, last = span(timeline)
    return pa.table(
        {
            "execution_index": pa.array([0], pa.int32()),
            "execution_start_ts": pa.array([first], pa.int64()),
            "execution_end_ts": pa.array([last], pa.int64()),
        }
    )


def warning(program: Program, timeline: Timeline, outside: Sequence[str]) -> pa.Table:
    """`Warning`: what the kernel and the emulator had to say, and sources that the stored paths do not lead back to."""
    rows = [*((text, "Kernel") for text in program.warnings), *((text, "Emulator") for text in timeline.warnings)]
    rows += [(f"{path}: source outside the source root, stored under its module path", "Source") for path in outside]
    return pa.table(
        {"message": pa.array([m for m, _ in rows], pa.string()), "category": pa.array([c for _, c in rows], pa.string())}
    )
