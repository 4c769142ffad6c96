"""What the panes show of a profile. Figures come from the analyses; here they are only looked up, for the row that is selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.analysis import layers, source
from explorer.analysis.rows import work
from explorer.analysis.summary import summarize
from explorer.store import schema
from explorer.store.arrays import integers, valid
from explorer.store.reader import Profile
from explorer.times import format_time
from explorer.tui import events
from explorer.tui.events import Events, Names, Ref, Track
from explorer.tui.layers import Node
from explorer.tui.origin import Origins
from explorer.tui.source import LineFigures
from explorer.tui.spans import Int


@dataclass(frozen=True, slots=True)
class Dependency:
    """An edge of the selected row. `ref` is None where the other end is in a table that the timeline does not draw."""

    ref: Ref | None
    table: str
    id: int
    type: str | None
    gap_ns: int | None


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows found, in order of time."""

    tables: tuple[str, ...]
    start: Int
    table: Int
    row: Int

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, at: int) -> Ref:
        return Ref(self.tables[int(self.table[at])], int(self.row[at]))

    def beside(self, time: int, current: Ref | None, step: int) -> int:
        """Number of the hit after (step 1) or before (step -1) `current`, or else `time`; past the end it begins anew."""
        first, last = (int(np.searchsorted(self.start, time, side)) for side in ("left", "right"))
        here = next((i for i in range(first, last) if self[i] == current), None)
        if here is not None:
            return (here + step) % len(self)
        return (first if step > 0 else first - 1) % len(self)


@dataclass(frozen=True, slots=True)
class _Ends:
    id: Int
    table: Names


@dataclass(frozen=True, slots=True)
class _Flow:
    producer: _Ends
    consumer: _Ends
    type: Names
    gap: Int
    known: NDArray[np.bool_]


_LAST = 1 << 62


