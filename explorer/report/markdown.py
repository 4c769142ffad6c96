"""A report as Markdown: for a terminal of 80 columns, and for GitHub, whose step summaries end at 1 MiB."""

from __future__ import annotations

import json
from collections.abc import Sequence

from explorer.analysis.info import cores
from explorer.report.build import Report, SourceLine
from explorer.report.escape import code, prose, wrap
from explorer.rules.finding import Finding
from explorer.rules.registry import WITH_LESS_WORK
from explorer.times import format_time

#: GitHub refuses a step summary above 1 MiB; below this there is room for others in the same step.
MAX_BYTES = 900 * 1024
_EVIDENCE = {
    "emulated": "timing comes from trnscope's model of the hardware, nothing was measured",
    "measured": "a capture on hardware",
    "unknown": "the profile does not say whether it was emulated or measured",
}
#: Longest name in a table's cell.
_CELL = 36
#: Columns that a line's place and text share.
_WIDTH = 70
_INDENT = "   "


def render(report: Report, max_bytes: int = MAX_BYTES) -> str:
    """The Markdown text, at most `max_bytes` long in UTF-8; where that cuts lines off, the last line says how many."""
    lines = [*_head(report), *_engines(report), *_findings(report), *_quality(report), *_layers(report), *_lines(report)]
    return _cut(lines, max_bytes)


def _head(report: Report) -> list[str]:
    target = code(report.target) if report.target else "an unknown target"
    lines = [f"# trnscope report: {code(report.name) if report.name else 'unnamed profile'}", ""]
    lines += wrap([f"**{report.evidence.capitalize()}**", "on", f"{target}:", *f"{_EVIDENCE[report.evidence]}.".split()], "", "")
    lines.append("")
    time = "not captured" if report.duration_ns is None else f"**{format_time(report.duration_ns)}**"
    facts = [("time", [f"{time},", "first", "start", "to", "last", "end"] if report.duration_ns is not None else [time])]
    if report.bound is not None:
        b = report.bound
        text = (
            f"{format_time(b.bound_ns)}: {b.engine} is at work that long, {_percent(b.bound_ns / max(b.total_ns, 1))} of the time"
        )
        facts.append(("lower bound", prose(text).split()))
    facts += [(label, _values(value)) for label, value in report.facts.items()]
    facts.append(("cores", prose(cores(report.cores) or "not captured").split()))
    facts.append(("profile", [code(str(report.profile.path))]))
    facts.append(("written by", [code(report.made_by) if report.made_by else "not captured"]))
    for label, words in facts:
        lines += wrap(words, f"- {label}: ", "  ")
    return lines


def _values(text: str) -> list[str]:
    """A value as code; each argument on its own where it is a JSON object of them."""
    try:
        loaded = json.loads(text)
    except ValueError:
        loaded = None
    return [code(f"{name}={value}") for name, value in loaded.items()] if isinstance(loaded, dict) else [code(text)]


def _engines(report: Report) -> list[str]:
    rows = [
        [e.name, _time(e.active_ns), _share(e.active_share), "" if e.name == "dma" else _number(e.instructions)]
        for e in report.engines
    ]
    lines = ["", "## Engines", "", *_table(("engine", "active", "of total time", "instructions"), rows), ""]
    words = []
    for name, value in report.metrics.items():
        shown = _share(value) if name.endswith("_percent") else _number(value)
        words += [name.removesuffix("_percent"), *f"{shown},".split()]
    words[-1] = words[-1].rstrip(",")
    return lines + wrap([prose(w) for w in words], "", "")


def _findings(report: Report) -> list[str]:
    results = report.rules
    lines = ["", "## Findings", ""]
    if results.findings:
        text = "Largest gain first. A gain is a bound: what mending it can bring while the busiest engine keeps all its work. "
        text += "Gains on the same time do not add up."
        lines += wrap(text.split(), "", "")
    else:
        lines.append("No rule found a fault worth a hundredth of the time.")
    for number, found in enumerate(results.findings, 1):
        lines += ["", *_finding(number, found)]
    if results.silent:
        lines += ["", *wrap(["Found", "nothing:", *_list(results.silent)], "", "")]
    if results.not_captured:
        lines += ["", "Rules that could not look, because of what the profile lacks:", ""]
        for rule, reason in results.not_captured.items():
            lines += wrap([f"{rule}:", *prose(reason).split()], "- ", "  ")
    return lines


def _finding(number: int, found: Finding) -> list[str]:
    mark = f"{number}. "
    if found.gain_ns is None:
        gain = "gain cannot be said"
    else:
        gain = f"up to {format_time(found.gain_ns)} ({found.gain_percent or 0.0:.1f}%)"
    could = found.evidence.get(WITH_LESS_WORK)
    lines = wrap([f"**{found.severity}**", *gain.split(), prose(found.rule)], mark, _INDENT)
    lines += ["", *wrap(f"{prose(found.title)}.".split(), _INDENT, _INDENT), ""]
    lines += wrap(_place(found), f"{_INDENT}- where: ", f"{_INDENT}  ")
    if isinstance(could, int):
        text = f"up to {format_time(could)}, because the remedy also takes work off the busiest engine"
        lines += wrap(text.split(), f"{_INDENT}- beyond that: ", f"{_INDENT}  ")
    evidence = [w for key, value in found.evidence.items() if key != WITH_LESS_WORK for w in _fact(key, value)]
    if evidence:
        lines += wrap([*evidence[:-1], evidence[-1].rstrip(";")], f"{_INDENT}- evidence: ", f"{_INDENT}  ")
    return lines + wrap(prose(found.advice).split(), f"{_INDENT}- advice: ", f"{_INDENT}  ")


