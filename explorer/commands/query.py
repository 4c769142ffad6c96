"""Read-only SQL (DuckDB's dialect) over a profile's tables. `trnscope schema` lists tables and columns."""

from __future__ import annotations

import argparse
import itertools

from explorer.analysis.query import query
from explorer.report import output
from explorer.store import reader
from explorer.text import safe

#: Texts are cut to this many characters for people; --json has them whole.
_WIDEST = 200


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    output.add_profile(parser)
    parser.add_argument("sql", metavar="SQL", help='one SELECT, such as "SELECT opcode, count(*) FROM Instruction GROUP BY ALL"')
    output.add_limit(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the rows; returns the exit code."""
    profile = reader.open(args.profile)
    found = query(profile, args.sql, limit=args.limit)
    names, columns = _distinct(found.rows.column_names), [c.to_pylist() for c in found.rows.columns]
    if args.json:
        rows = [dict(zip(names, map(output.exact, values), strict=True)) for values in zip(*columns, strict=True)]
        output.print_json(output.envelope("query", profile, output.listing(rows, found.total)))
        return 0
    header = [safe(n) for n in names]
    left = [h for h, field in zip(header, found.rows.schema, strict=True) if str(field.type).endswith("string")]
    print(output.format_table(header, [[_cell(v) for v in values] for values in zip(*columns, strict=True)], left=left))
    if note := output.cut_note(found.rows.num_rows, found.total):
        print(note)
    return 0


def _distinct(names: list[str]) -> list[str]:
    """The names of the columns, those that came before with a number: an object holds a name once."""
    taken: list[str] = []
    for name in names:
        numbered = (f"{name}_{n}" for n in itertools.count(2))
        taken.append(name if name not in taken else next(other for other in numbered if other not in (*taken, *names)))
    return taken


def _cell(value: object) -> output.Cell:
    if isinstance(value, str):
        return safe(value, _WIDEST)
    if value is None or isinstance(value, (bool, float)):
        return value
    return value if isinstance(value, int) and abs(value) <= output.EXACT else safe(str(value), _WIDEST)
