"""Source listing annotated with time, instructions and engines. Where the text lies below --source-root it is shown, else only the
lines that issued instructions. Times are those covered by at least one instruction of the line or a transfer it started."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from explorer.analysis.rows import work
from explorer.analysis.source import Line, of_work, rest
from explorer.analysis.source_text import ROOT, Sources
from explorer.commands.layers import engines
from explorer.report import output
from explorer.store import reader
from explorer.store.errors import UsageError
from explorer.text import safe
from explorer.times import format_time

#: Lines of text shown around one that issued instructions.
_AROUND = 2
#: Files that an error names at most.
_NAMED = 30
_HEADER = ("line", "time", "wait", "instructions", "engines at work", "dma")
_LEFT = ("line", "engines at work", "source")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    output.add_profile(parser)
    parser.add_argument("--file", metavar="FILE", help="only this file, as the profile names it")
    parser.add_argument(
        "--source-root",
        type=output.folder,
        metavar="DIR",
        default=ROOT,
        help="where source files are looked up (default: the current directory)",
    )
    parser.add_argument("--all", action="store_true", help="whole files, not only what is around lines with instructions")
    output.add_limit(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the listing; returns the exit code."""
    profile = reader.open(args.profile)
    rows = work(profile)
    found = None if rows is None else of_work(rows)
    lines = _of_file(found or (), args.file)
    total = len(lines)
    shown = lines[: args.limit] if args.limit else lines
    other = rest(rows, shown) if rows is not None and len(shown) < len(found or ()) else None
    if args.json:
        warnings = [] if found is not None else [f"not captured: {output.unnamed(profile, 'source line')}"]
        payload = {**output.listing([asdict(line) for line in shown], total), "other": None if other is None else asdict(other)}
        output.print_json(output.envelope("source", profile, payload, warnings))
        return 0
    print(f"{safe(str(profile.path))}: {profile.evidence} profile")
    if found is None:
        print(f"source lines: not captured ({output.unnamed(profile, 'source line')})")
        return 0
    sources = Sources(args.source_root)
    for file in sorted({line.file for line in shown if line.file is not None}):
        print(f"\n{safe(file)}")
        print(_file([line for line in shown if line.file == file], sources, file, args.all))
    tail = [["no line", *_figures(line)] for line in shown if line.file is None]
    if other is not None:
        tail.append(["other", *_figures(other)])
    if tail:
        print(f"\n{output.format_table(_HEADER, tail, left=_LEFT)}")
    if note := output.cut_note(len(shown), total):
        print(note)
    return 0


def _of_file(lines: tuple[Line, ...], file: str | None) -> list[Line]:
    """The lines of that file, all by default. Raises UsageError on a file that no instruction names, naming those there are."""
    there = sorted({line.file for line in lines if line.file is not None})
    if file is not None and lines and file not in there:
        raise UsageError(f"--file {file}: no instruction names it; there are: {', '.join(there[:_NAMED])}")
    return [line for line in lines if file is None or line.file == file]


def _file(lines: list[Line], sources: Sources, file: str, whole: bool) -> str:
    by_number = {line.line: line for line in lines}
    listing = sources.listing(file)
    if not listing.lines:
        rows = [[str(line.line), *_figures(line)] for line in lines]
        return output.format_table(_HEADER, rows, left=_LEFT) + f"\n({listing.why_not})"
    numbers = [
        n for n in range(1, len(listing.lines) + 1) if whole or any(n + d in by_number for d in range(-_AROUND, _AROUND + 1))
    ]
    rows, last = [], 0
    for number in numbers:
        if last and number != last + 1:
            rows.append(["...", *[""] * 6])
        line = by_number.get(number)
        figures: list[output.Cell] = list(_figures(line)) if line else [""] * 5
        rows.append([str(number), *figures, listing.lines[number - 1].expandtabs(4)])
        last = number
    return output.format_table((*_HEADER, "source"), rows, left=_LEFT)


def _figures(line: Line) -> list[output.Cell]:
    dma = None if line.dma_ns is None else format_time(line.dma_ns)
    return [format_time(line.time_ns), format_time(line.wait_ns), line.instructions, engines(line.engine_ns), dma]
