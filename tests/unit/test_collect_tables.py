"""The tables of an emulated run: what stands in them, and that they agree with each other and with the schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.nki import dma, semaphores
from emulator.program import ENGINES, Packets
from explorer.analysis import intervals
from explorer.store import schema
from explorer.store.reader import Profile
from explorer.store.writer import conform
from tests.unit import collect_program as made
from tests.unit.collect_program import TILES, rows, table


def _total(name: str, column: str) -> Any:
    return pc.sum(table(name)[column]).as_py()


def test_each_table_has_the_published_shape_and_every_column_of_ours_is_described() -> None:
    captured = made.captured()
    for name, found in captured.tables.items():
        spec = schema.tables()[name]
        conformed = conform(name, found)
        assert set(spec.required) <= set(conformed.column_names)
        for column in found.column_names:
            if spec.column(column) is None:
                assert column.startswith("ts_")
                assert len(captured.descriptions[f"{name}.{column}"]) > 10, f"{name}.{column}"
    known = {f"{name}.{column}" for name, found in captured.tables.items() for column in found.column_names}
    assert set(captured.descriptions) <= known


def test_columns_that_are_null_at_times_are_null_for_that_reason() -> None:
    assert dma.throughput(np.array([8, 8]), np.array([0, 2])).to_pylist() == [None, 4e9]
    clocks = {t: made.captured(t).tables["Metadata"]["neuroncore_clock_freq"][0].as_py() for t in ("trn1", "trn2", "trn3")}
    assert clocks == {"trn1": 1.4, "trn2": None, "trn3": None}


def test_ids_are_positions_in_program_order_and_used_once() -> None:
    instructions, transfers, packets = (table(n)["id"].to_pylist() for n in ("Instruction", "DmaPacketAggregated", "DmaPacket"))
    assert instructions == list(range(1, len(made.program()) + 1))
    together = instructions + transfers + packets
    assert together == list(range(1, len(together) + 1))


def test_instructions_have_engine_track_and_place_in_the_engines_stream() -> None:
    found = rows("Instruction", "engine", "timeline_track", "opcode", "pc", "pcore_idx")
    assert [(r["engine"], r["timeline_track"], r["opcode"]) for r in found[:5]] == [
        ("sync", "Sync", "DMA_DIRECT2D"),
        ("tensor", "Tensor", "LDWEIGHTS"),
        ("tensor", "TensorMatrix", "MATMUL"),
        ("scalar", "Scalar", "ACTIVATE"),
        ("sync", "Sync", "DMA_DIRECT2D"),
    ]
    for engine in ENGINES:
        counters = [r["pc"] for r in found if r["engine"] == engine]
        assert counters == list(range(len(counters)))


def test_waiting_is_not_in_the_duration() -> None:
    timeline = made.timeline()
    found = rows("Instruction", "start_ts", "end_ts", "duration_ns", "evt_wait_time_ns", "ts_blocked_by", "engine")
    for i, row in enumerate(found):
        assert (row["start_ts"], row["end_ts"]) == (timeline.start[i], timeline.end[i])
        assert row["duration_ns"] == timeline.end[i] - timeline.start[i]
        assert row["evt_wait_time_ns"] == timeline.wait[i]
    matmul = found[2]
    assert matmul["ts_blocked_by"] is None or matmul["ts_blocked_by"] == 2
    assert found[1]["ts_blocked_by"] == 1 and found[1]["evt_wait_time_ns"] == found[1]["start_ts"]


def test_bytes_are_those_of_all_partitions_by_memory() -> None:
    columns = [f"{m}_{d}_bytes" for m in ("hbm", "sbuf", "psum") for d in ("read", "write")] + ["psum_read_sbuf_write_bytes"]
    load, weights, matmul, act, store = (list(r.values()) for r in rows("Instruction", *columns)[:5])
    tile = 128 * 512 * 2
    assert load == [tile, 0, 0, tile, 0, 0, 0]
    assert weights == [0, 0, 128 * 128 * 2, 0, 0, 0, 0]
    assert matmul == [0, 0, tile, 0, 0, 2 * tile, 0]
    assert act == [0, 0, 0, tile, 2 * tile, 0, 2 * tile]
    assert store == [0, tile, tile, 0, 0, 0, 0]


def test_flops_stand_on_the_tensor_engine_alone() -> None:
    found = rows("Instruction", "engine", "raw_flops", "flops_transpose", "tensor_instruction_type", "scalar_activation_fn")
    assert [r["raw_flops"] for r in found[:5]] == [None, 0, 2 * 128 * 128 * 512, None, None]
    assert [r["tensor_instruction_type"] for r in found[:5]] == [None, "REGULAR", "REGULAR", None, None]
    assert [r["scalar_activation_fn"] for r in found[:5]] == [None, None, None, "exp", None]


def test_an_instruction_that_starts_a_transfer_says_when() -> None:
    for row in rows("DmaPacketAggregated"):
        issuer = table("Instruction").to_pylist()[int(str(row["ts_instruction_id"])) - 1]
        assert (issuer["dma_trigger_start_ts"], issuer["dma_trigger_end_ts"]) == (row["start_ts"], row["end_ts"])
        assert issuer["dma_wait_time_ns"] == row["start_ts"] - issuer["end_ts"] >= 0
        assert (row["trigger"], row["completion"]) == (issuer["start_ts"], issuer["end_ts"])
        assert issuer["input_queue_bytes"] == (row["read_bytes"] if row["queue_type"] == "input" else 0)
        assert issuer["output_queue_bytes"] == (row["read_bytes"] if row["queue_type"] == "output" else 0)
    others = [r for r in rows("Instruction") if r["opcode"] != "DMA_DIRECT2D"]
    assert all(r["dma_trigger_start_ts"] is None and r["input_queue_bytes"] is None for r in others)


def test_transfers_name_both_ends() -> None:
    load, store = rows("DmaPacketAggregated")[:2]
    assert (load["source"], load["dest"], load["variable"]) == ("[INPUT]", "[SB]", "x")
    assert (store["source"], store["dest"], store["variable"]) == ("[SB]", "[OUTPUT]", "y")
    assert (load["read_shape"], load["read_steps"], load["read_offset"]) == ("[128, 512]", f"[{512 * TILES}, 1]", "[0x0]")
    assert (load["write_sbuf_partitions"], load["write_num_sbuf_partitions"]) == ("0-127", 128)
    assert (load["read_sbuf_partitions"], load["read_num_sbuf_partitions"]) == ("", 0)
    assert (load["read_bytes"], load["write_bytes"], load["transfer_bytes"]) == (131072,) * 3


def test_packets_add_up_to_their_transfer() -> None:
    packets = (
        table("DmaPacket")
        .group_by("packet_aggregation_id")
        .aggregate([("start_ts", "min"), ("end_ts", "max"), *((f"{c}_bytes", "sum") for c in ("read", "write", "transfer"))])
    )
    by_id = {r["packet_aggregation_id"]: r for r in packets.to_pylist()}
    for transfer in rows("DmaPacketAggregated"):
        found = by_id[transfer["id"]]
        assert (found["start_ts_min"], found["end_ts_max"]) == (transfer["start_ts"], transfer["end_ts"])
        for kind in ("read", "write", "transfer"):
            assert found[f"{kind}_bytes_sum"] == transfer[f"{kind}_bytes"]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5000) | st.integers(2**32, 2**33)), max_size=40),
    st.lists(st.integers(0, 10**6) | st.integers(2**32, 2**34), min_size=4, max_size=4),
)
def test_packets_share_what_their_transfer_read(parts: list[tuple[int, int]], whole: list[int]) -> None:
    transfer, moved = np.array([t for t, _ in parts], np.int64), np.array([m for _, m in parts], np.int64)
    empty = np.zeros(len(parts), np.int64)
    share = dma.share_of(Packets(transfer, empty.astype(np.int16), empty, empty, moved), np.array(whole))
    for t in range(4):
        mine = transfer == t
        assert share[mine].sum() == (whole[t] if moved[mine].sum() else 0)
        assert (share[mine] >= 0).all()


def test_queues_are_listed_for_each_engine_that_served_them() -> None:
    served = {(r["queue_name"], r["engine_idx"]) for r in rows("DmaPacket", "queue_name", "engine_idx")}
    assert {(r["name"], r["engine_idx"]) for r in rows("DmaQueuesInfo")} == served


@pytest.mark.parametrize(("name", "sides"), [("DmaUsage", 1), ("HbmUsage", 1)])
def test_usage_adds_up_and_ends_at_nothing(name: str, sides: int) -> None:
    found = rows(name)
    assert found[-1]["current_throughput"] == 0.0
    assert found[-1]["total_transfer_bytes"] == sides * _total("DmaPacket", "transfer_bytes")
    times = [r["timestamp"] for r in found]
    assert times == sorted(set(times))
    packets = rows("DmaPacket", "start_ts", "end_ts", "throughput")
    for row in found[:: max(len(found) // 20, 1)]:
        now = [p["throughput"] for p in packets if p["start_ts"] <= row["timestamp"] < p["end_ts"]]
        assert row["current_throughput"] == pytest.approx(sum(now), abs=len(packets))


def test_pending_transfers_count_from_trigger_to_end() -> None:
    found = rows("PendingDma")
    assert found[-1]["value"] == 0
    for row in found:
        now = row["timestamp"]
        live = [t for t in rows("DmaPacketAggregated", "trigger", "end_ts") if t["trigger"] <= now < t["end_ts"]]
        assert row["value"] == len(live)


def test_semaphores_rise_step_by_step() -> None:
    seen: dict[str, int] = {}
    for row in sorted(rows("SemaphoreUpdate"), key=lambda r: (r["id"], r["value"])):
        step = 16 if row["update_source"] == "AXI" else 1
        seen[str(row["id"])] = seen.get(str(row["id"]), 0) + step
        assert row["value"] == seen[str(row["id"])]
        assert row["update_operation_type"] == ("sem_inc" if step == 1 else "sem_add_imm")
    assert seen == {"S[0] (Tensor)": TILES, "S[2] (Scalar)": TILES, "S[5] (qSyncIO0)": 16 * TILES, "S[6] (qSyncIO1)": 16 * TILES}


def test_every_wait_in_the_operands_is_met_when_the_instruction_starts() -> None:
    timeline = made.timeline()
    raised = {(r["id"], r["value"]): r["timestamp"] for r in rows("SemaphoreUpdate")}
    names = semaphores.semaphore_names(timeline)
    waiting = np.flatnonzero(timeline.wait_semaphore >= 0)
    assert len(waiting) > TILES
    for row in waiting.tolist():
        when = raised[names[timeline.wait_semaphore[row]], int(timeline.wait_value[row])]
        assert when <= timeline.start[row]


def test_words_leave_out_what_is_not_there() -> None:
    import pyarrow as pa

    text, none = pa.array(["a", None, ""]), pa.array([None, None, None], pa.string())
    assert semaphores.words(text, none, pa.array(["x", None, "z"])).to_pylist() == ["a x", "", "z"]


def test_flows_lead_from_producer_to_consumer() -> None:
    start: dict[object, Any] = {r["id"]: r for name in ("Instruction", "DmaPacketAggregated") for r in rows(name)}
    found = rows("Flow")
    tables = {
        "Instruction": {r["id"] for r in rows("Instruction")},
        "DmaPacketAggregated": {r["id"] for r in rows("DmaPacketAggregated")},
    }
    for flow in found:
        assert flow["in_id"] in tables[str(flow["in_table"])] and flow["out_id"] in tables[str(flow["out_table"])]
        assert flow["gap_time"] == start[flow["out_id"]]["start_ts"] - start[flow["in_id"]]["end_ts"]
        if flow["ts_waits"]:
            assert flow["gap_time"] >= 0
    triggers = [f for f in found if f["dependency_type"] is None]
    assert {f["out_id"] for f in triggers} == tables["DmaPacketAggregated"]
    load = rows("DmaPacketAggregated", "id")[0]["id"]
    assert {"in_id": load, "out_id": 2, "in_table": "DmaPacketAggregated", "out_table": "Instruction"}.items() <= found[0].items()
    for row in rows("Instruction", "id", "ts_blocked_by"):
        last = [f for f in found if f["out_id"] == row["id"] and f["ts_last"] and f["dependency_type"]]
        assert bool(last) == (row["ts_blocked_by"] is not None)


def test_derived_tables_agree_with_the_rows() -> None:
    found = rows("Instruction", "engine", "start_ts", "end_ts")
    for engine in ("sync", "tensor", "scalar"):
        mine = [r for r in found if r["engine"] == engine]
        active = [r for r in rows("ActiveTime") if r["engine"] == engine]
        covered = intervals.busy([r["start_ts"] for r in mine], [r["end_ts"] for r in mine])
        assert sum(r["duration_ns"] for r in active) == covered
    summary = rows("Summary")[0]
    last = max(r["end_ts"] for r in [*found, *rows("DmaPacketAggregated")])
    assert summary["total_time"] == pytest.approx(last / 1e9)
    assert summary["hardware_flops"] == TILES * 2 * 128 * 128 * 512
    assert summary["hbm_read_bytes"] == TILES * 131072
    assert sum(r["instruction_count"] for r in rows("OpcodeSummary")) == len(found)


def test_metadata_says_emulated_and_nothing_about_this_machine() -> None:
    row = rows("Metadata")[0]
    assert row["is_simulation"] is True
    assert (row["ts_target"], row["ts_kernel"], row["profile_name"]) == ("trn2", "squares", "squares")
    assert row["tensor_engine_clock_freq"] == 2.4 and row["num_dma_engines_per_neuroncore"] == 16
    text = str(made.captured().tables)
    assert str(Path(__file__).parents[2]) not in text
    assert Profile.from_tables(made.captured().tables).evidence == "emulated"


def test_warnings_carry_what_kernel_and_emulator_say() -> None:
    found = {r["message"]: r["category"] for r in rows("Warning")}
    assert found["a word from the kernel"] == "Kernel"
    assert any("not modelled" in str(m) and c == "Emulator" for m, c in found.items())
