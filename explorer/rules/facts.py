"""What rules look at: the instructions and transfers of one core as arrays, read once for all rules."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from explorer.analysis import intervals
from explorer.analysis.engines import canonical
from explorer.analysis.lower_bound import LowerBound, lower_bound
from explorer.analysis.rows import Coded, Int
from explorer.analysis.source_text import split_place
from explorer.analysis.summary_definitions import SETUP, WAITS
from explorer.rules.finding import Where
from explorer.store.arrays import integers, valid
from explorer.store.reader import Profile

Bool = NDArray[np.bool_]
Spans = tuple[Int, Int]

#: Engines that compute; Sync only starts transfers.
COMPUTE = ("tensor", "vector", "scalar", "gpsimd")
#: Opcodes that start a transfer begin so; the instruction is no computation.
_DMA_PREFIX = "DMA_"
#: A place names at most so many instructions.
_IDS = 16


@dataclass(frozen=True, slots=True)
class Instructions:
    """Instructions of the core in table order; times in nanoseconds. `engine` codes into `engines`, canonical names.

    `works` marks rows that are no waits, `computes` those that neither wait, set up nor only start a transfer.
    """

    row: Int
    id: Int
    start: Int
    end: Int
    engine: Int
    engines: tuple[str, ...]
    opcode: Coded
    layer: Coded
    place: Coded
    works: Bool
    computes: Bool


@dataclass(frozen=True, slots=True)
class Transfers:
    """DMA transfers of the core in order of start; times in nanoseconds.

    `trigger` is the start of the instruction that asked for it, `seen` when a waiting engine sees it complete (start and end of the
    transfer itself where unknown); `instruction` is a position in `Instructions`, -1: unknown. -1 stands for unknown bytes and
    partitions too.
    """

    row: Int
    start: Int
    end: Int
    trigger: Int
    seen: Int
    nbytes: Int
    descriptor_bytes: Int
    partitions: Int
    queue: Coded
    variable: Coded
    to_sbuf: Bool
    instruction: Int


class Facts:
    """A profile as rules see it. Of several physical cores it is the one whose instructions took longest."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.bound: LowerBound | None = lower_bound(profile)
        self.core = _core(profile)

    @functools.cached_property
    def instructions(self) -> Instructions:
        """The instructions; empty where they were not captured."""
        names = ["id", "start_ts", "end_ts", "engine", "opcode", "layer", "nki_source_location", "pcore_idx"]
        table = self.profile.table("Instruction", names)
        table = _empty(names) if table is None else table
        row = self._of_core(table)
        engine, opcode = _coded(table["engine"], row), _coded(table["opcode"], row)
        engines = tuple(dict.fromkeys(canonical(n) for n in engine.names))
        codes = np.array([engines.index(canonical(n)) for n in engine.names] + [-1], np.int64)[engine.codes]
        known = (valid(table["start_ts"]) & valid(table["end_ts"]))[row]
        idle = np.array([n in WAITS for n in opcode.names] + [False])[opcode.codes]
        setup = np.array([n in SETUP or n.upper().startswith(_DMA_PREFIX) for n in opcode.names] + [False])[opcode.codes]
        computing = np.array([n in COMPUTE for n in engines] + [False])[codes]
        return Instructions(
            row=row,
            id=integers(table["id"], -1)[row],
            start=integers(table["start_ts"], 0)[row],
            end=integers(table["end_ts"], 0)[row],
            engine=codes,
            engines=engines,
            opcode=opcode,
            layer=_coded(table["layer"], row),
            place=_coded(table["nki_source_location"], row),
            works=known & ~idle,
            computes=known & ~idle & ~setup & computing,
        )

    def column(self, name: str) -> Int:
        """An integer column of Instruction by position in `instructions`, -1 where it is null or was not captured."""
        table = self.profile.table("Instruction", [name])
        return np.zeros(0, np.int64) if table is None else _numbers(table[name])[self.instructions.row]

    @functools.cached_property
    def transfers(self) -> Transfers:
        """The transfers whose times are known; empty where they were not captured."""
        names = ["start_ts", "end_ts", "trigger", "transfer_bytes", "queue_name", "variable", "dest", "pcore_idx"]
        names += [
            "read_num_sbuf_partitions",
            "write_num_sbuf_partitions",
            "ts_visible_ts",
            "ts_descriptor_bytes",
            "ts_instruction_id",
        ]
        table = self.profile.table("DmaPacketAggregated", names)
        table = _empty(names) if table is None else table
        row = self._timed(table)
        row = row[np.argsort(integers(table["start_ts"], 0)[row], kind="stable")]
        start, end = integers(table["start_ts"], 0)[row], integers(table["end_ts"], 0)[row]
        trigger, seen = _numbers(table["trigger"])[row], _numbers(table["ts_visible_ts"])[row]
        sides = [_numbers(table[f"{side}_num_sbuf_partitions"])[row] for side in ("read", "write")]
        dest = _coded(table["dest"], row)
        return Transfers(
            row=row,
            start=start,
            end=end,
            trigger=np.where((trigger >= 0) & (trigger <= start), trigger, start),
            seen=np.maximum(seen, end),
            nbytes=_numbers(table["transfer_bytes"])[row],
            descriptor_bytes=_numbers(table["ts_descriptor_bytes"])[row],
            partitions=np.maximum(*sides),
            queue=_coded(table["queue_name"], row),
            variable=_coded(table["variable"], row),
            to_sbuf=np.array(["SB" in n for n in dest.names] + [False])[dest.codes],
            instruction=positions(self.instructions.id, _numbers(table["ts_instruction_id"])[row]),
        )

    def of_starter(self, coded: Coded) -> Int:
        """For each transfer the code of the instruction that started it, -1 where that is unknown."""
        known = np.concatenate((coded.codes, [-1]))
        return known[self.transfers.instruction]

    @functools.cached_property
    def moving(self) -> Spans:
        """When DMA moved data: the union of all packets, or of all transfers where packets were not captured."""
        packets = self.profile.table("DmaPacket", ["start_ts", "end_ts", "pcore_idx"])
        if packets is None:
            return intervals.union(self.transfers.start, self.transfers.end)
        row = self._timed(packets)
        return intervals.union(integers(packets["start_ts"], 0)[row], integers(packets["end_ts"], 0)[row])

    @functools.cached_property
    def computing(self) -> Spans:
        """When at least one engine computed."""
        at = self.instructions
        return intervals.union(at.start[at.computes], at.end[at.computes])

    def busy_without(self, engine: int, rows: Bool) -> tuple[int, int]:
        """Busy time of an engine (waits left out), and what it would be without those instructions."""
        at = self.instructions
        rest = at.works & (at.engine == engine) & ~rows
        return self.busy(engine), intervals.busy(at.start[rest], at.end[rest])

    def busy(self, engine: int) -> int:
        """Busy time of an engine, waits left out."""
        mine = self.instructions.works & (self.instructions.engine == engine)
        return intervals.busy(self.instructions.start[mine], self.instructions.end[mine])

    def groups(self, codes: Int, rows: Bool, least: float) -> Int:
        """The codes of groups whose instructions' durations add up to at least `least` nanoseconds: no smaller one covers that."""
        at = self.instructions
        found, group = np.unique(codes[rows], return_inverse=True)
        total = np.bincount(group.reshape(-1), weights=(at.end - at.start)[rows], minlength=len(found))
        large: Int = found[total >= least]
        return large

    def where(self, rows: Int, *, engine: str | None = None, by: Int | None = None) -> Where:
        """The place of the instructions at those positions: the line and layer that most of `by` (default: their time) is in."""
        at = self.instructions
        if len(rows) == 0:
            return Where(engine=engine)
        weight = at.end[rows] - at.start[rows] if by is None else by
        place, layer = _heaviest(at.place, rows, weight), _heaviest(at.layer, rows, weight)
        file, line = split_place(place) if place is not None else (None, None)
        order = rows[np.argsort(-weight, kind="stable")]
        return Where(
            file=file,
            line=line,
            layer=layer,
            engine=engine,
            start_ns=int(at.start[rows].min()),
            end_ns=int(at.end[rows].max()),
            instructions=tuple(sorted(int(i) for i in at.id[order[:_IDS]] if i >= 0)),
        )

    def _of_core(self, table: pa.Table) -> Int:
        core = integers(table["pcore_idx"], -1)
        return np.flatnonzero((core == self.core) | (core < 0))

    def _timed(self, table: pa.Table) -> Int:
        """The rows of the core that have a start and an end: what has none took no time that is known."""
        row = self._of_core(table)
        return row[(valid(table["start_ts"]) & valid(table["end_ts"]))[row]]


