"""Writes the rows of a table as slices: which table's rows go where, under which name, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from explorer.export.perfetto import encoder, layout
from explorer.export.perfetto.arguments import Arguments, Columns, Strings
from explorer.export.perfetto.encoder import Int
from explorer.export.perfetto.flows import Ends
from explorer.export.perfetto.layout import pb
from explorer.export.perfetto.trace import Trace
from explorer.export.perfetto.tracks import LanedTracks, Tracks
from explorer.text import safe

#: Rows that are encoded at a time.
CHUNK = 32_768
_NAME_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the time that is exported: what touches `[first, last)` nanoseconds, whole."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SliceTable:
    """How a table's rows become slices. Functions give a text for each row; `place` the track's path and rank for one text."""

    name: str
    #: Columns that are no arguments, because the slice shows them already.
    shown: tuple[str, ...]
    title: Callable[[pa.Table], pa.Array]
    track: Callable[[pa.Table], pa.Array]
    #: The columns that `track` reads.
    track_columns: tuple[str, ...]
    place: Callable[[int | None, str], tuple[tuple[str, ...], int]]


def first_filled(rows: pa.Table, columns: tuple[str, ...], otherwise: str) -> pa.Array:
    """For each row the first of these columns that is neither null nor empty, else `otherwise`."""
    texts = []
    for name in columns:
        if name in rows.column_names and not pa.types.is_null(rows[name].type):
            text = rows[name].combine_chunks().cast(pa.string())
            texts.append(pc.if_else(pc.equal(text, ""), None, text))
    return pc.coalesce(*texts, pa.scalar(otherwise)) if texts else pa.array([otherwise] * rows.num_rows, pa.string())


class SliceWriter:
    """Writes one table's slices to a trace and counts them."""

    def __init__(self, trace: Trace, tracks: Tracks, table: SliceTable, columns: tuple[str, ...], *, apart: bool) -> None:
        self._trace, self._tracks, self._table = trace, tracks, table
        self._columns = Columns([c for c in columns if c not in ("start_ts", "end_ts", "duration_ns", *table.shown)])
        self._lanes = LanedTracks(tracks, apart=apart)
        packet, begin = layout.head(pb.TrackEvent.TYPE_SLICE_BEGIN, 1)
        end = layout.head(pb.TrackEvent.TYPE_SLICE_END, None)[1]
        self._packet_head, self._begin_head, self._end_head = (np.frombuffer(b, np.uint8) for b in (packet, begin, end))

    def track(self, rows: pa.Table) -> Int:
        """The number of each row's track."""
        label = self._table.track(rows).dictionary_encode()
        cores = rows["pcore_idx"].combine_chunks() if "pcore_idx" in rows.column_names else pa.nulls(rows.num_rows, pa.int64())
        core = cores.dictionary_encode(null_encoding="encode")
        labels = len(label.dictionary)
        both = core.indices.to_numpy().astype(np.int64) * labels + label.indices.to_numpy()
        present = np.flatnonzero(np.bincount(both, minlength=labels * len(core.dictionary)))
        number = np.zeros(labels * len(core.dictionary), np.int64)
        for code in present:
            path, rank = self._table.place(
                core.dictionary[int(code) // labels].as_py(), label.dictionary[int(code) % labels].as_py()
            )
            number[code] = self._lanes.number(path, rank)
        found: Int = number[both]
        return found

    def lanes(self, rows: pa.Table, track: Int) -> Int:
        """The lane of each row; rows are sorted by start."""
        return self._lanes.lanes(rows["start_ts"].to_numpy(), rows["end_ts"].to_numpy(), track)

    def lanes_of(self, keep: NDArray[np.bool_], start: Int, end: Int, track: Int) -> Int:
        """The lane of every row of a table that is not sorted, 0 where `keep` is False; the other arrays hold the kept rows."""
        order = np.argsort(start, kind="stable")
        lane = np.zeros(len(keep), np.int64)
        lane[np.flatnonzero(keep)[order]] = self._lanes.lanes(start[order], end[order], track[order])
        return lane

    def write(self, rows: pa.Table, track: Int, lane: Int, ends: Ends) -> None:
        """Write these rows, which all have a start and an end that is not before it."""
        strings, names = Strings("debug_annotation_string_values"), Strings("event_names")
        arguments = self._columns.arguments(rows, strings)
        title = self._table.title(rows).dictionary_encode()
        first = names.add(pa.array([safe(t.as_py(), _NAME_LIMIT) for t in title.dictionary], pa.string()))
        identity = self._lanes.identities(track, lane)
        self._trace.write(self._tracks.take_new())
        self._trace.begin_state(self._columns.names, (self._table.name,), names.serialized() + strings.serialized())
        start, end = rows["start_ts"].to_numpy(), rows["end_ts"].to_numpy()
        title_iid = title.indices.to_numpy().astype(np.int64) + first
        self._trace.fill(
            _bound(rows.num_rows, arguments, len(ends.flow)),
            lambda out: encoder.write_slices(
                out,
                start,
                end,
                title_iid,
                identity,
                self._packet_head,
                self._begin_head,
                self._end_head,
                arguments.heads,
                arguments.head_size,
                arguments.kinds,
                arguments.values,
                arguments.valid,
                arguments.text,
                ends.ptr,
                ends.flow,
                ends.tag,
            ),
        )


def _bound(rows: int, arguments: Arguments, flows: int) -> int:
    # A repeated text is counted once for each row it is used in only where it stands inline.
    texts = arguments.kinds == encoder.TEXT
    inline = int(((arguments.values[texts] & encoder.TEXT_MASK) * arguments.valid[texts]).sum())
    present = int(np.count_nonzero(arguments.valid))
    return rows * encoder.SLICE_BYTES + present * encoder.ARGUMENT_BYTES + inline + flows * encoder.FLOW_BYTES


def usable(rows: pa.Table, window: Window | None) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Which rows can be slices, and how many cannot, by reason. Rows outside the window are neither."""
    start, end = rows["start_ts"].combine_chunks(), rows["end_ts"].combine_chunks()
    known = pc.and_(start.is_valid(), end.is_valid()).to_numpy(zero_copy_only=False)
    s, e = start.fill_null(0).to_numpy(), end.fill_null(0).to_numpy()
    inside = (
        np.ones(rows.num_rows, np.bool_) if window is None else ((s < window.last) & (np.maximum(e, s + 1) > window.first)) | ~known
    )
    backwards, negative = known & (e < s), known & (e >= s) & (s < 0)
    reasons = {"no start or end": ~known, "ends before it starts": backwards & inside, "starts before time 0": negative & inside}
    return inside & known & ~backwards & ~negative, {r: int(m.sum()) for r, m in reasons.items() if m.any()}


def chunks(rows: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in pieces of at most CHUNK."""
    for group in rows:
        for at in range(0, group.num_rows, CHUNK):
            yield group.slice(at, CHUNK)
