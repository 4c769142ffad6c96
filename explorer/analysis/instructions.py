"""Instructions of a profile that match all of some conditions."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from explorer.analysis.engines import spellings
from explorer.analysis.layers import OTHER, path_of
from explorer.store.errors import UsageError
from explorer.store.reader import Profile

#: What a listing shows first; the other columns are in the table all the same.
SHOWN = ("id", "start_ts", "duration_ns", "evt_wait_time_ns", "engine", "opcode", "layer", "nki_source_location", "operands")
ORDERS = ("start", "duration", "wait")
_ORDER = {"start": ("start_ts", "ascending"), "duration": ("duration_ns", "descending"), "wait": ("evt_wait_time_ns", "descending")}


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that are all to hold; None: any. Engines and opcodes in any case and spelling, `layer` with all below it (or
    `layers.OTHER`: those without one), `place` a file, `file:line` or a line, `at` the nanoseconds that an instruction has to
    touch (None: open end).
    """

    engine: str | None = None
    opcode: str | None = None
    layer: str | None = None
    place: str | None = None
    at: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Found:
    """Matching rows of Instruction with all their columns, cut to the limit, and how many match in all.

    `not_captured` names the columns that a condition looks at and no row has a value of: such a condition matches nothing.
    """

    rows: pa.Table
    total: int
    not_captured: tuple[str, ...]


def instructions(profile: Profile, where: Selection, *, order: str = "start", limit: int = 0) -> Found | None:
    """The matching rows in order, at most `limit` (0: all); None if Instruction was not captured.

    Raises UsageError on an engine or opcode that no row has, naming those there are.
    """
    table = profile.table("Instruction")
    if table is None:
        return None
    lacking = tuple(name for name in _looked_at(where) if not _captured(table, name))
    masks = [] if lacking else list(_masks(table, where))
    table = table.slice(0, 0) if lacking else table.filter(functools.reduce(pc.and_, masks)) if masks else table
    column, direction = _ORDER[order]
    if column in table.column_names:
        table = table.sort_by([(column, direction), *([("start_ts", "ascending")] if "start_ts" in table.column_names else [])])
    return Found(table.slice(0, limit) if limit else table, table.num_rows, lacking)


def _looked_at(where: Selection) -> tuple[str, ...]:
    first, last = where.at
    conditions = {
        "engine": where.engine,
        "opcode": where.opcode,
        "layer": where.layer,
        "nki_source_location": where.place,
        "end_ts": first,
        "start_ts": last,
    }
    return tuple(name for name, asked in conditions.items() if asked is not None)


def _captured(table: pa.Table, name: str) -> bool:
    return name in table.column_names and table[name].null_count < table.num_rows


def _masks(table: pa.Table, where: Selection) -> Iterator[pa.ChunkedArray]:
    if where.engine is not None:
        yield _one_of(table, "engine", where.engine, spellings(where.engine))
    if where.opcode is not None:
        yield _one_of(table, "opcode", where.opcode, (where.opcode.lower(),))
    if where.layer is not None:
        yield _below(table["layer"], where.layer)
    if where.place is not None:
        yield _place(table["nki_source_location"], where.place)
    first, last = where.at
    if first is not None:
        yield pc.greater(table["end_ts"], first)
    if last is not None:
        yield pc.less(table["start_ts"], last)


def _one_of(table: pa.Table, name: str, asked: str, accepted: tuple[str, ...]) -> pa.ChunkedArray:
    mask = pc.is_in(pc.utf8_lower(table[name]), value_set=pa.array(accepted, pa.string()))
    if not pc.any(mask).as_py():
        there = sorted({str(v) for v in pc.unique(table[name]).to_pylist() if v})
        raise UsageError(f"--{name} {asked}: no instruction has it; there are: {', '.join(there[:30])}")
    return mask


def _below(column: pa.ChunkedArray, layer: str) -> pa.ChunkedArray:
    if layer == OTHER:
        return pc.or_kleene(pc.is_null(column), pc.equal(column, ""))
    top = path_of(layer)
    names = [name for name in pc.unique(column).to_pylist() if name and f"{path_of(name)}/".startswith(f"{top}/")]
    return pc.is_in(column, value_set=pa.array(names, pa.string()))


def _place(column: pa.ChunkedArray, place: str) -> pa.ChunkedArray:
    if place.isdecimal():
        return pc.ends_with(column, pattern=f":{place}")
    _, colon, line = place.rpartition(":")
    if colon and line.isdecimal():
        return pc.or_(pc.equal(column, place), pc.ends_with(column, pattern=f"/{place}"))
    return pc.or_(pc.starts_with(column, pattern=f"{place}:"), pc.match_substring(column, pattern=f"/{place}:"))
