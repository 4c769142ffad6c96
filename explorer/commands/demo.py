"""Capture the bundled kernel (a matrix product as one writes it first), print its report, and write its profile and Perfetto trace:
the first thing to run. Running it again replaces what it wrote."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path

_FUNCTION = "matmul_unblocked"
_MENDED = "matmul_blocked"
_ARGUMENTS = ("left_t=bf16[1024,512]", "right=bf16[1024,2048]")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, default=Path("demo"), help="folder for profile and trace (default: demo)"
    )


def run(args: argparse.Namespace) -> int:
    """Show it; returns the exit code."""
    import emulator.kernels
    from collectors.nki.run import Request
    from explorer.commands import capture, main
    from explorer.commands.progress import Progress
    from explorer.store import writer

    kernel = Path(emulator.kernels.__file__).with_name("matmul.py")
    profile, trace = args.output / _FUNCTION, args.output / f"{_FUNCTION}.pftrace"
    writer.check_destination(profile, force=True)
    with Progress() as progress:
        captured = capture.record(Request(kernel, _FUNCTION, _ARGUMENTS), progress)
        writer.write(profile, captured.tables, force=True, descriptions=captured.descriptions)
    code = main(["report", str(profile)])
    sys.stdout.flush()
    code = code or main(["export", "perfetto", str(profile), "-o", str(trace), "--force"])
    if code == 0:
        print("\n" + closing(kernel, args.output, profile, trace), file=sys.stderr)
    return code


def closing(kernel: Path, folder: Path, profile: Path, trace: Path) -> str:
    """What to do next, ready to be typed."""
    name, mended, root = shlex.quote(str(profile)), shlex.quote(str(folder / _MENDED)), shlex.quote(str(kernel.parent))
    trnscope = _command()
    arguments = " ".join(f"--arg {shlex.quote(a)}" for a in _ARGUMENTS)
    return "\n".join(
        (
            f"browse the profile:  {trnscope} tui {name} --source-root {root}",
            f"browse the trace:    open {trace} at https://ui.perfetto.dev",
            f"see the lines:       {trnscope} source {name} --source-root {root}",
            f"capture the remedy:  {trnscope} capture {shlex.quote(str(kernel))}:{_MENDED} {arguments} -o {mended}",
        )
    )


def _command() -> str:
    """How to call this program from here: by its name where the shell finds it, else by its path."""
    if shutil.which("trnscope") or Path(sys.argv[0]).name != "trnscope":
        return "trnscope"
    return shlex.quote(os.path.relpath(sys.argv[0]))
