"""Read-only SQL (DuckDB's dialect) over a profile's tables. `trnscope schema` lists tables and columns."""

from __future__ import annotations

import argparse

from explorer.analysis.query import query
from explorer.report import output
from explorer.store import reader


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    output.add_profile(parser)
    parser.add_argument("sql", metavar="SQL", help='one SELECT, such as "SELECT opcode, count(*) FROM Instruction GROUP BY ALL"')
    output.add_limit(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the rows; returns the exit code."""
    profile = reader.open(args.profile)
    found = query(profile, args.sql)
    shown = found.slice(0, args.limit) if args.limit else found
    if args.json:
        rows = [dict(zip(shown.column_names, map(_plain, row.values()), strict=True)) for row in shown.to_pylist()]
        output.print_json(output.envelope("query", profile, output.listing(rows, found.num_rows)))
        return 0
    cells = [[_cell(v) for v in row] for row in zip(*(c.to_pylist() for c in shown.columns), strict=True)]
    print(output.format_table(shown.column_names, cells))
    if note := output.cut_note(shown.num_rows, found.num_rows):
        print(note)
    return 0


def _plain(value: object) -> object:
    """Integers beyond what JSON readers keep exact become strings."""
    if isinstance(value, bool) or value is None or isinstance(value, (float, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) <= 2**53 else str(value)
    return [_plain(v) for v in value] if isinstance(value, list) else str(value)


def _cell(value: object) -> output.Cell:
    if value is None or isinstance(value, (bool, float, str)):
        return value
    return value if isinstance(value, int) and abs(value) < 2**53 else str(value)