class Model:
    """A profile as the terminal interface sees it. Raises ProfileError where a table cannot be read."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        issued = events.instructions(profile)
        loaded = (issued, events.transfers(profile, issued), events.packets(profile))
        self.events: dict[str, Events] = {e.table: e for e in loaded if e is not None}
        self.tracks: tuple[Track, ...] = tuple(t for e in self.events.values() for t in events.tracks(e))
        self.extent = self._extent()
        self._flow: _Flow | None = None
        self._by_id: dict[str, tuple[Int, Int]] = {}
        self.origins = Origins(profile)

    def _extent(self) -> tuple[int, int]:
        drawn = [(e.start[e.start >= 0], e.end[e.start >= 0]) for e in self.events.values()]
        if not drawn:
            return 0, 1
        first = min(int(start.min()) for start, _ in drawn)
        return first, max(first + 1, *(int(np.maximum(start + 1, end).max()) for start, end in drawn))

    # What the profile says of itself

    def total_ns(self) -> int | None:
        """`total_time` of the summary, or None where it is not captured."""
        seconds = summarize(self.profile, ["total_time"]).metrics["total_time"]
        return None if seconds is None else round(seconds * 1e9)

    def target(self) -> str | None:
        """The NeuronCore generation or the instance the profile is of, as its Metadata spells it, or None."""
        return self.profile.metadata("ts_target") or self.profile.metadata("instance_type") or None

    @property
    def has_places(self) -> bool:
        """Whether any drawn row names its source line."""
        return any(e.place.names for e in self.events.values())

    def figures(self) -> tuple[list[Node], dict[tuple[str, int], LineFigures]]:
        """What `trnscope layers` and `trnscope source` say, by layer (parents before children) and by file and line."""
        rows = work(self.profile)
        tree = (layers.of_work(rows) if rows is not None else None) or ()
        parents = {layer.parent for layer in tree}
        nodes = [
            Node(
                path=layer.path,
                label=layer.path.rpartition("/")[2],
                depth=layer.depth,
                parent=layer.path in parents,
                figures=f"{format_time(layer.time_ns)} {layer.instructions:>7,}",
            )
            for layer in tree
        ]
        lines = (source.of_work(rows) if rows is not None else None) or ()
        return nodes, {(at.file, at.line): LineFigures(at.time_ns, at.instructions) for at in lines if at.file and at.line}

    def layer_of(self, ref: Ref) -> str | None:
        """The path of the row's layer as the tree has it, or None."""
        held = self.events[ref.table].layer[ref.row]
        return None if held is None else layers.path_of(held)

    # Selection

    def find(self, table: str, identity: int) -> Ref | None:
        """The row of that id, or None if the timeline has none; table names are read without case."""
        for name, held in self.events.items():
            if name.lower() == table.lower():
                # A row of many dependents is asked for each of them: sorted once, not searched through each time.
                if name not in self._by_id:
                    drawn = np.flatnonzero(held.start >= 0)
                    order = np.argsort(held.ids[drawn], kind="stable")
                    self._by_id[name] = held.ids[drawn][order], drawn[order]
                ids, rows = self._by_id[name]
                at = int(np.searchsorted(ids, identity))
                return Ref(name, int(rows[at])) if at < len(ids) and ids[at] == identity else None
        return None

    def track_of(self, ref: Ref) -> int:
        """Number of the track that draws the row."""
        return next(i for i, t in enumerate(self.tracks) if t.table == ref.table and t.position(ref.row) >= 0)

    def name(self, ref: Ref) -> str:
        return self.events[ref.table].name[ref.row] or "(no name)"

    def span(self, ref: Ref) -> tuple[int, int]:
        held = self.events[ref.table]
        return int(held.start[ref.row]), int(held.end[ref.row])

    def fields(self, ref: Ref) -> dict[str, Any]:
        """The row's columns that hold something, in the table's order."""
        row = self.profile.row(ref.table, ref.row)
        return {name: value for name, value in row.items() if value is not None and value != ""}

    @staticmethod
    def unit(table: str, column: str) -> str | None:
        """The published unit of a column, or None."""
        spec = schema.tables().get(table)
        found = spec.column(column) if spec else None
        return found.unit if found else None

    # Dependencies

    @property
    def has_flow(self) -> bool:
        return "Flow" in self.profile.tables

    def predecessors(self, ref: Ref) -> list[Dependency]:
        """What the row had to wait for, the one that was done last first. Empty where Flow was not captured."""
        return self._edges(ref, backward=True)

    def successors(self, ref: Ref) -> list[Dependency]:
        """What waited for the row, the one that began first first. Empty where Flow was not captured."""
        return self._edges(ref, backward=False)

    def _edges(self, ref: Ref, backward: bool) -> list[Dependency]:
        if not self.has_flow:
            return []
        flow = self._flows()
        near, far = (flow.consumer, flow.producer) if backward else (flow.producer, flow.consumer)
        identity = int(self.events[ref.table].ids[ref.row])
        mine = near.table.where(np.array([n.lower() == ref.table.lower() for n in near.table.names], bool))
        found: list[tuple[int, Dependency]] = []
        for at in np.flatnonzero((near.id == identity) & mine):
            table, other = far.table[int(at)] or "", int(far.id[at])
            gap = int(flow.gap[at]) if flow.known[at] else None
            edge = Dependency(self.find(table, other), table, other, flow.type[int(at)], gap)
            # Edges to rows without a place on the timeline go last.
            when = self.span(edge.ref)[1 if backward else 0] if edge.ref else None
            found.append((_LAST if when is None else -when if backward else when, edge))
        return [edge for _, edge in sorted(found, key=lambda f: f[0])]

    def _flows(self) -> _Flow:
        if self._flow is None:
            columns = ["in_id", "out_id", "in_table", "out_table", "dependency_type", "gap_time"]
            table: Any = events.encoded(self.profile, "Flow", columns)
            self._flow = _Flow(
                producer=_Ends(integers(table["in_id"], -1), events.names(table["in_table"])),
                consumer=_Ends(integers(table["out_id"], -1), events.names(table["out_table"])),
                type=events.names(table["dependency_type"]),
                gap=integers(table["gap_time"], 0),
                known=valid(table["gap_time"]),
            )
        return self._flow

    # Search and emphasis

    def search(self, text: str) -> Hits:
        """Rows whose name, layer, source line or track holds the text, without case, or whose id it is."""
        wanted = text.strip().lower()
        identity = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 19 else None
        rows = [
            np.flatnonzero((held.start >= 0) & (_any(held, wanted) | (held.ids == identity if identity is not None else False)))
            for held in self.events.values()
        ]
        return _hits(self.events, rows)

    def in_layer(self, table: str, path: str) -> NDArray[np.bool_]:
        """Mask of a table's rows that belong to a layer or to one below it."""
        column = self.events[table].layer
        if path == layers.OTHER:
            return column.codes < 0
        own = [layers.path_of(n) for n in column.names]
        return column.where(np.array([n == path or n.startswith(path + "/") for n in own], bool))

    def at_place(self, table: str, place: str) -> NDArray[np.bool_]:
        """Mask of a table's rows that a source line issued; the line is given as `file:line`."""
        column = self.events[table].place
        return column.where(np.array([n == place for n in column.names], bool))

    def hits(self, masks: Mapping[str, NDArray[np.bool_]]) -> Hits:
        """The rows that masks by table mark."""
        return _hits(self.events, [np.flatnonzero((e.start >= 0) & masks[t]) for t, e in self.events.items()])


def _hits(held: Mapping[str, Events], rows: list[Int]) -> Hits:
    starts = [e.start[r] for e, r in zip(held.values(), rows, strict=True)]
    number = [np.full(len(r), i, np.int64) for i, r in enumerate(rows)]
    if not rows:
        return Hits((), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    start, table, row = np.concatenate(starts), np.concatenate(number), np.concatenate(rows)
    order = np.lexsort((row, table, start))
    return Hits(tuple(held), start[order], table[order], row[order])


def _any(held: Events, wanted: str) -> NDArray[np.bool_]:
    mask = np.zeros(len(held), bool)
    for column in (held.name, held.layer, held.place, held.track):
        mask |= column.where(np.array([wanted in n.lower() for n in column.names], bool))
    return mask
