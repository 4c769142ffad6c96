"""From a program and its timeline to the tables of a profile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from collectors.nki import bandwidth, dma, flow, instructions, layers, memory, metadata, semaphores, source
from collectors.nki.ids import ids
from collectors.nki.metadata import Origin
from collectors.nki.source import Paths
from collectors.nki.traffic import traffic
from emulator.program import Program, Timeline
from emulator.targets import Target
from explorer.analysis.summary import active_time, opcode_summary, summarize
from explorer.store.reader import Profile

#: Our own columns in the tables below, by "Table.column".
DESCRIPTIONS: Mapping[str, str] = {
    **instructions.DESCRIPTIONS,
    **dma.DESCRIPTIONS,
    **flow.DESCRIPTIONS,
    **layers.DESCRIPTIONS,
    **memory.DESCRIPTIONS,
    **metadata.DESCRIPTIONS,
    **source.DESCRIPTIONS,
    "Summary.ts_made_by": "Who computed the row.",
}


@dataclass(frozen=True, slots=True)
class Captured:
    """What `explorer.store.writer.write` takes: tables by name, and what our own columns in them hold."""

    tables: Mapping[str, pa.Table]
    descriptions: Mapping[str, str]


def capture(program: Program, timeline: Timeline, target: Target, *, source_root: Path, origin: Origin | None = None) -> Captured:
    """The tables of a run of `program` on `target`. Source paths are stored relative to `source_root`."""
    number = ids(program, timeline)
    paths = Paths(Path(os.path.abspath(source_root)))
    places = source.sources(program, paths)
    layer = layers.layers(program)
    moved = traffic(program, timeline, number)
    ends = dma.ends(program, timeline, number)
    capacity = memory.Capacity(target.sbuf.partitions, target.sbuf.partition_bytes, target.psum.partition_bytes, target.psum.banks)
    peaks = layers.Peaks(metadata.cores(program) * target.peak_flops / 1e9, target.hbm.stack_bandwidth / 1e9)
    outside = sorted({places.paths[file] for file in places.paths if paths.outside(file)})
    made = {
        "Instruction": instructions.instruction(program, timeline, number, places, layer, moved),
        "DmaPacketAggregated": dma.dma_packet_aggregated(program, timeline, number, ends),
        "DmaPacket": dma.dma_packet(program, timeline, number, ends),
        "DmaQueuesInfo": dma.dma_queues_info(timeline),
        "DmaUsage": bandwidth.dma_usage(program, timeline),
        "HbmUsage": bandwidth.hbm_usage(program, timeline, moved),
        "PendingDma": bandwidth.pending_dma(program, timeline),
        "SemaphoreUpdate": semaphores.semaphore_update(program, timeline, number),
        "Flow": flow.flow(program, timeline, number),
        "KernelInstructions": source.kernel_instructions(program, places),
        "KernelStackFrames": source.kernel_stack_frames(places),
        "KernelIterationVariables": source.kernel_iteration_variables(program, places),
        "TensorInfo": memory.tensor_info(program, timeline, number, ends),
        "SbufUsage": memory.sbuf_usage(program, timeline, number, capacity),
        "PsumUsage": memory.psum_usage(program, timeline, number, capacity),
        "FrameworkNode": layers.framework_node(program, timeline, number, layer, moved, peaks),
        "Metadata": metadata.metadata(program, timeline, target, origin or Origin()),
        "ExecutionInfo": metadata.execution_info(timeline),
        "Warning": metadata.warning(program, timeline, outside),
    }
    profile = Profile.from_tables(made)
    for name, table in (("ActiveTime", active_time(profile)), ("OpcodeSummary", opcode_summary(profile))):
        if table is not None:
            made[name] = table
    made["Summary"] = summarize(Profile.from_tables(made)).table()
    return Captured({name: table for name, table in made.items() if table.num_rows}, DESCRIPTIONS)
