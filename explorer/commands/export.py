"""Write a profile as a Perfetto trace (open it at https://ui.perfetto.dev) or as CSV."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from explorer.commands.progress import Progress
from explorer.store import reader
from explorer.store.errors import UsageError
from explorer.text import safe


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("format", choices=("perfetto", "csv"), help="what to write")
    parser.add_argument("profile", metavar="PROFILE", help="profile directory")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", type=Path, help="file to write; a folder for csv without --table"
    )
    parser.add_argument("--at", metavar="T0..T1", help="only what touches that time, such as 1.2ms..1.4ms")
    parser.add_argument("--force", action="store_true", help="replace what exists")
    perfetto = parser.add_argument_group("perfetto")
    perfetto.add_argument(
        "--dma", choices=("aggregated", "packets", "none"), help="transfers (the default), their packets, or neither"
    )
    perfetto.add_argument("--flows", action="store_true", help="draw dependencies as arrows")
    csv = parser.add_argument_group("csv")
    csv.add_argument("--table", metavar="TABLE", help="only that table")


def run(args: argparse.Namespace) -> int:
    """Export; returns the exit code."""
    from explorer.export.window import parse_window

    window = parse_window(args.at) if args.at else None
    profile = reader.open(args.profile)
    if args.format == "perfetto":
        from explorer.export import perfetto

        if args.table:
            raise UsageError("--table belongs to `export csv`; a Perfetto trace holds the timeline")
        with Progress() as progress:
            wrote = perfetto.export(
                profile,
                args.output,
                dma=args.dma or "aggregated",
                show_flows=args.flows,
                at=window,
                force=args.force,
                say=progress,
            )
        rows = [*wrote.slices.items(), ("counter samples", wrote.counters), ("flows", wrote.flows)]
        _say(f"{args.output}: {profile.evidence} profile, {wrote.bytes:,} bytes: {_counts(rows)}")
        for reason, count in wrote.dropped.items():
            _say(f"left out: {count:,} {reason}")
        _say("open it at https://ui.perfetto.dev")
    else:
        from explorer.export import csv

        if args.dma or args.flows:
            raise UsageError("--dma and --flows belong to `export perfetto`; choose tables with --table")
        if args.table:
            table = csv.export_table(profile, args.table, args.output, at=window, force=args.force)
        else:
            table = csv.export_all(profile, args.output, at=window, force=args.force)
        _say(f"{args.output}: {profile.evidence} profile: {_counts([*table.rows.items()])}")
    return 0


def _counts(rows: list[tuple[str, int]]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in rows if count)


def _say(line: str) -> None:
    print(f"trnscope: {safe(line)}", file=sys.stderr)
