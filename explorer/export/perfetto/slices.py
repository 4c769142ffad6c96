"""Writes the rows of a table as slices: which table's rows go where, under which name, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from explorer.export.perfetto import encoder, layout
from explorer.export.perfetto.arguments import Arguments, Columns, Strings, texts
from explorer.export.perfetto.encoder import Int
from explorer.export.perfetto.flows import Ends
from explorer.export.perfetto.layout import pb
from explorer.export.perfetto.trace import Trace
from explorer.export.perfetto.tracks import LanedTracks, Tracks
from explorer.export.window import Window
from explorer.store.arrays import integers, valid
from explorer.text import safe

#: Rows that are encoded at a time.
CHUNK = 32_768
_NAME_LIMIT = 200
#: Up to this many codes a table of all is faster than sorting.
_FEW_CODES = 65_536
# Scalars made from Python values would import pandas.
_EMPTY, _NULL = texts([""])[0], pa.nulls(1, pa.string())[0]


@dataclass(frozen=True, slots=True)
class SliceTable:
    """How a table's rows become slices, below a core's track of the name `group`.

    `title` and `track` give a text for each row; `place` says how the track for one such text is called, and its rank.
    """

    name: str
    group: str
    #: Columns that are no arguments, because the slice shows them already.
    shown: tuple[str, ...]
    #: Columns whose arguments come first: what one wants to read.
    leading: tuple[str, ...]
    title: Callable[[pa.Table], pa.Array]
    track: Callable[[pa.Table], pa.Array]
    #: The columns that `track` reads.
    track_columns: tuple[str, ...]
    place: Callable[[str], tuple[str, int]]


def first_filled(rows: pa.Table, columns: tuple[str, ...], otherwise: str) -> pa.Array:
    """For each row the first of these columns that is neither null nor empty, else `otherwise`; texts, or a dictionary of texts."""
    filled: list[Any] = []
    for name in columns:
        if name in rows.column_names and not pa.types.is_null(rows[name].type):
            column = rows[name].combine_chunks()
            if not filled and pa.types.is_dictionary(column.type) and _all_filled(column):
                return column
            text = column.cast(pa.string())
            filled.append(pc.if_else(pc.equal(text, _EMPTY), _NULL, text))
    return pc.coalesce(*filled, texts([otherwise])[0]) if filled else texts([otherwise] * rows.num_rows)


def _all_filled(column: pa.DictionaryArray) -> bool:
    words = column.dictionary
    return pa.types.is_string(words.type) and column.null_count == words.null_count == 0 and "" not in words.to_pylist()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A chunk's slices, ready to be encoded: their columns, the descriptors and the interned strings that go before them."""

    start: Int
    end: Int
    name: Int
    track: Int
    arguments: Arguments
    ends: Ends
    descriptors: bytes
    strings: bytes


