"""What must hold of an exported trace in the real engine, said from the profile's rows alone."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from explorer.export.perfetto import Dma, ExportResult, export
from explorer.store.reader import Profile
from explorer.text import safe
from tests.perfetto.engine import Engine

COUNTERS = {
    "DMA bandwidth": ("DmaUsage", "current_throughput"),
    "HBM bandwidth": ("HbmUsage", "current_throughput"),
    "Pending DMAs": ("PendingDma", "value"),
    "SBUF use": ("SbufUsage", "avg_util_percent"),
    "PSUM use": ("PsumUsage", "avg_util_percent"),
}


def title(table: str, row: dict[str, Any]) -> str:
    """The name that a row's slice should have."""
    if table == "Instruction":
        name = row["opcode"] or "(no opcode)"
    elif table == "FrameworkNode":
        name = row["node_name"].rstrip("/").split("/")[-1] or row["node_name"] or "(no name)"
    else:
        name = row.get("variable") or row.get("op") or ("DMA packet" if table == "DmaPacket" else "DMA")
    return safe(name, 200)


def rows_of(profile: Profile, table: str) -> list[dict[str, Any]]:
    found = profile.table(table)
    return [] if found is None else found.to_pylist()


def layer_spans(profile: Profile) -> Counter[tuple[str, int, int]]:
    """Name, start and duration of each layer of each core, from the instructions that name their layer."""
    spans: dict[tuple[int | None, str], list[int]] = {}
    for row in rows_of(profile, "Instruction"):
        parts = [p for p in (row.get("layer") or "").split("/") if p]
        for depth in range(1, len(parts) + 1):
            spans.setdefault((row.get("pcore_idx"), "/".join(parts[:depth])), []).extend((row["start_ts"], row["end_ts"]))
    return Counter((path.split("/")[-1], min(times), max(times) - min(times)) for (_, path), times in spans.items())


def check(engine: Engine, profile: Profile, trace: Path, result: ExportResult, tables: tuple[str, ...]) -> None:
    """Everything that must hold of a whole trace of a profile."""
    engine.load(trace)
    assert engine.losses() == []
    assert engine.overlaps() == 0
    assert result.bytes == trace.stat().st_size
    found = Counter(engine.query("select category, name, ts, dur from slice"))
    expected: Counter[tuple[Any, ...]] = Counter(
        (table, title(table, row), row["start_ts"], row["end_ts"] - row["start_ts"])
        for table in tables
        for row in rows_of(profile, table)
    )
    if "FrameworkNode" not in tables:
        expected.update({("Instruction.layer", *span): count for span, count in layer_spans(profile).items()})
    assert found == expected
    for table in tables:
        ((count, duration),) = engine.query(f"select count(*), coalesce(sum(dur), 0) from slice where category = '{table}'")
        durations = [row["end_ts"] - row["start_ts"] for row in rows_of(profile, table)]
        assert (count, duration) == (len(durations), sum(durations))
        assert result.slices.get(table, 0) == count
    samples = Counter(engine.query("select t.name, c.ts, c.value from counter c join counter_track t on t.id = c.track_id"))
    for name, (table, column) in COUNTERS.items():
        mine = Counter({k: n for k, n in samples.items() if k[0] == name})
        assert mine == Counter((name, r["timestamp"], float(r[column])) for r in rows_of(profile, table) if r[column] is not None)
    assert result.counters == sum(samples.values())


def arguments(engine: Engine, table: str) -> dict[int, dict[str, str]]:
    """Arguments as shown, by the row's identifier."""
    by_slice: dict[int, dict[str, str]] = {}
    for key, argument, shown in engine.query(
        f"select s.id, a.key, a.display_value from slice s join args a using (arg_set_id) where s.category = '{table}'"
    ):
        by_slice.setdefault(key, {})[argument.removeprefix("debug.")] = shown
    # This version of the engine shows an unsigned number's bits as a signed one.
    return {int(found["id"]) % 2**64: found for found in by_slice.values()}


def check_arguments(engine: Engine, profile: Profile, table: str) -> None:
    """Every column of every row is an argument of its slice, and nothing else is."""
    found = arguments(engine, table)
    rows = rows_of(profile, table)
    assert len(found) == len({row["id"] for row in rows})
    for row in rows:
        shown = found[row["id"] % 2**64]
        hidden = {"start_ts", "end_ts", "duration_ns", *(("opcode",) if table == "Instruction" else ())}
        expected = {k: v for k, v in row.items() if k not in hidden and v is not None}
        assert set(shown) == set(expected), row
        for name, value in expected.items():
            if isinstance(value, bool):
                assert shown[name] == str(value).lower()
            elif isinstance(value, float):
                assert math.isclose(float(shown[name]), value, rel_tol=1e-5)
            elif isinstance(value, int):
                assert int(shown[name]) == value
            else:
                assert shown[name] == value.split("\0")[0]


def check_emulated(engine: Engine, profile: Profile, folder: Path) -> None:
    """Everything that must hold of both exports of an emulated profile; the traces are written to `folder`."""
    tables: dict[Dma, str] = {"aggregated": "DmaPacketAggregated", "packets": "DmaPacket"}
    for dma, table in tables.items():
        result = export(profile, folder / f"{dma}.pftrace", dma=dma, show_flows=True, force=True)
        check(engine, profile, folder / f"{dma}.pftrace", result, ("Instruction", table, "FrameworkNode"))
        assert engine.query("select count(*) from flow") == [(result.flows,)]
        check_arguments(engine, profile, table)
        assert result.flows + sum(result.dropped.values()) == profile.rows("Flow")
    check_arguments(engine, profile, "Instruction")
    roots = engine.query("select name from track where parent_id is null")
    assert roots
    assert all("(emulated)" in name for (name,) in roots)
