"""Language functions that become several instructions: matmul, transpose, softmax, rms_norm."""

from __future__ import annotations

from typing import Any

from emulator.errors import broken_rule, unsupported
from emulator.nki import dtypes
from emulator.nki.access import allocate
from emulator.nki.assign import fresh
from emulator.nki.constants import MemoryRegion, reduce_cmd
from emulator.nki.language.arithmetic import binary
from emulator.nki.ops import elementwise, gather, patterns, reduce, scalar
from emulator.nki.ops import matmul as tensor_engine
from emulator.nki.ops.reduce import tile_shape
from emulator.nki.tensor import View, need_view
from emulator.program import Space


def _in_sbuf(view: View, legacy: bool) -> View:
    if view.space is not Space.PSUM:
        return view
    held = allocate(tile_shape(view), view.dtype, MemoryRegion.sbuf, name=f"{view.name}.copy", legacy=legacy)
    elementwise.tensor_copy(held, view, call="nki.language")
    return held


def matmul(x: Any, y: Any, transpose_x: bool = False, mask: Any = None, *, legacy: bool) -> View:
    """`x @ y` (`x.T @ y` if transposed already) in PSUM; without `transpose_x` a transpose and its copy come first."""
    call = "nki.language.matmul"
    if mask is not None:
        unsupported(f"{call} with a mask")
    left = _in_sbuf(need_view(x, call, "x"), legacy)
    right = _in_sbuf(need_view(y, call, "y"), legacy)
    if not transpose_x:
        turned = transpose(left, legacy=legacy, name="matmul.transpose")
        left = _in_sbuf(turned, legacy)
    if left.partitions != right.partitions:
        broken_rule(
            f"{call}: {left.name} and {right.name} do not share the contraction dimension: {left.partitions} and {right.partitions}"
        )
    result = allocate((left.free, right.free), dtypes.float32, MemoryRegion.psum, legacy=legacy, unnamed="matmul")
    rows = tensor_engine.nc_matmul(result, left, right, accumulate=False)
    return fresh(result, rows, spaces=(Space.PSUM,), matmul=True)


def transpose(x: Any, dtype: Any = None, mask: Any = None, *, legacy: bool, name: str = "") -> View:
    """The transpose of a tile, by the Tensor engine in PSUM, or by the Vector engine if it is at most 32 by 32."""
    call = "nki.language.transpose"
    if mask is not None:
        unsupported(f"{call} with a mask")
    data = need_view(x, call, "x")
    kind = dtypes.as_dtype(dtype) if dtype is not None else data.dtype
    small = patterns.by_vector(data, None, None)
    region = MemoryRegion.sbuf if small else MemoryRegion.psum
    if not small:
        data = _in_sbuf(data, legacy)
    if data.free > 128:
        broken_rule(f"{call}: {data.name} {list(data.shape)} is larger than [128, 128]; transpose it in tiles")
    result = allocate(
        (data.free, data.partitions), kind if small else data.dtype, region, legacy=legacy, name=name, unnamed="transpose"
    )
    if small:
        return fresh(result, (patterns.transpose_by_vector(result, data),))
    return fresh(result, tensor_engine.transpose_by_tensor(result, data), spaces=(Space.PSUM,))


def softmax(x: Any, axis: Any = -1, dtype: Any = None, compute_dtype: Any = None, mask: Any = None, *, legacy: bool) -> View:
    """Softmax over the free axes: negated maximum, exponential with its sum, reciprocal, product."""
    call = "nki.language.softmax"
    data = _over_free(call, x, axis, mask)
    kind = dtypes.as_dtype(compute_dtype) if compute_dtype is not None else dtypes.float32
    column = (data.partitions, 1)
    every = tuple(range(1, len(tile_shape(data))))
    highest, total, share = (
        allocate(column, dtypes.float32, MemoryRegion.sbuf, name=f"softmax.{name}", legacy=legacy)
        for name in ("max", "sum", "share")
    )
    reduce.tensor_reduce(highest, "max", data, every, True, call=call)
    powers = allocate(tile_shape(data), kind, MemoryRegion.sbuf, name="softmax.exp", legacy=legacy)
    scalar.activation(powers, "exp", data, highest, 1.0, "add", total, reduce_cmd.reset_reduce, call=call)
    elementwise.reciprocal(share, total)
    result = allocate(tile_shape(data), dtype or data.dtype, MemoryRegion.sbuf, legacy=legacy, unnamed="softmax")
    return fresh(result, (elementwise.tensor_scalar(result, powers, "multiply", share, call=call),))


def rms_norm(
    x: Any,
    w: Any,
    axis: Any,
    n: int,
    epsilon: float = 1e-6,
    dtype: Any = None,
    compute_dtype: Any = None,
    mask: Any = None,
    *,
    legacy: bool,
) -> View:
    """`x / sqrt(mean(x ** 2) + epsilon) * w` over the free axes."""
    call = "nki.language.rms_norm"
    data = _over_free(call, x, axis, mask)
    kind = dtypes.as_dtype(compute_dtype) if compute_dtype is not None else dtypes.float32
    squares = allocate(tile_shape(data), kind, MemoryRegion.sbuf, name="rms_norm.square", legacy=legacy)
    total, factor = (
        allocate((data.partitions, 1), dtypes.float32, MemoryRegion.sbuf, name=f"rms_norm.{name}", legacy=legacy)
        for name in ("mean", "factor")
    )
    scalar.activation(squares, "square", data, None, 1.0, "add", total, reduce_cmd.reset_reduce, call=call)
    elementwise.tensor_scalar(total, total, "multiply", 1.0 / n, op1="add", operand1=epsilon, call=call)
    scalar.activation(factor, "rsqrt", total, call=call)
    scaled = allocate(tile_shape(data), kind, MemoryRegion.sbuf, name="rms_norm.scaled", legacy=legacy)
    elementwise.tensor_scalar(scaled, data, "multiply", factor, call=call)
    return binary("multiply", scaled, w, dtype or data.dtype, legacy=legacy)


def _over_free(call: str, x: Any, axis: Any, mask: Any) -> View:
    if mask is not None:
        unsupported(f"{call} with a mask")
    data = need_view(x, call, "x")
    axes = reduce.free_axes(call, data, axis)
    if axes != tuple(range(1, len(tile_shape(data)))):
        unsupported(f"{call} over some of the free axes")
    return data


def gather_flattened(data: Any, indices: Any, axis: int = 0, dtype: Any = None, *, legacy: bool) -> View:
    """A tile of the elements of each partition of `data` at `indices`, which count all of its free dimensions as one."""
    call = "nki.language.gather_flattened"
    if axis:
        unsupported(f"{call} along axis {axis}")
    source, places = need_view(data, call, "data"), need_view(indices, call, "indices")
    result = allocate(places.shape, source.dtype, MemoryRegion.sbuf, legacy=legacy, paxis=places.paxis or 0, unnamed="gather")
    row = gather.nc_n_gather(result, source, places, call=call)
    if dtype is None or dtypes.name(dtypes.as_dtype(dtype)) == dtypes.name(source.dtype):
        return fresh(result, (row,), spaces=(Space.SBUF,))
    converted = allocate(places.shape, dtype, MemoryRegion.sbuf, legacy=legacy, paxis=places.paxis or 0, unnamed="gather")
    return fresh(converted, (elementwise.tensor_copy(converted, result, call=call),))
