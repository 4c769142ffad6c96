"""JSON values become Arrow columns by the declared type of the field, never by what a value looks like."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: What an integer column holds.
INT64 = range(-(2**63), 2**63)
_TRUTH = {"yes": True, "no": False, "true": True, "false": False}


@dataclass(slots=True)
class Losses:
    """Values that did not fit their field's type and became null: how many, by "json_table.field", with one example each."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: object) -> None:
        """Count one more."""
        self.counts[name] = self.counts.get(name, 0) + 1
        self.examples.setdefault(name, repr(value)[:60])

    def notes(self) -> tuple[str, ...]:
        """One sentence for each field that lost values."""
        return tuple(
            f"{name}: {count} of its values, such as {self.examples[name]}, did not fit its type and became null"
            for name, count in self.counts.items()
        )


class Unfit(Exception):
    """A value that is not of its field's type."""


def column(name: str, values: Sequence[object], kind: pa.DataType, losses: Losses, sentinel: object = None) -> pa.Array:
    """The values as an array of type `kind`; null where absent: missing, null, the empty string, or equal to `sentinel`.

    Numbers written as strings, booleans written as yes/no or true/false are read as such where the type asks for them; lists become
    JSON text in string columns. What does not fit is null and counted in `losses` under `name`.
    """
    plain = _as_they_are(values, kind) if sentinel is None else None
    if plain is not None:
        return plain
    convert = _converter(kind)
    out: list[Any] = []
    for value in values:
        if value is None or value == "" or (sentinel is not None and value == sentinel):
            out.append(None)
            continue
        try:
            out.append(convert(value))
        except Unfit:
            out.append(None)
            losses.add(name, value)
    return pa.array(out, kind)


def _as_they_are(values: Sequence[object], kind: pa.DataType) -> pa.Array | None:
    """The array if every value already has the type, which is most columns of a big file; else None."""
    wanted = _PLAIN.get(str(kind))
    if wanted is None or not set(map(type, values)) <= {wanted, type(None)}:
        return None
    try:
        array = pa.array(values, kind)
    except (pa.ArrowException, OverflowError, UnicodeError):
        return None
    if wanted is float:
        return array if pc.all(pc.is_finite(array)).as_py() is not False else None
    return pc.if_else(pc.equal(array, ""), None, array) if wanted is str else array


_PLAIN: dict[str, type] = {"int64": int, "int32": int, "double": float, "bool": bool, "string": str}


def storable(text: str) -> str:
    """The text with what UTF-8 cannot hold (halves of surrogate pairs, which JSON can write) as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def inferred(values: Sequence[object]) -> pa.DataType:
    """The type that holds all values of a field nobody declared, by their JSON types: text where these differ."""
    kinds = {type(v) for v in values if v is not None and v != ""}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int} and all(v in INT64 for v in values if isinstance(v, int)):
        return pa.int64()
    # An integer beyond 2^53 beside fractions would lose digits as a float, and an id is such an integer.
    if kinds and kinds <= {int, float} and all(abs(v) <= 2**53 for v in values if isinstance(v, int)):
        return pa.float64()
    return pa.string()


def _converter(kind: pa.DataType) -> Callable[[object], Any]:
    if pa.types.is_list(kind):
        item = _CONVERT[str(kind.value_type)]
        return lambda value: _list(value, item)
    return _CONVERT[str(kind)]


def _integer(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    elif isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise Unfit from None
    if isinstance(value, bool) or not isinstance(value, int) or value not in INT64:
        raise Unfit
    return value


def _integer32(value: object) -> int:
    number = _integer(value)
    if not -(2**31) <= number < 2**31:
        raise Unfit
    return number


def _real(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Unfit
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise Unfit from None
    if not math.isfinite(number):
        raise Unfit
    return number


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUTH:
        return _TRUTH[value.lower()]
    raise Unfit


def _text(value: object) -> str:
    return storable(value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _list(value: object, item: Callable[[object], Any]) -> list[Any]:
    if not isinstance(value, list):
        raise Unfit
    return [None if v is None else item(v) for v in value]


_CONVERT: dict[str, Callable[[object], Any]] = {
    "int64": _integer,
    "int32": _integer32,
    "double": _real,
    "bool": _boolean,
    "string": _text,
}
