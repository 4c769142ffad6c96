"""Neuron Explorer's published Parquet schema as frozen specs, and the Arrow types that hold it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType

import pyarrow as pa

#: The schema version that the writer writes.
VERSION = "7.4.0"
#: Prefixes of what trnscope adds to the published schema.
COLUMN_PREFIX = "ts_"
TABLE_PREFIX = "Ts"

_ARROW: dict[str, pa.DataType] = {
    "integer (int32)": pa.int32(),
    "integer (int64)": pa.int64(),
    "number (float)": pa.float64(),
    "number (double)": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "array of integer (int64)": pa.list_(pa.int64()),
    "array of string": pa.list_(pa.string()),
}


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """One column: its name, published type, unit (None where it has none) and whether every table must have it."""

    name: str
    type: str
    unit: str | None
    required: bool
    description: str

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type that stores it; floats are stored as 64 bit so that no figure is rounded."""
        return _ARROW["string" if self.type.startswith("string") else self.type]

    @property
    def enum(self) -> str | None:
        """Name of the enum in `enums()` that its values come from, or None."""
        return self.type.split("enum ")[1].rstrip(")") if "enum " in self.type else None


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table: its name, what a row is, and its columns in published order."""

    name: str
    description: str
    columns: tuple[ColumnSpec, ...]

    def column(self, name: str) -> ColumnSpec | None:
        """The column of that name, or None."""
        return next((c for c in self.columns if c.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns if c.required)


@functools.cache
def _document() -> dict[str, object]:
    text = resources.files("explorer.store").joinpath("schema_7_4_0.json").read_text(encoding="utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded


@functools.cache
def tables() -> Mapping[str, TableSpec]:
    """All published tables by name."""
    raw: dict[str, dict[str, object]] = _document()["tables"]  # type: ignore[assignment]
    return MappingProxyType(
        {
            name: TableSpec(name, str(t["description"]), tuple(ColumnSpec(**c) for c in t["columns"]))  # type: ignore[attr-defined]
            for name, t in raw.items()
        }
    )


@functools.cache
def enums() -> Mapping[str, tuple[str, ...]]:
    """The values of each published enum."""
    raw: dict[str, list[str]] = _document()["enums"]  # type: ignore[assignment]
    return MappingProxyType({name: tuple(values) for name, values in raw.items()})
