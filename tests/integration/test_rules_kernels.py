"""Each rule fires on a kernel with its fault and is silent on the mended one; the promised gain is what mending brings."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import explorer
from collectors import neuron_profile
from collectors.nki.run import Request, record
from explorer.analysis.lower_bound import lower_bound
from explorer.rules import RULES, Finding, evaluate
from explorer.rules.registry import WITH_LESS_WORK
from explorer.store.reader import Profile
from tests import make_samples

KERNELS = Path(__file__).parents[1] / "kernels"
BUNDLED = Path(__file__).parents[2] / "emulator" / "kernels"
HARDWARE = Path(__file__).parents[3] / "shared" / "data" / "neuron_profile"
NAMES = {rule.NAME for rule in RULES}


@dataclass(frozen=True, slots=True)
class Pair:
    """A kernel with a fault and the mended one, each with its arguments; `line` is text of the faulty line, "" for any."""

    rule: str
    file: str
    fault: str
    mended: str
    arguments: tuple[str, ...]
    mended_arguments: tuple[str, ...] = ()
    line: str = ""


PAIRS = (
    Pair(
        "small_dma_transfers",
        "rules_small_transfers.py",
        "narrow_loads",
        "wide_loads",
        ("x=f32[128,4096]",),
        line="nisa.dma_copy(dst=tile[:, nl.ds(column, columns)]",
    ),
    Pair("loads_not_overlapped", "rules_overlap.py", "single_buffer", "pipelined", ("x=f32[128,16384]",), line="nisa.dma_copy("),
    Pair(
        "reloaded_inputs",
        "rules_reload.py",
        "reloaded",
        "hoisted",
        ("x=f32[1024,2048]", "factor=f32[128,2048]"),
        line="nisa.dma_copy(dst=factor_tile, src=factor)",
    ),
    Pair(
        "small_free_dimension",
        "rules_small_free.py",
        "few_elements",
        "many_elements",
        ("x=f32[128,2048]",),
        line="nisa.tensor_scalar(",
    ),
    Pair(
        "tensor_engine_transposes",
        "rules_transposes.py",
        "transposes_on_tensor_engine",
        "layout_without_transposes",
        ("left=bf16[1024,1024]", "right=bf16[1024,512]"),
        ("left_t=bf16[1024,1024]", "right=bf16[1024,512]"),
        line="nisa.nc_transpose(",
    ),
    Pair(
        "fp32_matmul",
        "rules_matmul_dtype.py",
        "float32_matmul",
        "bfloat16_matmul",
        ("left_t=f32[512,512]", "right=f32[512,2048]"),
        line="nisa.nc_matmul(",
    ),
    Pair("unused_partitions", "rules_partitions.py", "quarter_of_the_partitions", "all_partitions", ("x=f32[1048576]",)),
)
BY_RULE = [pytest.param(pair, id=pair.rule) for pair in PAIRS]


@functools.cache
def captured(file: str, function: str, arguments: tuple[str, ...], target: str = "trn2") -> Profile:
    request = Request(KERNELS / file, function, arguments, target=target, values=False)
    return Profile.from_tables(record(request).tables)


def both(pair: Pair, target: str = "trn2") -> tuple[Profile, Profile]:
    return (
        captured(pair.file, pair.fault, pair.arguments, target),
        captured(pair.file, pair.mended, pair.mended_arguments or pair.arguments, target),
    )


def findings(profile: Profile, rule: str) -> list[Finding]:
    results = evaluate(profile)
    assert rule not in results.not_captured
    return [found for found in results.findings if found.rule == rule]


def whole(profile: Profile) -> int:
    bound = lower_bound(profile)
    assert bound is not None
    return bound.total_ns


def test_every_rule_has_a_pair() -> None:
    assert {pair.rule for pair in PAIRS} == NAMES


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("pair", BY_RULE)
def test_it_fires_on_the_fault_only(pair: Pair, target: str) -> None:
    fault, mended = both(pair, target)
    assert findings(fault, pair.rule)
    assert not findings(mended, pair.rule)


@pytest.mark.parametrize("pair", BY_RULE)
def test_it_names_the_place(pair: Pair) -> None:
    worst = findings(both(pair)[0], pair.rule)[0]
    assert worst.where.file == pair.file
    assert worst.where.line is not None and worst.where.layer is not None
    assert f"/{pair.fault}" in worst.where.layer
    assert pair.line in (KERNELS / pair.file).read_text(encoding="utf-8").splitlines()[worst.where.line - 1]
    table = both(pair)[0].table("Instruction", ["id", "nki_source_location"])
    assert table is not None
    places = dict(zip(table["id"].to_pylist(), table["nki_source_location"].to_pylist(), strict=True))
    assert worst.where.instructions
    if pair.line:
        assert f"{pair.file}:{worst.where.line}" in {places[i] for i in worst.where.instructions}


@pytest.mark.parametrize("pair", BY_RULE)
def test_the_gain_is_bounded_and_near_what_mending_brings(pair: Pair) -> None:
    fault, mended = both(pair)
    bound = lower_bound(fault)
    assert bound is not None
    worst = findings(fault, pair.rule)[0]
    assert worst.gain_ns is not None
    assert 0 < worst.gain_ns <= bound.headroom_ns
    got = bound.total_ns - whole(mended)
    promised = worst.evidence.get(WITH_LESS_WORK, worst.gain_ns)
    assert isinstance(promised, int)
    assert promised == pytest.approx(got, rel=0.25)


def test_a_well_blocked_bfloat16_matmul_has_none_of_the_faults_it_lacks() -> None:
    profile = explorer.open(make_samples.SAMPLES / "matmul_blocked")
    results = evaluate(profile)
    # Its left matrix is loaded twice, once for each half of the right one's columns: that is no mistake of the rule.
    assert {found.rule for found in results.findings} <= {"reloaded_inputs"}
    assert not results.not_captured


def test_samples_lack_what_they_lack() -> None:
    unblocked = evaluate(explorer.open(make_samples.SAMPLES / "matmul_unblocked"))
    assert "reloaded_inputs" in {found.rule for found in unblocked.findings}
    for name in ("matmul_unblocked", "matmul_blocked", "attention"):
        results = evaluate(explorer.open(make_samples.SAMPLES / name))
        assert {"fp32_matmul", "small_free_dimension", "unused_partitions", "small_dma_transfers"} <= set(results.silent)
    assert "tensor_engine_transposes" in {f.rule for f in evaluate(explorer.open(make_samples.SAMPLES / "attention")).findings}


def test_a_large_blocked_matmul_is_bound_by_its_work() -> None:
    arguments = ("left_t=bf16[2048,2048]", "right=bf16[2048,2048]")
    request = Request(BUNDLED / "matmul.py", "matmul_blocked", arguments, values=False)
    results = evaluate(Profile.from_tables(record(request).tables))
    assert [f.rule for f in results.findings if f.severity == "critical"] == []
    assert set(results.silent) >= NAMES - {"reloaded_inputs"}


def hardware(name: str = "profile_128x128x1024") -> dict[str, pa.Table]:
    """Tables of a real profile."""
    if not HARDWARE.is_dir():
        pytest.skip(f"real profiles are not in {HARDWARE}")
    return dict(neuron_profile.load([HARDWARE / f"{name}.json"]).tables)


def test_a_real_profile_is_judged_by_what_it_has() -> None:
    results = evaluate(Profile.from_tables(hardware()))
    assert set(results.not_captured) == {"fp32_matmul", "small_free_dimension", "unused_partitions"}
    # Starting the program takes 1.8 of its 1.9 ms: nothing here is worth a hundredth of the whole.
    assert not results.findings


def test_a_real_run_without_its_start_up() -> None:
    tables = hardware()
    for name in ("Instruction", "DmaPacket", "DmaPacketAggregated"):
        tables[name] = tables[name].filter(pc.greater(tables[name]["start_ts"], 1_858_000))
    results = evaluate(Profile.from_tables(tables))
    (one,) = [f for f in results.findings if f.rule == "tensor_engine_transposes"]
    # One of three matmuls turns its operand: 4 of 37 million FLOPs.
    assert (one.evidence["transposes"], one.evidence["transpose_over_matmul_percent"]) == (1, 12.5)
    assert one.where.layer == "_dot.3"
    assert one.where.engine == "tensor"
