"""Each rule just below its thresholds, where it is silent, and just above, where it fires."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from explorer.rules import Finding, evaluate
from explorer.store.reader import Profile
from tests.unit.rules_tables import BANDWIDTH, Row, instruction, profile, transfer


def found(of: Profile, rule: str) -> list[Finding]:
    """What that rule found; it must have been able to look."""
    results = evaluate(of)
    assert rule not in results.not_captured
    findings = [f for f in results.findings if f.rule == rule]
    assert (rule in results.silent) == (not findings)
    return findings


def computing(start: int, duration: int) -> Row:
    return instruction(start, duration, "scalar", "ACTIVATE", nki_source_location="kernel.py:99", layer="/net/other")


# small_dma_transfers


def queued(nbytes: int, count: int = 50, moving: int = 30, start_up: int = 800, **more: object) -> list[Row]:
    """Transfers asked for at time 0 that come one by one, each after its start-up."""
    return [
        transfer(start_up + i * (start_up + moving), moving, nbytes, trigger=0, ts_instruction_id=1, **more) for i in range(count)
    ]


@pytest.mark.parametrize(("nbytes", "fires"), [(32 * 1024 - 1, True), (32 * 1024, False)])
def test_small_transfers_by_size(nbytes: int, fires: bool) -> None:
    findings = found(profile([instruction(0, 10, "sync", "DMA_DIRECT2D")], queued(nbytes)), "small_dma_transfers")
    assert len(findings) == fires
    if fires:
        (one,) = findings
        assert (one.where.file, one.where.line, one.where.layer) == ("kernel.py", 7, "/net/block")
        assert one.evidence["transfers"] == 50
        ideal = round(50 * nbytes / BANDWIDTH * 1e9)
        assert one.evidence["time_with_start_up_ns"] == 50 * 830
        assert one.evidence["time_at_full_bandwidth_ns"] == ideal
        assert one.gain_ns == 50 * 830 - ideal


@pytest.mark.parametrize(("nbytes", "fires"), [(2047, True), (2048, False)])
def test_small_transfers_by_descriptor(nbytes: int, fires: bool) -> None:
    rows = [transfer(i * 1000, 900, 64 * 1024, ts_descriptor_bytes=nbytes) for i in range(10)]
    findings = found(profile([computing(20_000, 10)], rows), "small_dma_transfers")
    assert len(findings) == fires
    if fires:
        assert findings[0].where.engine == "dma"
        assert findings[0].evidence["largest_descriptor_bytes"] == nbytes


@pytest.mark.parametrize(("share", "fires"), [(0.59, True), (0.61, False)])
def test_small_transfers_only_where_they_are_slow(share: float, fires: bool) -> None:
    duration = round(64 * 1024 / BANDWIDTH * 1e9 / share)
    rows = [transfer(i * duration, duration, 64 * 1024, ts_descriptor_bytes=512) for i in range(100)]
    assert len(found(profile([computing(40_000, 10)], rows), "small_dma_transfers")) == fires


def test_small_transfers_behind_computation_gain_nothing() -> None:
    rows = queued(8192)
    last = max(int(r["end_ts"]) for r in rows)
    assert not found(profile([instruction(0, 10, "sync", "DMA_DIRECT2D"), computing(0, last)], rows), "small_dma_transfers")


# loads_not_overlapped


def turns(alone: int, dma: int = 600, total: int = 1000) -> Profile:
    """Loads, then computation, then stores, then nothing, `total` ns in all; transfers of 10 ns each."""
    half = dma // 2
    loads = [transfer(t, 10) for t in range(0, half, 10)]
    last = total - half
    stores = [transfer(t, 10, dest="[OUTPUT]") for t in range(last, total, 10)]
    return profile([computing(half, alone)], loads + stores)


@pytest.mark.parametrize(("alone", "fires"), [(99, False), (101, True)])
def test_taking_turns_by_share(alone: int, fires: bool) -> None:
    findings = found(turns(alone), "loads_not_overlapped")
    assert len(findings) == fires
    if fires:
        assert findings[0].evidence["computation_without_transfers_ns"] == alone
        assert findings[0].evidence["transfers_in_flight_while_nothing_computes_ns"] == 600
        # All of it down to the longer one, but for one load and one store of 10 ns.
        assert findings[0].gain_ns == 600 + alone - 600 - 20


@pytest.mark.parametrize(("active", "fires"), [(899, True), (901, False)])
def test_taking_turns_only_where_nothing_is_the_bound(active: int, fires: bool) -> None:
    loads = [transfer(t, 10) for t in range(0, 300, 10)]
    stores = [transfer(t, 10, dest="[OUTPUT]") for t in range(700, 1000, 10)]
    starting = instruction(0, active, "sync", "DMA_DIRECT2D")
    assert len(found(profile([computing(300, 400), starting], loads + stores), "loads_not_overlapped")) == fires


def test_loads_beside_computation_are_no_fault() -> None:
    loads = [transfer(t, 10) for t in range(0, 600, 10)]
    assert not found(profile([computing(t, 9) for t in range(10, 610, 10)], loads), "loads_not_overlapped")


# reloaded_inputs


def loaded(total: int, size: int = 1000) -> list[Row]:
    return [
        {
            "variable_name": "x",
            "size": size,
            "load_to_sbuf_total_size_bytes": total,
            "load_to_sbuf_repeat_factor": total / size,
        },
        {"variable_name": "never_loaded", "size": 5, "load_to_sbuf_total_size_bytes": 0, "load_to_sbuf_repeat_factor": None},
    ]


@pytest.mark.parametrize(("total", "fires"), [(1999, False), (2000, True)])
def test_reloaded_by_factor(total: int, fires: bool) -> None:
    rows = [transfer(i * 200, 100, total // 10, ts_instruction_id=1, ts_descriptor_bytes=None) for i in range(10)]
    of = profile([instruction(0, 10, "sync", "DMA_DIRECT2D"), computing(1900, 50)], rows, loaded(total))
    findings = found(of, "reloaded_inputs")
    assert len(findings) == fires
    if fires:
        (one,) = findings
        assert (one.evidence["tensor"], one.evidence["repeat_factor"], one.where.line) == ("x", 2.0, 7)
        # Half of the 1000 ns in which DMA moved data.
        assert one.evidence["surplus_dma_ns"] == 500
        assert one.gain_ns == 500


def test_reloaded_behind_computation_gains_only_what_is_exposed() -> None:
    # DMA moves for 2000 ns, half of it surplus; the computation beside it leaves 300 ns.
    rows = [transfer(i * 200, 200, 200, ts_instruction_id=1) for i in range(10)]
    of = profile([instruction(0, 10, "sync", "DMA_DIRECT2D"), computing(300, 1700), computing(2000, 500)], rows, loaded(2000))
    (one,) = found(of, "reloaded_inputs")
    assert (one.gain_ns, one.evidence["surplus_dma_ns"], one.evidence["dma_while_nothing_computes_ns"]) == (300, 1000, 300)


# small_free_dimension


def small(elements: int, count: int = 20, each: int = 100) -> list[Row]:
    return [instruction(i * each, each, ts_free_elements=elements) for i in range(count)]


#: What leaves headroom beside the engine that is looked at: another engine, later.
LATER = [instruction(50_000, 100, "gpsimd", "IOTA")]


@pytest.mark.parametrize(("elements", "fires"), [(63, True), (64, False)])
def test_small_free_by_elements(elements: int, fires: bool) -> None:
    findings = found(profile([*small(elements, 40), *LATER]), "small_free_dimension")
    assert len(findings) == fires
    if fires:
        assert findings[0].where.engine == "vector"
        # One cycle of 1 ns for each element.
        assert findings[0].gain_ns == 40 * 100 - 40 * elements


@pytest.mark.parametrize(("count", "fires"), [(3, False), (4, True)])
def test_small_free_needs_several(count: int, fires: bool) -> None:
    assert len(found(profile(small(8, count)), "small_free_dimension")) == fires


@pytest.mark.parametrize(("long", "fires"), [(17_900, True), (18_100, False)])
def test_small_free_by_share_of_the_engine(long: int, fires: bool) -> None:
    rest = instruction(2000, long, nki_source_location="kernel.py:8")
    assert len(found(profile([*small(8), rest, instruction(0, 1, "gpsimd", "IOTA")]), "small_free_dimension")) == fires


# tensor_engine_transposes


def matmuls(turned: int, other: int) -> list[Row]:
    turning = {"tensor_instruction_type": "TRANSPOSE", "raw_flops": turned, "adjusted_flops": turned, "flops_transpose": turned}
    return [
        instruction(0, 400, "tensor", "MATMUL", nki_source_location="kernel.py:12", **turning),
        instruction(400, 600, "tensor", "MATMUL", raw_flops=other, adjusted_flops=other),
        instruction(1500, 100, "vector"),
    ]


@pytest.mark.parametrize(("turned", "fires"), [(1000, False), (1001, True)])
def test_transposes_by_share(turned: int, fires: bool) -> None:
    findings = found(profile(matmuls(turned, 10_000)), "tensor_engine_transposes")
    assert len(findings) == fires
    if fires:
        assert (findings[0].where.line, findings[0].gain_ns) == (12, 400)


# fp32_matmul


def wide(adjusted: int, share: int = 500) -> list[Row]:
    return [
        instruction(0, share, "tensor", "MATMUL", raw_flops=1000, adjusted_flops=adjusted),
        instruction(share, 1000 - share, "tensor", "MATMUL", nki_source_location="kernel.py:8"),
        instruction(1990, 10, "vector"),
    ]


@pytest.mark.parametrize(("adjusted", "fires"), [(3999, False), (4000, True)])
def test_fp32_by_factor(adjusted: int, fires: bool) -> None:
    findings = found(profile(wide(adjusted)), "fp32_matmul")
    assert len(findings) == fires
    if fires:
        assert (findings[0].where.line, findings[0].gain_ns) == (7, 375)


@pytest.mark.parametrize(("share", "fires"), [(99, False), (101, True)])
def test_fp32_by_share_of_the_engine(share: int, fires: bool) -> None:
    assert len(found(profile(wide(4000, share)), "fp32_matmul")) == fires


def test_fp32_transposes_are_no_matmuls() -> None:
    rows = [{**row, "flops_transpose": row["raw_flops"]} for row in wide(4000)]
    assert not found(profile(rows), "fp32_matmul")


# unused_partitions


def few(partitions: int, count: int = 10, **more: object) -> Sequence[Row]:
    return [instruction(i * 100, 100, ts_partitions=partitions, **more) for i in range(count)]


@pytest.mark.parametrize(("partitions", "fires"), [(64, True), (65, False)])
def test_partitions_by_number(partitions: int, fires: bool) -> None:
    findings = found(profile([*few(partitions), instruction(2000, 100, "gpsimd", "IOTA")]), "unused_partitions")
    assert len(findings) == fires
    if fires:
        assert (findings[0].gain_ns, findings[0].where.layer) == (500, "/net/block")


@pytest.mark.parametrize(("count", "fires"), [(3, False), (4, True)])
def test_partitions_need_several(count: int, fires: bool) -> None:
    assert len(found(profile(few(32, count)), "unused_partitions")) == fires


def test_partitions_of_scalars_are_no_tile() -> None:
    assert not found(profile(few(32, ts_free_elements=1)), "unused_partitions")


def test_partitions_count_their_transfers() -> None:
    rows = [transfer(1000 + i * 100, 100, 32 * 2048, ts_instruction_id=1, write_num_sbuf_partitions=32) for i in range(10)]
    (one,) = found(profile([*few(32), instruction(2000, 10, "gpsimd", "IOTA")], rows), "unused_partitions")
    assert one.evidence["transfers"] == 10
    assert one.evidence["time_ns"] == 2000
    assert one.evidence["dma_time_for_idle_partitions_ns"] == 750
