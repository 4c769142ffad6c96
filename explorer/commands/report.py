"""Findings of a profile, largest gain first: what is wrong and where, what shows it, what mending it can gain, and how. With them
the use of the engines, the longest layers and source lines, and how far to trust the data. Markdown for people and CI, or JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from explorer.export.files import whole_file
from explorer.report import json_, markdown, output
from explorer.report.build import TOP, Report, build
from explorer.store import reader


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    output.add_profile(parser)
    parser.add_argument("--format", choices=("md", "json"), default="md", help="Markdown or JSON (default: md)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to a file instead of the terminal")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument("--source-root", type=output.folder, metavar="DIR", help="where the files lie that the profile names")
    output.add_limit(parser, TOP)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the report; returns the exit code."""
    form = "json" if args.json else args.format
    profile = reader.open(args.profile)
    if args.output is None:
        sys.stdout.write(_text(build(profile, source_root=args.source_root, top=args.limit), form))
        return 0
    with whole_file(args.output, force=args.force) as file:
        file.write(_text(build(profile, source_root=args.source_root, top=args.limit), form).encode())
    print(f"{args.output}: report written", file=sys.stderr)
    return 0


def _text(report: Report, form: str) -> str:
    return output.json_text(json_.render(report)) if form == "json" else markdown.render(report)
