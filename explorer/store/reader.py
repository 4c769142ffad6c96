"""Profiles as they lie on disk: any directory of Parquet tables of Neuron Explorer's schema, whatever its version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from explorer.store import schema
from explorer.store.errors import ProfileError

Evidence = Literal["emulated", "measured", "unknown"]

#: Bytes a row that a text column stored as a dictionary takes at most.
_CODE_BYTES = 4
#: Big tables are split into Name_0.parquet, Name_1.parquet, ...
_PART = re.compile(r"(?P<table>.+?)(?:_(?P<part>\d+))?\.parquet")


class Profile:
    """A profile: named tables, read column by column when asked for. Missing tables are *not captured*, never empty."""

    def __init__(self, path: Path, files: Mapping[str, Sequence[Path]], memory: Mapping[str, pa.Table]) -> None:
        self.path = path
        self._memory = dict(memory)
        self._footers = {file: _footer(file) for parts in files.values() for file in parts}
        self._recent: dict[str, tuple[Path, int, pa.Table]] = {}
        self._files = {n: tuple(parts) for n, parts in files.items() if any(self._footers[f].num_rows for f in parts)}

    @classmethod
    def from_tables(cls, tables: Mapping[str, pa.Table], path: Path | str = "(in memory)") -> Profile:
        """A profile that is not on disk; tables without rows count as not captured, as they do when written."""
        return cls(Path(path), {}, {name: table for name, table in tables.items() if table.num_rows})

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the captured tables, sorted."""
        return tuple(sorted({*self._files, *self._memory}))

    @property
    def not_captured(self) -> tuple[str, ...]:
        """Published tables that this profile does not have, sorted."""
        return tuple(sorted(set(schema.tables()) - set(self.tables)))

    def files(self, name: str) -> tuple[Path, ...]:
        """The Parquet files of a table in order; empty if it was not captured or is not on disk."""
        return self._files.get(name, ())

    def columns(self, name: str) -> tuple[str, ...]:
        """Columns that a table has in this profile; empty if it was not captured."""
        if name in self._memory:
            return tuple(self._memory[name].column_names)
        return tuple(dict.fromkeys(c for f in self.files(name) for c in self._footers[f].schema.to_arrow_schema().names))

    def rows(self, name: str) -> int:
        """Number of rows of a table; 0 if it was not captured."""
        if name in self._memory:
            return int(self._memory[name].num_rows)
        return sum(int(self._footers[f].num_rows) for f in self.files(name))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table | None:
        """The table with the columns asked for, in that order (all by default), or None if it was not captured.

        Published columns come in their published type; one that this profile lacks comes back as nulls.
        Raises ProfileError where a file cannot be read or a column cannot be brought to that type.
        """
        chunks = list(self.chunks(name, columns))
        return pa.concat_tables(chunks, promote_options="permissive") if chunks else None

    def chunks(self, name: str, columns: Sequence[str] | None = None, *, coded: bool = False) -> Iterator[pa.Table]:
        """The same rows as `table`, one Parquet row group at a time: memory stays bounded. Nothing if it was not captured.

        `coded`: texts that repeat may come as Arrow dictionaries, as the file stores them, which is faster to read and to hold.
        """
        wanted = tuple(self.columns(name) if columns is None else columns)
        if name in self._memory:
            yield _shape(name, self._memory[name], wanted, self.path)
        for file in self.files(name):
            have = [c for c in wanted if c in self._footers[file].schema.to_arrow_schema().names]
            for group in range(self._footers[file].num_row_groups):
                raw = self._read_group(file, group, have, coded=coded)
                rows = self._footers[file].row_group(group).num_rows
                yield _shape(name, raw if have else pa.table({"": pa.nulls(rows)}), wanted, file, coded=coded)

    def row(self, name: str, position: int) -> dict[str, Any]:
        """One row of a table by column, all columns it has; only the row group that holds it is read, and kept for the next call.

        Raises IndexError where the table has no such row, ProfileError where its file cannot be read.
        """
        if name in self._memory and 0 <= position < self._memory[name].num_rows:
            return dict(_shape(name, self._memory[name].slice(position, 1), self.columns(name), self.path).to_pylist()[0])
        before = position
        for file in self.files(name):
            for group in range(self._footers[file].num_row_groups):
                rows = self._footers[file].row_group(group).num_rows
                if 0 <= before < rows:
                    if self._recent.get(name, (None, 0))[:2] != (file, group):
                        self._recent[name] = (file, group, self._read_group(file, group, None))
                    raw = self._recent[name][2]
                    return dict(_shape(name, raw.slice(before, 1), self.columns(name), file).to_pylist()[0])
                before -= rows
        raise IndexError(f"{name} has no row {position}")

    def _read_group(self, file: Path, group: int, columns: Sequence[str] | None, *, coded: bool = False) -> pa.Table:
        footer = self._footers[file]
        try:
            repeating = _repeating(footer, group) if coded else None
            return pq.ParquetFile(file, metadata=footer, read_dictionary=repeating).read_row_group(group, columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise ProfileError(f"{file}: damaged Parquet file ({_first_line(error)}); capture or copy it again") from error

    def metadata(self, column: str) -> Any:
        """A value of the Metadata table's first row, or None where it was not captured."""
        table = self.table("Metadata", [column])
        return table[column][0].as_py() if table is not None and table.num_rows else None

    @property
    def evidence(self) -> Evidence:
        """Whether the profile was emulated or measured, as its Metadata says; "unknown" if it does not say."""
        flag = self.metadata("is_simulation")
        return "unknown" if flag is None else "emulated" if flag else "measured"


def open(path: Path | str) -> Profile:
    """The profile at `path`. Raises `ProfileError` if there is none or one of its files is not Parquet."""
    path = Path(path)
    if not path.exists():
        raise ProfileError(f"{path}: no such profile")
    if not path.is_dir():
        raise ProfileError(f"{path}: a file, not a profile directory; `trnscope import {path.name} -o PROFILE` makes one")
    files: dict[str, list[tuple[int, Path]]] = {}
    for file in path.glob("*.parquet"):
        if match := _PART.fullmatch(file.name):
            files.setdefault(match["table"], []).append((int(match["part"] or -1), file))
    if not files:
        inside = sorted(p.name for p in path.iterdir() if p.is_dir() and any(p.glob("*.parquet")))
        hint = f"did you mean {path / inside[0]}?" if inside else "`trnscope capture` or `trnscope import` makes one"
        raise ProfileError(f"{path}: not a profile: it holds no Parquet tables; {hint}")
    return Profile(path, {name: [file for _, file in sorted(parts)] for name, parts in sorted(files.items())}, {})


def _footer(file: Path) -> Any:
    try:
        return pq.read_metadata(file)
    except (OSError, pa.ArrowException) as error:
        what = "empty file" if file.stat().st_size == 0 else f"not a whole Parquet file ({_first_line(error)})"
        raise ProfileError(f"{file}: {what}; capture or copy it again") from error


def _repeating(footer: Any, group: int) -> list[str]:
    """Text columns that a row group stores as a dictionary: they take fewer bytes a row than any text of their own would."""
    columns = [footer.row_group(group).column(i) for i in range(footer.num_columns)]
    texts = {f.name for f in footer.schema.to_arrow_schema() if pa.types.is_string(f.type)}
    few = [c.path_in_schema for c in columns if c.total_uncompressed_size <= _CODE_BYTES * c.num_values]
    return [name for name in few if name in texts]


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")


def _shape(name: str, raw: pa.Table, wanted: Sequence[str], source: Path, *, coded: bool = False) -> pa.Table:
    spec = schema.tables().get(name)
    arrays = []
    for column in wanted:
        known = spec.column(column) if spec else None
        if column not in raw.column_names:
            arrays.append(pa.nulls(raw.num_rows, known.arrow if known else pa.null()))
            continue
        values = raw[column]
        if coded and known and pa.types.is_dictionary(values.type) and values.type.value_type == known.arrow:
            arrays.append(values)
            continue
        if known and values.type != known.arrow:
            try:
                values = values.cast(known.arrow)
            except pa.ArrowException as error:
                raise ProfileError(
                    f"{source}: {name}.{column} is {values.type} and cannot be read as {known.arrow} ({_first_line(error)})"
                ) from error
        arrays.append(values)
    return pa.Table.from_arrays(arrays, names=list(wanted))
