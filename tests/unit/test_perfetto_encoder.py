"""Traces as bytes: they mean what the `perfetto` package's own builder writes for the same rows. Needs no trace processor."""

from __future__ import annotations

import io
import math
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor, TrackEvent

from explorer.export.perfetto import export
from explorer.export.perfetto import slices as slices_module
from explorer.export.perfetto import tracks as tracks_module
from explorer.export.perfetto.trace import Trace
from explorer.export.perfetto.tracks import Tracks
from explorer.store import reader, writer
from explorer.store.reader import Profile
from explorer.text import safe
from tests import synthetic
from tests.perfetto.reference import Reference, events

TEXT = st.one_of(st.none(), st.text(max_size=12), st.sampled_from(["", "a", "b", "é\U0001f525", "\x00\x1b[0m", "x" * 300]))
INTEGER = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(0, 300))
ROW = st.fixed_dictionaries(
    {
        "start": st.integers(0, 40),
        "length": st.one_of(st.integers(0, 12), st.just(2**40)),
        "engine": st.sampled_from(["vector", "scalar", "", None, "Vector"]),
        "opcode": TEXT,
        "core": st.sampled_from([0, 1, None]),
        "operands": TEXT,
        "layer": st.just(""),
        "id": INTEGER,
        "pc": INTEGER,
        "flag": st.sampled_from([True, False, None]),
        "rate": st.one_of(st.none(), st.floats()),
    }
)


def instructions(rows: list[dict[str, Any]]) -> pa.Table:
    def column(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array([r[name] for r in rows], kind)

    return pa.table(
        {
            "start_ts": column("start", pa.int64()),
            "end_ts": pa.array([r["start"] + r["length"] for r in rows], pa.int64()),
            "duration_ns": pa.nulls(len(rows), pa.int64()),
            "engine": column("engine", pa.string()),
            "pcore_idx": column("core", pa.int64()),
            "opcode": column("opcode", pa.string()),
            "operands": column("operands", pa.string()),
            "id": column("id", pa.int64()),
            "pc": column("pc", pa.int64()),
            "layer": column("layer", pa.string()),
            "ts_flag": column("flag", pa.bool_()),
            "ts_rate": column("rate", pa.float64()),
        }
    )


def parse(path: Path) -> Any:
    return pb.Trace.FromString(path.read_bytes()).packet


def names(table: pa.Table) -> list[str]:
    return [safe(o or "(no opcode)", 200) for o in table["opcode"].to_pylist()]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, min_size=1, max_size=40), ordered=st.booleans(), chunk=st.sampled_from([1, 3, 1000]))
def test_means_what_the_builder_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]], ordered: bool, chunk: int
) -> None:
    monkeypatch.setattr(slices_module, "CHUNK", chunk)
    if ordered:
        rows = sorted(rows, key=lambda r: r["start"])
    table = instructions(rows)
    export(Profile.from_tables({"Instruction": table}), tmp_path / "t.pftrace", force=True)
    found = events(parse(tmp_path / "t.pftrace"))
    tracks = [e[2] for e in found if e[1] == TrackEvent.TYPE_SLICE_BEGIN]
    file = io.BytesIO()
    hidden = ("start_ts", "end_ts", "duration_ns", "opcode")
    Reference(file).slices("Instruction", table, names(table), tracks, hidden)
    assert found == events(pb.Trace.FromString(file.getvalue()).packet)
    check_lanes(found)


