"""A profile whose columns are read once: the metrics share a few columns of two big tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from explorer.store.reader import Profile


class Held(Profile):
    """The profile itself, each column that was asked for kept in memory for the next time."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile.path, {}, {})
        self._profile = profile
        self._held: dict[tuple[str, str], pa.ChunkedArray] = {}

    @property
    def tables(self) -> tuple[str, ...]:
        return self._profile.tables

    def columns(self, name: str) -> tuple[str, ...]:
        return self._profile.columns(name)

    def files(self, name: str) -> tuple[Path, ...]:
        return self._profile.files(name)

    def rows(self, name: str) -> int:
        return self._profile.rows(name)

    def chunks(self, name: str, columns: Sequence[str] | None = None, *, coded: bool = False) -> Iterator[pa.Table]:
        return self._profile.chunks(name, columns, coded=coded)

    def row(self, name: str, position: int) -> dict[str, Any]:
        return self._profile.row(name, position)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table | None:
        if columns is None or name not in self.tables:
            return self._profile.table(name, columns)
        missing = [c for c in columns if (name, c) not in self._held]
        if missing:
            read = self._profile.table(name, missing)
            if read is None:
                return None
            self._held |= {(name, c): read[c] for c in missing}
        return pa.table({c: self._held[name, c] for c in columns})
