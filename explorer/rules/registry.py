"""All rules: `evaluate(profile)` asks each, bounds what it promises and ranks the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from explorer.analysis.lower_bound import LowerBound
from explorer.rules import (
    fp32_matmul,
    loads_not_overlapped,
    reloaded_inputs,
    small_dma_transfers,
    small_free_dimension,
    tensor_engine_transposes,
    unused_partitions,
)
from explorer.rules.draft import Draft, Rule
from explorer.rules.facts import Facts
from explorer.rules.finding import Finding, Severity
from explorer.rules.thresholds import NOTABLE, SEVERE, WORTH
from explorer.store.reader import Profile

#: In alphabetical order.
RULES: tuple[Rule, ...] = cast(
    tuple[Rule, ...],
    (
        fp32_matmul,
        loads_not_overlapped,
        reloaded_inputs,
        small_dma_transfers,
        small_free_dimension,
        tensor_engine_transposes,
        unused_partitions,
    ),
)

#: Evidence key: what could be gained if the work that the remedy takes away no longer bounds the whole.
WITH_LESS_WORK = "gain_with_less_work_ns"


@dataclass(frozen=True, slots=True)
class RuleResults:
    """Findings, largest gain first; the rules that could not look, each with the reason; the rules that looked and found nothing.

    Gains of findings about the same time do not add up.
    """

    findings: tuple[Finding, ...]
    not_captured: Mapping[str, str]
    silent: tuple[str, ...]


def evaluate(profile: Profile, rules: Sequence[Rule] = RULES) -> RuleResults:
    """What the rules say about a profile. Raises ProfileError where a table cannot be read."""
    facts = Facts(profile)
    findings: list[Finding] = []
    missing: dict[str, str] = {}
    silent: list[str] = []
    for rule in rules:
        lacks = lacking(profile, rule.NEEDS)
        if lacks and _none_on(facts, rule.ENGINES):
            silent.append(rule.NAME)
            continue
        if lacks:
            missing[rule.NAME] = f"not captured: {', '.join(lacks)}"
            continue
        found = [f for d in rule.find(facts) if (f := bounded(rule.NAME, d, facts.bound)) is not None]
        findings += found
        if not found:
            silent.append(rule.NAME)
    findings.sort(key=_rank)
    return RuleResults(tuple(findings), missing, tuple(silent))


def lacking(profile: Profile, needs: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The tables and columns of `needs` that the profile has not, or only without a value."""
    found = []
    for table, columns in needs.items():
        if table not in profile.tables:
            found.append(table)
            continue
        found += [f"{table}.{column}" for column in columns if not _has_values(profile, table, column)]
    return found


def _none_on(facts: Facts, engines: Sequence[str]) -> bool:
    """Whether it is known that none of these engines did anything: then there is nothing that was not captured."""
    at = facts.instructions
    return bool(engines) and len(at.row) > 0 and bool((at.engine >= 0).all()) and not set(engines) & set(at.engines)


def _has_values(profile: Profile, table: str, column: str) -> bool:
    if column not in profile.columns(table):
        return False
    return any(chunk[column].null_count < chunk.num_rows for chunk in profile.chunks(table, [column]))


def bounded(rule: str, draft: Draft, bound: LowerBound | None) -> Finding | None:
    """The finding with its gain bounded and its severity, or None where even less work would gain too little to report.

    The gain never exceeds the whole time minus the lower bound of the busiest engine. Where the remedy takes work off that engine,
    more can be gained; how much stands in the evidence as `gain_with_less_work_ns`.
    """
    if bound is None or bound.total_ns <= 0:
        return Finding(rule, "info", draft.title, draft.where, None, None, draft.advice, dict(draft.evidence))
    gain = max(min(draft.gain_ns, bound.headroom_ns), 0)
    left = max(busy - min(draft.removed.get(engine, 0), busy) for engine, busy in bound.busy_ns.items())
    could = max(min(draft.gain_ns, bound.total_ns - left), gain)
    if could < WORTH.value * bound.total_ns:
        return None
    evidence = dict(draft.evidence)
    if could > gain:
        evidence[WITH_LESS_WORK] = could
    return Finding(
        rule=rule,
        severity=severity(gain / bound.total_ns),
        title=draft.title,
        where=draft.where,
        gain_ns=gain,
        gain_percent=100 * gain / bound.total_ns,
        advice=draft.advice,
        evidence=evidence,
    )


def severity(share: float) -> Severity:
    """The severity of a gain that is this share of the whole time."""
    return "critical" if share >= SEVERE.value else "warning" if share >= NOTABLE.value else "info"


def _rank(finding: Finding) -> tuple[object, ...]:
    gain = -1 if finding.gain_ns is None else finding.gain_ns
    could = finding.evidence.get(WITH_LESS_WORK, gain)
    return (
        -gain,
        -could if isinstance(could, (int, float)) else 0,
        finding.rule,
        finding.where.file or "",
        finding.where.line or 0,
    )
