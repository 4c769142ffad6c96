"""Derived tables of the schema that every collector fills in the same way: ActiveTime, OpcodeSummary, ThrottleSummary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from explorer.analysis import intervals
from explorer.analysis.engines import canonical
from explorer.analysis.summary_definitions import WAITS
from explorer.store import schema
from explorer.store.arrays import integers, valid
from explorer.store.reader import Profile


def active_time(profile: Profile) -> pa.Table | None:
    """ActiveTime: per engine and core the stretches with at least one instruction in flight, waits left out, in order of start.

    Times in nanoseconds, engines in lower case. None if Instruction was not captured.
    """
    rows = profile.table("Instruction", ["engine", "pcore_idx", "opcode", "start_ts", "end_ts"])
    if rows is None:
        return None
    rows = rows.filter(pc.invert(pc.is_in(rows["opcode"], value_set=pa.array(WAITS))))
    # Two spellings of an engine are one engine.
    names = pc.dictionary_encode(rows["engine"].combine_chunks())
    canonical_names = pa.array([canonical(n) for n in names.dictionary.to_pylist()], pa.string())
    rows = rows.set_column(0, "engine", canonical_names.take(names.indices))
    parts = []
    for group in _groups(rows, ("engine", "pcore_idx")):
        engine, core = group.keys
        start, end = intervals.union(group.start, group.end)
        columns = {
            "start_ts": pa.array(start),
            "end_ts": pa.array(end),
            "engine": pa.repeat(pa.scalar(engine, pa.string()), len(start)),
            "pcore_idx": pa.repeat(pa.scalar(core, pa.int64()), len(start)),
            "duration_ns": pa.array(end - start),
        }
        parts.append(pa.table(columns))
    spec = pa.schema([(c.name, c.arrow) for c in schema.tables()["ActiveTime"].columns])
    order = [("start_ts", "ascending"), ("engine", "ascending"), ("pcore_idx", "ascending")]
    return pa.concat_tables(parts).select(spec.names).sort_by(order) if parts else spec.empty_table()


def opcode_summary(profile: Profile) -> pa.Table | None:
    """OpcodeSummary: per engine and opcode the count, durations added up, and time covered; waits are a row like any other.

    Rows without known times are counted and take none. Times in nanoseconds; `active_time_percent` is a fraction of `total_time`.
    None if Instruction was not captured.
    """
    from explorer.analysis.summary import summarize

    rows = profile.table("Instruction", ["engine", "opcode", "start_ts", "end_ts", "duration_ns"])
    if rows is None:
        return None
    whole = summarize(profile, ("total_time",)).metrics["total_time"]
    found = []
    for group in _groups(rows, ("engine", "opcode")):
        engine, opcode = group.keys
        busy = intervals.busy(group.start, group.end)
        found.append(
            {
                "engine": engine,
                "opcode": opcode,
                "instruction_count": group.rows,
                "instruction_time_ns": int((group.end - group.start).sum()),
                "active_time_ns": busy,
                "active_time_percent": busy / 1e9 / whole if whole else None,
            }
        )
    found.sort(key=lambda row: (-row["active_time_ns"], row["engine"] or "", row["opcode"] or ""))
    return _table("OpcodeSummary", found)


def throttle_summary(profile: Profile) -> pa.Table | None:
    """ThrottleSummary: per cause, and for `all`, the time throttled and the mean of the allowed share over that time.

    A cause counts with all its rows, as in AWS's summary; `all` with the rows whose limit is below one. None if Throttle was not
    captured.
    """
    from explorer.analysis.summary import summarize

    rows = profile.table("Throttle", ["type", "duration", "k", "n"])
    core = profile.metadata("neuroncore_idx")
    if rows is None or core is None:
        return None
    whole = summarize(profile, ("total_time",)).metrics["total_time"]
    limited = rows.filter(pc.less(rows["k"], rows["n"]))
    causes = [
        ("all", limited),
        *((c, rows.filter(pc.equal(rows["type"], c))) for c in sorted(rows["type"].drop_null().unique().to_pylist())),
    ]
    found = []
    for cause, part in causes:
        total = int(pc.sum(part["duration"]).as_py() or 0)
        allowed = sum(d * k / n for d, k, n in zip(*(part[c].to_pylist() for c in ("duration", "k", "n")), strict=True) if n)
        found.append(
            {
                "nc_idx": core,
                "throttle_type": cause,
                "throttle_active_time_ns": total,
                "throttle_active_time_percent": total / 1e9 / whole if whole else None,
                "max_achievable_util_with_throttling_percent": allowed / total if total else None,
            }
        )
    return _table("ThrottleSummary", found)


@dataclass(frozen=True, slots=True)
class _Group:
    """The rows of one pair of keys: how many there are, and starts and ends of those whose times are known."""

    keys: tuple[Any, Any]
    rows: int
    start: intervals.Int
    end: intervals.Int


def _groups(rows: pa.Table, keys: tuple[str, str]) -> list[_Group]:
    """The rows of each pair of keys, in order of first appearance of the keys."""
    known = valid(rows["start_ts"]) & valid(rows["end_ts"])
    start, end = (integers(rows[c], 0) for c in ("start_ts", "end_ts"))
    encoded = [pc.dictionary_encode(rows[k].combine_chunks(), null_encoding="encode") for k in keys]
    names = [[*(e.dictionary.to_pylist())] for e in encoded]
    codes = [integers(e.indices, 0) for e in encoded]
    pair = codes[0] * max(len(names[1]), 1) + codes[1]
    found = []
    for code in np.unique(pair):
        mine = pair == code
        timed = mine & known
        key = (names[0][code // len(names[1])], names[1][code % len(names[1])])
        found.append(_Group(key, int(mine.sum()), start[timed], end[timed]))
    return found


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=pa.schema([(c.name, c.arrow) for c in schema.tables()[name].columns]))