def check_lanes(found: list[tuple[Any, ...]]) -> None:
    """What the engine makes of the events of each track, stably sorted by time, is one slice after the other."""
    by_track: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for event in found:
        by_track[event[2]].append(event)
    for track in by_track.values():
        kinds = [e[1] for e in sorted(track, key=lambda e: e[0])]
        assert kinds == [TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END] * (len(kinds) // 2)


def test_descriptors_come_first_and_only_for_what_exists(tmp_path: Path) -> None:
    export(synthetic.profile(500, 1), tmp_path / "t.pftrace")
    known: dict[int, Any] = {}
    used = set()
    for packet in parse(tmp_path / "t.pftrace"):
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in known
            assert not track.parent_uuid or track.parent_uuid in known
            known[track.uuid] = track
        elif packet.HasField("track_event"):
            assert packet.track_event.track_uuid in known
            used.add(packet.track_event.track_uuid)
    parents = {t.parent_uuid for t in known.values()}
    assert set(known) - parents <= used
    root = next(t for t in known.values() if not t.parent_uuid)
    assert root.name == "NeuronCore 0 (emulated)"
    assert "not measured" in root.description
    merged = {t.sibling_merge_key for t in known.values() if t.sibling_merge_behavior == 3}
    assert {"Tensor", "Vector", "qSyncIO0", "Depth 0"} <= merged
    groups = {t.name: t.child_ordering for t in known.values() if t.parent_uuid == root.uuid}
    assert groups["Engines"] == TrackDescriptor.EXPLICIT


def test_the_same_profile_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        export(synthetic.profile(300, 2), tmp_path / name, show_flows=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_unknown_is_absent_and_not_zero(tmp_path: Path) -> None:
    rows = pa.table({"start_ts": [0, 1], "end_ts": [1, 2], "opcode": ["A", "B"], "pc": [None, 0], "ts_x": [math.nan, 0.0]})
    export(Profile.from_tables({"Instruction": rows}), tmp_path / "t")
    arguments = [
        {name: value for name, _, value in e[5]} for e in events(parse(tmp_path / "t")) if e[1] == TrackEvent.TYPE_SLICE_BEGIN
    ]
    assert arguments == [{}, {"pc": 0, "ts_x": 0}]


@pytest.mark.parametrize(("flag", "says"), [(True, "emulated"), (False, "measured"), (None, "unknown")])
def test_evidence_stands_at_the_root(tmp_path: Path, flag: bool | None, says: str) -> None:
    tables = {"Instruction": pa.table({"start_ts": [0], "end_ts": [1], "opcode": ["A"]})}
    if flag is not None:
        tables["Metadata"] = pa.table({"is_simulation": [flag]})
    export(Profile.from_tables(tables), tmp_path / "t")
    roots = [p.track_descriptor.name for p in parse(tmp_path / "t") if p.HasField("track_descriptor")]
    assert roots[0] == f"NeuronCore ({says})"


def test_texts_of_megabytes(tmp_path: Path) -> None:
    texts = ["a" * 3_000_000, "b" * 20_000_000, "c"]
    rows = pa.table({"start_ts": [0, 1, 2], "end_ts": [1, 2, 3], "opcode": ["A"] * 3, "operands": texts})
    export(Profile.from_tables({"Instruction": rows}), tmp_path / "t")
    found = [e[5][0][2] for e in events(parse(tmp_path / "t")) if e[1] == TrackEvent.TYPE_SLICE_BEGIN]
    assert found == texts


def test_what_is_being_written_is_not_overwritten() -> None:
    class Slow(io.BytesIO):
        def write(self, data: Any) -> int:
            time.sleep(0.05)
            return super().write(data)

    def fill(value: int) -> Callable[[np.ndarray], int]:
        def write(out: np.ndarray) -> int:
            out[:1000] = value
            return 1000

        return write

    file = Slow()
    with Trace(file) as trace:
        for value in range(5):
            trace.fill(1000, fill(value))
    assert file.getvalue() == b"".join(bytes([v]) * 1000 for v in range(5))


def test_an_error_of_the_writing_thread_is_raised() -> None:
    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"), Trace(Full()) as trace:
        trace.write(b"last")


def test_identities_of_tracks_are_unique_and_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [(f"track {i}",) for i in range(60)]
    first, second = Tracks(), Tracks()
    assert [first.get(p) for p in paths] == [second.get(p) for p in paths]
    monkeypatch.setattr(tracks_module, "_IDENTITY", 64)
    crowded = Tracks()
    assert len({crowded.get(p) for p in paths}) == 60
    assert len(crowded.take_new()) > 0
    assert crowded.take_new() == b""


def test_samples_without_time_or_value_are_no_samples(tmp_path: Path) -> None:
    tables = {
        "Instruction": pa.table({"start_ts": [0], "end_ts": [1], "opcode": ["A"]}),
        "DmaUsage": pa.table(
            {"timestamp": [-1, 0, None, 2, 3, 4], "current_throughput": [1.0, 2.0, 3.0, math.nan, None, math.inf]}
        ),
        "PendingDma": pa.table({"timestamp": [5, 6], "value": pa.array([-3, 2**31 - 1], pa.int32())}),
    }
    result = export(Profile.from_tables(tables), tmp_path / "t")
    samples = [e for e in events(parse(tmp_path / "t")) if e[1] == TrackEvent.TYPE_COUNTER]
    assert [(e[0], e[8]) for e in samples if e[8] is not None] == [(0, int(np.float64(2.0).view(np.int64)))]
    assert [(e[0], e[9]) for e in samples if e[9] is not None] == [(5, -3), (6, 2**31 - 1)]
    assert result.counters == 3


@pytest.mark.parametrize("hostile", [False, True])
def test_a_stored_profile_gives_the_same_events_as_one_in_memory(tmp_path: Path, hostile: bool) -> None:
    tables = synthetic.tables(500, 5, hostile=hostile)
    writer.write(tmp_path / "profile", tables)
    found = []
    for profile, name in ((Profile.from_tables(tables), "memory"), (reader.open(tmp_path / "profile"), "stored")):
        export(profile, tmp_path / name, show_flows=True)
        found.append(events(parse(tmp_path / name)))
    assert found[0] == found[1]


def test_a_track_for_every_row(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "start_ts": range(400),
            "end_ts": range(1, 401),
            "opcode": ["A"] * 400,
            "engine": [f"e{i}" for i in range(400)],
            "pcore_idx": range(400),
        }
    )
    export(Profile.from_tables({"Instruction": rows}), tmp_path / "t")
    begins = [e for e in events(parse(tmp_path / "t")) if e[1] == TrackEvent.TYPE_SLICE_BEGIN]
    assert len({e[2] for e in begins}) == 400
    assert [e[0] for e in begins] == list(range(400))
