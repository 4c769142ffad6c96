"""Profiles as they lie on disk: any directory of Parquet tables of Neuron Explorer's schema, whatever its version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from explorer.store import schema
from explorer.store.errors import ProfileError

Evidence = Literal["emulated", "measured", "unknown"]


class Profile:
    """A profile: named tables, read column by column when asked for. Missing tables are *not captured*, never empty."""

    def __init__(self, path: Path, files: Mapping[str, Sequence[Path]], memory: Mapping[str, pa.Table]) -> None:
        self.path = path
        self._files = files
        self._memory = memory

    @classmethod
    def from_tables(cls, tables: Mapping[str, pa.Table], path: Path | str = "(in memory)") -> Profile:
        """A profile that is not on disk."""
        return cls(Path(path), {}, dict(tables))

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the captured tables, sorted."""
        return tuple(sorted({*self._files, *self._memory}))

    @property
    def not_captured(self) -> tuple[str, ...]:
        """Published tables that this profile does not have, sorted."""
        return tuple(sorted(set(schema.tables()) - set(self.tables)))

    def columns(self, name: str) -> tuple[str, ...]:
        """Columns that a table has in this profile; empty if it was not captured."""
        if name in self._memory:
            return tuple(self._memory[name].column_names)
        if name in self._files:
            return tuple(dict.fromkeys(c for f in self._files[name] for c in pq.read_schema(f).names))
        return ()

    def rows(self, name: str) -> int:
        """Number of rows of a table; 0 if it was not captured."""
        if name in self._memory:
            return int(self._memory[name].num_rows)
        return sum(int(pq.read_metadata(f).num_rows) for f in self._files.get(name, ()))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table | None:
        """The table with the columns asked for, in that order (all by default), or None if it was not captured.

        A column that this profile lacks comes back as nulls of the published type.
        """
        if name not in self.tables:
            return None
        if name in self._memory:
            whole = self._memory[name]
        else:
            parts = []
            for file in self._files[name]:
                have = pq.read_schema(file).names
                parts.append(pq.read_table(file, columns=None if columns is None else [c for c in columns if c in have]))
            whole = pa.concat_tables(parts, promote_options="permissive")
        if columns is None:
            return whole
        spec = schema.tables().get(name)
        arrays = []
        for column in columns:
            if column in whole.column_names:
                arrays.append(whole[column])
            else:
                known = spec.column(column) if spec else None
                arrays.append(pa.nulls(self.rows(name), known.arrow if known else pa.null()))
        return pa.table(dict(zip(columns, arrays, strict=True)))

    @property
    def evidence(self) -> Evidence:
        """Whether the profile was emulated or measured, as its Metadata says; "unknown" if it does not say."""
        metadata = self.table("Metadata", ["is_simulation"])
        flag = metadata["is_simulation"][0].as_py() if metadata is not None and metadata.num_rows else None
        return "unknown" if flag is None else "emulated" if flag else "measured"


def open(path: Path | str) -> Profile:
    """The profile at `path`. Raises `ProfileError` if there is none."""
    path = Path(path)
    if not path.exists():
        raise ProfileError(f"{path}: no such profile")
    files: dict[str, list[Path]] = {}
    for file in sorted(path.glob("*.parquet")) if path.is_dir() else []:
        name = re.sub(r"_\d+$", "", file.stem)
        files.setdefault(name, []).append(file)
    if not files:
        raise ProfileError(
            f"{path}: not a profile: no Parquet tables in it (make one with `trnscope capture` or `trnscope import`)"
        )
    return Profile(path, files, {})
