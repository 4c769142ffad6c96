"""A small profile whose every row is known: a tiled matmul of 4 by 3 tiles, laid out by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from explorer.store.reader import Profile
from explorer.store.writer import conform

FILE = "kernels/tiled.py"
_TRACKS = {"LDWEIGHTS": "Tensor", "MATMUL": "TensorMatrix", "ACTIVATE": "Scalar", "DMA_DIRECT2D": "Sync", "EVENT_SEMAPHORE": "Sync"}
_ENGINES = {"Tensor": "tensor", "TensorMatrix": "tensor", "Scalar": "scalar", "Sync": "sync"}
#: Innermost frame by line.
_FRAMES = {15: 2, 9: 3, 10: 4}


@dataclass
class Rows:
    """Tables as they grow. Ids count from 1 over instructions, from 1001 over transfers."""

    instructions: list[dict[str, Any]] = field(default_factory=list)
    transfers: list[dict[str, Any]] = field(default_factory=list)
    flows: list[dict[str, Any]] = field(default_factory=list)
    kernels: list[dict[str, Any]] = field(default_factory=list)

    def instruction(self, opcode: str, start: int, ns: int, layer: str | None, line: int | None, loop: int | None = None) -> int:
        """Append an instruction; returns its id."""
        identity, track = len(self.instructions) + 1, _TRACKS[opcode]
        self.instructions.append(
            {
                "start_ts": start,
                "end_ts": start + ns,
                "duration_ns": ns,
                "engine": _ENGINES[track],
                "timeline_track": track,
                "pcore_idx": 0,
                "opcode": opcode,
                "operands": f"tile {identity}",
                "id": identity,
                "pc": identity,
                "kernel_instruction_name": f"inst.{identity}",
                "evt_wait_time_ns": 0,
                "layer": layer,
                "nki_source_location": None if line is None else f"{FILE}:{line}",
                "hbm_read_bytes": None,
            }
        )
        self.kernels.append(
            {
                "kernel_instruction_name": f"inst.{identity}",
                "stack_frame_id": _FRAMES.get(line),
                "iteration_variables_id": loop,
            }
        )
        return identity

    def transfer(self, queue: str, tensor: str, start: int, ns: int) -> int:
        """Append a DMA transfer; returns its id."""
        identity = len(self.transfers) + 1001
        size = 65_536
        self.transfers.append(
            {
                "start_ts": start,
                "end_ts": start + ns,
                "duration_ns": ns,
                "id": identity,
                "pcore_idx": 0,
                "queue_name": queue,
                "queue_type": "input",
                "op": "copy",
                "variable": tensor,
                "read_bytes": size,
                "write_bytes": size,
                "transfer_bytes": size,
                "source": "HBM",
                "dest": "SB",
            }
        )
        return identity

    def flow(self, producer: int, consumer: int, kind: str = "FLOW_DEPENDENCE") -> None:
        """Append a dependency between two ids."""
        ends = {r["id"]: (t, r) for t, rows in self._tables().items() for r in rows}
        (in_table, first), (out_table, then) = ends[producer], ends[consumer]
        self.flows.append(
            {
                "in_id": producer,
                "out_id": consumer,
                "in_table": in_table,
                "out_table": out_table,
                "dependency_type": kind,
                "gap_time": then["start_ts"] - first["end_ts"],
            }
        )

    def _tables(self) -> dict[str, list[dict[str, Any]]]:
        return {"Instruction": self.instructions, "DmaPacketAggregated": self.transfers}


def tables(*names: str, measured: bool = False) -> dict[str, pa.Table]:
    """The tables; `names`, by default `tile`, stand in turn wherever a kernel's author names something."""
    rows = Rows()
    for m in range(4):
        for n in range(3):
            name = (names or ("tile",))[(m * 3 + n) % max(len(names), 1)]
            base, loop = 500 + (m * 3 + n) * 2_600, 1 + m * 3 + n
            trigger = rows.instruction("DMA_DIRECT2D", base, 60, f"/{name}/load", 15, loop)
            moved = rows.transfer("qSyncIO0", f"{name}_in", base + 200, 1_500)
            weights = rows.instruction("LDWEIGHTS", base + 1_700, 64, f"/{name}/matmul", 9, loop)
            product = rows.instruction("MATMUL", base + 1_764, 213, f"/{name}/matmul", 9, loop)
            evict = rows.instruction("ACTIVATE", base + 2_000, 400, f"/{name}/store", 10, loop)
            wait = rows.instruction("EVENT_SEMAPHORE", base + 1_800, 600, None, None)
            out = rows.instruction("DMA_DIRECT2D", base + 2_420, 60, f"/{name}/store", 10, loop)
            back = rows.transfer("qScalarIO0", f"{name}_out", base + 2_600, 1_200 if n < 2 else 2_400)
            for edge in ((trigger, moved), (moved, weights), (weights, product), (product, evict), (evict, wait), (evict, out)):
                rows.flow(*edge)
            rows.flow(out, back)
            rows.flow(trigger, evict, "ANTI_DEPENDENCE")
    last = max(r["end_ts"] for r in rows.instructions + rows.transfers)
    loops = [(1 + m * 3 + n, "n", n, 13 + m) for m in range(4) for n in range(3)] + [(13 + m, "m", m, None) for m in range(4)]
    keys = ("iteration_variable_id", "variable_name", "variable_value", "parent_iteration_variable_id")
    frames = ((1, "tiled", None, 4, 8), (2, "load", 1, 13, 15), (3, "tiled", None, 4, 9), (4, "tiled", None, 4, 10))
    keys_of_frames = ("stack_frame_id", "fully_qualified_function_name", "parent_stack_frame_id", "line_number", "ts_line")
    made = {
        "Instruction": rows.instructions,
        "DmaPacketAggregated": rows.transfers,
        "Flow": rows.flows,
        "KernelInstructions": rows.kernels,
        "KernelIterationVariables": [dict(zip(keys, row, strict=True)) for row in loops],
        "KernelStackFrames": [dict(zip(keys_of_frames, row, strict=True)) | {"file_path": FILE} for row in frames],
        "Metadata": [{"profile_schema_version": "7.4.0", "instance_type": "trn2", "is_simulation": not measured}],
        "Summary": [{"total_time": last / 1e9}],
    }
    return {table: conform(table, pa.Table.from_pylist(held)) for table, held in made.items()}


def profile(*names: str, without: tuple[str, ...] = (), measured: bool = False) -> Profile:
    """The tables as a profile in memory, some of them left out as not captured."""
    held = tables(*names, measured=measured)
    return Profile.from_tables({t: rows for t, rows in held.items() if t not in without}, "small")
