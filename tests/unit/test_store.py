"""A profile appears whole or not at all, and any directory of such tables opens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer
from explorer.store import reader, scales, schema, writer
from explorer.store.errors import ProfileError, UsageError

METADATA = pa.table({"profile_schema_version": ["7.4.0"], "is_simulation": [True]})
INSTRUCTION = pa.table(
    {
        "start_ts": [5, 1],
        "end_ts": [9, 4],
        "duration_ns": [4, 3],
        "engine": ["vector", "tensor"],
        "opcode": ["NOP", "MATMUL"],
        "id": [2, 1],
    }
)
TABLES = {"Metadata": METADATA, "Instruction": INSTRUCTION}


def test_what_is_written_reads_back_in_published_shape(tmp_path: Path) -> None:
    writer.write(tmp_path / "p", TABLES)
    profile = explorer.open(tmp_path / "p")
    assert profile.tables == ("Instruction", "Metadata", "SchemaFields")
    table = profile.table("Instruction")
    assert table is not None
    assert table["start_ts"].to_pylist() == [1, 5]
    for name in profile.tables:
        spec = schema.tables()[name]
        whole = profile.table(name)
        assert whole is not None
        assert set(spec.required) <= set(whole.column_names)
        for field in whole.schema:
            column = spec.column(field.name)
            assert column is not None and column.arrow == field.type
    assert table["operands"].null_count == 2
    assert profile.evidence == "emulated"


def test_every_published_table_and_column_is_described_in_words() -> None:
    assert len(schema.tables()) == 49
    for spec in schema.tables().values():
        assert len(spec.description) > 10, spec.name
        for column in spec.columns:
            assert len(column.description) >= 5, f"{spec.name}.{column.name}"
            assert column.arrow is not None
            assert column.enum is None or schema.enums()[column.enum]


def test_schema_fields_describe_what_is_there(tmp_path: Path) -> None:
    extra = INSTRUCTION.append_column("ts_cycles", pa.array([3, 4]))
    writer.write(tmp_path / "p", {**TABLES, "Instruction": extra}, descriptions={"Instruction.ts_cycles": "Engine cycles."})
    fields = explorer.open(tmp_path / "p").table("SchemaFields")
    assert fields is not None
    rows = {(r["table_name"], r["field_name"]): r for r in fields.to_pylist()}
    assert rows["Instruction", "ts_cycles"]["field_description"] == "Engine cycles."
    assert rows["Instruction", "start_ts"]["field_unit"] == "nanoseconds"


@pytest.mark.parametrize(
    ("name", "table", "said"),
    [
        ("Instruction", pa.table({"start_ts": [1], "mine": [2]}), "mine"),
        ("Instructions", pa.table({"start_ts": [1]}), "Instructions"),
        ("DmaPacket", pa.table({"start_ts": [1], "queue_type": ["sideways"]}), "sideways"),
    ],
)
def test_what_the_schema_does_not_know_is_refused(name: str, table: pa.Table, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        writer.conform(name, table)


def test_empty_tables_are_not_written(tmp_path: Path) -> None:
    writer.write(tmp_path / "p", {**TABLES, "Flow": pa.table({"in_id": pa.array([], pa.int64())})})
    assert "Flow" in explorer.open(tmp_path / "p").not_captured


def test_overwrite_needs_force_and_then_keeps_the_private_folder(tmp_path: Path) -> None:
    writer.write(tmp_path / "p", TABLES)
    (tmp_path / "p" / ".trnscope").mkdir()
    (tmp_path / "p" / ".trnscope" / "notes").write_text("mine")
    with pytest.raises(UsageError, match="--force"):
        writer.write(tmp_path / "p", {"Metadata": METADATA})
    writer.write(tmp_path / "p", {"Metadata": METADATA}, force=True)
    assert explorer.open(tmp_path / "p").tables == ("Metadata", "SchemaFields")
    assert (tmp_path / "p" / ".trnscope" / "notes").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["p"]


def test_force_never_replaces_what_is_not_a_profile(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for name in ("home", "file", "link"):
        with pytest.raises(UsageError):
            writer.write(tmp_path / name, TABLES, force=True)
    assert (tmp_path / "home" / "thesis.tex").read_text() == "years"


def test_a_failing_write_leaves_the_older_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.write(tmp_path / "p", TABLES)
    before = {f.name: f.read_bytes() for f in (tmp_path / "p").iterdir()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(ProfileError, match="No space left"):
        writer.write(tmp_path / "p", {"Metadata": METADATA}, force=True)
    assert {f.name: f.read_bytes() for f in (tmp_path / "p").iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["p"]


SLOW_WRITER = """
import sys, time
import pyarrow as pa, pyarrow.parquet as pq
from explorer.store import writer
real = pq.write_table
def slow(*a, **k):
    real(*a, **k); print("wrote", flush=True); time.sleep(30)
