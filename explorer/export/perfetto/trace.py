"""The file being written: packets one after the other, written behind the back of whoever encodes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import IO, Any, TypeVar

import numpy as np

from explorer.export.perfetto import layout
from explorer.export.perfetto.encoder import Bytes

T = TypeVar("T")


class Trace:
    """A stream of packets. Interned strings live until the next `begin_state`, so that memory does not grow with the trace.

    As a context manager it ends its thread; everything is in the file after that, or the error that kept it out is raised.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._first = True
        #: One buffer is filled while the other is written.
        self._buffers = [np.empty(0, np.uint8), np.empty(0, np.uint8)]
        self._thread = ThreadPoolExecutor(1)
        self._writing: Future[Any] | None = None

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._thread.shutdown(wait=True)
        if self._writing is not None and error is None:
            self._writing.result()

    def write(self, packets: bytes) -> None:
        """Append whole packets."""
        if packets:
            self._submit(packets)

    def fill(self, size: int, write: Callable[[Bytes], int]) -> None:
        """Append what `write` puts into a buffer of at least that many bytes; it returns how many it used."""
        if len(self._buffers[0]) < size:
            self._buffers[0] = np.empty(size + size // 4, np.uint8)
        self._submit(self._buffers[0][: write(self._buffers[0])])
        self._buffers.reverse()

    def begin_state(self, annotations: Sequence[str], categories: Sequence[str], strings: bytes) -> None:
        """Forget what was interned and begin anew; `strings` are further entries of the InternedData message."""
        self.write(layout.state(self._first, annotations, categories, strings))
        self._first = False

    def _submit(self, packets: Any) -> None:
        if self._writing is not None:
            self._writing.result()
        self._writing = self._thread.submit(self._file.write, packets)


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; each is made in a thread of its own while the one before is in use."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item
