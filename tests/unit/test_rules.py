"""What holds for all rules: not captured is said, gains are bounded, findings are ranked."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.lower_bound import LowerBound, lower_bound
from explorer.rules import RULES, Where, evaluate, thresholds
from explorer.rules.draft import Draft, Rule
from explorer.rules.facts import Facts
from explorer.rules.registry import WITH_LESS_WORK, bounded
from explorer.store.reader import Profile
from tests import synthetic
from tests.unit.rules_tables import instruction, profile, tables, transfer

NAMES = [rule.NAME for rule in RULES]
FOLDER = Path(importlib.import_module("explorer.rules").__path__[0])


def everything() -> dict[str, pa.Table]:
    """Tables with all that any rule needs."""
    engines = ("tensor", "vector", "scalar", "gpsimd", "sync")
    rows = [instruction(i * 100, 90, engines[i % 5], "MATMUL" if i % 5 == 0 else "NEXT") for i in range(20)]
    tensor = {"variable_name": "x", "size": 10, "load_to_sbuf_total_size_bytes": 10, "load_to_sbuf_repeat_factor": 1.0}
    return tables(rows, [transfer(0, 50, ts_instruction_id=1)], [tensor])


def draft(gain: int, removed: dict[str, int] | None = None) -> Draft:
    return Draft("a fault", Where(), gain, "mend it", {"seen": 1}, removed or {})


def test_every_rule_has_a_file_of_its_name() -> None:
    shared = {"__init__", "draft", "facts", "finding", "registry", "thresholds"}
    assert sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in shared) == NAMES
    assert len(NAMES) >= 6


def test_all_rules_can_look_where_all_is_captured() -> None:
    assert not evaluate(Profile.from_tables(everything())).not_captured


@pytest.mark.parametrize(("rule", "table"), [(rule, table) for rule in RULES for table in rule.NEEDS])
def test_a_missing_table_is_not_captured(rule: Rule, table: str) -> None:
    given = everything()
    del given[table]
    results = evaluate(Profile.from_tables(given))
    assert table in results.not_captured[rule.NAME]
    assert rule.NAME not in results.silent


@pytest.mark.parametrize(
    ("rule", "table", "column"), [(rule, table, column) for rule in RULES for table in rule.NEEDS for column in rule.NEEDS[table]]
)
@pytest.mark.parametrize("how", ["absent", "null"])
def test_a_missing_column_is_not_captured(rule: Rule, table: str, column: str, how: str) -> None:
    given = everything()
    place = given[table].column_names.index(column)
    if how == "absent":
        given[table] = given[table].remove_column(place)
    else:
        kind = given[table][column].type
        given[table] = given[table].set_column(place, column, pa.nulls(given[table].num_rows, kind))
    results = evaluate(Profile.from_tables(given))
    assert f"{table}.{column}" in results.not_captured[rule.NAME]
    assert rule.NAME not in results.silent


@pytest.mark.parametrize("name", ["fp32_matmul", "tensor_engine_transposes"])
def test_without_the_engine_there_is_nothing_to_capture(name: str) -> None:
    results = evaluate(profile([instruction(0, 100, "vector")]))
    assert name in results.silent
    assert name not in results.not_captured


def test_no_instruction_at_all() -> None:
    rows = [transfer(i * 1000, 30, 64) for i in range(100)]
    given = tables([], rows)
    results = evaluate(Profile.from_tables(given))
    (one,) = results.findings
    assert (one.rule, one.gain_ns, one.gain_percent, one.severity) == ("small_dma_transfers", None, None, "info")
    assert set(results.not_captured) == set(NAMES) - {"small_dma_transfers"}


def test_an_empty_profile() -> None:
    results = evaluate(Profile.from_tables({}))
    assert not results.findings
    assert not results.silent
    assert set(results.not_captured) == set(NAMES)


@pytest.mark.parametrize("cores", [1, 3])
def test_any_profile_of_the_schema(cores: int) -> None:
    of = synthetic.profile(2000, seed=3, hostile=True, cores=cores)
    results = evaluate(of)
    bound = lower_bound(of)
    assert bound is not None
    assert all(f.gain_ns is not None and 0 <= f.gain_ns <= bound.headroom_ns for f in results.findings)
    assert {f.rule for f in results.findings} | set(results.silent) | set(results.not_captured) == set(NAMES)


@given(
    gain=st.integers(-10, 3000),
    busy=st.dictionaries(st.sampled_from(["tensor", "vector", "dma"]), st.integers(0, 1000), min_size=1),
    removed=st.dictionaries(st.sampled_from(["tensor", "vector", "dma", "sync"]), st.integers(0, 2000)),
    idle=st.integers(0, 1000),
)
def test_gains_are_bounded(gain: int, busy: dict[str, int], removed: dict[str, int], idle: int) -> None:
    engine = max(busy, key=lambda name: busy[name])
    bound = LowerBound(busy[engine] + idle, busy[engine], engine, busy)
    found = bounded("rule", draft(gain, removed), bound)
    left = max(max(ns - removed.get(name, 0), 0) for name, ns in busy.items())
    could = max(min(gain, bound.total_ns - left), 0)
    if bound.total_ns == 0:
        assert found is not None
        assert found.gain_ns is None
        return
    if found is None:
        assert could < bound.total_ns / 100
        return
    assert found.gain_ns == max(min(gain, idle), 0)
    assert found.gain_percent == pytest.approx(100 * found.gain_ns / bound.total_ns)
    assert found.evidence.get(WITH_LESS_WORK, found.gain_ns) == could


@pytest.mark.parametrize(("gain", "expected"), [(9, None), (10, "warning"), (99, "warning"), (100, "critical"), (1000, "critical")])
def test_severity_is_the_gain(gain: int, expected: str | None) -> None:
    found = bounded("rule", draft(gain), LowerBound(1000, 0, "tensor", {"tensor": 0}))
    assert (found.severity if found else None) == expected


def test_gain_from_less_work_only_is_information() -> None:
    found = bounded("rule", draft(500, {"tensor": 500}), LowerBound(1000, 1000, "tensor", {"tensor": 1000}))
    assert found is not None
    assert (found.severity, found.gain_ns, found.evidence[WITH_LESS_WORK]) == ("info", 0, 500)


def test_findings_are_ranked_by_gain() -> None:
    class Fake:
        ENGINES: tuple[str, ...] = ()
        NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType({})

        def __init__(self, name: str, *drafts: Draft) -> None:
            self.NAME, self._drafts = name, drafts

        def find(self, facts: object) -> tuple[Draft, ...]:
            return self._drafts

    of = profile([instruction(0, 10), instruction(990, 10, "scalar")])
    results = evaluate(of, [Fake("b", draft(100)), Fake("a", draft(300), draft(200)), Fake("c")])
    assert [(f.rule, f.gain_ns) for f in results.findings] == [("a", 300), ("a", 200), ("b", 100)]
    assert results.silent == ("c",)


def test_transfers_without_known_times_are_no_time() -> None:
    start, end = [1_000_000, None, 1_000_200], [1_000_100, 1_000_900, None]
    moved = pa.table({"start_ts": start, "end_ts": end, "transfer_bytes": [1, 2, 3], "queue_name": ["q"] * 3})
    for name in ("DmaPacket", "DmaPacketAggregated"):
        facts = Facts(Profile.from_tables({name: moved, "DmaPacketAggregated": moved}))
        assert (facts.transfers.start.tolist(), facts.transfers.nbytes.tolist()) == ([1_000_000], [1])
        assert [spans.tolist() for spans in facts.moving] == [[1_000_000], [1_000_100]]


def test_of_several_cores_the_busiest_is_looked_at() -> None:
    idle = [instruction(i * 10, 10, pcore_idx=0) for i in range(10)]
    faulty = [instruction(i * 100, 100, pcore_idx=1, ts_partitions=32, layer="/net/core1") for i in range(10)]
    (one,) = evaluate(profile([*idle, *faulty, instruction(2000, 10, "gpsimd", pcore_idx=1)])).findings
    assert (one.rule, one.where.layer, one.evidence["instructions"]) == ("unused_partitions", "/net/core1", 10)


def test_docs_name_every_rule_and_threshold_with_its_source() -> None:
    text = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"`{name}`" in text
    known = {n: t for n, t in vars(thresholds).items() if isinstance(t, thresholds.Threshold)}
    assert known
    for name, threshold in known.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        assert f"| {threshold.value:g}{' ' + threshold.unit if threshold.unit else ''} |" in row
        assert threshold.meaning in row
        assert threshold.source in row