def covered(spans: Sequence[Spans]) -> Spans:
    """The union of several sets of intervals."""
    return intervals.union(np.concatenate([s for s, _ in spans]), np.concatenate([e for _, e in spans]))


def length(spans: Spans) -> int:
    """Time that disjoint intervals cover."""
    return int((spans[1] - spans[0]).sum())


def _core(profile: Profile) -> int:
    table = profile.table("Instruction", ["pcore_idx", "duration_ns"])
    if table is None or table["pcore_idx"].null_count == table.num_rows:
        return 0
    sums = table.group_by("pcore_idx", use_threads=False).aggregate([("duration_ns", "sum")]).sort_by("pcore_idx").to_pylist()
    longest = max((r for r in sums if r["pcore_idx"] is not None), key=lambda r: r["duration_ns_sum"] or 0)
    return int(longest["pcore_idx"])


def _empty(names: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.nulls(0, pa.int64()) for name in names})


def _coded(column: pa.ChunkedArray, row: Int) -> Coded:
    """The text column's codes of those rows."""
    coded = Coded.of(column.cast(pa.string()))
    return Coded(coded.codes[row], coded.names)


def _numbers(column: pa.ChunkedArray) -> Int:
    if pa.types.is_floating(column.type):
        column = pc.cast(pc.floor(column), pa.int64(), safe=False)
    return integers(column, -1)


def positions(ids: Int, wanted: Int) -> Int:
    """Where each wanted id stands in `ids`, -1 where it does not or is negative."""
    if len(ids) == 0:
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(ids, kind="stable")
    at = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return np.where((ids[at] == wanted) & (wanted >= 0), at, -1)


def _heaviest(coded: Coded, rows: Int, weight: Int) -> str | None:
    codes = coded.codes[rows]
    known = codes >= 0
    if not known.any():
        return None
    total = np.bincount(codes[known], weights=weight[known].astype(np.float64) + 1e-9, minlength=len(coded.names))
    return coded.names[int(total.argmax())]
