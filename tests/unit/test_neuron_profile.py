"""neuron-profile's JSON as tables: where each field goes, types, traps, ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from collectors import neuron_profile
from collectors.neuron_profile import Imported, mapping, tables
from explorer.store import reader, schema, writer
from explorer.store.errors import ProfileError
from tests.unit.neuron_document import BIG_ID, NEXT_ID, REAL, document, write

FILES = sorted(REAL.glob("*.json")) if REAL.is_dir() else []
real = pytest.mark.skipif(not FILES, reason=f"no real profiles at {REAL}")


@pytest.fixture
def imported(tmp_path: Path) -> Imported:
    return neuron_profile.load([write(tmp_path / "p.json", document())])


def rows(made: Imported, table: str) -> list[dict[str, Any]]:
    return made.tables[table].to_pylist()


def test_instructions_keep_exact_ids_and_times(imported: Imported) -> None:
    first, second, *_ = rows(imported, "Instruction")
    assert (first["id"], second["id"]) == (BIG_ID, NEXT_ID)
    assert (second["start_ts"], second["end_ts"], second["duration_ns"]) == (1_200, 1_600, 400)
    assert (first["engine"], first["timeline_track"], first["layer"]) == ("Tensor", "Tensor", "_dot.3")


def test_flops_are_two_for_each_multiply_add(imported: Imported) -> None:
    found = [(r["raw_flops"], r["flops_transpose"], r["tensor_elements_transpose"]) for r in rows(imported, "Instruction")]
    assert found == [(2000, 2000, 1000), (10_000, 0, 0), (None, None, None), (None, None, None), (None, None, None)]


def test_a_list_of_one_framework_id_is_that_id(imported: Imported) -> None:
    assert [r["raw_framework_id"] for r in rows(imported, "Instruction")] == [5, 5, None, None, None]
    assert "ts_raw_framework_ids" not in imported.tables["Instruction"].column_names


def test_longer_lists_of_framework_ids_stay_lists(tmp_path: Path) -> None:
    changed = document()
    changed["instruction"][0]["raw_framework_id"] = [5, 6]
    made = neuron_profile.load([write(tmp_path / "p.json", changed)])
    assert [r["ts_raw_framework_ids"] for r in rows(made, "Instruction")][:2] == [[5, 6], [5]]
    assert [r["raw_framework_id"] for r in rows(made, "Instruction")][:2] == [None, 5]


def test_the_aggregated_row_is_no_packet(imported: Imported) -> None:
    assert [r["id"] for r in rows(imported, "DmaPacket")] == [21, 20, 22]
    (transfer,) = rows(imported, "DmaPacketAggregated")
    assert (transfer["id"], transfer["transfer_bytes"], transfer["trigger"], transfer["ts_engine_idx"]) == (77, 1024, 100, 3)
    assert transfer["write_shape"] == "[[256,128]]"
    assert (transfer["write_sbuf_partitions"], transfer["read_sbuf_partitions"]) == ("0-127", None)


def test_types_come_from_the_field_not_from_the_value(imported: Imported) -> None:
    packet = rows(imported, "DmaPacket")[0]
    assert (packet["engine_idx"], packet["queue_idx"], packet["ts_is_cc_dma"], packet["ts_duplicate"]) == (3, 1, False, False)
    assert imported.tables["SbufUsage"].schema.field("avg_util_percent").type == pa.float64()
    assert [r["size"] for r in rows(imported, "TensorInfo")] == [None, 4096, 1024, 2048]
    assert rows(imported, "TensorInfo")[0]["node"] == 2
    assert rows(imported, "NeffHeader")[0]["header_size"] == 1024


def test_empty_strings_and_sentinels_are_absent(imported: Imported) -> None:
    assert rows(imported, "DmaQueuesInfo")[0]["ts_event_id"] is None
    assert [r["ts_semaphore_id"] for r in rows(imported, "DmaPacket")] == ["S[8] (qLoad0)", "S[8] (qLoad0)", None]
    assert rows(imported, "NeffHeader")[0]["build_version"] is None
    assert [r["bir_id"] for r in rows(imported, "Instruction")] == [None] * 5
    assert rows(imported, "Instruction")[4]["evt_wait_time_ns"] == 0


def test_predecessors_become_flows(imported: Imported) -> None:
    (flow,) = rows(imported, "Flow")
    assert (flow["in_id"], flow["out_id"], flow["dependency_type"]) == (BIG_ID, NEXT_ID, "FLOW_DEPENDENCE")
    assert (flow["in_table"], flow["out_table"], flow["gap_time"]) == ("Instruction", "Instruction", 1_200 - 1_300)


def test_hbm_usage_has_the_rows_that_know_it(imported: Imported) -> None:
    assert len(rows(imported, "DmaUsage")) == 2
    assert rows(imported, "HbmUsage") == [{"timestamp": 1_000, "current_throughput": 5.0, "total_transfer_bytes": 256}]


def test_throttle_codes_are_named_where_the_name_is_known(tmp_path: Path) -> None:
    changed = document()
    changed["ham"].append({"timestamp": 90, "duration": 1, "k": 1, "n": 2, "type": 42})
    made = neuron_profile.load([write(tmp_path / "p.json", changed)])
    assert [(r["type"], r["ts_type_code"]) for r in rows(made, "Throttle")] == [("activity_0", 0), ("unknown", 99), ("code 42", 42)]


def test_the_capture_stands_in_metadata(imported: Imported) -> None:
    (metadata,) = rows(imported, "Metadata")
    assert metadata["is_simulation"] is False
    assert (metadata["explorer_version"], metadata["instance_type"], metadata["neuroncore_idx"]) == (
        "2.27.33.0%x",
        "inf2.xlarge",
        0,
    )
    assert (metadata["tensor_engine_clock_freq"], metadata["neuroncore_clock_freq"]) == (2.8, 1.4)
    assert rows(imported, "ExecutionInfo") == [{"execution_index": 0, "neff_name": "p.neff", "num_subgraphs": 1}]


def test_a_field_nobody_knows_is_kept_with_its_type(tmp_path: Path) -> None:
    changed = document()
    changed["instruction"][0] |= {"novel": 7, "mixed": 1, "nested": {"a": [1]}, "big": 2**53 + 1}
    changed["instruction"][1] |= {"novel": 8, "mixed": 0.5, "big": 0.5}
    changed["future_table"] = [{"x": 1}, {"x": 2}]
    changed["../../evil"] = [{"x": 1}]
    changed["cc_op"] = [{"timestamp": 5, "operation": "ALL_REDUCE"}]
    made = neuron_profile.load([write(tmp_path / "p.json", changed)])
    first, second, *_ = rows(made, "Instruction")
    assert (first["ts_novel"], second["ts_novel"]) == (7, 8)
    assert (first["ts_mixed"], second["ts_mixed"]) == (1.0, 0.5)
    assert first["ts_nested"] == '{"a":[1]}'
    assert first["ts_big"] == "9007199254740993"
    assert rows(made, "TsFutureTable") == [{"x": 1}, {"x": 2}]
    assert rows(made, "CcOp")[0]["operation"] == "ALL_REDUCE"
    assert "TsEvil" in made.tables
    writer.write(tmp_path / "out", made.tables, descriptions=made.descriptions)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "p.json"]


def test_half_a_surrogate_pair_is_kept_as_an_escape(tmp_path: Path) -> None:
    changed = document()
    changed["instruction"][0] |= {"layer": "a\ud800", "\ud801odd": 1}
    made = neuron_profile.load([write(tmp_path / "p.json", changed)])
    assert rows(made, "Instruction")[0]["layer"] == "a\\ud800"
    assert rows(made, "Instruction")[0]["ts_\\ud801odd"] == 1


def test_values_that_do_not_fit_become_null_and_are_reported(tmp_path: Path) -> None:
    changed = document()
    changed["instruction"][0]["pc"] = "forty"
    changed["dma"][0]["transfer_rate"] = float("nan")
    changed["instruction"][4]["duration"] = -1
    changed["pending_dma"][0]["value"] = 2**40
    made = neuron_profile.load([write(tmp_path / "p.json", changed)])
    assert rows(made, "Instruction")[0]["pc"] is None
    assert rows(made, "DmaPacket")[0]["throughput"] is None
    assert (rows(made, "Instruction")[4]["duration_ns"], rows(made, "Instruction")[4]["end_ts"]) == (None, None)
    assert rows(made, "PendingDma")[0]["value"] is None
    lost = {n.split(":")[0] for n in made.notes}
    assert lost == {"instruction.pc", "dma.transfer_rate", "Instruction.duration_ns", "pending_dma.value"}
    assert [r["message"] for r in rows(made, "Warning") if r["category"] == "trnscope import"] == list(made.notes)


def test_a_queue_type_outside_the_schema_is_unknown_and_kept(tmp_path: Path) -> None:
    changed = document()
    changed["dma"][2]["queue_type"] = "quantum"
    made = neuron_profile.load([write(tmp_path / "p.json", changed)])
    assert [(r["queue_type"], r["ts_queue_type"]) for r in rows(made, "DmaPacket")][1:] == [("data", None), ("unknown", "quantum")]


def test_the_profile_on_disk_is_the_one_in_memory(imported: Imported, tmp_path: Path) -> None:
    writer.write(tmp_path / "out", imported.tables, descriptions=imported.descriptions)
    profile = reader.open(tmp_path / "out")
    assert profile.evidence == "measured"
    assert set(profile.tables) == {*imported.tables, "SchemaFields"}
    ids = profile.table("Instruction", ["id"])
    assert ids is not None
    assert sorted(ids["id"].to_pylist()) == sorted([BIG_ID, NEXT_ID, 3, 4, 5])
    fields = profile.table("SchemaFields")
    assert fields is not None
    ours = [r for r in fields.to_pylist() if r["field_name"].startswith("ts_") or r["table_name"].startswith("Ts")]
    assert ours and all(r["field_description"] for r in ours)


def _destination(json_table: str, field: str, row: dict[str, Any]) -> tuple[str, str] | None:
    """Where a field of a row must be found, or None if the mapping says that it is dropped."""
    if json_table in mapping.DROPPED or f"{json_table}.{field}" in mapping.DROPPED:
        return None
    if json_table == "profile_info" and field == "neff_name":
        return "ExecutionInfo", "neff_name"
    if json_table == "metadata" and field == "num_subgraphs":
        return "ExecutionInfo", "num_subgraphs"
    if json_table in ("metadata", "profile_info") or (json_table == "summary" and field in mapping.SUMMARY_TO_METADATA):
        table = "Metadata"
    elif json_table in ("summary", "dma_throughput"):
        table = {"summary": "Summary", "dma_throughput": "DmaUsage"}[json_table]
    elif json_table in mapping.SPLIT:
        by, names = mapping.SPLIT[json_table]
        table = names[row[by]]
    else:
        table = mapping.TABLES[json_table]
    return table, tables.target_column(table, field)


def _same(original: Any, stored: Any) -> bool:
    """Whether a stored value says what the JSON said, whatever type the JSON wrote it in."""
    if isinstance(stored, bool):
        return original in (stored, *(("yes", "true") if stored else ("no", "false")))
    if isinstance(stored, str) and not isinstance(original, str):
        return json.loads(stored) == original
    if isinstance(stored, (int, float)) and isinstance(original, str):
        return str(stored) == original
    if isinstance(original, list) and len(original) == 1 and isinstance(stored, int):
        return original == [stored]
    return bool(original == stored)


@real
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_no_field_of_a_real_profile_is_dropped_unless_listed(path: Path) -> None:
    source = json.loads(path.read_bytes())
    made = neuron_profile.load([path])
    stored = {name: table.to_pydict() for name, table in made.tables.items()}
    position: dict[str, int] = {}
    flows = iter(rows(made, "Flow"))
    for json_table, json_rows in source.items():
        for row in json_rows:
            homes = {d[0] for f in row if (d := _destination(json_table, f, row))}
            for field, value in row.items():
                where = _destination(json_table, field, row)
                if where is None:
                    continue
                if (json_table, field) == ("instruction", "predecessors"):
                    for edge in value:
                        flow = next(flows)
                        assert (flow["in_id"], flow["dependency_type"], flow["out_id"]) == (edge["id"], edge["type"], row["id"])
                    continue
                table, column = where
                if field == "raw_framework_id":
                    column = "raw_framework_id"
                got = stored[table][column][position.get(table, 0) if json_table not in ("metadata", "profile_info") else 0]
                absent = value == "" or value == mapping.SENTINELS.get(f"{json_table}.{field}")
                assert got is None if absent else _same(value, got), f"{json_table}.{field}: {value!r} became {got!r}"
            for home in homes - {"Metadata", "ExecutionInfo"}:
                position[home] = position.get(home, 0) + 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("raw_framework_id", ["x"]),
        ("raw_framework_id", [2**70]),
        ("predecessors", 5),
        ("predecessors", [{"id": 2**80, "type": "a"}]),
        ("predecessors", [{"id": True, "type": "a"}]),
        ("predecessors", [{"id": 1, "type": 5}]),
    ],
)
def test_values_of_a_wrong_shape_are_lost_with_a_word(tmp_path: Path, field: str, value: object) -> None:
    changed = document()
    changed["instruction"][0][field] = value
    made = neuron_profile.load([write(tmp_path / "p.json", changed)])
    assert len(made.notes) == 1 and f"instruction.{field}: 1 of its values" in made.notes[0]
    assert len(rows(made, "Instruction")) == len(document()["instruction"])


def test_ids_written_as_strings_are_the_same_ids_in_flow(tmp_path: Path) -> None:
    changed = document()
    for row in changed["instruction"]:
        row["id"], row["timestamp"] = str(row["id"]), float(row["timestamp"])
    plain = neuron_profile.load([write(tmp_path / "plain.json", document())])
    made = neuron_profile.load([write(tmp_path / "p.json", changed)])
    assert made.notes == () and rows(made, "Flow") == rows(plain, "Flow") != []


def test_a_second_table_of_that_name_does_not_disturb_flows(tmp_path: Path) -> None:
    changed = {"Instruction": [{"id": 5, "start_ts": 1}], **document()}
    made = neuron_profile.load([write(tmp_path / "p.json", changed)])
    assert rows(made, "Flow") == rows(neuron_profile.load([write(tmp_path / "plain.json", document())]), "Flow")


def test_a_number_without_end_is_damage(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"instruction": [{"id": ' + "9" * 5000 + "}]}")
    with pytest.raises(ProfileError, match="thousands of digits"):
        neuron_profile.load([tmp_path / "p.json"])


@real
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_real_profiles_lose_no_value_and_hold_the_schema(path: Path, tmp_path: Path) -> None:
    made = neuron_profile.load([path])
    assert made.notes == ()
    writer.write(tmp_path / "out", made.tables, descriptions=made.descriptions)
    for name in made.tables:
        spec = schema.tables().get(name)
        written = pa.parquet.read_schema(tmp_path / "out" / f"{name}.parquet")
        for column in spec.columns if spec else ():
            if column.name in written.names:
                assert written.field(column.name).type == column.arrow
            else:
                assert not column.required


def test_the_list_of_dropped_fields_does_not_grow() -> None:
    assert set(mapping.DROPPED) == {
        "terminology",
        "summary_groups",
        "summary_group_order",
        "dma.aggregated",
        "instruction_usage.type",
    }
    assert all(mapping.DROPPED.values())
