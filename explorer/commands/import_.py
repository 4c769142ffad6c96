"""Turn a profile measured on hardware into tables: a JSON export of neuron-profile or neuron-explorer, or a NEFF and its NTFF (or
the folder that holds them), which AWS's neuron-explorer reads if it is on PATH."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="JSON export, NEFF and NTFF, or a capture folder")
    parser.add_argument("-o", "--output", required=True, metavar="PROFILE", type=Path, help="directory to write the profile to")
    parser.add_argument("--force", action="store_true", help="replace a profile that exists")


def run(args: argparse.Namespace) -> int:
    """Import; returns the exit code."""
    from collectors import neuron_profile
    from explorer.store import writer

    writer.check_destination(args.output, args.force)
    imported = neuron_profile.load(args.files)
    writer.write(args.output, imported.tables, force=args.force, descriptions=imported.descriptions)
    for note in imported.notes:
        print(f"trnscope: {note}", file=sys.stderr)
    rows = {name: imported.tables[name].num_rows for name in ("Instruction", "DmaPacket") if name in imported.tables}
    counts = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    print(f"{args.output}: measured profile, {len(imported.tables)} tables ({counts} rows)", file=sys.stderr)
    return 0
