"""GpSimd instructions that follow indices or make them: gathers, nonzero places, segment bounds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule
from emulator.nki import dtypes
from emulator.nki.access import issue, same_tile, values_on
from emulator.nki.constants import nc_version
from emulator.nki.indexing import boxed
from emulator.nki.ops.elementwise import rows
from emulator.nki.ops.limits import needs_dtype, needs_generation
from emulator.nki.tensor import View

#: Partitions that each of the GpSimd engine's cores reaches, and limits of a gather (aws-neuron-sdk nki/api/nki/isa/__init__.py,
#: `local_gather`).
CORE_PARTITIONS: Final = 16
ELEMENTS_PER_INDEX: Final = (1, 2, 4, 8, 16, 32)
MOST_INDICES: Final = 4096


def nc_n_gather(dst: View, data: View, indices: View, *, call: str = "nki.isa.nc_n_gather") -> int:
    """The row that takes, in each partition, the elements of `data` at flattened `indices`."""
    same_tile(call, dst, indices)
    if data.partitions != indices.partitions:
        broken_rule(
            f"{call}: {data.name} {list(data.shape)} and {indices.name} {list(indices.shape)} need the same number of partitions"
        )
    needs_dtype(call, "indices", indices, "uint32")
    needs_dtype(call, "dst", dst, dtypes.name(data.dtype))
    row = issue(call, "nc_n_gather", None, (dst,), (data, indices), dst.free, dst.partitions, by_data=data)
    if values_on():
        places = rows(indices).astype(np.int64)
        _inside(call, data, places, 1)
        dst.write(np.take_along_axis(rows(data), places, axis=1))
    return row


def local_gather(dst: View, src: View, index: View, per_index: int = 1, valid: int | None = None) -> int:
    """The row in which each GpSimd core takes, in all of its 16 partitions, `per_index` elements from each of its indices on.

    A core's indices are those of its 16 partitions of `index`, partition by partition within each column.
    """
    call = "nki.isa.local_gather"
    if src.partitions != index.partitions or src.partitions % CORE_PARTITIONS:
        broken_rule(
            f"{call}: {src.name} {list(src.shape)} and {index.name} {list(index.shape)} need the same number of partitions, "
            f"a multiple of {CORE_PARTITIONS}"
        )
    if per_index not in ELEMENTS_PER_INDEX:
        broken_rule(f"{call}: num_elem_per_idx is {per_index}; it can be {', '.join(map(str, ELEMENTS_PER_INDEX))}")
    given = index.free * CORE_PARTITIONS
    count = given if valid is None else int(valid)
    if not 1 <= count <= min(given, MOST_INDICES):
        broken_rule(f"{call}: {count} indices for each core; {index.name} has {given}, and {MOST_INDICES} are the most")
    needs_dtype(call, "index", index, "uint16")
    needs_dtype(call, "dst", dst, dtypes.name(src.dtype))
    if dst.partitions != src.partitions or dst.free != count * per_index:
        broken_rule(
            f"{call}: dst {dst.name} {list(dst.shape)} has to hold {src.partitions} partitions of {count * per_index} elements"
        )
    row = issue(call, "local_gather", None, (dst,), (src, index), dst.free, dst.partitions, by_data=src)
    if values_on():
        cores = src.partitions // CORE_PARTITIONS
        own = rows(index).astype(np.int64).reshape(cores, CORE_PARTITIONS, -1).transpose(0, 2, 1).reshape(cores, -1)[:, :count]
        places = (own[:, :, None] + np.arange(per_index)).reshape(cores, -1)
        places = np.repeat(places, CORE_PARTITIONS, axis=0)
        _inside(call, src, places, per_index)
        dst.write(np.take_along_axis(rows(src), places, axis=1))
    return row


def nonzero_with_count(dst: View, src: View, index_offset: int = 0, padding_val: int = -1) -> int:
    """The row that lists, in partitions 0, 16, ... only, where `src` is not zero, then padding, then how many there are."""
    call = "nki.isa.nonzero_with_count"
    needs_generation(call, nc_version.gen3)
    if dst.partitions != src.partitions or dst.free != src.free + 1:
        broken_rule(
            f"{call}: dst {dst.name} {list(dst.shape)} has to be [{src.partitions}, {src.free + 1}]: one more element than "
            f"{src.name} for the count"
        )
    needs_dtype(call, "src", src, "float32", "int32")
    needs_dtype(call, "dst", dst, "int32")
    written, read = _each_core(dst), _each_core(src)
    row = issue(call, "nonzero_with_count", None, written, read, src.free, len(read))
    if values_on():
        for target, source in zip(written, read, strict=True):
            places = np.flatnonzero(rows(source)[0])
            line = np.full((1, dst.free), padding_val, dtype=np.int32)
            line[0, : len(places)] = places + index_offset
            line[0, -1] = len(places)
            target.write(line)
    return row


def sequence_bounds(dst: View, segment_ids: View) -> int:
    """The row that writes where each element's segment begins, and after those where it ends; n and -1 for padding (id 0)."""
    call = "nki.isa.sequence_bounds"
    n = segment_ids.free
    if segment_ids.partitions != 1 or dst.partitions != 1 or dst.free != 2 * n:
        broken_rule(
            f"{call}: segment_ids {segment_ids.name} {list(segment_ids.shape)} and dst {dst.name} {list(dst.shape)} have to be "
            f"[1, n] and [1, 2, n]"
        )
    for name, view in (("segment_ids", segment_ids), ("dst", dst)):
        needs_dtype(call, name, view, "float32", "int32")
    row = issue(call, "sequence_bounds", None, (dst,), (segment_ids,), n, 1)
    if values_on():
        ids = rows(segment_ids)[0]
        first = np.concatenate(([True], ids[1:] != ids[:-1]))
        starts = np.flatnonzero(first)
        ends = np.append(starts[1:], n)
        segment = np.cumsum(first) - 1
        bounds = np.stack((np.where(ids != 0, starts[segment], n), np.where(ids != 0, ends[segment], -1)))
        dst.write(bounds.astype(np.int32).reshape(1, -1))
    return row


def _inside(call: str, data: View, places: NDArray[Any], per_index: int) -> None:
    wrong = (places < 0) | (places >= data.free)
    if wrong.any():
        partition = int(np.argmax(wrong.any(axis=1)))
        place = int(places[partition][wrong[partition]][0])
        what = f"index {place}" if per_index == 1 else f"an index, with its {per_index} elements, {place}"
        broken_rule(f"{call}: {what} in partition {partition} is outside the {data.free} elements that {data.name} has in each")


def _each_core(view: View) -> tuple[View, ...]:
    axis = view.paxis
    if axis is None:
        return (view,)
    return tuple(
        boxed(view, tuple((partition, 1) if dim == axis else (0, size) for dim, size in enumerate(view.shape)))
        for partition in range(0, view.partitions, CORE_PARTITIONS)
    )
