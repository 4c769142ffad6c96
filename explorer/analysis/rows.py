"""The columns of Instruction and of its transfers that several analyses group by, as arrays."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from explorer.analysis.engines import ENGINES, canonical
from explorer.analysis.summary_definitions import WAITS
from explorer.store.arrays import integers, valid
from explorer.store.reader import Profile

Int = NDArray[np.int64]

#: Instruction columns that are added up, and whether they are bytes or FLOPs is in their name.
SUMS = (
    "raw_flops",
    "flops_transpose",
    "hbm_read_bytes",
    "hbm_write_bytes",
    "sbuf_read_bytes",
    "sbuf_write_bytes",
    "psum_read_bytes",
    "psum_write_bytes",
)


@dataclass(frozen=True, slots=True)
class Coded:
    """A text column as one number a row (-1: null or empty) into sorted distinct names."""

    codes: Int
    names: tuple[str, ...]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Coded:
        """The column's codes."""
        encoded = pc.dictionary_encode(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
        raw = [str(n) for n in encoded.dictionary.to_pylist()]
        names = tuple(sorted({n for n in raw if n}))
        place = {n: i for i, n in enumerate(names)}
        table = np.array([place.get(n, -1) for n in raw] + [-1], np.int64)
        return cls(table[integers(encoded.indices, len(raw))], names)


@dataclass(frozen=True, slots=True)
class Work:
    """Instructions in table order: times in nanoseconds, engine as a place in `engines`. `is_wait` marks waits, which are not work,
    and rows without a known start and end.

    `sums` holds the columns of `SUMS` that the profile has, null as 0; the others are not captured. A transfer belongs to the
    instruction that started it; `transfers` is None where the profile does not tie them together.
    """

    start: Int
    end: Int
    engine: Int
    engines: tuple[str, ...]
    wait: Int
    is_wait: NDArray[np.bool_]
    sums: dict[str, Int]
    layer: Coded
    place: Coded
    transfers: Transfers | None

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Transfers:
    """DMA transfers: times, bytes, and the row of the instruction that started each (-1: unknown)."""

    start: Int
    end: Int
    nbytes: Int
    instruction: Int


@functools.lru_cache(maxsize=1)
def work(profile: Profile) -> Work | None:
    """The instructions of a profile, or None if Instruction was not captured. Those of the last profile are kept."""
    have = set(profile.columns("Instruction"))
    sums = [c for c in SUMS if c in have]
    names = ["start_ts", "end_ts", "engine", "opcode", "evt_wait_time_ns", "layer", "nki_source_location", "id", *sums]
    table = profile.table("Instruction", names)
    if table is None:
        return None
    engine, opcode = Coded.of(table["engine"]), Coded.of(table["opcode"])
    known = sorted({canonical(n) for n in engine.names} - set(ENGINES))
    engines = (*ENGINES, *known)
    recode = np.array([engines.index(canonical(n)) for n in engine.names] + [-1], np.int64)
    return Work(
        start=integers(table["start_ts"], 0),
        end=integers(table["end_ts"], 0),
        engine=recode[engine.codes],
        engines=engines,
        wait=integers(table["evt_wait_time_ns"], 0),
        is_wait=np.isin(opcode.codes, [i for i, n in enumerate(opcode.names) if n in WAITS])
        | ~(valid(table["start_ts"]) & valid(table["end_ts"])),
        sums={c: integers(table[c], 0) for c in sums if table[c].null_count < table.num_rows},
        layer=Coded.of(table["layer"]),
        place=Coded.of(table["nki_source_location"]),
        transfers=_transfers(profile, integers(table["id"], -1)),
    )


def _transfers(profile: Profile, ids: Int) -> Transfers | None:
    if "ts_instruction_id" not in profile.columns("DmaPacketAggregated"):
        return None
    table = profile.table("DmaPacketAggregated", ["start_ts", "end_ts", "transfer_bytes", "ts_instruction_id"])
    if table is None:
        return None
    table = table.filter(pc.and_(pc.is_valid(table["start_ts"]), pc.is_valid(table["end_ts"])))
    order = np.argsort(ids, kind="stable")
    wanted = integers(table["ts_instruction_id"], -1)
    at = np.minimum(np.searchsorted(ids, wanted, sorter=order), max(len(ids) - 1, 0))
    row = order[at] if len(ids) else np.zeros(len(wanted), np.int64)
    return Transfers(
        integers(table["start_ts"], 0),
        integers(table["end_ts"], 0),
        integers(table["transfer_bytes"], 0),
        np.where(ids[row] == wanted, row, -1) if len(ids) else np.full(len(wanted), -1),
    )


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows ordered by a code: those of code c are `order[ptr[c]:ptr[c + 1]]`; rows with code -1 are in `rest`."""

    order: Int
    ptr: Int
    rest: Int

    @classmethod
    def of(cls, codes: Int, count: int) -> Groups:
        """The rows of each of `count` codes."""
        order = np.argsort(codes, kind="stable")
        ptr = np.searchsorted(codes[order], np.arange(count + 1))
        return cls(order, ptr, order[: ptr[0]])

    def __getitem__(self, code: int) -> Int:
        return self.order[self.ptr[code] : self.ptr[code + 1]]

    def between(self, first: int, last: int) -> Int:
        """Rows of the codes first to last - 1."""
        return self.order[self.ptr[first] : self.ptr[last]]
