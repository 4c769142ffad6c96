"""What a report says, before anything is rendered: figures and findings of one profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from explorer.analysis import layers as layers_of
from explorer.analysis import source as source_of
from explorer.analysis.engines import ENGINES
from explorer.analysis.info import Coverage, info
from explorer.analysis.layers import Layer
from explorer.analysis.lower_bound import LowerBound, lower_bound
from explorer.analysis.rows import work
from explorer.analysis.source import Line
from explorer.analysis.source_text import Sources
from explorer.analysis.summary import Summary, summarize
from explorer.rules.registry import RuleResults, evaluate
from explorer.store.reader import Evidence, Profile

#: Layers and source lines that a report shows unless told otherwise.
TOP = 10
#: Summary metrics beside the engines, in the order shown; all but the FLOPs and bytes are fractions of one.
METRICS = (
    "hfu_estimated_percent",
    "mfu_estimated_percent",
    "mbu_estimated_percent",
    "hardware_flops",
    "transpose_flops",
    "hbm_read_bytes",
    "hbm_write_bytes",
    "dma_transfer_count",
    "dma_transfer_total_bytes",
)


@dataclass(frozen=True, slots=True)
class Engine:
    """How long an engine (or "dma") was active: nanoseconds, and fraction of the summary's total time; None: not captured."""

    name: str
    active_ns: int | None
    active_share: float | None
    instructions: int | None


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A source line and its text; None where the file was not found or no source root was given."""

    line: Line
    text: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """One profile's report. Texts are as the profile has them and untrusted.

    `layers` and `lines` are the longest ones, None where no instruction names its own; `layers_total` and `lines_total` count all,
    `other_lines` is what the lines left out take together.
    `mismatches` are metrics that the profile's own summary has otherwise, `bound` is None where no work was captured.
    """

    profile: Profile
    evidence: Evidence
    name: str | None
    target: str | None
    made_by: str | None
    cores: int | None
    facts: Mapping[str, str]
    duration_ns: int | None
    bound: LowerBound | None
    engines: tuple[Engine, ...]
    metrics: Mapping[str, int | float | None]
    rules: RuleResults
    layers: tuple[Layer, ...] | None
    layers_total: int
    lines: tuple[SourceLine, ...] | None
    lines_total: int
    other_lines: Line | None
    coverage: Coverage | None
    warnings: tuple[tuple[str, str], ...]
    mismatches: tuple[str, ...]
    not_captured: tuple[str, ...]


def build(profile: Profile, *, source_root: Path | None = None, top: int = TOP) -> Report:
    """The report with the `top` longest layers and lines (0: all). Raises ProfileError where a table cannot be read.

    The text of source lines is read below `source_root` and nowhere else.
    """
    about, bound = info(profile), lower_bound(profile)
    summary = summarize(profile, _wanted())
    rows = work(profile)
    layers = None if rows is None else layers_of.of_work(rows)
    lines = None if rows is None else source_of.of_work(rows)
    ranked = sorted(layers or (), key=lambda layer: (-layer.time_ns, layer.path))
    sources = Sources(source_root)
    shown = (lines or ())[: top or None]
    return Report(
        profile=profile,
        evidence=profile.evidence,
        name=about.name,
        target=about.target,
        made_by=about.made_by,
        cores=about.physical_cores,
        facts=_facts(profile),
        duration_ns=about.duration_ns if bound is None else bound.total_ns,
        bound=bound,
        engines=_engines(summary),
        metrics={name: summary.metrics[name] for name in METRICS},
        rules=evaluate(profile),
        layers=None if layers is None else tuple(ranked[: top or None]),
        layers_total=len(ranked),
        lines=None if lines is None else tuple(SourceLine(line, _text(sources, line)) for line in shown),
        lines_total=len(lines or ()),
        other_lines=None if rows is None or lines is None else source_of.rest(rows, shown),
        coverage=about.coverage,
        warnings=about.warnings,
        mismatches=tuple(f"{m.metric}: rows give {m.computed!r}, the source reports {m.reported!r}" for m in summary.mismatches),
        not_captured=about.not_captured,
    )


def _wanted() -> tuple[str, ...]:
    per_engine = [f"{e}_engine_{what}" for e in ENGINES for what in ("active_time", "active_time_percent", "instruction_count")]
    return (*per_engine, "dma_active_time", "dma_active_time_percent", *METRICS)


def _engines(summary: Summary) -> tuple[Engine, ...]:
    found = []
    for name in (*ENGINES, "dma"):
        stem = name if name == "dma" else f"{name}_engine"
        active, share = summary.metrics[f"{stem}_active_time"], summary.metrics[f"{stem}_active_time_percent"]
        count = summary.metrics.get(f"{stem}_instruction_count")
        found.append(Engine(name, None if active is None else round(active * 1e9), share, None if count is None else int(count)))
    return tuple(found)


def _facts(profile: Profile) -> dict[str, str]:
    """What was run, as far as the profile says."""
    names = {"kernel file": "ts_kernel_file", "arguments": "ts_arguments", "grid": "ts_grid", "instance": "instance_type"}
    have = set(profile.columns("Metadata"))
    values = {label: profile.metadata(column) for label, column in names.items() if column in have}
    return {label: str(value) for label, value in values.items() if value not in (None, "", "{}")}


def _text(sources: Sources, line: Line) -> str | None:
    if line.file is None or line.line is None:
        return None
    lines = sources.listing(line.file).lines
    return lines[line.line - 1].strip() if 0 < line.line <= len(lines) else None
