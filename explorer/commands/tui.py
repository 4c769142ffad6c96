"""Browse a profile in the terminal: timeline, layers, details, source. Where stdout is no terminal, prints the report instead."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from explorer.analysis.source_text import ROOT
from explorer.report import output
from explorer.store import reader
from explorer.store.errors import UsageError
from explorer.times import parse_range


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", type=Path, help="profile directory")
    parser.add_argument("--at", metavar="T0..T1", help="show this time range, such as 1.2ms..1.4ms")
    parser.add_argument("--select", metavar="ID", help="select this instruction; TABLE:ID for a row of another table")
    parser.add_argument(
        "--source-root", type=output.folder, metavar="DIR", help="where source files are looked up (default: the current directory)"
    )
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")


def run(args: argparse.Namespace) -> int:
    at = parse_range(args.at) if args.at else None
    # Textual draws on stderr's terminal and reads keys from stdin's.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        return _report(args.profile)
    profile = reader.open(args.profile)
    from explorer.tui.app import Explorer
    from explorer.tui.model import Model
    from explorer.tui.screen import Start

    model = Model(profile)
    begin, end = model.extent
    if at is not None and ((at[0] or 0) >= end or (at[1] is not None and at[1] <= begin)):
        raise UsageError(f"--at {args.at!r}: {args.profile} has nothing there; it goes from {begin}ns to {end}ns")
    selected = None
    if args.select:
        table, colon, identity = args.select.rpartition(":")
        if not identity.isdecimal():
            raise UsageError(f"--select {args.select!r}: no id; give a number, or TABLE:NUMBER")
        selected = model.find(table if colon else "Instruction", int(identity))
        if selected is None:
            raise UsageError(f"--select {args.select!r}: {args.profile} draws no such row; `trnscope instructions` lists ids")
    given = args.source_root
    start = Start(str(args.profile), at, selected, given or ROOT, given and str(given), args.ascii)
    app = Explorer(model, start)
    app.run(mouse=not args.no_mouse)
    return app.return_code or 0


def _report(profile: Path) -> int:
    from explorer.commands import report

    parser = argparse.ArgumentParser(prog="trnscope report")
    report.prepare_parser(parser)
    return report.run(parser.parse_args([str(profile)]))
