"""Where time, instructions, FLOPs and bytes go, by layer: the path of framework layer or kernel function.

Times are those covered by at least one instruction or transfer; they overlap between siblings. Counts, FLOPs and bytes of a layer
are its own plus those of the layers below it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict

from explorer.analysis.layers import Layer, layers
from explorer.report import output
from explorer.store import reader
from explorer.text import safe
from explorer.times import format_time

#: Names are cut to this many characters for people; --json has them whole.
_WIDEST = 60
_BYTES = ("hbm_read_bytes", "hbm_write_bytes")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    output.add_profile(parser)
    parser.add_argument("--depth", type=output.count, metavar="N", help="levels to show, 0 for all (default: all)")
    output.add_limit(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the tree; returns the exit code."""
    profile = reader.open(args.profile)
    found = layers(profile)
    shown = [layer for layer in found or () if not args.depth or layer.depth < args.depth]
    total = len(shown)
    shown = shown[: args.limit] if args.limit else shown
    if args.json:
        payload = {"layers": [asdict(layer) for layer in shown], "rows_total": total, "rows_shown": len(shown)}
        warnings = [] if found is not None else [f"not captured: {output.unnamed(profile, 'layer')}"]
        output.print_json(output.envelope("layers", profile, payload, warnings))
        return 0
    print(f"{safe(str(profile.path))}: {profile.evidence} profile")
    if found is None:
        print(f"layers: not captured ({output.unnamed(profile, 'layer')})")
        return 0
    header = ("layer", "time", "wait", "instructions", "engines at work", "dma", "GFLOPs", "HBM MB")
    print(output.format_table(header, [_row(layer) for layer in shown], left=("layer", "engines at work")))
    if note := output.cut_note(len(shown), total):
        print(note)
    return 0


def _row(layer: Layer) -> list[output.Cell]:
    name = layer.path if layer.parent is None else layer.path.rpartition("/")[2]
    moved = [layer.sums[c] for c in _BYTES if c in layer.sums]
    return [
        "  " * layer.depth + safe(name, _WIDEST),
        format_time(layer.time_ns),
        format_time(layer.wait_ns),
        layer.instructions,
        engines(layer.engine_ns),
        None if layer.dma_ns is None else format_time(layer.dma_ns),
        layer.sums["raw_flops"] / 1e9 if "raw_flops" in layer.sums else None,
        sum(moved) / 1e6 if moved else None,
    ]


def engines(times: Mapping[str, int]) -> str:
    """Engines and how long each was at work, longest first."""
    return " ".join(f"{name} {format_time(ns)}" for name, ns in sorted(times.items(), key=lambda t: -t[1]))
