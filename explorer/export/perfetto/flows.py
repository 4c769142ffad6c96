"""Dependency edges as flows: which slices are the two ends of which edge, and which edges cannot be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from explorer.export.perfetto import layout
from explorer.export.perfetto.encoder import Bytes, Int
from explorer.export.perfetto.layout import pb
from explorer.store.arrays import integers, rows_equal, valid
from explorer.store.reader import Profile

_BEGINS, _ENDS = (np.frombuffer(layout.tag(pb.TrackEvent, f), np.uint8) for f in ("flow_ids", "terminating_flow_ids"))


@dataclass(frozen=True, slots=True)
class Ends:
    """Flows that begin or end at each of n slices: those of slice i are `ptr[i]` to `ptr[i + 1]` of `flow` and `tag`."""

    ptr: Int
    flow: Int
    tag: Bytes


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices of one table: row numbers, identifiers and starts; `known` is False where the identifier is null."""

    row: Int
    id: Int
    start: Int
    known: NDArray[np.bool_]


class Flows:
    """The edges between exported slices, by the row they begin or end at. Held in memory, about 100 bytes an edge."""

    def __init__(self, count: int, dropped: Mapping[str, int], ends: Mapping[str, tuple[Int, Int, Bytes]]) -> None:
        self.count = count
        self.dropped = dict(dropped)
        self._ends = ends

    def ends(self, table: str, rows: Int) -> Ends:
        """The ends at these rows of a table, which are sorted and hold every row between that is a slice."""
        row, flow, tag = self._ends.get(table, _NO_ENDS)
        place = np.searchsorted(row, rows)
        last = int(np.searchsorted(row, rows[-1], side="right")) if len(rows) else 0
        first = int(place[0]) if len(rows) else 0
        return Ends(np.append(place - first, last - first), flow[first:last], tag[first:last])


_NO_ENDS = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, len(_BEGINS)), np.uint8))
NONE = Flows(0, {}, {})


def connect(profile: Profile, slices: Mapping[str, Slices]) -> Flows:
    """The profile's edges between slices; tables are given in the order in which they are written.

    An edge cannot be drawn, and is counted as dropped, if one of its ends is no slice, or if the consumer does not begin after the
    producer: Perfetto points arrows by time.
    """
    edges = profile.table("Flow", ["in_id", "out_id", "in_table", "out_table"])
    if edges is None:
        return NONE
    names = list(slices)
    table, row, start = zip(*(_find(edges, side, names, slices) for side in ("in", "out")), strict=True)
    found = (table[0] >= 0) & (table[1] >= 0)
    order = np.stack([start[1] - start[0], table[1] - table[0], row[1] - row[0]])
    sign = np.where(order[0] != 0, order[0], np.where(order[1] != 0, order[1], order[2]))
    drawn = np.flatnonzero(found & (sign > 0))
    dropped = {
        "flow to or from what is not exported": int((~found).sum()),
        "flow whose consumer does not begin after its producer": int((found & (sign <= 0)).sum()),
    }
    ends = {}
    for number, name in enumerate(names):
        sides = [drawn[t[drawn] == number] for t in table]
        where = np.concatenate([row[0][sides[0]], row[1][sides[1]]])
        by_row = np.argsort(where, kind="stable")
        tags = np.concatenate([np.tile(t, (len(s), 1)) for t, s in zip((_BEGINS, _ENDS), sides, strict=True)])
        ends[name] = (where[by_row], np.concatenate(sides)[by_row] + 1, np.ascontiguousarray(tags[by_row]))
    return Flows(len(drawn), {reason: count for reason, count in dropped.items() if count}, ends)


def _find(edges: pa.Table, side: str, names: Sequence[str], slices: Mapping[str, Slices]) -> tuple[Int, Int, Int]:
    """For one side of each edge: number of its table among `names` (-1: no slice), row and start."""
    known, wanted = valid(edges[f"{side}_id"]), integers(edges[f"{side}_id"], 0)
    spelled = pc.utf8_lower(edges[f"{side}_table"].combine_chunks()).dictionary_encode()
    table, row, start = np.full(len(wanted), -1, np.int64), np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
    for number, name in enumerate(names):
        here = np.isin(integers(spelled.indices, -1), rows_equal(spelled.dictionary, name.lower())) & known
        mine = slices[name]
        keys, first = np.unique(mine.id[mine.known], return_index=True)
        if len(keys) == 0:
            continue
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        here &= keys[place] == wanted
        position = np.flatnonzero(mine.known)[first[place[here]]]
        table[here], row[here], start[here] = number, mine.row[position], mine.start[position]
    return table, row, start
