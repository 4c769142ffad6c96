"""The kernel launch that is running: where language calls put their instructions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from emulator.errors import OutsideKernel, place
from emulator.recorder import Recorder


class Session:
    """One launch of a kernel on `target`, with values (numpy storage) or without."""

    def __init__(self, recorder: Recorder, target: str, *, values: bool, legacy: bool, seed: tuple[int, ...] = (0,)) -> None:
        self.recorder = recorder
        self.target = target
        self.values = values
        #: The generation of the kernel that is executing: how its arguments index.
        self.legacy = legacy
        self.grid: tuple[int, ...] = ()
        self.program: tuple[int, ...] = ()
        #: Reduction registers that persist between instructions, by engine.
        self.accumulators: dict[str, Any] = {}
        #: `shared_hbm` tensors of the first SPMD instance, which later ones share, and how many this instance made.
        self.shared: list[Any] = []
        self.shared_used = 0
        self.names: dict[str, int] = {}
        self._seed = seed
        self._random: np.random.Generator | None = None

    def random(self) -> np.random.Generator:
        """The generator of the launch's random numbers, seeded by the capture and the launch or by the kernel."""
        if self._random is None:
            self._random = np.random.Generator(np.random.Philox(self._seed))
        return self._random

    def seed_random(self, *seed: int) -> None:
        """Begin the random numbers anew from a seed of the kernel."""
        self._seed, self._random = seed, None

    def unique(self, name: str) -> str:
        """`name`, with a number from its second use on."""
        used = self.names[name] = self.names.get(name, 0) + 1
        return name if used == 1 else f"{name}.{used}"


_sessions: list[Session] = []


def running() -> Session | None:
    """The launch that is running, None outside kernels."""
    return _sessions[-1] if _sessions else None


def current(call: str = "this call") -> Session:
    """The launch that is running. Raises `OutsideKernel` outside kernels."""
    if not _sessions:
        at = place()
        raise OutsideKernel(
            f"{at}: {call} works only inside a kernel that is being run" if at else f"{call} works only inside a kernel"
        )
    return _sessions[-1]


@contextmanager
def launched(session: Session) -> Iterator[Session]:
    """Language calls go to `session` inside."""
    _sessions.append(session)
    try:
        yield session
    finally:
        _sessions.pop()
