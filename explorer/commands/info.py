"""What a profile is, which tables it holds, and how far to trust it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from explorer.analysis.info import Info, cores, info
from explorer.report import output
from explorer.store import reader, schema
from explorer.text import safe
from explorer.times import format_time


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    output.add_profile(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print it; returns the exit code."""
    profile = reader.open(args.profile)
    found = info(profile)
    if args.json:
        payload = asdict(found)
        payload["data_warnings"] = [{"category": c, "message": m} for c, m in payload.pop("warnings")]
        output.print_json(output.envelope("info", profile, {k: v for k, v in payload.items() if k != "evidence"}))
    else:
        print(text(str(profile.path), found))
    return 0


def text(path: str, found: Info) -> str:
    """The same for people."""
    facts = [
        ("evidence", found.evidence),
        ("name", found.name),
        ("target", found.target),
        ("duration", None if found.duration_ns is None else format_time(found.duration_ns)),
        ("cores", cores(found.physical_cores)),
        ("written by", found.made_by),
        ("schema", found.schema_version),
    ]
    lines = [safe(path), *(f"  {name:<15}{'not captured' if value is None else safe(str(value))}" for name, value in facts)]
    if found.coverage is not None:
        c = found.coverage
        lines.append(f"  {'source lines':<15}{c.with_source:,} of {c.rows:,} instructions name theirs")
        lines.append(f"  {'layers':<15}{c.with_layer:,} of {c.rows:,} instructions name theirs")
        if c.duplicate_ids:
            lines.append(f"  {'duplicates':<15}{c.duplicate_ids:,} instructions repeat an id")
    lines += ["", output.format_table(("table", "rows"), list(found.tables.items()))]
    if found.unknown:
        lines += ["", f"tables that schema {schema.VERSION} does not know: {', '.join(map(safe, found.unknown))}"]
    lines += ["", f"not captured: {', '.join(found.not_captured) or 'nothing'}"]
    if found.warnings:
        lines += ["", "warnings:", *(f"  {safe(category)}: {safe(message)}" for category, message in found.warnings)]
    return "\n".join(lines)