pq.write_table = slow
writer.write(sys.argv[1], {"Metadata": pa.table({"profile_schema_version": ["7.4.0"]})}, force=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("older", [False, True])
def test_a_killed_writer_leaves_no_half_profile(tmp_path: Path, how: signal.Signals, older: bool) -> None:
    if older:
        writer.write(tmp_path / "p", TABLES)
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_WRITER, str(tmp_path / "p")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"wrote\n"
        child.send_signal(how)
        child.wait(20)
    if older:
        assert explorer.open(tmp_path / "p").rows("Instruction") == 2
    else:
        assert not (tmp_path / "p").exists()
    writer.write(tmp_path / "p", TABLES, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["p"], "scratch of a dead writer is cleared away"


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import resource, sys, pyarrow as pa, random\n"
        "from explorer.store import writer, errors\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "table = pa.table({'start_ts': [random.getrandbits(60) for _ in range(50_000)]})\n"
        "try:\n    writer.write(sys.argv[1], {'Metadata': pa.table({'profile_schema_version': ['7.4.0']}), 'Instruction': table})\n"
        "except errors.ProfileError as error:\n    print(error); sys.exit(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "p")], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "nothing was written" in done.stdout and done.stdout.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_same_tables_same_bytes(tmp_path: Path) -> None:
    writer.write(tmp_path / "a", TABLES)
    time.sleep(0.01)
    (tmp_path / "deep").mkdir()
    writer.write(tmp_path / "deep" / "b", TABLES)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "deep" / "b" / file.name).read_bytes()


def test_split_tables_are_read_in_order_of_their_number(tmp_path: Path) -> None:
    for part in (0, 2, 10):
        pq.write_table(pa.table({"start_ts": [part], "extra_of_the_future": [str(part)]}), tmp_path / f"Instruction_{part}.parquet")
    profile = explorer.open(tmp_path)
    table = profile.table("Instruction", ["start_ts", "opcode", "extra_of_the_future", "nowhere"])
    assert table is not None
    assert table["start_ts"].to_pylist() == [0, 2, 10]
    assert table["opcode"].type == pa.string() and table["opcode"].null_count == 3
    assert table["extra_of_the_future"].to_pylist() == ["0", "2", "10"]
    assert profile.evidence == "unknown"
    assert profile.table("Flow") is None


def test_other_versions_types_are_brought_to_the_published_ones(tmp_path: Path) -> None:
    old = pa.table(
        {"id": pa.array(["7", "8"]), "engine": pa.array(["a", "b"]).dictionary_encode(), "start_ts": pa.array([1, 2], pa.uint64())}
    )
    pq.write_table(old, tmp_path / "Instruction.parquet")
    table = explorer.open(tmp_path).table("Instruction")
    assert table is not None
    assert table.schema.types == [pa.int64(), pa.string(), pa.int64()]
    pq.write_table(pa.table({"id": ["seven"]}), tmp_path / "Flow.parquet")
    pq.write_table(pa.table({"in_id": ["seven"]}), tmp_path / "Flow.parquet")
    with pytest.raises(ProfileError, match=r"Flow\.in_id"):
        explorer.open(tmp_path).table("Flow")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"hello", "cut", "middle"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes | str) -> None:
    writer.write(tmp_path / "p", TABLES)
    file = tmp_path / "p" / "Instruction.parquet"
    whole = file.read_bytes()
    if content == "cut":
        content = whole[: len(whole) // 2]
    elif content == "middle":
        content = whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :]
    assert isinstance(content, bytes)
    file.write_bytes(content)
    with pytest.raises(ProfileError, match=r"Instruction\.parquet") as caught:
        explorer.open(tmp_path / "p").table("Instruction")
    assert "\n" not in str(caught.value)


