"""What long work is doing, on one line of stderr where that is a terminal; nothing elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

#: Seconds between redraws; work that is done sooner shows no time.
_TICK = 1.0


class Progress:
    """Call it with what is being done; used as a context manager, it shows for how long and leaves the line empty."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._text = ""
        self._since = 0.0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, text: str) -> None:
        """Show `text` from now on."""
        with self._lock:
            self._text, self._since = text, time.monotonic()
            self._draw("...")

    def __enter__(self) -> Progress:
        if self._shown:
            self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self.clear()

    def clear(self) -> None:
        """Empty the line, so that something else can be printed."""
        with self._lock:
            if self._text and self._shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._text = ""

    def _tick(self) -> None:
        while not self._over.wait(_TICK):
            with self._lock:
                if self._text:
                    self._draw(f"... {time.monotonic() - self._since:.0f} s")

    def _draw(self, after: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{self._text}{after}")
            sys.stderr.flush()
