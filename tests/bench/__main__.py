"""Runs every benchmark in this folder and prints one table; exits 1 if a required figure is missed.

Each module has `run()`, which returns rows of (what, measured, required, met). Names of modules as arguments choose some.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence

import tests.bench
from explorer.report.output import format_table


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks named, or all; returns the exit code."""
    names = sorted(m.name for m in pkgutil.iter_modules(tests.bench.__path__) if not m.name.startswith("_"))
    chosen = [n for n in names if not arguments or n in arguments]
    rows = [row for name in chosen for row in importlib.import_module(f"tests.bench.{name}").run()]
    shown = [(what, measured, required, ("yes" if met else "NO") if required else "") for what, measured, required, met in rows]
    print(format_table(("what", "measured", "required", "met"), shown, left=1))
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
