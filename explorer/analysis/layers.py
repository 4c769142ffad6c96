"""Layers: where time, instructions, FLOPs and bytes go, by the path of framework layer or kernel function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from explorer.analysis import intervals
from explorer.analysis.rows import Groups, Int, Work, work
from explorer.store.reader import Profile

#: Name of the row that holds what has no layer.
OTHER = "(no layer)"


@dataclass(frozen=True, slots=True)
class Layer:
    """One node of the tree, with all that lies below it.

    Times in nanoseconds: `time_ns` is covered by at least one of its instructions or transfers, `engine_ns` the same by engine;
    such times overlap between siblings and do not add up. `wait_ns`, `instructions` and `sums` do: a node's are its own plus its
    children's. `sums` holds FLOPs and bytes by Instruction column; a column that was not captured is missing. `dma_ns` is None
    where transfers are not tied to instructions.
    """

    path: str
    parent: str | None
    depth: int
    start_ns: int
    end_ns: int
    time_ns: int
    engine_ns: Mapping[str, int]
    dma_ns: int | None
    wait_ns: int
    instructions: int
    own_instructions: int
    sums: Mapping[str, int]


def layers(profile: Profile) -> tuple[Layer, ...] | None:
    """The tree, parents before children, rows without a layer last under `OTHER`; None if no instruction names its layer."""
    rows = work(profile)
    return None if rows is None else of_work(rows)


def of_work(rows: Work) -> tuple[Layer, ...] | None:
    """The same from rows that are loaded already."""
    if not rows.layer.names:
        return None
    parts = {name: _parts(name) for name in rows.layer.names}
    nodes = sorted({p[:n] for p in parts.values() for n in range(1, len(p) + 1)})
    place = {node: i for i, node in enumerate(nodes)}
    recode = np.array([place[parts[name]] for name in rows.layer.names] + [-1], np.int64)
    codes = recode[rows.layer.codes]
    groups = Groups.of(codes, len(nodes))
    moved = None
    if rows.transfers is not None:
        started = rows.transfers.instruction
        moved = Groups.of(np.where(started >= 0, codes[started], -1), len(nodes))
    found = []
    for i, node in enumerate(nodes):
        last = i + 1
        while last < len(nodes) and nodes[last][: len(node)] == node:
            last += 1
        below, transfers = groups.between(i, last), None if moved is None else moved.between(i, last)
        parent = _path(node[:-1]) if len(node) > 1 else None
        found.append(_layer(rows, _path(node), parent, len(node) - 1, below, len(groups[i]), transfers))
    if len(groups.rest):
        found.append(_layer(rows, OTHER, None, 0, groups.rest, len(groups.rest), None if moved is None else moved.rest))
    return tuple(found)


def path_of(name: str) -> str:
    """The path in the tree of a layer as an instruction names it."""
    return _path(_parts(name))


def _parts(name: str) -> tuple[str, ...]:
    return tuple(p for p in name.split("/") if p) or (name,)


def _path(node: tuple[str, ...]) -> str:
    return "/" + "/".join(node)


def _layer(rows: Work, path: str, parent: str | None, depth: int, below: Int, own: int, transfers: Int | None) -> Layer:
    busy = below[~rows.is_wait[below]]
    start, end, engine = rows.start[busy], rows.end[busy], rows.engine[busy]
    dma_start, dma_end = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if rows.transfers is not None and transfers is not None:
        dma_start, dma_end = rows.transfers.start[transfers], rows.transfers.end[transfers]
    starts, ends = np.concatenate((start, dma_start)), np.concatenate((end, dma_end))
    return Layer(
        path=path,
        parent=parent,
        depth=depth,
        start_ns=int(starts.min()) if len(starts) else int(rows.start[below].min()) if len(below) else 0,
        end_ns=int(ends.max()) if len(ends) else int(rows.end[below].max()) if len(below) else 0,
        time_ns=intervals.busy(starts, ends),
        engine_ns={
            name: intervals.busy(start[engine == code], end[engine == code])
            for code, name in enumerate(rows.engines)
            if (engine == code).any()
        },
        dma_ns=None if transfers is None else intervals.busy(dma_start, dma_end),
        wait_ns=int(rows.wait[below].sum()),
        instructions=len(below),
        own_instructions=own,
        sums={name: int(column[below].sum()) for name, column in rows.sums.items()},
    )
