"""What the timeline draws, as arrays: instructions and DMA transfers, each row of the screen with its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from explorer.analysis.engines import ENGINES, canonical
from explorer.analysis.summary_definitions import WAITS
from explorer.store.arrays import integers, valid
from explorer.store.reader import Profile
from explorer.tui.spans import Index, Int, Spans

INSTRUCTIONS = "Instruction"
TRANSFERS = "DmaPacketAggregated"
PACKETS = "DmaPacket"
#: Column of ours: the instruction that started a transfer.
_STARTED_BY = "ts_instruction_id"
#: How measured profiles name the queue of a packet: the queue, then the DMA engine that ran it.
_ENGINE_OF_QUEUE = re.compile(r"-E\d+$")


@dataclass(frozen=True, slots=True)
class Ref:
    """One row of one table."""

    table: str
    row: int


@dataclass(frozen=True, slots=True)
class Names:
    """A text column as one number per row (-1: null or empty) into distinct names."""

    codes: Index
    names: tuple[str, ...]

    def __getitem__(self, row: int) -> str | None:
        code = int(self.codes[row])
        return self.names[code] if code >= 0 else None

    def where(self, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the rows whose name is wanted; `wanted` has one value per distinct name."""
        return np.append(wanted, False)[self.codes]


@dataclass(frozen=True, slots=True)
class Events:
    """The drawable columns of one table. `name` is what stands in a slice: opcode, or tensor moved."""

    table: str
    start: Int
    end: Int
    ids: Int
    name: Names
    track: Names
    layer: Names
    place: Names
    core: Int

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Track:
    """One row of the timeline. `work` and `waits` hold its spans, `*_rows` the table row of each span in that order."""

    label: str
    events: Events
    work: Spans
    work_rows: Int
    waits: Spans
    wait_rows: Int
    #: All rows in order of start, for going to the next and previous one, and these starts.
    rows: Int
    starts: Int

    @property
    def table(self) -> str:
        return self.events.table

    def position(self, row: int) -> int:
        """Place of a table row in `rows`, or -1 if it is on another track."""
        begin = self.events.start[row]
        first, last = np.searchsorted(self.starts, begin, "left"), np.searchsorted(self.starts, begin, "right")
        here = np.flatnonzero(self.rows[first:last] == row)
        return int(first + here[0]) if len(here) else -1

    def nearest(self, time: int) -> int:
        """The table row over `time` or nearest to it; work before waits."""
        work, wait = self.work.nearest(time), self.waits.nearest(time)
        if wait < 0 or (work >= 0 and self.work.distance(work, time) <= self.waits.distance(wait, time)):
            return int(self.work_rows[work])
        return int(self.wait_rows[wait])


def instructions(profile: Profile) -> Events | None:
    """Instructions, or None if the profile has none with a time."""
    columns = ["start_ts", "end_ts", "id", "pcore_idx", "opcode", "timeline_track", "engine", "layer", "nki_source_location"]
    return _events(profile, INSTRUCTIONS, columns, track=("timeline_track", "engine"), name=("opcode",))


def transfers(profile: Profile, started_by: Events | None) -> Events | None:
    """DMA transfers, or None if the profile has none with a time.

    Where the profile says which instruction of `started_by` started each, they have its layer and source line.
    """
    columns = ["start_ts", "end_ts", "id", "pcore_idx", "variable", "op", "queue_name"]
    found = _events(profile, TRANSFERS, columns, track=("queue_name",), name=("variable", "op"))
    tie = profile.table(TRANSFERS, [_STARTED_BY]) if _STARTED_BY in profile.columns(TRANSFERS) else None
    if found is None or tie is None or started_by is None:
        return found
    wanted = integers(tie[_STARTED_BY], -1)
    order = np.argsort(started_by.ids, kind="stable")
    row = order[np.minimum(np.searchsorted(started_by.ids, wanted, sorter=order), len(order) - 1)]
    known = started_by.ids[row] == wanted
    layer, place = (
        Names(np.where(known, column.codes[row], np.int32(-1)), column.names) for column in (started_by.layer, started_by.place)
    )
    return replace(found, layer=layer, place=place)


def packets(profile: Profile) -> Events | None:
    """DMA packets that no transfer of the profile stands for, or None: hardware adds up only some of them."""
    tie = profile.table(PACKETS, ["packet_aggregation_id"])
    if tie is None:
        return None
    whole = profile.table(TRANSFERS, ["id"])
    known = integers(whole["id"], -1) if whole is not None else np.zeros(0, np.int64)
    alone = ~(np.isin(integers(tie["packet_aggregation_id"], -1), known) & valid(tie["packet_aggregation_id"]))
    if not alone.any():
        return None
    columns = ["start_ts", "end_ts", "id", "pcore_idx", "variable", "queue_name"]
    return _events(profile, PACKETS, columns, track=("queue_name",), name=("variable",), only=alone)


