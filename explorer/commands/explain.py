"""What a summary metric means: its definition, its formula with this profile's numbers, its tables, and SQL that gives it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from explorer.analysis.explain import Explanation, explain
from explorer.report import output
from explorer.store import reader
from explorer.store.reader import Profile
from explorer.text import safe


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("metric", metavar="METRIC", help="name of a summary metric, as `trnscope summary` lists them")
    parser.add_argument("profile", metavar="PROFILE", help="profile directory")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the explanation; returns the exit code."""
    profile = reader.open(args.profile)
    found = explain(args.metric, profile)
    if args.json:
        output.print_json(output.envelope("explain", profile, asdict(found)))
    else:
        print(text(profile, found))
    return 0


def text(profile: Profile, found: Explanation) -> str:
    """The explanation as text."""
    lines = [
        f"{found.metric} in {safe(str(profile.path))} ({profile.evidence})",
        "",
        f"  {found.description}",
        *([f"  {found.note}"] if found.note else []),
        "",
        f"  value     {_number(found.value, found.unit)}" + (f" ({found.origin})" if found.value is not None else ""),
    ]
    if found.reported is not None and found.origin == "computed":
        lines.append(
            f"  source    {_number(found.reported, found.unit)}; may be up to {found.error:.3g} away: its times are cut to ns"
        )
    lines.append(f"  formula   {found.formula}")
    if found.with_numbers:
        lines.append(f"            = {found.with_numbers}")
    lines.append(f"  tables    {', '.join(found.tables)}")
    if found.missing:
        lines.append(f"  lacking   {', '.join(found.missing)}")
    if found.terms:
        rows: list[list[output.Cell]] = [[t.name, t.text, t.value, t.unit or ""] for t in found.terms]
        lines += ["", output.format_table(("term", "made from", "value", "unit"), rows, left=2)]
    return "\n".join([*lines, *(["", "SQL", found.sql] if found.sql else [])])


def _number(value: int | float | None, unit: str | None) -> str:
    if value is None:
        return "not captured"
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.10g}"
    return f"{shown} ({value * 100:.4g} %)" if unit == "percent" else f"{shown} {unit}" if unit else shown
