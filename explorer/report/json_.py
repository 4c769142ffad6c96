"""A report as one JSON object (schemas/report.json)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from explorer.report.build import Report
from explorer.report.output import envelope
from explorer.rules.finding import Finding, Where


def render(report: Report) -> dict[str, Any]:
    """The object: the envelope that all answers share, then the report. Ids are strings: many readers round 64-bit numbers."""
    bound = report.bound
    payload = {
        "name": report.name,
        "target": report.target,
        "made_by": report.made_by,
        "physical_cores": report.cores,
        "facts": dict(report.facts),
        "total_ns": report.duration_ns,
        "lower_bound": None
        if bound is None
        else {
            "engine": bound.engine,
            "bound_ns": bound.bound_ns,
            "headroom_ns": bound.headroom_ns,
            "busy_ns": dict(bound.busy_ns),
        },
        "engines": [asdict(engine) for engine in report.engines],
        "metrics": dict(report.metrics),
        "findings": [finding(f) for f in report.rules.findings],
        "rules_not_captured": dict(report.rules.not_captured),
        "rules_silent": list(report.rules.silent),
        "layers": None if report.layers is None else [asdict(layer) for layer in report.layers],
        "layers_total": report.layers_total,
        "lines": None if report.lines is None else [{**asdict(at.line), "text": at.text} for at in report.lines],
        "lines_total": report.lines_total,
        "other_lines": None if report.other_lines is None else {**asdict(report.other_lines), "text": None},
        "coverage": None if report.coverage is None else asdict(report.coverage),
        "data_warnings": [{"category": category, "message": message} for category, message in report.warnings],
    }
    return envelope("report", report.profile, payload, report.mismatches)


def finding(found: Finding) -> dict[str, Any]:
    """A finding as every JSON answer has it."""
    return {
        "rule": found.rule,
        "severity": found.severity,
        "title": found.title,
        "gain_ns": found.gain_ns,
        "gain_percent": found.gain_percent,
        "where": _where(found.where),
        "evidence": dict(found.evidence),
        "advice": found.advice,
    }


def _where(at: Where) -> dict[str, Any]:
    return {**asdict(at), "instructions": [str(i) for i in at.instructions]}
