"""Instructions of a profile that match all of some conditions."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from explorer.analysis.engines import spellings
from explorer.store.errors import UsageError
from explorer.store.reader import Profile

#: What a listing shows first; the other columns are in the table all the same.
SHOWN = ("id", "start_ts", "duration_ns", "evt_wait_time_ns", "engine", "opcode", "layer", "nki_source_location", "operands")
ORDERS = ("start", "duration", "wait")
_ORDER = {"start": ("start_ts", "ascending"), "duration": ("duration_ns", "descending"), "wait": ("evt_wait_time_ns", "descending")}


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that are all to hold; None: any. Engines and opcodes in any case and spelling, `layer` with all below it, `place`
    a file, `file:line` or a line, `at` the nanoseconds that an instruction has to touch (None: open end).
    """

    engine: str | None = None
    opcode: str | None = None
    layer: str | None = None
    place: str | None = None
    at: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Found:
    """Matching rows of Instruction with all their columns, cut to the limit, and how many match in all."""

    rows: pa.Table
    total: int


def instructions(profile: Profile, where: Selection, *, order: str = "start", limit: int = 0) -> Found | None:
    """The matching rows in order, at most `limit` (0: all); None if Instruction was not captured.

    Raises UsageError on an engine or opcode that no row has, naming those there are.
    """
    table = profile.table("Instruction")
    if table is None:
        return None
    keep: list[pa.ChunkedArray] = []
    if where.engine is not None:
        keep.append(_one_of(table, "engine", where.engine, spellings(where.engine)))
    if where.opcode is not None:
        keep.append(_one_of(table, "opcode", where.opcode, (where.opcode.lower(),)))
    if where.layer is not None:
        path = where.layer.rstrip("/")
        layer = _column(table, "layer")
        whole = layer if path.startswith("/") else pc.utf8_ltrim(layer, characters="/")
        keep.append(pc.or_(pc.equal(whole, path), pc.starts_with(whole, pattern=path + "/")))
    if where.place is not None:
        keep.append(_place(_column(table, "nki_source_location"), where.place))
    first, last = where.at
    if first is not None:
        keep.append(pc.greater(table["end_ts"], first))
    if last is not None:
        keep.append(pc.less(table["start_ts"], last))
    for mask in keep[1:]:
        keep[0] = pc.and_(keep[0], mask)
    if keep:
        table = table.filter(keep[0])
    column, direction = _ORDER[order]
    if column in table.column_names:
        table = table.sort_by([(column, direction), *([("start_ts", "ascending")] if column != "start_ts" else [])])
    return Found(table.slice(0, limit) if limit else table, table.num_rows)


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    return table[name] if name in table.column_names else pa.chunked_array([pa.nulls(table.num_rows, pa.string())])


def _one_of(table: pa.Table, name: str, asked: str, accepted: tuple[str, ...]) -> pa.ChunkedArray:
    mask = pc.is_in(pc.utf8_lower(table[name]), value_set=pa.array(accepted, pa.string()))
    if not pc.any(mask).as_py():
        there = sorted({str(v) for v in pc.unique(table[name]).to_pylist() if v})
        raise UsageError(f"--{name} {asked}: no instruction has it; there are: {', '.join(there[:30])}")
    return mask


def _place(column: pa.ChunkedArray, place: str) -> pa.ChunkedArray:
    if place.isdecimal():
        return pc.ends_with(column, pattern=f":{place}")
    _, colon, line = place.rpartition(":")
    if colon and line.isdecimal():
        return pc.or_(pc.equal(column, place), pc.ends_with(column, pattern=f"/{place}"))
    return pc.or_(pc.starts_with(column, pattern=f"{place}:"), pc.match_substring(column, pattern=f"/{place}:"))
