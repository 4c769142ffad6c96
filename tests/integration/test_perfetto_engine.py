"""Exported traces in Perfetto's own trace processor: nothing lost, nothing overlapping, every row with its time and arguments."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from collectors import neuron_profile
from collectors.nki.run import Request, record
from explorer.export.perfetto import Window, export
from explorer.store import reader, schema, writer
from explorer.store.reader import Profile
from tests import synthetic
from tests.make_samples import SAMPLES
from tests.perfetto.check import arguments, check, check_arguments, check_emulated, layer_spans, rows_of
from tests.perfetto.engine import Engine

HARDWARE = Path(__file__).parents[2].parent / "shared" / "data" / "neuron_profile"
HARDWARE_FILES = sorted(HARDWARE.glob("*.json"))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as started:
        yield started


@pytest.mark.parametrize(
    ("instructions", "options"),
    [(3_000, {}), (3_000, {"overlap": False}), (400, {"hostile": True}), (1_000, {"cores": 2}), (1, {})],
    ids=["overlapping", "apart", "hostile", "two cores", "one instruction"],
)
def test_synthetic_profile(engine: Engine, tmp_path: Path, instructions: int, options: dict[str, bool]) -> None:
    profile = synthetic.profile(instructions, 7, **options)
    trace = tmp_path / "t.pftrace"
    result = export(profile, trace, show_flows=True)
    check(engine, profile, trace, result, ("Instruction", "DmaPacketAggregated", "FrameworkNode"))
    check_arguments(engine, profile, "Instruction")
    check_arguments(engine, profile, "DmaPacketAggregated")
    assert not result.dropped


def test_flows_are_the_edges(engine: Engine, tmp_path: Path) -> None:
    profile = synthetic.profile(2_000, 1)
    result = export(profile, tmp_path / "t.pftrace", show_flows=True)
    engine.load(tmp_path / "t.pftrace")
    ids = {
        s: (c, int(i))
        for s, c, i in engine.query(
            "select s.id, s.category, a.display_value from slice s join args a using (arg_set_id) where a.key = 'debug.id'"
        )
    }
    found = Counter((ids[a], ids[b]) for a, b in engine.query("select slice_out, slice_in from flow"))
    edges = rows_of(profile, "Flow")
    assert found == Counter(((e["in_table"], e["in_id"]), (e["out_table"], e["out_id"])) for e in edges)
    assert result.flows == len(edges) > 1_000


def test_flows_that_cannot_be_drawn_are_counted(engine: Engine, tmp_path: Path) -> None:
    tables = synthetic.tables(100, 1)
    tables["Flow"] = writer.conform("Flow", pa.table({
        "in_id": [1, 90, 5, 1, 7],
        "out_id": [90, 1, 5, 10**9, 8],
        "in_table": ["instruction"] * 4 + ["CcOp"],
        "out_table": ["INSTRUCTION"] * 5,
    }))  # fmt: skip
    result = export(Profile.from_tables(tables), tmp_path / "t.pftrace", show_flows=True)
    engine.load(tmp_path / "t.pftrace")
    assert engine.query("select count(*) from flow") == [(1,)]
    assert engine.losses() == []
    assert result.flows == 1
    assert sorted(result.dropped.values()) == [2, 2]


def test_packets(engine: Engine, tmp_path: Path) -> None:
    profile = synthetic.profile(500, 2)
    result = export(profile, tmp_path / "t.pftrace", dma="packets")
    check(engine, profile, tmp_path / "t.pftrace", result, ("Instruction", "DmaPacket", "FrameworkNode"))
    check_arguments(engine, profile, "DmaPacket")


def test_no_dma(engine: Engine, tmp_path: Path) -> None:
    profile = synthetic.profile(100, 2)
    result = export(profile, tmp_path / "t.pftrace", dma="none")
    check(engine, profile, tmp_path / "t.pftrace", result, ("Instruction", "FrameworkNode"))


def test_window_keeps_what_touches_it_whole(engine: Engine, tmp_path: Path) -> None:
    profile = synthetic.profile(1_000, 3)
    first, last = 20_000, 40_000
    export(profile, tmp_path / "t.pftrace", at=Window(first, last))
    engine.load(tmp_path / "t.pftrace")
    expected = Counter(
        (r["opcode"], r["start_ts"], r["end_ts"] - r["start_ts"])
        for r in rows_of(profile, "Instruction")
        if r["start_ts"] < last and (r["end_ts"] > first or r["start_ts"] == r["end_ts"] == first)
    )
    assert Counter(engine.query("select name, ts, dur from slice where category = 'Instruction'")) == expected
    assert engine.query(f"select count(*) from counter where ts < {first} or ts >= {last}") == [(0,)]


def test_track_tree(engine: Engine, tmp_path: Path) -> None:
    export(synthetic.profile(2_000, 4, cores=2), tmp_path / "t.pftrace")
    engine.load(tmp_path / "t.pftrace")
    name = {i: (n, p) for i, n, p in engine.query("select id, name, parent_id from track")}

    def path(track: int) -> tuple[str, ...]:
        shown, parent = name[track]
        return (*(path(parent) if parent is not None else ()), shown)

    used = {
        path(track) for (track,) in engine.query("select distinct track_id from slice union select distinct track_id from counter")
    }
    for core in (0, 1):
        root = f"NeuronCore {core} (emulated)"
        assert {p[2] for p in used if p[:2] == (root, "Engines")} == {
            "Tensor", "TensorMatrix", "Vector", "Scalar", "GpSimd", "Sync",
        }  # fmt: skip
        assert {p[2] for p in used if p[:2] == (root, "DMA queues")} == {
            "qSyncIO0", "qScalarIO0", "qSyncSpillReload0", "qGpSimdDynamic0",
        }  # fmt: skip
    # Rows that do not name their core are not given to one of the two.
    assert {p for p in used if p[1] == "Layers"} == {("NeuronCores (emulated)", "Layers", f"Depth {d}") for d in range(3)}
    # Only what exists has a track: each leaf has events.
    parents = {parent for _, parent in name.values()}
    assert {path(track) for track in name if track not in parents} <= used


def test_rows_out_of_order_and_edges_of_numbers(engine: Engine, tmp_path: Path) -> None:
    """Unsorted rows, touching and zero-length ones at equal times, 64-bit identifiers, and rows that cannot be slices."""
    end = [300, 100, 200, 200, 200, 400, 50, None, 2**53 + 7, 90]
    start = [200, 0, 100, 200, 200, 200, 60, 10, 2**53 + 1, -5]
    n = len(start)
    ids = [2**63 - 1, -1, 2**53 + 1, 1, 2, 3, 4, 5, 6, 7]
    table = {
        "start_ts": pa.array(start, pa.int64()), "end_ts": pa.array(end, pa.int64()), "duration_ns": pa.nulls(n, pa.int64()),
        "engine": ["vector"] * n, "opcode": [f"OP{i}" for i in range(n)],
        "operands": ["é\U0001f525" if i % 2 else None for i in range(n)], "id": ids, "pc": [-(2**63)] * n, "bir_id": [""] * n,
    }  # fmt: skip
    profile = Profile.from_tables({"Instruction": pa.table(table)})
    result = export(profile, tmp_path / "t.pftrace")
    engine.load(tmp_path / "t.pftrace")
    assert engine.losses() == []
    assert engine.overlaps() == 0
    good = [i for i in range(n) if end[i] is not None and end[i] >= start[i] >= 0]
    assert sorted(engine.query("select name, ts, dur from slice")) == sorted((f"OP{i}", start[i], end[i] - start[i]) for i in good)
    assert sum(result.dropped.values()) == n - len(good) == 3
    shown = arguments(engine, "Instruction")
    assert set(shown) == {ids[i] % 2**64 for i in good}
    assert {a["pc"] for a in shown.values()} == {str(-(2**63))}
    assert {a.get("operands") for a in shown.values()} == {None, "é\U0001f525"}


def test_layers_from_instructions_where_no_layer_table_is(engine: Engine, tmp_path: Path) -> None:
    tables = synthetic.tables(300, 5, cores=2)
    del tables["FrameworkNode"]
    profile = Profile.from_tables(tables)
    export(profile, tmp_path / "t.pftrace")
    engine.load(tmp_path / "t.pftrace")
    expected = layer_spans(profile)
    assert Counter(engine.query("select name, ts, dur from slice where category = 'Instruction.layer'")) == expected
    assert expected.total() > 20


@pytest.mark.skipif(not HARDWARE_FILES, reason="no profiles of hardware beside the checkout (../shared/data/neuron_profile)")
@pytest.mark.parametrize("file", HARDWARE_FILES, ids=lambda p: p.stem)
def test_hardware_profile(engine: Engine, tmp_path: Path, file: Path) -> None:
    imported = neuron_profile.load([file])
    writer.write(tmp_path / "profile", imported.tables, descriptions=imported.descriptions)
    profile = reader.open(tmp_path / "profile")
    for dma, table in (("packets", "DmaPacket"), ("aggregated", "DmaPacketAggregated")):
        result = export(profile, tmp_path / f"{dma}.pftrace", dma=dma, show_flows=True)
        tables = ("Instruction", *(t for t in (table, "FrameworkNode") if profile.rows(t)))
        check(engine, profile, tmp_path / f"{dma}.pftrace", result, tables)
        assert engine.query("select count(*) from flow") == [(result.flows,)]
    check_arguments(engine, profile, "Instruction")
    roots = engine.query("select name from track where parent_id is null")
    assert roots
    assert all("(measured)" in name for (name,) in roots)


def test_every_published_argument_survives(engine: Engine, tmp_path: Path) -> None:
    """A row with a value in each column of the schema, and a column of our own of each odd type."""
    columns: dict[str, Any] = {}
    for column in schema.tables()["Instruction"].columns:
        values = {pa.int64(): 2**40, pa.int32(): 7, pa.float64(): 0.1, pa.bool_(): True}
        columns[column.name] = pa.array([values.get(column.arrow, f"text of {column.name}")], column.arrow)
    columns |= {"start_ts": [5], "end_ts": [9], "opcode": ["MATMUL"], "performance_mode": ["2x"]}
    columns |= {"ts_list": [[1, 2]], "ts_flag": [False], "ts_big": pa.array([2**64 - 1], pa.uint64()), "ts_nan": [math.nan]}
    profile = Profile.from_tables({"Instruction": pa.table(columns)})
    export(profile, tmp_path / "t.pftrace")
    engine.load(tmp_path / "t.pftrace")
    ((only,),) = [(found,) for found in arguments(engine, "Instruction").values()]
    assert json.loads(only.pop("ts_list")) == [1, 2]
    assert (only.pop("ts_flag"), int(only.pop("ts_big")) % 2**64) == ("false", 2**64 - 1)
    hidden = {"start_ts", "end_ts", "duration_ns", "opcode", "ts_list", "ts_flag", "ts_big", "ts_nan"}
    assert only == {k: str(pa.array(v)[0]) for k, v in columns.items() if k not in hidden}


#: Bundled kernels and kernels of the tests: file, function, arguments, grid.
KERNELS = (
    ("emulator/kernels/rmsnorm.py", "rmsnorm", ("x=f32[300,512]", "gain=f32[1,512]"), ()),
    ("emulator/kernels/vector_add.py", "vector_add", ("left=f32[256,2048]", "right=f32[256,2048]"), ()),
    ("emulator/kernels/matmul.py", "matmul_blocked", ("left_t=bf16[512,512]", "right=bf16[512,1024]"), ()),
    ("tests/kernels/rules_transposes.py", "transposes_on_tensor_engine", ("left=bf16[256,256]", "right=bf16[256,512]"), ()),
    ("tests/kernels/rules_matmul_dtype.py", "float32_matmul", ("left_t=f32[256,128]", "right=f32[256,512]"), ()),
    ("tests/kernels/current_indexing.py", "halves_by_program", ("x=f32[256,512]",), (2,)),
    ("tests/kernels/rules_small_transfers.py", "narrow_loads", ("x=f32[128,4096]",), ()),
)


@pytest.mark.parametrize("name", ["matmul_unblocked", "matmul_blocked", "attention"])
def test_sample_trace(engine: Engine, tmp_path: Path, name: str) -> None:
    check_emulated(engine, reader.open(SAMPLES / name), tmp_path)


@pytest.mark.parametrize(("file", "function", "given", "grid"), KERNELS, ids=[k[1] for k in KERNELS])
def test_captured_kernel(
    engine: Engine, tmp_path: Path, file: str, function: str, given: tuple[str, ...], grid: tuple[int, ...]
) -> None:
    captured = record(Request(SAMPLES.parent / file, function, given, grid=grid, values=False))
    check_emulated(engine, Profile.from_tables(captured.tables), tmp_path)
