"""The summary metrics, computed from the rows; what rows do not determine is carried over and marked as reported by the source."""

from __future__ import annotations

import argparse

from explorer.analysis.summary import Summary, summarize
from explorer.analysis.summary_definitions import METRICS
from explorer.report import output
from explorer.store import reader, schema
from explorer.store.reader import Profile
from explorer.text import safe
from explorer.times import format_time

#: Metadata of the capture that the source reports and no row determines.
_CAPTURE = ("instance_type", "compiler_version", "runtime_version", "driver_version", "collectives_version", "explorer_version")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("profile", metavar="PROFILE", help="profile directory")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the summary; returns the exit code."""
    profile = reader.open(args.profile)
    found = summarize(profile)
    if args.json:
        output.print_json(output.envelope("summary", profile, payload(profile, found), warnings(found)))
    else:
        print(text(profile, found))
    return 0


def payload(profile: Profile, found: Summary) -> dict[str, object]:
    """What the JSON answer holds beside the envelope: values by the schema's names, their units, and where each comes from."""
    units = {c.name: c.unit for c in schema.tables()["Summary"].columns}
    return {
        "metrics": dict(found.metrics),
        "units": {name: units[name] for name in found.metrics},
        "origins": dict(found.origins),
        "mismatches": [
            {"metric": m.metric, "computed": m.computed, "reported": m.reported, "error": m.error} for m in found.mismatches
        ],
        "capture": {name: profile.metadata(name) for name in _CAPTURE},
    }


def warnings(found: Summary) -> list[str]:
    """One sentence for each metric that the source reports otherwise than its rows give."""
    return [f"{m.metric}: rows give {m.computed!r}, the source reports {m.reported!r}" for m in found.mismatches]


def text(profile: Profile, found: Summary) -> str:
    """The summary as text: groups, each value with its unit and where it comes from."""
    units = {c.name: c.unit for c in schema.tables()["Summary"].columns}
    rows: list[list[output.Cell]] = []
    for group in dict.fromkeys(METRICS[n].group for n in found.metrics):
        rows += [["", "", "", ""]] if rows else []
        rows.append([group, "", "", ""])
        names = [n for n in found.metrics if METRICS[n].group == group]
        rows += [[f"  {n}", *_value(found.metrics[n], units[n]), found.origins[n]] for n in names]
    capture = [f"{n} {v}" for n in _CAPTURE if (v := profile.metadata(n))]
    head = [f"{profile.path}: {profile.evidence} profile"] + ([f"reported by the source: {', '.join(capture)}"] if capture else [])
    notes = [f"note: {w}" for w in warnings(found)]
    return "\n".join([*map(safe, head), "", output.format_table(("metric", "value", "unit", "origin"), rows), *notes])


def _value(value: int | float | None, unit: str | None) -> tuple[output.Cell, str]:
    """Times in the unit that reads best; shares of one as percentages (the schema's unit is percent, its scale a fraction)."""
    if value is None:
        return None, ""
    if unit == "seconds":
        shown, symbol = format_time(round(value * 1e9)).split(" ")
        return shown, symbol
    if unit == "percent":
        return value * 100, "%"
    return int(value) if value == int(value) else value, unit or ""
