"""How full SBUF and PSUM are over time, and what the tensors in HBM are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from collectors.nki.dma import Ends
from collectors.nki.ids import Ids
from collectors.nki.rows import Bool, Int, ints, sum_by
from collectors.nki.traffic import tensor_spaces
from emulator.program import Program, Space, Timeline

Columns = dict[str, pa.Array]
_ROLES = {"input": "IN", "output": "OUT", "constant": "WEIGHT", "temporary": "TEMPORARY"}


@dataclass(frozen=True, slots=True)
class Capacity:
    """Sizes of the on-chip memories of one core, bytes within a partition."""

    partitions: int
    sbuf_bytes: int
    psum_bytes: int
    psum_banks: int


@dataclass(frozen=True, slots=True)
class _Live:
    """The tensors of one memory and core that are used, and from when to when their storage is taken (nanoseconds)."""

    start: Int
    end: Int
    address: Int
    nbytes: Int
    partitions: Int


def _live(program: Program, timeline: Timeline, ids: Ids, space: Space, core: int) -> _Live:
    """A tensor's storage is taken from the earliest start of its uses to their latest end, transfers included."""
    first, last = use_times(program, timeline, ids)
    owner = np.array([t.core for t in program.tensors] or [0], np.int64)
    used = timeline.first_use >= 0
    owner = np.where(owner >= 0, owner, program.core[np.where(used, timeline.first_use, 0)])
    rows = np.flatnonzero(used & (tensor_spaces(program) == space) & (owner == core))
    return _Live(
        start=first[rows],
        end=last[rows],
        address=timeline.address[rows],
        nbytes=np.array([program.tensors[r].partition_bytes for r in rows.tolist()], np.int64),
        partitions=np.array([program.tensors[r].partitions for r in rows.tolist()], np.int64),
    )


def use_times(program: Program, timeline: Timeline, ids: Ids) -> tuple[Int, Int]:
    """When each tensor's first use starts and its last one ends (nanoseconds); meaningless for tensors that are not used."""
    end = timeline.end.copy()
    moves = timeline.transfers
    end[moves.instruction] = np.maximum(end[moves.instruction], moves.end)
    owner = np.repeat(np.arange(len(program)), np.diff(program.operands.ptr))
    first, last = np.full(len(program.tensors), np.iinfo(np.int64).max), np.full(len(program.tensors), -1)
    np.minimum.at(first, program.operands.tensor, timeline.start[owner])
    np.maximum.at(last, program.operands.tensor, end[owner])
    return first, last


def _occupied(live: _Live, when: Int, weight: Int) -> Int:
    """Sum of `weight` over what is live at each moment of `when` (sorted): from its start on, at its end no more."""
    at = np.concatenate((np.searchsorted(when, live.start), np.searchsorted(when, live.end)))
    change = sum_by(at, np.concatenate((weight, -weight)), len(when))
    return np.cumsum(change)


def _usage(program: Program, timeline: Timeline, ids: Ids, space: Space, columns: Callable[[_Live, Int], Columns]) -> pa.Table:
    tables = []
    for core in np.unique(program.core).tolist():
        live = _live(program, timeline, ids, space, core)
        when = np.unique(np.concatenate((live.start, live.end)))
        if len(when):
            made = columns(live, when)
            tables.append(pa.table({"timestamp": ints(when), **made, "pcore_idx": ints(np.full(len(when), core))}))
    return pa.concat_tables(tables) if tables else pa.table({"timestamp": pa.array([], pa.int64())})


def sbuf_usage(program: Program, timeline: Timeline, ids: Ids, capacity: Capacity) -> pa.Table:
    """`SbufUsage`: fractions of capacity in use, whenever they change. Partitions count from 0 for every tensor."""

    def columns(live: _Live, when: Int) -> Columns:
        whole = capacity.sbuf_bytes * capacity.partitions
        made = {"avg_util_percent": pa.array(_occupied(live, when, live.nbytes * live.partitions) / whole)}
        for partition in (0, 32, 64, 96):
            here = np.where(live.partitions > partition, live.nbytes, 0)
            made[f"partition_{partition}_util_percent"] = pa.array(_occupied(live, when, here) / capacity.sbuf_bytes)
        return made

    return _usage(program, timeline, ids, Space.SBUF, columns)