class SliceWriter:
    """Makes slices of one table's rows and writes them. `group` gives the path of the track that those of a core hang from."""

    def __init__(
        self,
        tracks: Tracks,
        table: SliceTable,
        columns: tuple[str, ...],
        group: Callable[[int | None, str], tuple[str, ...]],
        *,
        apart: bool,
    ) -> None:
        self._tracks, self._table, self._group = tracks, table, group
        hidden = ("start_ts", "end_ts", "duration_ns", *table.shown)
        ordered = dict.fromkeys((*(c for c in table.leading if c in columns), *columns))
        self._columns = Columns([c for c in ordered if c not in hidden])
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
        present, which = _distinct(integers(core.indices, 0) * labels + integers(label.indices, 0), labels * len(core.dictionary))
        number = np.empty(len(present), np.int64)
        for place, code in enumerate(present.tolist()):
            above = self._group(core.dictionary[code // labels].as_py(), self._table.group)
            name, rank = self._table.place(label.dictionary[code % labels].as_py())
            number[place] = self._lanes.number((*above, name), rank)
        found: Int = number[which]
        return found

    def lanes(self, rows: pa.Table, track: Int) -> Int:
        """The lane of each row; rows are sorted by start."""
        return self._lanes.lanes(integers(rows["start_ts"], 0), integers(rows["end_ts"], 0), track)

    def lanes_of(self, keep: NDArray[np.bool_], start: Int, end: Int, track: Int) -> Int:
        """The lane of every row of a table that is not sorted, 0 where `keep` is False; the other arrays hold the kept rows."""
        order = np.argsort(start, kind="stable")
        lane = np.zeros(len(keep), np.int64)
        lane[np.flatnonzero(keep)[order]] = self._lanes.lanes(start[order], end[order], track[order])
        return lane

    def prepare(self, rows: pa.Table, track: Int, lane: Int, ends: Ends) -> Prepared:
        """All that the slices of these rows need; each row has a start and an end that is not before it."""
        strings, names = Strings("debug_annotation_string_values"), Strings("event_names")
        arguments = self._columns.arguments(rows, strings)
        title = self._table.title(rows).dictionary_encode()
        first = names.add(texts([safe(t, _NAME_LIMIT) for t in title.dictionary.to_pylist()]))
        return Prepared(
            start=integers(rows["start_ts"], 0),
            end=integers(rows["end_ts"], 0),
            name=integers(title.indices, 0) + first,
            track=self._lanes.identities(track, lane),
            arguments=arguments,
            ends=ends,
            descriptors=self._tracks.take_new(),
            strings=names.serialized() + strings.serialized(),
        )

    def write(self, trace: Trace, slices: Prepared) -> None:
        """Write them, after the descriptors of the tracks that are new."""
        trace.write(slices.descriptors)
        trace.begin_state(self._columns.names, (self._table.name,), slices.strings)
        arguments, ends = slices.arguments, slices.ends
        trace.fill(
            _bound(len(slices.start), arguments, len(ends.flow)),
            lambda out: encoder.write_slices(
                out,
                slices.start,
                slices.end,
                slices.name,
                slices.track,
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


def _distinct(codes: Int, limit: int) -> tuple[Int, Int]:
    """The distinct codes, which are below `limit`, and for each code its place among them."""
    if limit > _FEW_CODES:
        found, which = np.unique(codes, return_inverse=True)
        return found, which
    present = np.flatnonzero(np.bincount(codes, minlength=limit))
    place = np.zeros(limit, np.int64)
    place[present] = np.arange(len(present))
    return present, place[codes]


def _bound(rows: int, arguments: Arguments, flows: int) -> int:
    # A repeated text is counted once for each row it is used in only where it stands inline.
    inline = arguments.kinds == encoder.TEXT
    lengths = int(((arguments.values[inline] & encoder.TEXT_MASK) * arguments.valid[inline]).sum())
    present = int(np.count_nonzero(arguments.valid))
    return rows * encoder.SLICE_BYTES + present * encoder.ARGUMENT_BYTES + lengths + flows * encoder.FLOW_BYTES


def usable(rows: pa.Table, window: Window | None) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Which rows can be slices, and how many cannot, by reason. Rows outside the window are neither."""
    known = valid(rows["start_ts"]) & valid(rows["end_ts"])
    s, e = integers(rows["start_ts"], 0), integers(rows["end_ts"], 0)
    inside = ~known | (True if window is None else window.touches(s, e))
    backwards, negative = known & (e < s), known & (e >= s) & (s < 0)
    reasons = {"no start or end": ~known, "ends before it starts": backwards & inside, "starts before time 0": negative & inside}
    return inside & known & ~backwards & ~negative, {r: int(m.sum()) for r, m in reasons.items() if m.any()}


def chunks(rows: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in pieces of at most CHUNK."""
    for group in rows:
        for at in range(0, group.num_rows, CHUNK):
            yield group.slice(at, CHUNK)


def select(rows: pa.Table, keep: NDArray[np.bool_]) -> pa.Table:
    """The rows where `keep` is True."""
    if keep.all():
        return rows
    bits = pa.py_buffer(np.packbits(keep, bitorder="little"))
    return rows.filter(pa.Array.from_buffers(pa.bool_(), len(keep), [None, bits]))
