"""Perfetto export against the `perfetto` package's own builder, on the same rows with all their arguments, in the same run."""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from explorer.text import safe

SLICES = 1_000_000
#: The builder's speed does not depend on the number of rows; fewer keep the run short.
BUILDER_SLICES = 100_000
#: The best of these counts: other work on the machine only ever slows one down.
REPEATS = 5
MIN_RATE = 1_000_000
MIN_RATIO = 10
#: Four times the rows may take no more memory than this, beside what the allocator keeps.
MAX_GROWTH = 1.25
HIDDEN = ("start_ts", "end_ts", "duration_ns", "opcode")
TABLES = ("Instruction", "DmaPacketAggregated", "FrameworkNode")


def run() -> list[tuple[str, str, str, bool]]:
    """Rows of (what, measured, required, met)."""
    with tempfile.TemporaryDirectory() as folder:
        small, large, builder = Path(folder, "small"), Path(folder, "large"), Path(folder, "builder")
        # The profiles are made in processes of their own, so that their memory does not count.
        for path, slices in ((small, SLICES), (large, 4 * SLICES), (builder, BUILDER_SLICES)):
            _apart(_make, str(path), slices)
        count, seconds, processor, size, memory = _apart(_export, str(small), str(Path(folder, "t")), REPEATS)
        *_, memory_large = _apart(_export, str(large), str(Path(folder, "t")), 1)
        built, builder_seconds = _apart(_build, str(builder), str(Path(folder, "b")))
    rate, builder_rate = count / seconds, built / builder_seconds
    growth = memory_large / memory
    return [
        ("Perfetto export, all arguments", f"{rate:,.0f} slices/s", f">= {MIN_RATE:,}", rate >= MIN_RATE),
        ("  slices, bytes", f"{count:,}, {size / 1e6:,.0f} MB in {seconds:.2f} s", "", True),
        ("  processor time, two cores", f"{processor:.2f} s", "", True),
        ("  the perfetto package's builder", f"{builder_rate:,.0f} slices/s", "", True),
        ("  times the builder", f"{rate / builder_rate:.1f}", f">= {MIN_RATIO}", rate / builder_rate >= MIN_RATIO),
        (f"  peak memory growth, {SLICES:,} instructions", f"{memory / 1e6:,.0f} MB", "", True),
        (f"  the same, {4 * SLICES:,} instructions", f"{memory_large / 1e6:,.0f} MB", f"<= {MAX_GROWTH} x", growth <= MAX_GROWTH),
    ]


def _apart(function: Callable[..., Any], *arguments: object) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _make(path: str, instructions: int) -> None:
    from explorer.store import writer
    from tests import synthetic

    writer.write(path, synthetic.tables(instructions))
    os.sync()


def _export(path: str, trace: str, repeats: int) -> tuple[int, float, float, int, int]:
    """Slices, best time, least processor time, bytes and growth of peak memory, after an export that loads and compiles code."""
    from explorer.export.perfetto import export
    from explorer.store import reader
    from tests import synthetic

    export(synthetic.profile(1_000), trace, force=True)
    profile = reader.open(path)
    before = _peak()
    best = processor = float("inf")
    for _ in range(repeats):
        begin, used = time.perf_counter(), time.process_time()
        result = export(profile, trace, force=True)
        best, processor = min(best, time.perf_counter() - begin), min(processor, time.process_time() - used)
    return sum(result.slices.values()), best, processor, result.bytes, _peak() - before


def _build(path: str, trace: str) -> tuple[int, float]:
    """Slices and time of the package's builder on the same rows, counters included; reading counts for it as for the export."""
    from explorer.store import reader
    from tests.perfetto.reference import Reference

    profile = reader.open(path)
    count = 0
    begin = time.perf_counter()
    with open(trace, "wb") as file:
        reference = Reference(file)
        for table in TABLES:
            for rows in profile.chunks(table):
                name = {"Instruction": "opcode", "DmaPacketAggregated": "variable", "FrameworkNode": "node_name"}[table]
                names = [safe(n) for n in rows[name].to_pylist()]
                hidden = (*HIDDEN, "children_names", "children_ids", "time_intervals")
                reference.slices(table, rows, names, [1] * rows.num_rows, hidden)
                count += rows.num_rows
        for table, columns in _counters():
            for rows in profile.chunks(table, ["timestamp", *columns]):
                for track, column in enumerate(columns, 2):
                    reference.counter(track, rows["timestamp"].to_pylist(), rows[column].to_pylist())
        file.flush()
        os.fsync(file.fileno())
    return count, time.perf_counter() - begin


def _counters() -> list[tuple[str, list[str]]]:
    from explorer.export.perfetto.counters import COUNTERS

    return [(table, [c.column for c in COUNTERS if c.table == table]) for table in dict.fromkeys(c.table for c in COUNTERS)]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
