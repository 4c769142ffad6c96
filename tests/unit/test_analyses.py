"""Layers, source lines, instructions, lower bound and what a profile says of itself, on tables small enough to count by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis import intervals
from explorer.analysis.info import info
from explorer.analysis.instructions import ORDERS, Selection, instructions
from explorer.analysis.layers import OTHER, Layer, layers
from explorer.analysis.lower_bound import lower_bound
from explorer.analysis.query import query
from explorer.analysis.rows import work
from explorer.analysis.source import of_work, rest, source
from explorer.analysis.source_text import Sources
from explorer.store import writer
from explorer.store.errors import UsageError
from explorer.store.reader import Profile
from explorer.store.reader import open as open_profile
from tests import synthetic

INSTRUCTION = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "start_ts": [0, 10, 15, 30, 40],
        "end_ts": [10, 20, 25, 35, 90],
        "duration_ns": [10, 10, 10, 5, 50],
        "evt_wait_time_ns": pa.array([0, 2, 3, 4, None], pa.int64()),
        "engine": ["sync", "PE", "tensor", "Activation", "Vector"],
        "opcode": ["DMA_DIRECT2D", "MATMUL", "MATMUL", "ACTIVATE", "EVENT_SEMAPHORE"],
        "layer": ["/net/load", "/net/attn/qk", "/net/attn/av", "/net", None],
        "nki_source_location": ["k.py:3", "k.py:7", "k.py:7", "lib/k.py:7", ""],
        "raw_flops": pa.array([None, 100, 200, None, None], pa.int64()),
        "hbm_read_bytes": [64, 0, 0, 0, 0],
    }
)
DMA = pa.table({"id": [9], "start_ts": [12], "end_ts": [32], "transfer_bytes": [64], "ts_instruction_id": [1], "queue_name": ["q"]})
METADATA = pa.table({"is_simulation": [False], "first_hw_timestamp": [0], "last_hw_timestamp": [90]})


def profile(**tables: pa.Table) -> Profile:
    return Profile.from_tables({"Instruction": INSTRUCTION, "DmaPacketAggregated": DMA, "Metadata": METADATA, **tables})


def test_layers_are_a_tree_whose_counts_add_up() -> None:
    found = layers(profile())
    assert found is not None
    by_path = {layer.path: layer for layer in found}
    assert list(by_path) == ["/net", "/net/attn", "/net/attn/av", "/net/attn/qk", "/net/load", OTHER]
    net = by_path["/net"]
    assert (net.time_ns, net.instructions, net.own_instructions, net.wait_ns, net.dma_ns) == (35, 4, 1, 9, 20)
    assert net.engine_ns == {"tensor": 15, "scalar": 5, "sync": 10}
    assert net.sums["raw_flops"] == 300 and net.sums["hbm_read_bytes"] == 64
    assert by_path["/net/attn"].time_ns == 15
    assert (by_path["/net/load"].time_ns, by_path["/net/load"].end_ns) == (30, 32)
    assert by_path[OTHER].instructions == 1 and by_path[OTHER].time_ns == 0, "a wait is not work"
    assert "psum_read_bytes" not in net.sums, "not captured is not 0"


def test_layers_that_nobody_names_are_not_captured() -> None:
    assert layers(profile(Instruction=INSTRUCTION.drop_columns("layer"))) is None
    assert layers(Profile.from_tables({})) is None
    untied = layers(profile(DmaPacketAggregated=DMA.drop_columns("ts_instruction_id")))
    assert untied is not None and untied[0].dma_ns is None


@given(st.integers(1, 300), st.integers(0, 5))
def test_children_add_up_to_their_parent(size: int, seed: int) -> None:
    given_profile = synthetic.profile(size, seed)
    found = layers(given_profile) or ()
    children: dict[str, list[Layer]] = {}
    for layer in found:
        if layer.parent is not None:
            children.setdefault(layer.parent, []).append(layer)
    for layer in found:
        below = children.get(layer.path, [])
        assert layer.instructions == layer.own_instructions + sum(c.instructions for c in below)
        assert layer.time_ns >= max((c.time_ns for c in below), default=0)
        assert max(layer.engine_ns.values(), default=0) <= layer.time_ns
    roots = [layer for layer in found if layer.parent is None]
    assert sum(r.instructions for r in roots) == given_profile.rows("Instruction")


def test_source_lines_keep_files_apart() -> None:
    found = source(profile())
    assert found is not None
    assert [(line.file, line.line, line.time_ns, line.instructions) for line in found] == [
        ("k.py", 3, 30, 1),
        ("k.py", 7, 15, 2),
        ("lib/k.py", 7, 5, 1),
        (None, None, 0, 1),
    ]
    assert found[1].layers == ("/net/attn/av", "/net/attn/qk")
    assert source(profile(Instruction=INSTRUCTION.drop_columns("nki_source_location"))) is None


@given(st.integers(1, 200), st.integers(0, 3), st.integers(0, 30))
def test_what_is_not_shown_is_the_rest(size: int, seed: int, count: int) -> None:
    rows = work(synthetic.profile(size, seed))
    assert rows is not None
    lines = of_work(rows) or ()
    shown, other = lines[:count], rest(rows, lines[:count])
    assert (other is None) == (len(lines) <= count)
    if other is not None:
        hidden = lines[count:]
        assert other.instructions == sum(line.instructions for line in hidden)
        assert other.wait_ns == sum(line.wait_ns for line in hidden)
        assert max(line.time_ns for line in hidden) <= other.time_ns <= sum(line.time_ns for line in hidden)
        assert other.layers == tuple(sorted({path for line in hidden for path in line.layers}))
    assert rest(rows, (*shown, *lines)) is None


def test_the_rest_counts_transfers_with_the_line_that_started_them() -> None:
    rows = work(profile())
    assert rows is not None
    lines = of_work(rows) or ()
    after = rest(rows, [line for line in lines if (line.file, line.line) != ("k.py", 3)])
    assert after is not None and (after.time_ns, after.dma_ns, after.engine_ns) == (30, 20, {"sync": 10})
    everything = rest(rows, ())
    assert everything is not None and (everything.time_ns, everything.instructions) == (35, 5)


@given(st.integers(1, 200), st.integers(0, 3))
def test_time_of_a_line_is_the_union_of_its_rows(size: int, seed: int) -> None:
    given_profile = synthetic.profile(size, seed)
    table = given_profile.table("Instruction", ["nki_source_location", "start_ts", "end_ts", "opcode"])
    assert table is not None
    spans: dict[str, list[tuple[int, int]]] = {}
    for row in table.to_pylist():
        if row["opcode"] != "EVENT_SEMAPHORE":
            spans.setdefault(row["nki_source_location"] or "", []).append((row["start_ts"], row["end_ts"]))
    for line in source(given_profile) or ():
        if line.file is not None and not line.dma_ns:
            pairs = spans.get(f"{line.file}:{line.line}", [])
            assert line.time_ns == intervals.busy([p[0] for p in pairs], [p[1] for p in pairs])


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (Selection(), [1, 2, 3, 4, 5]),
        (Selection(engine="Tensor"), [2, 3]),
        (Selection(engine="ACT"), [4]),
        (Selection(opcode="matmul"), [2, 3]),
        (Selection(layer="/net/attn"), [2, 3]),
        (Selection(layer="net/attn/"), [2, 3]),
        (Selection(layer="/net/at"), []),
        (Selection(layer=OTHER), [5]),
        (Selection(place="7"), [2, 3, 4]),
        (Selection(place=".py:7"), []),
        (Selection(place="k.py:7"), [2, 3, 4]),
        (Selection(place="lib/k.py:7"), [4]),
        (Selection(place="k.py"), [1, 2, 3, 4]),
        (Selection(at=(20, 30)), [3]),
        (Selection(at=(None, 10)), [1]),
        (Selection(at=(34, None)), [4, 5]),
        (Selection(engine="PE", at=(21, None)), [3]),
    ],
)
def test_conditions_all_have_to_hold(where: Selection, ids: list[int]) -> None:
    found = instructions(profile(), where)
    assert found is not None
    assert found.rows["id"].to_pylist() == ids and found.total == len(ids)


def test_order_limit_and_what_no_row_has() -> None:
    found = instructions(profile(), Selection(), order="duration", limit=2)
    assert found is not None
    assert (found.rows["id"].to_pylist(), found.total) == ([5, 1], 5)
    waits = instructions(profile(), Selection(), order="wait", limit=1)
    assert waits is not None and waits.rows["id"].to_pylist() == [4]
    with pytest.raises(UsageError, match="MATMUL"):
        instructions(profile(), Selection(opcode="MATMULL"))
    with pytest.raises(UsageError, match="no instruction has it"):
        instructions(profile(), Selection(engine="quantum"))
    assert instructions(Profile.from_tables({}), Selection()) is None


@pytest.mark.parametrize(
    ("where", "column"),
    [
        (Selection(engine="tensor"), "engine"),
        (Selection(opcode="MATMUL"), "opcode"),
        (Selection(layer="/net"), "layer"),
        (Selection(place="7"), "nki_source_location"),
        (Selection(at=(3, None)), "end_ts"),
        (Selection(at=(None, 3)), "start_ts"),
    ],
)
def test_a_condition_on_what_was_not_captured_says_so(where: Selection, column: str) -> None:
    nulls = pa.nulls(INSTRUCTION.num_rows, INSTRUCTION.schema.field(column).type)
    without = INSTRUCTION.drop_columns(column)
    for table in (without, without.append_column(column, nulls)):
        for order in ORDERS:
            found = instructions(profile(Instruction=table), where, order=order)
            assert found is not None and (found.total, found.not_captured) == (0, (column,))


def test_the_lower_bound_is_the_busiest_of_engines_and_dma() -> None:
    found = lower_bound(profile())
    assert found is not None
    assert (found.total_ns, found.bound_ns, found.engine, found.headroom_ns) == (35, 20, "dma", 15)
    assert found.busy_ns == {"tensor": 15, "scalar": 5, "sync": 10, "dma": 20}
    assert lower_bound(Profile.from_tables({})) is None


def test_cores_have_bounds_of_their_own() -> None:
    both = INSTRUCTION.append_column("pcore_idx", pa.array([0, 0, 1, 0, 0], pa.int64()))
    moved = pa.concat_tables([DMA, DMA.set_column(1, "start_ts", pa.array([20])).set_column(2, "end_ts", pa.array([36]))])
    moved = moved.append_column("pcore_idx", pa.array([0, 1], pa.int64()))
    found = lower_bound(profile(Instruction=both, DmaPacketAggregated=moved))
    assert found is not None
    assert found.busy_ns == {"tensor": 10, "scalar": 5, "sync": 10, "dma": 20}, "not the 15 and 24 of both cores together"


def test_packets_say_better_than_transfers_when_dma_moved() -> None:
    found = lower_bound(profile(DmaPacket=pa.table({"start_ts": [12, 30], "end_ts": [14, 37]})))
    assert found is not None and (found.busy_ns["dma"], found.total_ns) == (9, 37)


def test_waits_of_waiting_instructions_count() -> None:
    rows = INSTRUCTION.set_column(4, "evt_wait_time_ns", pa.array([0, 2, 3, 4, 60], pa.int64()))
    rows = rows.set_column(7, "layer", pa.array(["/net/load", "/net/attn/qk", "/net/attn/av", "/net", "/net/attn"]))
    rows = rows.set_column(8, "nki_source_location", pa.array(["k.py:3", "k.py:7", "k.py:7", "lib/k.py:7", "k.py:7"]))
    tree, lines = layers(profile(Instruction=rows)), source(profile(Instruction=rows))
    assert tree is not None and {t.path: (t.time_ns, t.wait_ns) for t in tree}["/net/attn"] == (15, 65)
    assert lines is not None and {(at.file, at.line): (at.time_ns, at.wait_ns) for at in lines}["k.py", 7] == (15, 65)


def test_transfers_of_nobody_belong_to_no_line() -> None:
    lines = source(profile(DmaPacketAggregated=DMA.set_column(4, "ts_instruction_id", pa.array([77]))))
    assert lines is not None and all(not line.dma_ns for line in lines if line.file is not None)
    assert sum(line.dma_ns or 0 for line in lines) == 20


def test_sums_of_columns_without_a_value_are_not_captured() -> None:
    bare = INSTRUCTION.set_column(9, "raw_flops", pa.nulls(5, pa.int64()))
    tree = layers(profile(Instruction=bare))
    assert tree is not None and "raw_flops" not in tree[0].sums and "hbm_read_bytes" in tree[0].sums


def test_lines_that_end_alike_are_not_alike() -> None:
    places = pa.array(["k.py:17", "xk.py:7", "k.py:7", "lib/k.py:7", ""])
    rows = profile(Instruction=INSTRUCTION.set_column(8, "nki_source_location", places))
    for place, ids in (("7", [2, 3, 4]), ("k.py:7", [3, 4]), ("17", [1]), ("k.py", [1, 3, 4])):
        found = instructions(rows, Selection(place=place))
        assert found is not None and found.rows["id"].to_pylist() == ids, place


@given(st.integers(1, 200), st.integers(0, 3), st.integers(1, 2))
def test_the_lower_bound_bounds(size: int, seed: int, cores: int) -> None:
    found = lower_bound(Profile.from_tables(synthetic.tables(size, seed, cores=cores)))
    if found is not None:
        assert 0 < found.bound_ns <= found.total_ns


def test_info_says_what_there_is() -> None:
    found = info(profile())
    assert (found.evidence, found.duration_ns, found.name) == ("measured", 90, None)
    assert found.coverage is not None
    assert (found.coverage.rows, found.coverage.with_source, found.coverage.with_layer) == (5, 4, 4)
    twice = profile(Instruction=INSTRUCTION.set_column(0, "id", pa.array([1, 1, 1, 2, None], pa.int64())), TsMine=METADATA)
    again = info(twice)
    assert again.coverage is not None and again.coverage.duplicate_ids == 2
    assert again.unknown == ("TsMine",) and "Flow" in again.not_captured


SELECTS: Mapping[str, list[dict[str, object]]] = {
    "SELECT count(*) AS n FROM Instruction": [{"n": 5}],
    "WITH m AS (SELECT * FROM instruction WHERE opcode = 'MATMUL') SELECT max(id) AS m FROM m": [{"m": 3}],
}


@pytest.mark.parametrize("sql", SELECTS)
@pytest.mark.parametrize("on_disk", [False, True])
def test_sql_reads_the_tables(sql: str, on_disk: bool, tmp_path: Path) -> None:
    given_profile = profile()
    if on_disk:
        writer.write(tmp_path / "p", {"Instruction": INSTRUCTION, "Metadata": METADATA})
        given_profile = open_profile(tmp_path / "p")
    assert query(given_profile, sql).rows.to_pylist() == SELECTS[sql]


def test_sql_sees_published_columns_in_their_published_type(tmp_path: Path) -> None:
    narrow = INSTRUCTION.set_column(3, "duration_ns", INSTRUCTION["duration_ns"].cast(pa.int32()))
    pq.write_table(narrow, tmp_path / "Instruction.parquet")
    types = query(open_profile(tmp_path), "SELECT typeof(any_value(duration_ns)) AS a, typeof(any_value(id)) AS b FROM Instruction")
    assert types.rows.to_pylist() == [{"a": "BIGINT", "b": "BIGINT"}]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE Instruction",
        "CREATE TABLE mine AS SELECT 1",
        "COPY (SELECT 1) TO '{file}'",
        "COPY Instruction TO '{file}'",
        "ATTACH '{file}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "SELECT * FROM read_csv('{here}')",
        "SELECT * FROM read_parquet('{here}')",
        "SELECT * FROM read_text('{here}')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '{here}'",
        "SELECT getenv('HOME')",
        "SELECT * FROM INSTRUCTION_NOT",
        "SELECT * FROM secret_local",
        "SELECT 1; DROP TABLE Instruction",
        "SELECT 1; SELECT 2",
        "",
        ";",
        "not sql",
    ],
)
def test_sql_can_do_nothing_else(sql: str, tmp_path: Path) -> None:
    secret_local = pa.table({"a": [1]})
    file, here = tmp_path / "out.csv", tmp_path / "in.csv"
    here.write_text("a\n1\n")
    writer.write(tmp_path / "p", {"Instruction": INSTRUCTION, "Metadata": METADATA})
    before = sorted(p.name for p in tmp_path.rglob("*"))
    with pytest.raises(UsageError) as caught:
        query(open_profile(tmp_path / "p"), sql.format(file=file, here=here))
    assert "\n" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    assert secret_local.num_rows == 1


@pytest.mark.parametrize("name", ["CcOp", "ccop"])
def test_a_table_that_was_not_captured_is_called_that(name: str) -> None:
    with pytest.raises(UsageError, match="CcOp is not captured"):
        query(profile(), f"SELECT * FROM {name}")


def test_rows_beyond_the_limit_are_counted_and_not_held() -> None:
    found = query(profile(), "SELECT a.id FROM Instruction a, range(1000000)", limit=70000)
    assert (found.total, found.rows.num_rows) == (5_000_000, 70_000)
    empty = query(profile(), "SELECT id, layer FROM Instruction WHERE id < 0", limit=3)
    assert (empty.total, empty.rows.column_names) == (0, ["id", "layer"])
    assert query(profile(), "SELECT id FROM Instruction ORDER BY id", limit=5).rows["id"].to_pylist() == [1, 2, 3, 4, 5]


def test_source_text_stays_below_its_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "k.py").write_text("one\ntwo\n")
    (tmp_path / "secret.py").write_text("secret")
    (root / "link.py").symlink_to(tmp_path / "secret.py")
    sources = Sources(root)
    assert sources.listing("k.py").lines == ("one", "two")
    for name in ("../secret.py", "link.py", str(tmp_path / "secret.py"), "none.py", "", ".", "a\0b", "x" * 5000):
        assert sources.listing(name).lines == () and sources.listing(name).why_not, name
    assert Sources(None).listing("k.py").why_not


def test_rows_without_times_or_engine_take_none() -> None:
    times = pa.array([None, 10, 15, 30, 40], pa.int64())
    untimed = profile(Instruction=INSTRUCTION.set_column(1, "start_ts", times), DmaPacketAggregated=DMA.slice(0, 0))
    bound, tree, lines = lower_bound(untimed), layers(untimed), source(untimed)
    assert bound is not None and (bound.total_ns, "sync" in bound.busy_ns) == (25, False)
    assert tree is not None and {t.path: t.time_ns for t in tree}["/net/load"] == 0
    assert lines is not None and {(at.file, at.line): at.time_ns for at in lines}["k.py", 3] == 0
    nameless = INSTRUCTION.set_column(5, "engine", pa.nulls(5, pa.string()))
    assert lower_bound(profile(Instruction=nameless, DmaPacketAggregated=DMA.slice(0, 0))) is None
    unknown = pa.concat_tables([DMA, DMA.set_column(1, "start_ts", pa.nulls(1, pa.int64()))])
    moved = lower_bound(profile(DmaPacketAggregated=unknown))
    assert moved is not None and (moved.total_ns, moved.busy_ns["dma"]) == (35, 20)
