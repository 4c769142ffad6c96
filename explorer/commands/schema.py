"""The published tables and their columns, with type, unit and what each holds."""

from __future__ import annotations

import argparse
import difflib

from explorer.report import output
from explorer.store import scales, schema
from explorer.store.errors import UsageError


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("table", nargs="?", metavar="TABLE", help="one table with its columns (default: all tables)")
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print them; returns the exit code."""
    if args.table is None:
        rows: list[dict[str, output.Cell]] = [
            {"table": t.name, "columns": len(t.columns), "description": t.description} for t in schema.tables().values()
        ]
        _print("schema", rows, ("table", "columns", "description"), args.json)
        return 0
    spec = _find(args.table)
    rows = [
        {
            "column": c.name,
            "type": c.type,
            "unit": c.unit,
            "scale": scale.kind if (scale := scales.scale(spec.name, c.name)) else None,
            "required": c.required,
            "description": c.description,
        }
        for c in spec.columns
    ]
    if not args.json:
        print(f"{spec.name}: {spec.description}\n")
    _print("schema", rows, ("column", "type", "unit", "scale", "required", "description"), args.json)
    return 0


def _find(name: str) -> schema.TableSpec:
    by_name = {t.lower(): spec for t, spec in schema.tables().items()}
    if name.lower() in by_name:
        return by_name[name.lower()]
    near = difflib.get_close_matches(name.lower(), by_name, n=3, cutoff=0.6)
    hint = f"did you mean {', '.join(by_name[n].name for n in near)}?" if near else "`trnscope schema` lists all"
    raise UsageError(f"{name}: no table of schema {schema.VERSION}; {hint}")


def _print(kind: str, rows: list[dict[str, output.Cell]], columns: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        payload = {"schema_version": schema.VERSION, **output.listing(rows, len(rows))}
        output.print_json(output.envelope(kind, None, payload))
    else:
        print(output.format_table(columns, [[row[c] for c in columns] for row in rows], left=len(columns)))
