"""Loops of the kernel language: they run as Python ranges, and tell the recorder the name and value of their variable."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from emulator.nki.session import running
from emulator.stacks import loop_variable


class LoopRange:
    """`nl.affine_range` and its kin: iterates as `range` does."""

    __slots__ = ("values",)

    def __init__(self, start: Any, stop: Any = None, step: Any = 1, **hints: Any) -> None:
        self.values = range(int(start)) if stop is None else range(int(start), int(stop), int(step))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, position: int) -> int:
        return self.values[position]

    def __iter__(self) -> Iterator[int]:
        session = running()
        return iter(self.values) if session is None else _tracked(self.values, session)


def _tracked(values: range, session: Any) -> Iterator[int]:
    loops = session.recorder.loops
    level: Any = None
    try:
        for value in values:
            if level is None:
                frame = sys._getframe(1)
                variable = loop_variable(frame)
                if variable is None:
                    yield from values[values.index(value) :]
                    return
                level = loops.push(variable[0], frame.f_code.co_filename, variable[1])
            loops.set(level, value)
            yield value
    finally:
        # Runs as soon as the loop ends, a break, return or exception included.
        if level is not None:
            loops.pop(level)
