"""Searches of the Vector engine for eight values in each partition."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule
from emulator.nki import dtypes
from emulator.nki.access import issue, same_tile, values_on
from emulator.nki.ops.elementwise import rows
from emulator.nki.ops.limits import needs_dtype
from emulator.nki.tensor import View

#: Elements per partition that a search takes (aws-neuron-sdk nki/api/nki/isa/__init__.py, `nc_find_index8`, `nc_match_replace8`).
FEWEST: Final = 8
MOST: Final = 16384


def nc_find_index8(dst: View, data: View, vals: View) -> int:
    """The row that finds where each of 8 values first stands in its partition; all ones where it does not.

    A value that is asked for several times gets its places in ascending order.
    """
    call = "nki.isa.nc_find_index8"
    _takes(call, data, vals)
    needs_dtype(call, "dst", dst, "uint32", "uint16")
    _eight(call, "dst", dst, data)
    row = issue(call, "nc_find_index8", None, (dst,), (data, vals), data.free, data.partitions)
    if values_on():
        found = np.full((data.partitions, 8), _nowhere(dst), dtype=np.int64)
        table, wanted = dtypes.to_float32(rows(data)), dtypes.to_float32(rows(vals))
        for partition in range(data.partitions):
            for slot in range(8):
                same = np.flatnonzero(table[partition] == wanted[partition, slot])
                earlier = int((wanted[partition, :slot] == wanted[partition, slot]).sum())
                if earlier < len(same):
                    found[partition, slot] = same[earlier]
        _write_exactly(dst, found)
    return row


def nc_match_replace8(dst: View, data: View, vals: View, imm: float, dst_idx: View | None = None) -> int:
    """The row that writes `data` with the first match of each of 8 values replaced by `imm`, and where the matches stood.

    Values are taken from the last to the first, each from what is left by those before it; one without a match has index all ones.
    """
    call = "nki.isa.nc_match_replace8"
    _takes(call, data, vals, fewest=1)
    same_tile(call, dst, data)
    writes: tuple[View, ...] = (dst,)
    if dst_idx is not None:
        needs_dtype(call, "dst_idx", dst_idx, "uint32", "uint16")
        _eight(call, "dst_idx", dst_idx, data)
        writes = (dst, dst_idx)
    row = issue(call, "nc_match_replace8", None, writes, (data, vals), data.free, data.partitions)
    if values_on():
        table, wanted = dtypes.to_float32(rows(data)).copy(), dtypes.to_float32(rows(vals))
        found = np.full((data.partitions, 8), -1, dtype=np.int64)
        lanes = np.arange(data.partitions)
        for slot in range(7, -1, -1):
            same = table == wanted[:, slot : slot + 1]
            hit = same.any(axis=1)
            first = same.argmax(axis=1)
            table[lanes[hit], first[hit]] = np.float32(imm)
            found[hit, slot] = first[hit]
        dst.write(table)
        if dst_idx is not None:
            found[found < 0] = _nowhere(dst_idx)
            _write_exactly(dst_idx, found)
    return row


def _takes(call: str, data: View, vals: View, fewest: int = FEWEST) -> None:
    if not fewest <= data.free <= MOST:
        broken_rule(f"{call}: data {data.name} has {data.free} elements per partition; it takes {fewest} to {MOST}")
    _eight(call, "vals", vals, data)


def _eight(call: str, argument: str, view: View, data: View) -> None:
    if view.free != 8 or view.partitions != data.partitions:
        broken_rule(f"{call}: {argument} {view.name} {list(view.shape)} has to be [{data.partitions}, 8]")


def _nowhere(view: View) -> int:
    return int(np.iinfo(dtypes.storage(view.dtype)).max)


def _write_exactly(view: View, found: NDArray[Any]) -> None:
    view.write(found.astype(dtypes.storage(view.dtype)))