def psum_usage(program: Program, timeline: Timeline, ids: Ids, capacity: Capacity) -> pa.Table:
    """`PsumUsage`: fractions of capacity in use, whenever they change; of banks only where every tensor has an address."""
    bank = capacity.psum_bytes // capacity.psum_banks

    def columns(live: _Live, when: Int) -> Columns:
        whole = capacity.psum_bytes * capacity.partitions
        made = {"avg_util_percent": pa.array(_occupied(live, when, live.nbytes * live.partitions) / whole)}
        placed: Bool = live.address >= 0
        for b in range(capacity.psum_banks):
            inside = np.minimum(live.address + live.nbytes, (b + 1) * bank) - np.maximum(live.address, b * bank)
            share = _occupied(live, when, np.clip(inside, 0, None) * live.partitions) / (bank * capacity.partitions)
            made[f"bank_{b}_util_percent"] = pa.array(share, mask=np.full(len(when), not placed.all()))
        return made

    return _usage(program, timeline, ids, Space.PSUM, columns)


DESCRIPTIONS = {
    "TensorInfo.ts_dtype": "Element type, as the kernel language names it.",
    "TensorInfo.ts_first_use_ts": "When the first use of the tensor started, in nanoseconds; null if there was none.",
    "TensorInfo.ts_last_use_ts": "When the last use of the tensor ended, in nanoseconds; null if there was none.",
    "TensorInfo.ts_store_total_size_bytes": "Bytes of all transfers that wrote the tensor from SBUF.",
}


def tensor_info(program: Program, timeline: Timeline, ids: Ids, both: Ends) -> pa.Table:
    """`TensorInfo`: a row for each tensor in HBM, with how often it was loaded into SBUF (bytes loaded over its size)."""
    rows = [i for i, t in enumerate(program.tensors) if t.space == Space.HBM]
    tensors = [program.tensors[i] for i in rows]
    space = tensor_spaces(program)
    ops, moves = program.operands, timeline.transfers
    whole = (both.read >= 0) & (both.write >= 0)
    source, dest = (np.where(whole, ops.tensor[np.maximum(end, 0)], 0) for end in (both.read, both.write))
    loads = whole & (space[source] == Space.HBM) & (space[dest] == Space.SBUF)
    stores = whole & (space[source] == Space.SBUF) & (space[dest] == Space.HBM)
    count = sum_by(source[loads], np.ones(int(loads.sum()), np.int64), len(program.tensors))[rows]
    total = sum_by(source[loads], moves.read_bytes[loads], len(program.tensors))[rows]
    stored = sum_by(dest[stores], moves.write_bytes[stores], len(program.tensors))[rows]
    size = np.array([t.nbytes for t in tensors], np.int64)
    unused = timeline.first_use[rows] < 0
    first, last = use_times(program, timeline, ids)
    return pa.table(
        {
            "variable_name": pa.array([t.name for t in tensors], pa.string()),
            "type": pa.array([_ROLES.get(t.role, t.role.upper()) for t in tensors], pa.string()),
            "shape": pa.array([f"[{' '.join(map(str, t.shape))}]" for t in tensors], pa.string()),
            "size": ints(size),
            "pcore_idx": pa.array([t.core if t.core >= 0 else None for t in tensors], pa.int64()),
            "load_to_sbuf_avg_size_bytes": ints(total // np.maximum(count, 1), missing=count == 0),
            "load_to_sbuf_total_size_bytes": ints(total),
            "load_to_sbuf_dma_count": ints(count),
            "load_to_sbuf_repeat_factor": pa.array(total / np.maximum(size, 1), mask=size == 0),
            "ts_dtype": pa.array([t.dtype for t in tensors], pa.string()),
            "ts_first_use_ts": ints(first[rows], missing=unused),
            "ts_last_use_ts": ints(last[rows], missing=unused),
            "ts_store_total_size_bytes": ints(stored),
        }
    )
