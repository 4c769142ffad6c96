"""Instructions that match all of the given conditions, with their times in nanoseconds."""

from __future__ import annotations

import argparse

from explorer.analysis.instructions import ORDERS, SHOWN, Selection, instructions
from explorer.report import output
from explorer.store import reader, schema
from explorer.text import safe
from explorer.times import parse_range

_TEXTS = ("id", "engine", "opcode", "layer", "nki_source_location", "operands")
#: Texts are cut to this many characters for people; --json has them whole.
_WIDEST = 60


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    output.add_profile(parser)
    parser.add_argument("--engine", help="tensor, vector, scalar, gpsimd or sync, old names too (PE, DVE, ACT, Pool, SP)")
    parser.add_argument("--opcode", help="opcode, such as MATMUL")
    parser.add_argument("--layer", help="layer path, with all below it")
    parser.add_argument("--line", metavar="FILE:LINE", help="source line, file or file:line")
    parser.add_argument("--at", metavar="T0..T1", help="only what touches this time, such as 1.2us..3us")
    parser.add_argument("--sort", choices=ORDERS, default="start", help="order: start, longest duration or longest wait first")
    output.add_limit(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the listing; returns the exit code."""
    profile = reader.open(args.profile)
    at = parse_range(args.at) if args.at else (None, None)
    selection = Selection(args.engine, args.opcode, args.layer, args.line, at)
    found = instructions(profile, selection, order=args.sort, limit=args.limit)
    if args.json:
        warnings = [f"{name}: not captured, so no row can match" for name in (found.not_captured if found else ())]
        rows = [] if found is None else [{k: _plain(k, v) for k, v in r.items()} for r in found.rows.to_pylist()]
        output.print_json(output.envelope("instructions", profile, output.listing(rows, found.total if found else 0), warnings))
        return 0
    print(f"{safe(str(profile.path))}: {profile.evidence} profile")
    if found is None:
        print("instructions: not captured")
        return 0
    if found.not_captured:
        print(f"no row can match: {', '.join(found.not_captured)} not captured")
        return 0
    if not found.total:
        print("no instruction matches")
        return 0
    columns = [c for c in SHOWN if c in found.rows.column_names and found.rows[c].null_count < max(found.rows.num_rows, 1)]
    cells = [[_cell(c, row[c]) for c in columns] for row in found.rows.select(columns).to_pylist()]
    print(output.format_table(columns, cells, left=_TEXTS))
    if note := output.cut_note(found.rows.num_rows, found.total):
        print(note)
    return 0


def _cell(column: str, value: str | int | None) -> output.Cell:
    if column == "id":
        return None if value is None else str(value)
    return safe(value, _WIDEST) if isinstance(value, str) else value


def _plain(column: str, value: object) -> object:
    """Ids are texts: many readers of JSON round numbers of 64 bits. Times are numbers, whatever clock they count from."""
    if column == "id":
        return None if value is None else str(value)
    spec = schema.tables()["Instruction"].column(column)
    return value if spec is not None and spec.unit == "nanoseconds" else output.exact(value)