def _fact(key: str, value: int | float | str) -> list[str]:
    if isinstance(value, str):
        return [*prose(key.replace("_", " ")).split(), f"{code(value)};"]
    if key.endswith("_ns"):
        return [*prose(key.removesuffix("_ns").replace("_", " ")).split(), *f"{format_time(round(value))};".split()]
    if key.endswith("_percent"):
        return [*prose(key.removesuffix("_percent").replace("_", " ")).split(), f"{value:,}%;"]
    return [*prose(key.replace("_", " ")).split(), f"{value:,};"]


def _place(found: Finding) -> list[str]:
    at = found.where
    words = []
    if at.file is not None:
        words.append(code(at.file if at.line is None else f"{at.file}:{at.line}"))
    if at.layer is not None:
        words += ["in", "layer", code(at.layer)]
    if at.engine is not None:
        words += ["on", prose(at.engine)]
    if at.start_ns is not None and at.end_ns is not None:
        words += ["from", *format_time(at.start_ns).split(), "to", *format_time(at.end_ns).split()]
    return words or ["not captured"]


def _layers(report: Report) -> list[str]:
    lines = ["", "## Layers", ""]
    if report.layers is None:
        return [*lines, "Not captured: no instruction names its layer."]
    rows = [
        [_name(layer.path), _time(layer.time_ns), _of(layer.time_ns, report), _number(layer.instructions)]
        for layer in report.layers
    ]
    lines += _table(("layer", "time", "share", "instructions"), rows)
    return [*lines, *_note("layers", len(report.layers), report.layers_total)]


def _lines(report: Report) -> list[str]:
    lines = ["", "## Source lines", ""]
    if report.lines is None:
        return [*lines, "Not captured: no instruction names its source line."]
    shown = [(_name(_at(at)), at.line) for at in report.lines]
    if report.other_lines is not None:
        shown.append(("other", report.other_lines))
    rows = [[name, _time(line.time_ns), _of(line.time_ns, report), _number(line.instructions)] for name, line in shown]
    lines += _table(("line", "time", "share", "instructions"), rows)
    texts = [f"- {_name(_at(at))}: {code(at.text, max(_WIDTH - len(_at(at)), _CELL))}" for at in report.lines if at.text]
    return [*lines, *([""] if texts else []), *texts, *_note("lines", len(report.lines), report.lines_total)]


def _at(at: SourceLine) -> str:
    return "(no line)" if at.line.file is None else at.line.file if at.line.line is None else f"{at.line.file}:{at.line.line}"


def _quality(report: Report) -> list[str]:
    lines = ["", "## Data quality", ""]
    c = report.coverage
    if c is not None:
        text = f"{c.with_source:,} of {c.rows:,} instructions name their source line, {c.with_layer:,} their layer."
        if c.duplicate_ids:
            text += f" {c.duplicate_ids:,} repeat an id."
        lines += wrap(text.split(), "- ", "  ")
    for category, message in report.warnings:
        lines.append(f"- {code(category) if category else 'warning'}: {code(message, 1000)}")
    for text in report.mismatches:
        lines += wrap(prose(text).split(), "- ", "  ")
    missing = _list(report.not_captured)
    return [*lines, *wrap(["not", "captured:", *(missing or ["nothing"])], "- ", "  ")]


def _list(names: Sequence[str]) -> list[str]:
    return [prose(n) + ("," if i + 1 < len(names) else "") for i, n in enumerate(names)]


def _note(what: str, shown: int, total: int) -> list[str]:
    return ["", f"{shown:,} of {total:,} {what}, longest first; --limit 0 for all."] if shown < total else []


def _name(text: str) -> str:
    """A name in a table's cell; a long one keeps its end, which tells more."""
    return code(text if len(text) <= _CELL else "…" + text[-(_CELL - 1) :], _CELL, cell=True)


def _of(ns: int, report: Report) -> str:
    return _percent(ns / report.duration_ns) if report.duration_ns else "-"


def _time(ns: int | None) -> str:
    return "-" if ns is None else format_time(ns)


def _share(share: float | int | None) -> str:
    return "not captured" if share is None else _percent(share)


def _percent(share: float) -> str:
    return "<0.1%" if 0 < share < 0.0005 else f"{100 * share:.1f}%"


def _number(value: int | float | None) -> str:
    return "not captured" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of GitHub's Markdown whose columns also line up as text; all but the first flush right."""
    widths = [max(len(h), *(len(r[i]) for r in rows)) if rows else len(h) for i, h in enumerate(header)]
    rule = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]
    return [
        "| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))) + " |"
        for row in (list(header), rule, *rows)
    ]


def _cut(lines: Sequence[str], max_bytes: int) -> str:
    whole = "\n".join(lines) + "\n"
    if len(whole.encode()) <= max_bytes:
        return whole
    kept, size = 0, 200
    for line in lines:
        size += len(line.encode()) + 1
        if size > max_bytes:
            break
        kept += 1
    left = f"{len(lines) - kept:,} of {len(lines):,} lines left out to stay below {max_bytes // 1024} KiB"
    note = f"**Truncated**: {left}; --format json has all."
    return "\n".join([*lines[:kept], "", note]) + "\n"