def tracks(events: Events) -> Iterator[Track]:
    """One track per engine timeline track or queue, and per core where there are several, in reading order."""
    cores = np.unique(events.core)
    names = events.track.names
    keys = sorted(((int(c), t) for t in range(-1, len(names)) for c in cores), key=lambda k: (k[0], *_rank(_name(names, k[1]))))
    is_wait = events.name.where(np.array([n in WAITS for n in events.name.names], bool))
    for core, code in keys:
        rows = np.flatnonzero((events.track.codes == code) & (events.core == core) & (events.start >= 0))
        if not len(rows):
            continue
        rows = rows[np.argsort(events.start[rows], kind="stable")]
        work_rows, wait_rows = rows[~is_wait[rows]], rows[is_wait[rows]]
        label = _name(names, code)
        yield Track(
            label=f"{core}:{label}" if len(cores) > 1 else label,
            events=events,
            work=Spans(events.start[work_rows], events.end[work_rows]),
            work_rows=work_rows,
            waits=Spans(events.start[wait_rows], events.end[wait_rows]),
            wait_rows=wait_rows,
            rows=rows,
            starts=events.start[rows],
        )


def _name(names: tuple[str, ...], code: int) -> str:
    return names[code] if code >= 0 else "(no track)"


def _rank(label: str) -> tuple[int, list[tuple[int, str]]]:
    """Engines in the order of AWS's summary, then everything else with numbers counted and not spelled."""
    order = ENGINES.index(canonical(label)) if canonical(label) in ENGINES else len(ENGINES)
    return order, [(int(n or 0), t) for t, n in re.findall(r"(\D*)(\d{0,18})", label)]


def _events(
    profile: Profile,
    table: str,
    columns: list[str],
    *,
    track: tuple[str, ...],
    name: tuple[str, ...],
    only: NDArray[np.bool_] | None = None,
) -> Events | None:
    have = set(profile.columns(table))
    whole = encoded(profile, table, [c for c in columns if c in have])
    if whole is None:
        return None
    known = np.ones(whole.num_rows, bool) if only is None else only
    for column in ("start_ts", "end_ts"):
        known = known & valid(whole[column]) if column in have else np.zeros(whole.num_rows, bool)
    if not known.any():
        return None

    def numbers(column: str, missing: int) -> Int:
        return integers(whole[column], missing) if column in have else np.full(whole.num_rows, missing, np.int64)

    def first(*order: str) -> Names:
        return _first_known([names(whole[c]) for c in order if c in have], whole.num_rows)

    queues = first(*track)
    queues = _first_known([Names(queues.codes, tuple(_ENGINE_OF_QUEUE.sub("", n) for n in queues.names))], whole.num_rows)

    return Events(
        table=table,
        start=np.where(known, numbers("start_ts", -1), -1),
        end=np.where(known, numbers("end_ts", -1), -1),
        ids=numbers("id", -1),
        name=first(*name),
        track=queues,
        layer=first("layer"),
        place=first("nki_source_location"),
        core=numbers("pcore_idx", 0),
    )


def encoded(profile: Profile, table: str, columns: list[str]) -> pa.Table | None:
    """The table with its texts as numbers into one dictionary per column, or None if it was not captured."""
    chunks = [_encode(chunk) for chunk in profile.chunks(table, columns)]
    return pa.concat_tables(chunks).unify_dictionaries().combine_chunks() if chunks else None


def _encode(chunk: pa.Table) -> pa.Table:
    return pa.table(
        {c: chunk[c].dictionary_encode() if pa.types.is_string(chunk[c].type) else chunk[c] for c in chunk.column_names}
    )


def names(column: pa.ChunkedArray) -> Names:
    """An encoded text column; null and empty text count as unknown."""
    words = tuple(column.chunk(0).dictionary.to_pylist())
    codes = np.concatenate([integers(chunk.indices, -1) for chunk in column.chunks]).astype(np.int32)
    empty = np.array([not w for w in words] + [False], bool)
    return Names(np.where(empty[codes], np.int32(-1), codes), words)


def _first_known(found: list[Names], rows: int) -> Names:
    """The first column's name, where that is not known the second's, and so on."""
    codes, words = np.full(rows, -1, np.int32), list[str]()
    number: dict[str, int] = {}
    for column in found:
        renumber = np.array([number.setdefault(w, len(number)) for w in column.names] + [-1], np.int32)
        codes = np.where(codes < 0, renumber[column.codes], codes)
        words = list(number)
    return Names(codes, tuple(words))
