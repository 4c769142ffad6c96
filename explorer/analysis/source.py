"""Source lines: time, instructions and engines of each line of the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from explorer.analysis import intervals
from explorer.analysis.rows import Groups, Int, Work, work
from explorer.analysis.source_text import split_place
from explorer.store.reader import Profile


@dataclass(frozen=True, slots=True)
class Line:
    """One source line as instructions name it; `file` None: instructions that name none.

    Times in nanoseconds: `time_ns` is covered by at least one of its instructions or the transfers they started, `engine_ns` the
    same by engine, `wait_ns` is added up. `layers` are the paths its instructions belong to. `dma_ns` is None where transfers are
    not tied to instructions.
    """

    file: str | None
    line: int | None
    time_ns: int
    engine_ns: Mapping[str, int]
    dma_ns: int | None
    wait_ns: int
    instructions: int
    sums: Mapping[str, int]
    layers: tuple[str, ...]


def source(profile: Profile) -> tuple[Line, ...] | None:
    """All lines, longest time first, instructions without one last; None if no instruction names its line."""
    rows = work(profile)
    return None if rows is None else of_work(rows)


def of_work(rows: Work) -> tuple[Line, ...] | None:
    """The same from rows that are loaded already."""
    if not rows.place.names:
        return None
    groups = Groups.of(rows.place.codes, len(rows.place.names))
    moved = None
    if rows.transfers is not None:
        started = rows.transfers.instruction
        moved = Groups.of(np.where(started >= 0, rows.place.codes[started], -1), len(rows.place.names))
    found = []
    for code, name in enumerate(rows.place.names):
        file, line = split_place(name)
        found.append(_line(rows, file, line, groups[code], None if moved is None else moved[code]))
    found.sort(key=lambda at: (-at.time_ns, at.file or "", at.line or 0))
    if len(groups.rest):
        found.append(_line(rows, None, None, groups.rest, None if moved is None else moved.rest))
    return tuple(found)


def rest(rows: Work, shown: Iterable[Line]) -> Line | None:
    """All instructions of the lines that are not among `shown`, as one line without a place; None if there are none.

    Its times are the union over those lines, so they are no sum of theirs.
    """
    places = {(at.file, at.line) for at in shown}
    unplaced = (None, None) not in places
    left = np.array([*(split_place(name) not in places for name in rows.place.names), unplaced], np.bool_)[rows.place.codes]
    if not left.any():
        return None
    started = None if rows.transfers is None else rows.transfers.instruction
    moved = None if started is None else np.flatnonzero(np.where(started >= 0, left[started], unplaced))
    return _line(rows, None, None, np.flatnonzero(left), moved)


def _line(rows: Work, file: str | None, line: int | None, of: Int, transfers: Int | None) -> Line:
    busy = of[~rows.is_wait[of]]
    start, end, engine = rows.start[busy], rows.end[busy], rows.engine[busy]
    dma_start, dma_end = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if rows.transfers is not None and transfers is not None:
        dma_start, dma_end = rows.transfers.start[transfers], rows.transfers.end[transfers]
    return Line(
        file=file,
        line=line,
        time_ns=intervals.busy(np.concatenate((start, dma_start)), np.concatenate((end, dma_end))),
        engine_ns={
            name: intervals.busy(start[engine == code], end[engine == code])
            for code, name in enumerate(rows.engines)
            if (engine == code).any()
        },
        dma_ns=None if transfers is None else intervals.busy(dma_start, dma_end),
        wait_ns=int(rows.wait[of].sum()),
        instructions=len(of),
        sums={name: int(column[of].sum()) for name, column in rows.sums.items()},
        layers=tuple(rows.layer.names[c] for c in np.unique(rows.layer.codes[of]) if c >= 0),
    )
