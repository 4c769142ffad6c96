"""Which tables become slices, how their slices are called, and where in the track tree they stand."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from explorer.analysis.engines import ENGINES as ENGINE_NAMES
from explorer.analysis.engines import canonical
from explorer.export.perfetto.arguments import texts
from explorer.export.perfetto.slices import SliceTable, first_filled
from explorer.store.reader import Profile

#: Between queue and engine in a packet's track.
_BETWEEN = texts(["\x1f"])[0]
_PER_INTERVAL = ("element_count", "transpose_element_count", "hbm_transfer_size", "hfu", "mfu", "mbu")
LAYERS, ENGINES, QUEUES, COUNTERS = GROUPS = ("Layers", "Engines", "DMA queues", "Counters")


def instructions() -> SliceTable:
    """One slice per instruction, on its engine's track."""

    def place(label: str) -> tuple[str, int]:
        engine = canonical(label)
        rank = ENGINE_NAMES.index(engine) if engine in ENGINE_NAMES else len(ENGINE_NAMES)
        # The Tensor engine has two tracks; the matrix one comes second.
        return label, 2 * rank + ("matrix" in label.lower())

    return SliceTable(
        name="Instruction",
        group=ENGINES,
        shown=("opcode",),
        leading=("layer", "nki_source_location", "operands", "ts_loop", "evt_wait_time_ns", "ts_latency_cycles", "ts_issue_cycles"),
        title=lambda rows: first_filled(rows, ("opcode",), "(no opcode)"),
        track=lambda rows: first_filled(rows, ("timeline_track", "engine"), "(no engine)"),
        track_columns=("timeline_track", "engine"),
        place=place,
    )


def transfers() -> SliceTable:
    """One slice per DMA transfer, on its queue's track, called after the tensor that it moves."""
    return SliceTable(
        name="DmaPacketAggregated",
        group=QUEUES,
        shown=(),
        leading=("variable", "transfer_bytes", "throughput", "source", "dest"),
        title=lambda rows: first_filled(rows, ("variable", "op"), "DMA"),
        track=lambda rows: first_filled(rows, ("queue_name", "queue_idx"), "(no queue)"),
        track_columns=("queue_name", "queue_idx"),
        place=lambda label: (label, 0),
    )


def packets() -> SliceTable:
    """One slice per DMA packet, on a track for each queue and DMA engine."""

    def track(rows: pa.Table) -> pa.Array:
        queue = first_filled(rows, ("queue_name", "queue_idx"), "(no queue)").cast(pa.string())
        return pc.binary_join_element_wise(queue, first_filled(rows, ("engine_idx",), ""), _BETWEEN)

    def place(label: str) -> tuple[str, int]:
        queue, _, engine = label.rpartition(_BETWEEN.as_py())
        # Queues of imported profiles are named after their engine already.
        shown = queue if not engine or queue.endswith(f"-E{engine}") else f"{queue} E{engine.rjust(2, '0')}"
        return shown, 0

    return SliceTable(
        name="DmaPacket",
        group=QUEUES,
        shown=(),
        leading=("variable", "transfer_bytes", "throughput", "source", "dest"),
        title=lambda rows: first_filled(rows, ("variable",), "DMA packet"),
        track=track,
        track_columns=("queue_name", "queue_idx", "engine_idx"),
        place=place,
    )


def layers(table: str, depths: dict[str, int]) -> SliceTable:
    """One slice per layer, from its first instruction's start to its last one's end, on a track for each depth."""

    def title(rows: pa.Table) -> pa.Array:
        paths = first_filled(rows, ("node_name",), "(no name)").to_pylist()
        return texts([path.rstrip("/").rpartition("/")[2] or path for path in paths])

    def track(rows: pa.Table) -> pa.Array:
        paths = rows["ts_path"].to_pylist() if "ts_path" in rows.column_names else [None] * rows.num_rows
        both = zip(paths, rows["node_name"].to_pylist(), strict=True)
        return texts([f"Depth {max(path.count('/') - 1, 0) if path else depths.get(name, 0)}" for path, name in both])

    return SliceTable(
        name=table,
        group=LAYERS,
        # Lists of children and intervals are as long as the layer is broken up.
        shown=("children_names", "children_ids", "time_intervals", *(f"{n}_per_interval" for n in _PER_INTERVAL)),
        leading=("ts_path", "node_name", "ts_active_ns"),
        title=title,
        track=track,
        track_columns=("node_name", "ts_path"),
        place=lambda label: (label, int(label.removeprefix("Depth "))),
    )


def depths(names: Sequence[str | None], parents: Sequence[str | None]) -> dict[str, int]:
    """How many ancestors each layer has, by name; a loop of parents ends the count."""
    parent = dict(zip(names, parents, strict=True))
    out: dict[str, int] = {}
    for name in parent:
        seen, at = {name}, parent[name]
        while at in parent and at not in seen:
            seen.add(at)
            at = parent[at]
        out[name or ""] = len(seen) - 1
    return out


def layers_from_instructions(profile: Profile) -> pa.Table | None:
    """Rows like FrameworkNode's, but with their core, from the instructions' layer paths; None where no instruction has a layer."""
    spans: dict[tuple[int | None, str], tuple[int, int]] = {}
    for rows in profile.chunks("Instruction", ["start_ts", "end_ts", "pcore_idx", "layer"]):
        known = rows.filter(pc.and_(pc.is_valid(rows["start_ts"]), pc.greater_equal(rows["end_ts"], rows["start_ts"])))
        known = known.filter(pc.fill_null(pc.not_equal(known["layer"], ""), False))
        grouped = known.group_by(["pcore_idx", "layer"], use_threads=False).aggregate([("start_ts", "min"), ("end_ts", "max")])
        for row in grouped.to_pylist():
            parts = [p for p in row["layer"].split("/") if p]
            for depth in range(1, len(parts) + 1):
                key = (row["pcore_idx"], "/" + "/".join(parts[:depth]))
                first, last = spans.get(key, (row["start_ts_min"], row["end_ts_max"]))
                spans[key] = (min(first, row["start_ts_min"]), max(last, row["end_ts_max"]))
    if not spans:
        return None
    order = sorted(spans, key=lambda k: (spans[k][0], -spans[k][1], k[1]))
    return pa.table(
        {
            "node_name": [path for _, path in order],
            "parent_name": [path.rpartition("/")[0] for _, path in order],
            "start_ts": pa.array([spans[k][0] for k in order], pa.int64()),
            "end_ts": pa.array([spans[k][1] for k in order], pa.int64()),
            "pcore_idx": pa.array([core for core, _ in order], pa.int64()),
        }
    )
