"""`nki.isa` of the first generation: selects, searches, shuffles, gathers and random numbers.

Signatures follow aws-neuron-sdk nki/api/nki/isa/__init__.py at release 2.26.1.
"""

from __future__ import annotations

from typing import Any

from emulator.nki import dtypes
from emulator.nki.access import allocate
from emulator.nki.assign import fresh
from emulator.nki.constants import MemoryRegion, fp32
from emulator.nki.constants import reduce_cmd as _reduce_cmd
from emulator.nki.indexing import boxed, crop
from emulator.nki.isa_legacy import _column, _issue, _no_mask, _result, _statistics, _tile
from emulator.nki.ops import gather, random, search, select, shuffle
from emulator.nki.ops.reduce import tile_shape
from emulator.nki.tensor import View
from emulator.program import Space


def range_select(
    *,
    on_true_tile: View,
    comp_op0: Any,
    comp_op1: Any,
    bound0: View,
    bound1: View,
    reduce_cmd: Any = _reduce_cmd.idle,
    reduce_res: Any = None,
    reduce_op: Any = "max",
    range_start: int = 0,
    on_false_value: float = fp32.min,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> View:
    """`on_true_tile` where the column number lies within bounds, fp32.min elsewhere."""
    call = "range_select"
    data = _tile(on_true_tile, call, "on_true_tile")
    bounds = (_tile(bound0, call, "bound0"), _tile(bound1, call, "bound1"))

    def run(d: View, x: View) -> int:
        low, high = (_column(bound, mask) for bound in bounds)
        res = _column(reduce_res, mask)
        return select.range_select(d, x, comp_op0, comp_op1, low, high, reduce_cmd, res, reduce_op, range_start, on_false_value)

    return _issue(_result(data, tile_shape(data), dtype), mask, (data,), run)


def select_reduce(
    *,
    dst: View,
    predicate: View,
    on_true: View,
    on_false: Any,
    reduce_res: Any = None,
    reduce_cmd: Any = _reduce_cmd.idle,
    reduce_op: Any = "max",
    reverse_pred: bool = False,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> None:
    """Write `dst`: `on_true` where the predicate holds, `on_false` elsewhere, and the maximum per partition."""
    call = "select_reduce"
    given = (_tile(dst, call, "dst"), _tile(predicate, call, "predicate"), _tile(on_true, call, "on_true"))
    target, condition, data = (crop(view, mask) for view in given)
    if target is not None and condition is not None and data is not None:
        other, res = _column(on_false, mask), _column(reduce_res, mask)
        select.select_reduce(target, condition, data, other, res, reduce_cmd, reduce_op, reverse_pred)


def nc_find_index8(*, data: View, vals: View, mask: Any = None, dtype: Any = None, **ignored: Any) -> View:
    """Where each of 8 values first stands in its partition; a mask applies to `data`."""
    values = _tile(vals, "nc_find_index8", "vals")
    return _statistics(
        "nc_find_index8",
        data,
        8,
        mask,
        dtype or dtypes.uint32,
        lambda d, x: search.nc_find_index8(d, x, _first_partitions(values, x)),
    )


def nc_match_replace8(
    *, data: View, vals: View, imm: float, dst_idx: Any = None, mask: Any = None, dtype: Any = None, **ignored: Any
) -> View:
    """`data` with the first match of each of 8 values replaced; a mask applies to `data`."""
    call = "nc_match_replace8"
    source, values = _tile(data, call), _tile(vals, call, "vals")
    index = None if dst_idx is None else _tile(dst_idx, call, "dst_idx")

    def run(d: View, x: View) -> int:
        places = None if index is None else _first_partitions(index, x)
        return search.nc_match_replace8(d, x, _first_partitions(values, x), imm, places)

    return _issue(_result(source, tile_shape(source), dtype), mask, (source,), run)


def nc_stream_shuffle(src: View, dst: View, shuffle_mask: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any) -> None:
    """Write `dst`: partitions of each quadrant in another order."""
    target, source = crop(_tile(dst, "nc_stream_shuffle", "dst"), mask), crop(_tile(src, "nc_stream_shuffle", "src"), mask)
    if target is not None and source is not None:
        shuffle.nc_stream_shuffle(target, source, shuffle_mask)


def local_gather(
    src_buffer: View,
    index: View,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    *,
    mask: Any = None,
    **ignored: Any,
) -> View:
    """What a gather within each group of 16 partitions finds."""
    _no_mask(mask, "local_gather")
    source, places = _tile(src_buffer, "local_gather", "src_buffer"), _tile(index, "local_gather", "index")
    count = places.free * gather.CORE_PARTITIONS if num_valid_indices is None else num_valid_indices
    shape = (source.partitions, count) if num_elem_per_idx == 1 else (source.partitions, count, num_elem_per_idx)
    result = allocate(shape, source.dtype, MemoryRegion.sbuf, legacy=True)
    row = gather.local_gather(result, source, places, num_elem_per_idx, num_valid_indices)
    return fresh(result, (row,), spaces=(Space.SBUF,))


def sequence_bounds(*, segment_ids: View, dtype: Any = None, **ignored: Any) -> View:
    """Where the segment of each element begins and ends, as [1, 2, n]."""
    ids = _tile(segment_ids, "sequence_bounds", "segment_ids")
    result = allocate((1, 2, ids.free), dtype or ids.dtype, MemoryRegion.sbuf, legacy=True)
    return fresh(result, (gather.sequence_bounds(result, ids),), spaces=(Space.SBUF,))


def dropout(data: View, prob: Any, *, mask: Any = None, dtype: Any = None, **ignored: Any) -> View:
    """`data` with random elements set to zero."""
    source = _tile(data, "dropout")
    result = _result(source, tile_shape(source), dtype)
    return _issue(result, mask, (source,), lambda d, x: random.dropout(d, x, _column(prob, mask)))


def _first_partitions(view: View, data: View) -> View:
    """`view` as far as a mask leaves partitions of the data that it belongs to."""
    if view.partitions <= data.partitions or view.paxis is None:
        return view
    box = [(0, size) for size in view.shape]
    box[view.paxis] = (0, data.partitions)
    return boxed(view, tuple(box))
