"""The whole export of a profile, table by table, one chunk in memory at a time."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from explorer.export.files import whole_file
from explorer.export.perfetto import counters, flows, kinds
from explorer.export.perfetto.encoder import Int
from explorer.export.perfetto.slices import Prepared, SliceTable, SliceWriter, chunks, select, usable
from explorer.export.perfetto.trace import Trace, ahead
from explorer.export.perfetto.tracks import Tracks
from explorer.export.window import Window
from explorer.store.arrays import integers, valid
from explorer.store.errors import ProfileError, UsageError
from explorer.store.reader import Profile
from explorer.text import safe

Dma = Literal["aggregated", "packets", "none"]
DMA: tuple[Dma, ...] = get_args(Dma)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export wrote: slices by table, counter samples, flows, tracks, bytes; and rows left out, by table and reason."""

    slices: Mapping[str, int]
    counters: int
    flows: int
    tracks: int
    bytes: int
    dropped: Mapping[str, int]


def export(
    profile: Profile,
    path: Path | str,
    *,
    dma: Dma = "aggregated",
    show_flows: bool = False,
    at: Window | None = None,
    force: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> ExportResult:
    """Write a profile to `path` as a Perfetto trace; returns what was written and what could not be.

    `dma` chooses DmaPacketAggregated, DmaPacket or neither; `show_flows` adds the dependency edges between the slices; `at` keeps
    what touches that window, uncut. Nanoseconds are the profile's. The same profile gives the same bytes. Rows are read and written
    chunk by chunk; flows keep identifiers and edges in memory, and a table that is not sorted by start keeps its starts and ends.
    `say` hears how far it is.

    Raises UsageError if the file exists and `force` is not set, ProfileError if the profile holds nothing to show, cannot be read,
    or the file cannot be written.
    """
    path = Path(path)
    if dma not in DMA:
        raise UsageError(f"--dma {dma}: not one of {', '.join(DMA)}")
    run = _Export(profile, dma, show_flows, at, say)
    if not run.tables:
        raise ProfileError(f"{profile.path}: nothing to export: neither Instruction nor DMA rows were captured")
    with whole_file(path, force=force) as file:
        with Trace(file) as trace:
            run.write(trace)
        if not run.slices:
            where = f" from {at.first} to {at.last} ns" if at else ""
            raise ProfileError(f"{profile.path}: nothing to export: no instruction or DMA row has a usable time{where}")
        size = file.tell()
    return ExportResult(run.slices, run.counters, run.flows.count, run.tracks.count, size, dict(run.dropped))


@dataclass(frozen=True, slots=True)
class _Source:
    """A table to be written as slices and what a first look at it showed."""

    kind: SliceTable
    profile: Profile
    columns: tuple[str, ...]
    sorted: bool


class _Export:
    def __init__(self, profile: Profile, dma: Dma, show_flows: bool, window: Window | None, say: Callable[[str], None]) -> None:
        self.profile, self.window, self._say = profile, window, say
        self.slices: Tally[str] = Tally()
        self.dropped: Tally[str] = Tally()
        self.counters = 0
        self.tracks = Tracks()
        self.flows = flows.NONE
        self._cores: set[int] = set()
        self._roots: dict[int | None, tuple[str, ...]] = {}
        self._description = _describe(profile)
        wanted = [kinds.instructions()]
        wanted += {"aggregated": [kinds.transfers()], "packets": [kinds.packets()], "none": []}[dma]
        self.tables = [self._look(kind, profile) for kind in wanted if profile.rows(kind.name)]
        if show_flows:
            self.flows = flows.connect(profile, {s.kind.name: self._identities(s) for s in self.tables})
            self.dropped.update(self.flows.dropped)

    def write(self, trace: Trace) -> None:
        for source in (*self._layers(), *self.tables):
            self._slices(trace, source)
        self._counters(trace)

    def _look(self, kind: SliceTable, profile: Profile) -> _Source:
        """Whether the table is sorted, and which cores it names."""
        ordered, last = True, None
        for rows in profile.chunks(kind.name, ["start_ts", "pcore_idx"]):
            self._cores.update(c for c in pc.unique(rows["pcore_idx"]).to_pylist() if c is not None)
            start = integers(rows["start_ts"].drop_null(), 0)
            if len(start):
                ordered = ordered and bool((start[1:] >= start[:-1]).all()) and (last is None or start[0] >= last)
                last = start[-1]
        needed = ("start_ts", "end_ts", "pcore_idx", *kind.track_columns)
        return _Source(kind, profile, tuple(dict.fromkeys((*profile.columns(kind.name), *needed))), ordered)

    def _core(self, number: int | None) -> tuple[str, ...]:
        """The path of the root track for rows of that core, which exists afterwards. Rows without a core are the only core's."""
        if number not in self._roots:
            only = next(iter(self._cores)) if number is None and len(self._cores) == 1 else number
            name = f"NeuronCore {only}" if only is not None else "NeuronCores" if self._cores else "NeuronCore"
            root = f"{name} ({self.profile.evidence})"
            self.tracks.get((root,), rank=-1 if only is None else only, description=self._description)
            self._roots[number] = (root,)
        return self._roots[number]

    def _group(self, core: int | None, name: str) -> tuple[str, ...]:
        """The path of the track of that name below a core's, which exists afterwards."""
        path = (*self._core(core), name)
        self.tracks.get(path, rank=kinds.GROUPS.index(name), by_name=name == kinds.QUEUES)
        return path

    def _layers(self) -> list[_Source]:
        source, table = self.profile, "FrameworkNode"
        if source.rows(table) == 0:
            table, made = "Instruction.layer", kinds.layers_from_instructions(source)
            if made is None:
                return []
            source = Profile.from_tables({table: made}, source.path)
        names = pa.concat_tables(source.chunks(table, ["node_name", "parent_name"]))
        depths = kinds.depths(names["node_name"].to_pylist(), names["parent_name"].to_pylist())
        return [self._look(kinds.layers(table, depths), source)]

    def _slices(self, trace: Trace, source: _Source) -> None:
        writer = SliceWriter(self.tracks, source.kind, source.columns, self._group, apart=not source.sorted)
        lanes = None if source.sorted else self._lanes_of_unsorted(source, writer)
        name = source.kind.name
        for slices in ahead(self._prepared(source, writer, lanes)):
            writer.write(trace, slices)
            self.slices[name] += len(slices.start)
            self._say(f"writing {name}, {self.slices[name]:,} of {source.profile.rows(name):,}")

    def _prepared(self, source: _Source, writer: SliceWriter, lanes: Int | None) -> Iterator[Prepared]:
        name, first = source.kind.name, 0
        for rows in chunks(ahead(source.profile.chunks(name, source.columns, coded=True))):
            keep, reasons = usable(rows, self.window)
            self.dropped.update({f"{name}: {reason}": count for reason, count in reasons.items()})
            kept, number = select(rows, keep), np.flatnonzero(keep) + first
            first += rows.num_rows
            if kept.num_rows:
                track = writer.track(kept)
                lane = writer.lanes(kept, track) if lanes is None else lanes[number]
                yield writer.prepare(kept, track, lane, self.flows.ends(name, number))

    def _lanes_of_unsorted(self, source: _Source, writer: SliceWriter) -> Int:
        """The lane of every row of a table whose rows are not in time order (0 for those that are no slices)."""
        needed = [c for c in source.columns if c in ("start_ts", "end_ts", "pcore_idx", *source.kind.track_columns)]
        keeps, parts = [], []
        for rows in chunks(source.profile.chunks(source.kind.name, needed)):
            keep, _ = usable(rows, self.window)
            kept = select(rows, keep)
            keeps.append(keep)
            if kept.num_rows:
                parts.append(np.stack([integers(kept["start_ts"], 0), integers(kept["end_ts"], 0), writer.track(kept)]))
        start, end, track = np.concatenate([np.empty((3, 0), np.int64), *parts], axis=1)
        return writer.lanes_of(np.concatenate(keeps), start, end, track)

    def _identities(self, source: _Source) -> flows.Slices:
        row, identity, start, known = [], [], [], []
        first = 0
        for rows in source.profile.chunks(source.kind.name, ["id", "start_ts", "end_ts"]):
            keep, _ = usable(rows, self.window)
            kept = select(rows, keep)
            row.append(np.flatnonzero(keep) + first)
            identity.append(integers(kept["id"], 0))
            known.append(valid(kept["id"]))
            start.append(integers(kept["start_ts"], 0))
            first += rows.num_rows
        return flows.Slices(np.concatenate(row), np.concatenate(identity), np.concatenate(start), np.concatenate(known))

    def _counters(self, trace: Trace) -> None:
        for order, counter in enumerate(counters.COUNTERS):
            for rows in self.profile.chunks(counter.table, ["timestamp", counter.column, "pcore_idx"]):
                for core, (time, value, double) in counters.samples(rows, counter, self.window).items():
                    path = self._group(core, kinds.COUNTERS)
                    for name in counter.path:
                        path = (*path, name)
                        track = self.tracks.get(path, rank=order, unit=counter.unit)
                    trace.write(self.tracks.take_new())
                    counters.write(trace, track, time, value, double)
                    self.counters += len(time)


def _describe(profile: Profile) -> str:
    machine, name = profile.metadata("ts_target") or profile.metadata("instance_type"), profile.metadata("profile_name")
    says = {
        "emulated": f"Emulated by a model of the NeuronCore{f' of {machine}' if machine else ''}; not measured on hardware.",
        "measured": f"Measured on hardware{f' ({machine})' if machine else ''}.",
        "unknown": "The profile does not say whether it was emulated or measured.",
    }[profile.evidence]
    return safe(f"{says} Profile: {name}" if name else says, 500)
