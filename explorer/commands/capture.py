"""Run an NKI kernel on the emulator and write its profile: instructions, transfers, waits and dependencies, with the source lines
that asked for them. Arrays named by type and shape are filled from the seed. No accelerator and no AWS package is needed."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.commands.progress import Progress
from explorer.store.errors import ProfileError, UsageError
from explorer.text import safe

if TYPE_CHECKING:
    from collectors.nki import Captured
    from collectors.nki.run import Request

#: What the last line counts, by table.
_COUNTED = {"Instruction": "instruction", "DmaPacketAggregated": "transfer"}
#: Warnings that are shown; the rest are counted.
_WARNINGS = 5
_TARGETS = ("trn1", "trn2", "trn3")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("kernel", metavar="KERNEL.py[:function]", help="Python file, and which of its kernels if it has several")
    parser.add_argument("-o", "--output", required=True, metavar="PROFILE", type=Path, help="directory to write the profile to")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="kernel argument: an array by type and shape (x=bf16[128,512]), one from a file (x=@x.npy), or a plain value (n=4)",
    )
    parser.add_argument("--target", choices=_TARGETS, default="trn2", help="NeuronCore generation (default: trn2)")
    parser.add_argument("--grid", metavar="N[,N]", default="", help="SPMD grid to launch the kernel with, such as 2 or 2,4")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the arrays, and of what the kernel draws at random (default: 0)"
    )
    parser.add_argument("--no-values", action="store_true", help="record instructions without computing values: faster")
    parser.add_argument(
        "--source-root", type=Path, metavar="DIR", help="stored source paths are relative to this (default: the kernel's folder)"
    )
    parser.add_argument("--force", action="store_true", help="replace a profile that exists")


def run(args: argparse.Namespace) -> int:
    """Capture; returns the exit code."""
    from collectors.nki.run import Request, split
    from explorer.store import writer

    file, function = split(args.kernel)
    writer.check_destination(args.output, args.force)
    request = Request(
        file, function, tuple(args.arg), args.target, grid(args.grid), args.seed, not args.no_values, args.source_root
    )
    with Progress() as progress:
        captured = record(request, progress)
        progress(f"writing {args.output}")
        writer.write(args.output, captured.tables, force=args.force, descriptions=captured.descriptions)
    for line in [*doubts(captured), done(args.output, captured)]:
        print(line, file=sys.stderr)
    return 0


def grid(text: str) -> tuple[int, ...]:
    """The SPMD grid meant by "2" or "2,4"; empty for none. Raises UsageError on anything else."""
    sizes = [size.strip() for size in text.split(",")] if text else []
    if not all(size.isdigit() and int(size) > 0 for size in sizes):
        raise UsageError(f"--grid {text}: not whole numbers with commas between; write for example --grid 2 or --grid 2,4")
    return tuple(int(size) for size in sizes)


def record(request: Request, progress: Progress) -> Captured:
    """The tables of a run. A kernel that raises shows its own traceback; that and what the emulator refuses become ProfileError."""
    from collectors.nki import run as collector
    from emulator.errors import EmulatorError, KernelError

    if request.seed < 0:
        raise UsageError(f"--seed {request.seed}: a seed is 0 or more")
    try:
        return collector.record(request, progress)
    except KernelError as error:
        progress.clear()
        print("\n".join(safe(line) for line in error.traceback.splitlines()), file=sys.stderr)
        raise ProfileError(f"{error}; the kernel raised, nothing was written") from error
    except EmulatorError as error:
        raise ProfileError(str(error)) from error


def doubts(captured: Captured) -> list[str]:
    """What the user should hear about this kernel, a line each; what holds for every capture stands in Warning alone."""
    table = captured.tables.get("Warning")
    texts = [r["message"] for r in table.to_pylist() if r["category"] != "Emulator"] if table is not None else []
    more = [f"warning: {len(texts) - _WARNINGS} more; trnscope info shows all"] if len(texts) > _WARNINGS else []
    return [*(f"warning: {safe(text)}" for text in texts[:_WARNINGS]), *more]


def done(path: Path, captured: Captured) -> str:
    """The line that says what was written and how to look at it."""
    from explorer.times import format_time

    rows = {what: captured.tables[name].num_rows for name, what in _COUNTED.items() if name in captured.tables}
    counts = " and ".join(f"{count:,} {what}{'s' if count != 1 else ''}" for what, count in rows.items()) or "no instructions"
    metadata = captured.tables["Metadata"]
    took = metadata["last_hw_timestamp"][0].as_py() - metadata["first_hw_timestamp"][0].as_py()
    target, name, trace = metadata["ts_target"][0].as_py(), shlex.quote(str(path)), shlex.quote(f"{path.name}.pftrace")
    return (
        f"{path}: emulated profile, {len(captured.tables) + 1} tables, {counts}, {format_time(took)} on {target};"
        f" browse it: trnscope tui {name}; or: trnscope export perfetto {name} -o {trace}"
    )