def test_what_is_no_profile_is_said_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    writer.write(tmp_path / "outer" / "inner", TABLES)
    for path, said in (("none", "no such"), ("f.json", "import"), ("empty", "no Parquet"), ("outer", "inner")):
        with pytest.raises(ProfileError, match=said):
            explorer.open(tmp_path / path)


@given(st.lists(st.tuples(st.integers(0, 50), st.text(max_size=5)), min_size=1, max_size=200), st.integers(1, 64))
def test_chunks_are_the_table(rows: list[tuple[int, str]], size: int) -> None:
    table = pa.table({"start_ts": [r[0] for r in rows], "opcode": [r[1] for r in rows], "id": list(range(len(rows)))})
    profile = reader.Profile.from_tables({"Instruction": table})
    whole = profile.table("Instruction", ["id", "opcode"])
    assert whole is not None
    assert pa.concat_tables(profile.chunks("Instruction", ["id", "opcode"])).equals(whole)
    ordered = writer.conform("Instruction", table)
    starts = ordered["start_ts"].to_pylist()
    assert starts == sorted(starts)
    assert [(s, i) for s, i in zip(starts, ordered["id"].to_pylist(), strict=True)] == sorted((r[0], i) for i, r in enumerate(rows))


def test_chunks_go_row_group_by_row_group(tmp_path: Path) -> None:
    pq.write_table(pa.table({"start_ts": range(10)}), tmp_path / "Instruction.parquet", row_group_size=4)
    sizes = [(c.num_rows, c.column_names) for c in explorer.open(tmp_path).chunks("Instruction", ["start_ts", "opcode"])]
    assert sizes == [(4, ["start_ts", "opcode"])] * 2 + [(2, ["start_ts", "opcode"])]
    assert [c.num_rows for c in explorer.open(tmp_path).chunks("Instruction", ["opcode"])] == [4, 4, 2]


def test_an_unwritable_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProfileError, match="cannot write"):
        writer.write(tmp_path / "file" / "p", TABLES)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", [".", "..", "/"])
@pytest.mark.parametrize("force", [False, True])
def test_a_profile_has_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, force: bool) -> None:
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    with pytest.raises(UsageError, match="give -o a name"):
        writer.write(name, TABLES, force=force)
    assert os.listdir(tmp_path) == ["inside"] and os.listdir(tmp_path / "inside") == []


def test_every_column_in_percent_has_a_scale_with_its_evidence() -> None:
    for spec in schema.tables().values():
        for column in spec.columns:
            if column.unit == "percent" or column.name.endswith("_percent"):
                found = scales.scale(spec.name, column.name)
                assert found is not None, f"{spec.name}.{column.name}"
                assert found.evidence
    assert scales.scale("Instruction", "start_ts") is None


def test_coded_chunks_hold_the_same_rows(tmp_path: Path) -> None:
    count = 3 * writer.ROW_GROUP // 2
    rows = {
        "start_ts": range(count),
        "end_ts": range(count),
        "opcode": ["MATMUL", None, ""] * (count // 3),
        "operands": [f"operand {i}" for i in range(count)],
    }
    writer.write(tmp_path / "p", {"Instruction": pa.table(rows), "Metadata": pa.table({"is_simulation": [True]})})
    profile = reader.open(tmp_path / "p")
    plain, coded = (list(profile.chunks("Instruction", coded=c)) for c in (False, True))
    kinds = {name: coded[0].schema.field(name).type for name in ("opcode", "operands")}
    assert pa.types.is_dictionary(kinds["opcode"])
    assert kinds["operands"] == pa.string()
    assert [c.to_pydict() for c in coded] == [c.to_pydict() for c in plain]
