"""The summary: computed from rows, equal to AWS's own on real profiles, honest about what was not captured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import neuron_profile
from explorer.analysis import intervals
from explorer.analysis import summary_formulas as formulas
from explorer.analysis.explain import explain
from explorer.analysis.summary import active_time, opcode_summary, summarize
from explorer.analysis.summary_definitions import METRICS, TERMS
from explorer.analysis.summary_terms import Rows, Source, Value
from explorer.store import schema
from explorer.store.reader import Profile
from tests.unit.neuron_document import REAL, document, write

FILES = sorted(REAL.glob("*.json")) if REAL.is_dir() else []
real = pytest.mark.skipif(not FILES, reason=f"no real profiles at {REAL}")
each = pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)

#: What rows do not determine. This list must not grow.
REPORTED = {"total_time", "neuroncore_cycle_count", "trace_count", "event_count", "dma_queue_count"}
TYPES = {c.name: c.type for c in schema.tables()["Summary"].columns}


def profile_of(path: Path) -> Profile:
    return Profile.from_tables(neuron_profile.load([path]).tables)


def table(profile: Profile, name: str) -> Any:
    found = profile.table(name)
    assert found is not None
    return found


@pytest.fixture
def small(tmp_path: Path) -> Profile:
    return profile_of(write(tmp_path / "p.json", document()))


def test_every_metric_of_the_schema_has_a_definition() -> None:
    assert set(METRICS) == {c.name for c in schema.tables()["Summary"].columns}


def test_figures_that_can_be_checked_by_hand(small: Profile) -> None:
    found = summarize(small).metrics
    assert found["total_time"] == 1e-05
    assert found["tensor_engine_instruction_time"] == 700e-9
    assert found["tensor_engine_active_time"] == 600e-9
    assert found["tensor_engine_active_time_percent"] == pytest.approx(0.06)
    assert (found["vector_engine_instruction_count"], found["vector_engine_active_time"]) == (1, 0)
    assert (found["hardware_flops"], found["transpose_flops"], found["model_flops"]) == (12_000, 2_000, 10_000)
    assert found["mm_arithmetic_intensity"] == pytest.approx(10_000 / 6144)
    # Packets run 800-950, 900-1000 and 2000-2300.
    assert found["dma_active_time"] == 500e-9
    assert found["dma_active_cycles"] == 700
    assert found["dma_packet_time"] == 550e-9
    assert (found["static_dma_packet_count"], found["software_dynamic_dma_packet_count"]) == (2, 1)
    assert found["static_dma_active_time_percent"] == pytest.approx(200 / 500)
    assert (found["dma_transfer_count"], found["dma_transfer_total_bytes"], found["dma_transfer_average_bytes"]) == (1, 1024, 1024)
    assert (found["inputs_and_weights_size_bytes"], found["inputs_outputs_weights_size_bytes"]) == (5120, 7168)
    # Work: 0-7, 800-1600, 1700-1950, 2000-2300.
    assert found["total_active_time"] == pytest.approx((7 + 800 + 250 + 300) / 1e9)
    # Set-up is left out: from the first packet to the end of the last.
    assert found["total_exec_time"] == pytest.approx((2300 - 800) / 1e9)
    assert (found["weight_queue_bytes"], found["input_queue_bytes"]) == (1024, 0)
    assert found["psum_read_sbuf_write_count"] == 1
    assert found["cc_op_count"] == 0


def test_what_was_not_captured_is_none_and_never_zero(small: Profile) -> None:
    found = summarize(small)
    for name in ("adjusted_hardware_flops", "total_row_count", "sbuf_read_bytes", "spill_save_bytes"):
        assert found.metrics[name] is None and found.origins[name] == "not captured"
    nothing = summarize(Profile.from_tables({"Metadata": table(small, "Metadata")}))
    assert set(nothing.metrics.values()) == {None, nothing.metrics["peak_flops_bandwidth_ratio"]}


def test_newer_tools_give_shares_of_total_time(small: Profile) -> None:
    metadata = table(small, "Metadata")
    at = metadata.column_names.index("explorer_version")
    newer = metadata.set_column(at, "explorer_version", pa.array(["2.31.0"]))
    tables = {n: table(small, n) for n in small.tables}
    found = summarize(Profile.from_tables({**tables, "Metadata": newer})).metrics
    assert found["static_dma_active_time_percent"] == pytest.approx(200e-9 / 1e-5)


def test_instructions_without_times_count_and_take_none() -> None:
    columns = {"engine": ["vector", "vector", None], "opcode": ["COPY"] * 3, "pcore_idx": [0, 0, 0]}
    times = {"start_ts": [5, None, 9], "end_ts": [15, None, None], "duration_ns": [10, None, None]}
    profile = Profile.from_tables({"Instruction": pa.table(columns | times)})
    found = opcode_summary(profile)
    assert found is not None
    shown = [(r["engine"], r["instruction_count"], r["instruction_time_ns"], r["active_time_ns"]) for r in found.to_pylist()]
    assert shown == [("vector", 2, 10, 10), (None, 1, 0, 0)]
    active = active_time(profile)
    assert active is not None and [(r["engine"], r["start_ts"], r["end_ts"]) for r in active.to_pylist()] == [("vector", 5, 15)]


def test_two_physical_cores_have_twice_the_peak(small: Profile) -> None:
    metadata = table(small, "Metadata")
    at = metadata.column_names.index("num_physical_cores")

    def share(cores: pa.Array) -> int | float | None:
        changed = metadata.set_column(at, "num_physical_cores", cores)
        return summarize(
            Profile.from_tables({**{n: table(small, n) for n in small.tables}, "Metadata": changed}), ["mfu_inst_estimated_percent"]
        ).metrics["mfu_inst_estimated_percent"]

    one = share(pa.array([1], pa.int32()))
    assert one == pytest.approx(10_000 / (2 * 128 * 128 * 2.8e9 * 1e-5))
    assert share(pa.array([2], pa.int32())) == pytest.approx(one / 2)
    # Where the profile does not say, one array is what is known.
    assert share(pa.array([None], pa.int32())) == pytest.approx(one)


def test_a_source_that_contradicts_its_rows_is_found_out(small: Profile) -> None:
    tables = {n: table(small, n) for n in small.tables}
    assert summarize(small).mismatches == ()
    fewer = Profile.from_tables({**tables, "Instruction": tables["Instruction"].slice(1)})
    (mismatch,) = summarize(fewer).mismatches
    assert (mismatch.metric, mismatch.computed, mismatch.reported) == ("matmul_instruction_count", 1, 2)


def test_what_these_rows_cannot_give_is_carried_over_if_the_source_has_it(small: Profile) -> None:
    tables = {n: table(small, n) for n in small.tables}
    told = tables["Summary"].append_column("adjusted_hardware_flops", pa.array([77]))
    found = summarize(Profile.from_tables({**tables, "Summary": told}))
    assert (found.metrics["adjusted_hardware_flops"], found.origins["adjusted_hardware_flops"]) == (77, "reported by the source")


def test_without_a_source_the_time_is_that_of_the_rows(small: Profile) -> None:
    tables = {n: table(small, n) for n in small.tables if n != "Summary"}
    found = summarize(Profile.from_tables(tables))
    assert (found.metrics["total_time"], found.origins["total_time"]) == (9_100e-9, "computed")
    assert found.metrics["neuroncore_cycle_count"] == 12_740
    assert found.metrics["trace_count"] is None


def test_a_summary_of_our_own_is_no_source(small: Profile) -> None:
    tables = {n: table(small, n) for n in small.tables if n != "Summary"}
    first = summarize(Profile.from_tables(tables))
    again = summarize(Profile.from_tables({**tables, "Summary": first.table()}))
    assert again == first
    assert again.origins["total_time"] == "computed"


def test_no_collectives_is_known_only_if_every_packet_says_so(small: Profile) -> None:
    tables = {n: table(small, n) for n in small.tables}
    packets = tables["DmaPacket"]
    silent = {**tables, "DmaPacket": packets.drop_columns(["ts_is_cc_dma"])}
    at = packets.column_names.index("ts_is_cc_dma")
    some = {**tables, "DmaPacket": packets.set_column(at, "ts_is_cc_dma", pa.array([False, True, False]))}
    operations = pa.table({"start_ts": [0, 5], "end_ts": [10, 20], "duration_ns": [10, 15]})
    assert summarize(Profile.from_tables(silent)).metrics["cc_op_count"] is None
    assert summarize(Profile.from_tables(some)).metrics["cc_op_count"] is None
    found = summarize(Profile.from_tables({**some, "CcOp": operations})).metrics
    assert (found["cc_op_count"], found["cc_op_time"], found["cc_op_active_time"]) == (2, 25e-9, 20e-9)


@real
@each
def test_every_metric_equals_the_summary_of_a_real_profile(path: Path) -> None:
    profile = profile_of(path)
    found = summarize(profile)
    source = table(profile, "Summary").to_pylist()[0]
    told = {n: v for n, v in source.items() if n in METRICS and v is not None}
    assert len(told) > 90
    assert {n for n, o in found.origins.items() if o == "reported by the source"} == REPORTED
    assert {n for n in told if found.origins[n] != "computed"} == REPORTED
    assert found.mismatches == ()
    for name in told.keys() - REPORTED:
        ours, theirs = found.metrics[name], told[name]
        assert ours is not None
        if TYPES[name] == "integer (int64)" and name != "dma_active_cycles":
            assert ours == theirs, name
        assert abs(ours - theirs) <= found.errors[name], name


@real
@each
def test_the_allowed_difference_is_a_nanosecond_for_each_interval_or_row(path: Path) -> None:
    profile = profile_of(path)
    found = summarize(profile)
    instructions = table(profile, "Instruction").to_pylist()
    packets = table(profile, "DmaPacket").to_pylist()

    def stretches(rows: list[dict[str, Any]]) -> int:
        count, reach = 0, -1
        for row in sorted(rows, key=lambda r: r["start_ts"]):
            if row["end_ts"] == row["start_ts"]:
                continue
            count += row["start_ts"] > reach
            reach = max(reach, row["end_ts"])
        return count

    for engine in ("tensor", "vector", "scalar", "gpsimd", "sync"):
        work = [r for r in instructions if r["engine"].lower() == engine and r["opcode"] != "EVENT_SEMAPHORE"]
        assert found.errors[f"{engine}_engine_active_time"] == stretches(work) / 1e9
        assert found.errors[f"{engine}_engine_instruction_time"] == len(work) / 1e9
    assert found.errors["dma_active_time"] == stretches(packets) / 1e9
    assert found.errors["dma_packet_time"] == len(packets) / 1e9
    assert found.errors["dma_active_cycles"] <= 1.4 * stretches(packets) * (1 + 1e-9) + 1e-6
    for name, error in found.errors.items():
        assert TYPES[name] != "integer (int64)" or error == 0 or name == "dma_active_cycles", name
    exact = {n for n, e in found.errors.items() if n.endswith("_percent") and (e == 0 or e < 1e-14 * abs(found.metrics[n] or 1))}
    assert {"mfu_estimated_percent", "mbu_estimated_percent", "static_dma_size_percent", "dynamic_dma_packet_percent"} <= exact


@real
@each
def test_hfu_is_apart_by_what_its_note_says(path: Path) -> None:
    profile = profile_of(path)
    ours = summarize(profile).metrics["hfu_estimated_percent"]
    theirs = table(profile, "Summary")["hfu_estimated_percent"][0].as_py()
    assert ours is not None
    assert ours / theirs - 1 == pytest.approx(1 / 81_920_000, rel=1e-6)


@real
@each
def test_active_time_and_throttling_equal_the_source_s(path: Path) -> None:
    profile = profile_of(path)
    ours, theirs = active_time(profile), table(profile, "ActiveTime")
    assert ours is not None
    for engine in ("tensor", "vector", "scalar", "gpsimd", "sync"):
        here, there = (t.filter(pc.equal(t["engine"], engine)) for t in (ours, theirs))
        a, b = ((t["start_ts"].to_numpy(), t["end_ts"].to_numpy()) for t in (here, there))
        apart = sum(int((end - start).sum()) for start, end in (intervals.subtract(a, b), intervals.subtract(b, a)))
        assert apart <= len(there)
        assert abs(int(here["duration_ns"].to_numpy().sum() - there["duration_ns"].to_numpy().sum())) <= len(there)
    source = table(profile, "Summary").to_pylist()[0]
    for row in table(profile, "ThrottleSummary").to_pylist():
        cause, slack = row["throttle_type"], table(profile, "Throttle").num_rows
        if cause == "all":
            assert abs(row["throttle_active_time_ns"] - source["ts_throttle_active_nc0_time_ns"]) <= slack
        else:
            told = source[f"ts_throttle_{cause}_active_time_nc0_percent"]
            assert abs(row["throttle_active_time_percent"] - told) * source["total_time"] <= slack / 1e9
            limit = source[f"ts_throttle_{cause}_avg_util_limit_nc0_percent"]
            assert row["max_achievable_util_with_throttling_percent"] == pytest.approx(limit)


def _database(profile: Profile) -> Any:
    import duckdb

    database = duckdb.connect()
    for name in profile.tables:
        database.register(name, table(profile, name))
    return database


def _check_sql(profile: Profile) -> int:
    database = _database(profile)
    found = summarize(profile).metrics
    checked = 0
    for name, value in found.items():
        told = explain(name, profile)
        assert (told.sql is None) == (value is None), name
        if told.sql is not None:
            result = database.execute(told.sql).fetchone()[0]
            assert isinstance(result, int) == isinstance(value, int) or result == value, name
            assert result == pytest.approx(value, rel=1e-12, abs=0), name
            checked += 1
    return checked


def test_the_sql_of_every_metric_gives_the_metric(small: Profile) -> None:
    tables = {n: table(small, n) for n in small.tables if n != "Summary"}
    operations = pa.table({"start_ts": [0, 5], "end_ts": [10, 20], "duration_ns": [10, 15]})
    assert _check_sql(small) > 80
    assert _check_sql(Profile.from_tables({**tables, "CcOp": operations})) > 75


@real
@pytest.mark.parametrize("path", FILES[::5], ids=lambda p: p.stem)
def test_the_sql_of_every_metric_gives_the_metric_of_a_real_profile(path: Path) -> None:
    assert _check_sql(profile_of(path)) == len(METRICS) - 3


def test_opcodes_add_up_and_count_overlaps_once(small: Profile) -> None:
    found = opcode_summary(small)
    assert found is not None
    by = {(r["engine"], r["opcode"]): r for r in found.to_pylist()}
    matmul = by["Tensor", "MATMUL"]
    assert (matmul["instruction_count"], matmul["instruction_time_ns"], matmul["active_time_ns"]) == (2, 700, 600)
    assert matmul["active_time_percent"] == pytest.approx(0.06)
    assert by["Vector", "EVENT_SEMAPHORE"]["active_time_ns"] == 9_000


def test_active_time_is_per_engine_and_core_without_waits() -> None:
    rows = pa.table(
        {
            "engine": ["PE", "tensor", "tensor", "DVE", "DVE"],
            "pcore_idx": pa.array([0, 0, 1, 0, 0], pa.int64()),
            "opcode": ["MATMUL", "MATMUL", "MATMUL", "EVENT_SEMAPHORE", "TENSOR_TENSOR"],
            "start_ts": pa.array([0, 10, 5, 0, 40], pa.int64()),
            "end_ts": pa.array([10, 20, 8, 90, 50], pa.int64()),
        }
    )
    found = active_time(Profile.from_tables({"Instruction": rows}))
    assert found is not None
    assert [(r["engine"], r["pcore_idx"], r["start_ts"], r["end_ts"], r["duration_ns"]) for r in found.to_pylist()] == [
        ("tensor", 0, 0, 20, 20),
        ("tensor", 1, 5, 8, 3),
        ("vector", 0, 40, 50, 10),
    ]


INTERVALS = st.lists(st.tuples(st.integers(-50, 200), st.integers(0, 40)), max_size=30)


@settings(max_examples=30, deadline=None)
@given(INTERVALS)
def test_sql_and_arrow_cover_the_same_time(spans: list[tuple[int, int]]) -> None:
    import duckdb

    starts = pa.array([s for s, _ in spans], pa.int64())
    rows = pa.table({"start_ts": starts, "end_ts": pa.array([s + d for s, d in spans], pa.int64())})
    profile = Profile.from_tables({"Rows": rows})
    how = Rows("union", (Source("Rows"),))
    found, sql = how.evaluate(profile), how.sql(profile)
    if not spans:
        assert found is None and sql is None
        return
    covered = {t for s, d in spans for t in range(s, s + d)}
    database = duckdb.connect()
    database.register("Rows", rows)
    assert found is not None
    assert found.value == len(covered) == database.execute(f"SELECT {sql}").fetchone()[0]


POSITIVE = st.floats(1e-3, 1e6)
SHARE = st.floats(0, 0.3)


@given(st.tuples(POSITIVE, POSITIVE, POSITIVE), st.tuples(SHARE, SHARE, SHARE), st.tuples(*[st.sampled_from((-1, 0, 1))] * 3))
def test_the_error_of_a_formula_bounds_what_its_terms_can_do(values: Any, shares: Any, signs: Any) -> None:
    for formula in ("(a - b) / c", "min(1, a / b / c)", "a / (b * c)", "a * b + c"):
        exact = dict(zip("abc", values, strict=True))
        moved = {n: v * (1 + s * d) for (n, v), s, d in zip(exact.items(), shares, signs, strict=True)}
        bounds = {n: Value(v, v * s) for (n, v), s in zip(exact.items(), shares, strict=True)}
        found = formulas.evaluate(formula, bounds.__getitem__)
        other = formulas.evaluate(formula, {n: Value(v) for n, v in moved.items()}.__getitem__)
        assert found is not None and other is not None
        assert abs(found.value - other.value) <= found.error + other.error


def test_a_formula_without_a_term_or_over_zero_has_no_value() -> None:
    assert formulas.evaluate("a / b", {"a": Value(1), "b": None}.__getitem__) is None
    assert formulas.evaluate("a / b", {"a": Value(1), "b": Value(0)}.__getitem__) is None


def test_formulas_name_only_what_is_defined() -> None:
    for name, definition in {**METRICS, **TERMS}.items():
        for formula in getattr(definition.how, "alternatives", ()):
            assert set(formulas.names(formula)) <= METRICS.keys() | TERMS.keys(), name


@pytest.mark.parametrize("formula", ["a - (b - c)", "a / (b * c)", "(a + b) * c", "a - b - c", "a / b / c", "min(1, a + b) * c"])
def test_a_formula_keeps_its_brackets(formula: str) -> None:
    assert formulas.with_numbers(formula, str) == formula
