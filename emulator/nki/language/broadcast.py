"""Broadcasting: free along the free dimensions, through the Tensor engine along partitions.

Each lane of an engine reads its own partition, so a row of floats reaches the others by a matmul with ones, at most 512
columns at a time (aws-neuron-sdk nki/guides/architecture/trainium_inferentia2_arch.rst, "Partition Broadcast").
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from emulator.errors import broken_rule
from emulator.nki import dtypes
from emulator.nki.access import allocate
from emulator.nki.assign import fresh
from emulator.nki.constants import MemoryRegion
from emulator.nki.indexing import boxed
from emulator.nki.ops import elementwise, matmul, patterns, scalar
from emulator.nki.ops.reduce import tile_shape
from emulator.nki.session import current
from emulator.nki.tensor import View
from emulator.program import Space

_COLUMNS: Final = 512


def broadcast_view(view: View, shape: tuple[int, ...]) -> View:
    """`view` with dimensions of one element repeated without a copy, aligned on the right as in numpy."""
    if tile_shape(view) == tuple(shape) and view.paxis == 0:
        return view
    own = tile_shape(view)
    axis = view.paxis
    if not view.on_chip:
        own_shape, own_strides = view.shape, view.strides
    elif axis is None:
        own_shape, own_strides = own, (view.storage.partition_bytes, *view.strides) if view.shape else (0, 0)
    else:
        own_shape = (view.shape[axis], *view.shape[:axis], *view.shape[axis + 1 :])
        own_strides = (view.strides[axis], *view.strides[:axis], *view.strides[axis + 1 :])
    if len(own_shape) > len(shape):
        broken_rule(f"{view.name} {list(view.shape)} does not broadcast to {list(shape)}")
    missing = len(shape) - len(own_shape)
    strides = [0] * missing
    for size, stride, wanted in zip(own_shape, own_strides, shape[missing:], strict=True):
        if size not in (1, wanted):
            broken_rule(f"{view.name} {list(view.shape)} does not broadcast to {list(shape)}")
        strides.append(stride if size == wanted else 0)
    return View(view.storage, view.dtype, view.offset, tuple(shape), tuple(strides), 0 if view.on_chip else None, view.legacy)


def broadcast_partitions(view: View, legacy: bool) -> View:
    """The tile with its row in every partition, if `view` repeats one partition; else `view`."""
    if not view.on_chip or view.paxis is None or view.shape[view.paxis] == 1 or view.strides[view.paxis]:
        return view
    partitions = view.shape[view.paxis]
    row = view.derive(view.offset, (1, *view.shape[1:]), (view.storage.partition_bytes, *view.strides[1:]), 0)
    result = allocate(view.shape, view.dtype, MemoryRegion.sbuf, legacy=legacy, unnamed="broadcast")
    if dtypes.is_integer(view.dtype) and row.space is not Space.PSUM:
        # The Tensor engine multiplies floats only.
        return fresh(result, (patterns.partition_broadcast(result, row),), spaces=(Space.SBUF,))
    if row.space is Space.PSUM:
        held = allocate(row.shape, view.dtype, MemoryRegion.sbuf, name="broadcast.row", legacy=legacy)
        elementwise.tensor_copy(held, row, call="broadcast")
        row = held
    columns = prod(view.shape[1:])
    spread = allocate((partitions, columns), dtypes.float32, MemoryRegion.psum, name="broadcast.sums", legacy=legacy)
    ones = _ones(partitions, view.dtype, legacy)
    if 0 in row.strides[1:] and columns > 1:
        dense = allocate(row.shape, view.dtype, MemoryRegion.sbuf, name="broadcast.row", legacy=legacy)
        elementwise.tensor_copy(dense, row, call="broadcast")
        row = dense
    flat = row.reshape((1, columns)) if row.shape != (1, columns) else row
    for start in range(0, columns, _COLUMNS):
        count = min(_COLUMNS, columns - start)
        part = ((0, partitions), (start, count))
        matmul.nc_matmul(boxed(spread, part), ones, boxed(flat, ((0, 1), (start, count))), accumulate=False)
    copied = scalar.activation(result, "copy", spread, call="broadcast")
    return fresh(result, (copied,))


def _ones(partitions: int, dtype: Any, legacy: bool) -> View:
    """A row of ones in one partition, made once per launch and core."""
    session = current()
    key = f"ones {dtypes.name(dtype)} {session.recorder.core}"
    ones: View | None = session.accumulators.get(key)
    if ones is None:
        ones = allocate((1, matmul.STATIONARY_COLUMNS), dtype, MemoryRegion.sbuf, name="ones", legacy=legacy, role="constant")
        elementwise.memset(ones, 1.0)
        session.accumulators[key] = ones
    return boxed(ones, ((0, 1), (0, partitions)))


def broadcast_to(x: Any, shape: Any, dtype: Any = None, *, legacy: bool) -> View:
    """`x` broadcast to `shape`: a view along free dimensions, a new tile along partitions."""
    if not isinstance(x, View):
        broken_rule(f"nki.language.broadcast_to works on tiles; got {type(x).__name__}")
    result = broadcast_partitions(broadcast_view(x, tuple(int(size) for size in shape)), legacy)
    if dtype is not None and dtypes.as_dtype(dtype) != result.dtype:
        cast = allocate(result.shape, dtype, MemoryRegion.sbuf, legacy=legacy, unnamed="broadcast")
        return fresh(cast, (elementwise.tensor_copy(cast, result, call="nki.language.broadcast_to"),))
    return result
