"""Turns the columns of a chunk of rows into arguments of slices: one number per row and column, and the texts they point to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from explorer.export.perfetto import layout
from explorer.export.perfetto.encoder import (
    FIXED64,
    HEAD_BYTES,
    INTERNED_BYTES,
    TEXT,
    TEXT_SHIFT,
    VARINT,
    Bytes,
    Int,
    write_strings,
)
from explorer.export.perfetto.layout import pb
from explorer.store.arrays import valid as known

#: Identifiers are unsigned 64-bit numbers to the hardware's tools; the store holds the same bits signed.
UNSIGNED = frozenset({"id", "packet_aggregation_id"})
#: Rows looked at to tell whether a text column repeats itself.
_SAMPLE = 1024


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of n rows: `values` and `valid` are [columns, n]; `heads` are the bytes before each column's value."""

    heads: Bytes
    head_size: Int
    kinds: Int
    values: Int
    valid: NDArray[np.bool_]
    text: Bytes


class Strings:
    """Strings of one field of a chunk's interned data, numbered from 1."""

    def __init__(self, field: str) -> None:
        self._head = np.frombuffer(layout.tag(pb.InternedData, field), np.uint8)
        self._parts: list[bytes] = []
        self._next = 1

    def add(self, strings: pa.Array) -> int:
        """The number of the first of these strings."""
        offsets, data = text_buffers(strings)
        out = np.empty(int(offsets[-1] - offsets[0]) + len(strings) * (INTERNED_BYTES + len(self._head)), np.uint8)
        first = self._next
        self._parts.append(out[: write_strings(out, self._head, offsets, data, first)].tobytes())
        self._next += len(strings)
        return first

    def serialized(self) -> bytes:
        """The entries as they stand in an InternedData message."""
        return b"".join(self._parts)


class Columns:
    """The columns of one table that become arguments, and how each is written; `names` are numbered from 1."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._inline: dict[str, bool] = {}

    def arguments(self, rows: pa.Table, strings: Strings) -> Arguments:
        """The arguments of these rows; a null or a NaN is no argument. Repeated texts are added to `strings`."""
        columns = [(number, name, _plain(rows[name])) for number, name in enumerate(self.names, 1)]
        columns = [c for c in columns if c[2].null_count < rows.num_rows]
        heads: list[bytes] = []
        kinds = np.empty(len(columns), np.int64)
        values = np.empty((len(columns), rows.num_rows), np.int64)
        valid = np.ones((len(columns), rows.num_rows), np.bool_)
        inline: list[Bytes] = []
        inline_size = 0
        for row, (number, name, column) in enumerate(columns):
            kinds[row] = VARINT
            if column.null_count:
                valid[row] = known(column)
            if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
                if pa.types.is_dictionary(column.type) or self._repeats(name, column):
                    coded = column.dictionary_encode()
                    field = "string_value_iid"
                    np.add(numbers(coded.indices), strings.add(coded.dictionary), out=values[row])
                else:
                    field, kinds[row] = "string_value", TEXT
                    offsets, data = text_buffers(column)
                    at = offsets.astype(np.int64)
                    values[row] = (at[:-1] - at[0] + inline_size) << TEXT_SHIFT | np.diff(at)
                    inline.append(data[at[0] : at[-1]])
                    inline_size += int(at[-1] - at[0])
            elif pa.types.is_floating(column.type):
                field, kinds[row] = "double_value", FIXED64
                found = numbers(column.cast(pa.float64()))
                valid[row] &= ~np.isnan(found)
                values[row] = found.view(np.int64)
            elif pa.types.is_boolean(column.type):
                field = "bool_value"
                values[row] = numbers(column.cast(pa.uint8()))
            else:
                field = "uint_value" if name in UNSIGNED or pa.types.is_uint64(column.type) else "int_value"
                values[row] = numbers(column).astype(np.int64)
            heads.append(layout.tag(pb.DebugAnnotation, "name_iid") + layout.varint(number) + layout.tag(pb.DebugAnnotation, field))
        return Arguments(
            heads=np.frombuffer(b"".join(h.ljust(HEAD_BYTES, b"\0") for h in heads), np.uint8).reshape(len(heads), HEAD_BYTES),
            head_size=np.array([len(h) for h in heads], np.int64),
            kinds=kinds,
            values=values,
            valid=valid,
            text=np.concatenate(inline) if inline else np.empty(0, np.uint8),
        )

    def _repeats(self, name: str, column: pa.Array) -> bool:
        if name not in self._inline:
            some = column.slice(0, 8 * _SAMPLE).drop_null().slice(0, _SAMPLE)
            if len(some) == 0:
                return True
            self._inline[name] = pc.count_distinct(some).as_py() * 2 > len(some) > 1
        return not self._inline[name]


def numbers(column: pa.Array) -> NDArray[Any]:
    """Integers without a copy; where they are null, any number."""
    _, data = column.buffers()
    if data is None or len(column) == 0:
        return np.zeros(len(column), column.type.to_pandas_dtype())
    whole: NDArray[Any] = np.frombuffer(data, column.type.to_pandas_dtype())
    return whole[column.offset : column.offset + len(column)]


def text_buffers(strings: pa.Array) -> tuple[NDArray[np.int32], Bytes]:
    """Offsets (one more than strings) and the UTF-8 bytes they point into; what a null covers is empty."""
    _, offsets, data = strings.buffers()
    if offsets is None or len(strings) == 0:
        return np.zeros(len(strings) + 1, np.int32), np.empty(0, np.uint8)
    where = np.frombuffer(offsets, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    return where, np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """One array of integers, floats, booleans, 32-bit strings or a dictionary of those; any other type as text."""
    whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    kind = whole.type
    if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type) and whole.dictionary.null_count == 0:
        return whole
    if pa.types.is_dictionary(kind):
        whole = whole.dictionary_decode()
        kind = whole.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return whole
    if pa.types.is_null(kind):
        return whole
    if pa.types.is_large_string(kind):
        return whole.cast(pa.string())
    return pa.array([None if v is None else _text(v) for v in whole.to_pylist()], pa.string())


def texts(strings: Sequence[str]) -> pa.Array:
    """A text column; pyarrow's own conversion would import pandas."""
    encoded = [s.encode("utf-8", "replace") for s in strings]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(encoded), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))])


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (list, dict)) else str(value)
