"""What the panes show, without a screen."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from explorer.store import reader, writer
from explorer.store.reader import Profile
from explorer.tui.events import Ref
from explorer.tui.model import Model
from explorer.tui.origin import Frame
from explorer.tui.source import Sources, split_place
from tests.tui import small


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(small.profile())


def _find(model: Model, identity: int, table: str = "Instruction") -> Ref:
    ref = model.find(table, identity)
    assert ref is not None
    return ref


def test_tracks_stand_in_reading_order(model: Model) -> None:
    assert [t.label for t in model.tracks] == ["Tensor", "TensorMatrix", "Scalar", "Sync", "qScalarIO0", "qSyncIO0"]


def test_ids_are_found_whatever_their_order_and_none_is_found_twice() -> None:
    tables = small.tables()
    rows = tables["Instruction"]
    count = rows.num_rows
    ids = [7, 7, *range(count + 7, 9, -1)][:count]
    tables["Instruction"] = rows.set_column(rows.column_names.index("id"), "id", pa.array(ids, pa.int64()))
    found = Model(Profile.from_tables(tables))
    held = found.events["Instruction"]
    for identity in (*set(ids), 8, -1, 10**30):
        drawn = [i for i, have in enumerate(ids) if have == identity and held.start[i] >= 0]
        assert found.find("instruction", identity) == (Ref("Instruction", drawn[0]) if drawn else None)


def test_waits_are_no_work(model: Model) -> None:
    sync = next(t for t in model.tracks if t.label == "Sync")
    assert (len(sync.work), len(sync.waits), len(sync.rows)) == (24, 12, 36)


def test_queues_are_counted_and_not_spelled() -> None:
    tables = small.tables()
    dma = tables["DmaPacketAggregated"]
    names = pa.array([f"q{i}" for i in range(dma.num_rows)])
    tables["DmaPacketAggregated"] = dma.set_column(dma.column_names.index("queue_name"), "queue_name", names)
    labels = [t.label for t in Model(Profile.from_tables(tables)).tracks if t.table != "Instruction"]
    assert labels == [f"q{i}" for i in range(dma.num_rows)]


def test_cores_have_tracks_of_their_own() -> None:
    tables = small.tables()
    rows = tables["Instruction"]
    cores = pa.array([i % 2 for i in range(rows.num_rows)], pa.int64())
    tables["Instruction"] = rows.set_column(rows.column_names.index("pcore_idx"), "pcore_idx", cores)
    labels = [t.label for t in Model(Profile.from_tables(tables)).tracks]
    assert "0:Sync" in labels
    assert "1:Sync" in labels


def test_rows_without_a_time_are_not_drawn() -> None:
    tables = small.tables()
    rows = tables["Instruction"]
    starts = rows["start_ts"].to_pylist()
    at = rows.column_names.index("start_ts")
    tables["Instruction"] = rows.set_column(at, "start_ts", pa.array([None, *starts[1:]], pa.int64()))
    model = Model(Profile.from_tables(tables))
    assert sum(len(t.rows) for t in model.tracks if t.table == "Instruction") == rows.num_rows - 1


def test_dependencies_are_those_of_flow(model: Model) -> None:
    evict = _find(model, 4)
    before = [(d.table, d.id, d.type) for d in model.predecessors(evict)]
    assert before == [("Instruction", 3, "FLOW_DEPENDENCE"), ("Instruction", 1, "ANTI_DEPENDENCE")]
    assert [d.id for d in model.successors(evict)] == [5, 6]
    assert [(d.table, d.id, d.gap_ns) for d in model.predecessors(_find(model, 2))] == [("DmaPacketAggregated", 1001, 0)]


def test_flow_tables_are_read_without_case() -> None:
    tables = small.tables()
    flow = tables["Flow"]
    lower = pa.array([t.lower() for t in flow["in_table"].to_pylist()])
    tables["Flow"] = flow.set_column(flow.column_names.index("in_table"), "in_table", lower)
    model = Model(Profile.from_tables(tables))
    assert [d.id for d in model.predecessors(_find(model, 4)) if d.ref] == [3, 1]


def test_an_edge_to_a_table_that_is_not_drawn_leads_nowhere() -> None:
    tables = small.tables()
    flow = tables["Flow"]
    other = pa.array(["SemaphoreUpdate"] * flow.num_rows)
    tables["Flow"] = flow.set_column(flow.column_names.index("in_table"), "in_table", other)
    model = Model(Profile.from_tables(tables))
    assert [(d.ref, d.table) for d in model.predecessors(_find(model, 4))] == [(None, "SemaphoreUpdate")] * 2


def test_stack_and_loops_come_from_the_kernel_tables(model: Model) -> None:
    frames, loops = model.origins.of(model.fields(_find(model, 1)))
    assert frames == [Frame("load", small.FILE, 15), Frame("tiled", small.FILE, 8)]
    assert loops == [("m", 0), ("n", 0)]


def test_search_finds_names_layers_lines_tracks_and_ids(model: Model) -> None:
    found = {text: len(model.search(text)) for text in ("matmul", "/STORE", "tiled.py:15", "qSyncIO0", "1003", "none such")}
    # MATMUL rows and those of the layer, LDWEIGHTS among them; ACTIVATE and DMA of the store layer.
    assert found == {"matmul": 24, "/STORE": 24, "tiled.py:15": 12, "qSyncIO0": 12, "1003": 1, "none such": 0}


def test_hits_go_round_in_order_of_time(model: Model) -> None:
    hits = model.search("ldweights")
    times = [model.span(hits[i])[0] for i in range(len(hits))]
    assert times == sorted(times)
    at = hits.beside(0, None, 1)
    assert hits.beside(times[at], hits[at], -1) == len(hits) - 1
    assert hits.beside(times[-1], hits[len(hits) - 1], 1) == 0


def test_a_table_that_is_not_there_leaves_the_rest_usable() -> None:
    model = Model(small.profile(without=("Flow", "KernelInstructions", "KernelStackFrames", "KernelIterationVariables")))
    evict = _find(model, 4)
    assert model.predecessors(evict) == []
    assert model.origins.of(model.fields(evict)) == ([], [])
    assert Model(small.profile(without=("Instruction", "DmaPacketAggregated"))).tracks == ()


def test_a_profile_on_disk_gives_the_same_rows(tmp_path: Path, model: Model) -> None:
    writer.write(tmp_path / "p", small.tables())
    disk = Model(reader.open(tmp_path / "p"))
    for identity in (1, 5, 30):
        assert disk.fields(_find(disk, identity)) == model.fields(_find(model, identity))


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        ("a/b.py:12", ("a/b.py", 12)),
        ("a.py", ("a.py", None)),
        ("a:b", ("a:b", None)),
        ("C:/x.py:3", ("C:/x.py", 3)),
        (":", (":", None)),
    ],
)
def test_a_place_is_file_and_line(place: str, parts: tuple[str, int | None]) -> None:
    assert split_place(place) == parts


def test_source_is_read_below_its_root_only(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "k.py").write_text("one\ntwo\n")
    (tmp_path / "secret.py").write_text("secret\n")
    (tmp_path / "root" / "link.py").symlink_to(tmp_path / "secret.py")
    sources = Sources(tmp_path / "root")
    assert sources.listing("k.py").lines == ("one", "two")
    outside = ("../secret.py", str(tmp_path / "secret.py"), "link.py", "/etc/passwd", "x\0y", "", ".", "n" * 5000, "missing.py")
    for file in outside:
        listing = sources.listing(file)
        assert listing.lines == ()
        assert listing.why_not
    assert Sources(None).listing("k.py").lines == ()
