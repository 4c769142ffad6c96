"""Semaphores: what hardware prints in operands, and when each was raised."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collectors.nki.ids import Ids
from collectors.nki.rows import Int, ints, take
from emulator.program import Program, Timeline

#: Engines by code, as hardware names them in semaphores.
_SOURCES = ("Tensor", "Vector", "Scalar", "GpSimd", "Sync", "AXI")


def semaphore_names(timeline: Timeline) -> list[str]:
    """Each semaphore as hardware prints it: "S[4] (Scalar)"."""
    return [f"S[{i}] ({name})" for i, name in enumerate(timeline.semaphores)]


def increments(timeline: Timeline) -> Int:
    """By how much each instruction raises its semaphore; 0 where it raises none."""
    step = np.zeros(len(timeline.semaphore), np.int64)
    raising = np.flatnonzero(timeline.semaphore >= 0)
    order = raising[np.lexsort((timeline.semaphore_value[raising], timeline.semaphore[raising]))]
    value, which = timeline.semaphore_value[order], timeline.semaphore[order]
    before = (
        np.where(np.concatenate(([True], which[1:] != which[:-1])), 0, np.concatenate(([0], value[:-1]))) if len(order) else value
    )
    step[order] = value - before
    return step


def synchronisation(timeline: Timeline) -> pa.Array:
    """What each instruction waits for and raises, as hardware prints it: "S[5] (Tensor)>=1 S[4] (Scalar)++@complete "."""
    names = semaphore_names(timeline)
    step = increments(timeline)
    waits = pc.binary_join_element_wise(take(names, timeline.wait_semaphore), _text(timeline.wait_value), ">=")
    by_one = pc.binary_join_element_wise(take(names, timeline.semaphore), "++@complete", "")
    by_more = pc.binary_join_element_wise(take(names, timeline.semaphore), _text(step), pa.scalar("+="))
    by_more = pc.binary_join_element_wise(by_more, "@complete", "")
    raises = pc.if_else(pa.array(step == 1), by_one, by_more)
    return words(waits, raises)


def words(*parts: pa.Array) -> pa.Array:
    """The parts of each row with spaces between, parts that are null or empty left out."""
    # binary_join_element_wise(null_handling="skip") loses rows whose parts are all null.
    filled = [pc.fill_null(part, "") for part in parts]
    spaced = [pc.if_else(pc.equal(part, ""), "", pc.binary_join_element_wise(part, " ", "")) for part in filled]
    return pc.utf8_rtrim(pc.binary_join_element_wise(*spaced, ""), " ")


def _text(values: Int) -> pa.Array:
    return pa.array(np.asarray(values, np.int64)).cast(pa.string())


def semaphore_update(program: Program, timeline: Timeline, ids: Ids) -> pa.Table:
    """`SemaphoreUpdate`: a row whenever an instruction or transfer completes and raises its semaphore.

    A transfer's semaphore rises when the waiting engine can see it; hardware's one update for each DMA engine is one row here.
    """
    rows = np.flatnonzero(timeline.semaphore >= 0)
    transfer = ids.transfer_of[rows]
    is_dma = transfer >= 0
    when = timeline.end[rows].copy()
    when[is_dma] = timeline.transfers.completion[transfer[is_dma]]
    step = increments(timeline)[rows]
    return pa.table(
        {
            "timestamp": ints(when),
            "id": take(semaphore_names(timeline), timeline.semaphore[rows]),
            "value": ints(timeline.semaphore_value[rows], type=pa.int32()),
            "update_source": take(_SOURCES, np.where(is_dma, len(_SOURCES) - 1, program.engine[rows])),
            "update_operation_type": take(["sem_inc", "sem_add_imm"], np.where(step == 1, 0, 1)),
            "update_trigger_timing": pa.array(["complete"] * len(rows), pa.string()),
            "pcore_idx": ints(program.core[rows]),
        }
    )
