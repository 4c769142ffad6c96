"""The file being written: packets one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import numpy as np

from explorer.export.perfetto import layout
from explorer.export.perfetto.encoder import Bytes


class Trace:
    """A stream of packets. Interned strings live until the next `begin_state`, so that memory does not grow with the trace."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._first = True
        self._buffer = np.empty(0, np.uint8)

    def write(self, packets: bytes | Bytes) -> None:
        """Append whole packets."""
        if len(packets):
            self._file.write(memoryview(packets))

    def buffer(self, size: int) -> Bytes:
        """Room for that many bytes; the same memory each time."""
        if len(self._buffer) < size:
            self._buffer = np.empty(size + size // 4, np.uint8)
        return self._buffer

    def begin_state(self, annotations: Sequence[str], categories: Sequence[str], strings: bytes) -> None:
        """Forget what was interned and begin anew; `strings` are further entries of the InternedData message."""
        self.write(layout.state(self._first, annotations, categories, strings))
        self._first = False
