"""`nki.isa` of the current generation: selects, searches, shuffles, gathers, random numbers, registers, and DMA that computes.

Signatures follow aws-neuron-sdk nki/api/nki/isa/__init__.py.
"""

from __future__ import annotations

from typing import Any

from emulator.nki import dtypes
from emulator.nki.constants import engine as _engine
from emulator.nki.constants import fp32
from emulator.nki.constants import reduce_cmd as _reduce_cmd
from emulator.nki.isa_new import _dst, _only_known, _tile
from emulator.nki.ops import dma, gather, random, reduce, registers, search, select, shuffle
from emulator.nki.ops.limits import needs_dtype
from emulator.nki.register import VirtualRegister
from emulator.nki.tensor import View


def range_select(
    dst: View,
    on_true_tile: View,
    comp_op0: Any,
    comp_op1: Any,
    bound0: View,
    bound1: View,
    reduce_cmd: Any = _reduce_cmd.reset_reduce,
    reduce_res: Any = None,
    reduce_op: Any = "maximum",
    range_start: int = 0,
    on_false_value: float = fp32.min,
    name: Any = None,
    **extra: Any,
) -> None:
    """`on_true_tile` where the column number lies within bounds, fp32.min elsewhere."""
    _only_known("range_select", extra)
    call = "range_select"
    select.range_select(
        _dst(dst, call),
        _tile(on_true_tile, call, "on_true_tile"),
        comp_op0,
        comp_op1,
        _tile(bound0, call, "bound0"),
        _tile(bound1, call, "bound1"),
        reduce_cmd,
        reduce_res,
        reduce_op,
        range_start,
        on_false_value,
    )


def select_reduce(
    dst: View,
    predicate: View,
    on_true: View,
    on_false: Any,
    reduce_res: Any = None,
    reduce_cmd: Any = _reduce_cmd.idle,
    reduce_op: Any = "maximum",
    reverse_pred: bool = False,
    name: Any = None,
    **extra: Any,
) -> None:
    """`on_true` where the predicate holds, `on_false` elsewhere, and the maximum per partition."""
    _only_known("select_reduce", extra)
    call = "select_reduce"
    select.select_reduce(
        _dst(dst, call),
        _tile(predicate, call, "predicate"),
        _tile(on_true, call, "on_true"),
        on_false,
        reduce_res,
        reduce_cmd,
        reduce_op,
        reverse_pred,
    )


def tensor_scalar_cumulative(
    dst: View,
    src: View,
    op0: Any,
    op1: Any,
    imm0: Any,
    imm1: Any = None,
    reduce_cmd: Any = _reduce_cmd.reset_reduce,
    name: Any = None,
    **extra: Any,
) -> None:
    """`r[i] = op1(op0(src[i], imm0), r[i - 1])` along the free dimension."""
    _only_known("tensor_scalar_cumulative", extra)
    call = "tensor_scalar_cumulative"
    reduce.tensor_scalar_cumulative(_dst(dst, call), _tile(src, call, "src"), op0, op1, imm0, imm1, reduce_cmd)


def nc_find_index8(dst: View, data: View, vals: View, name: Any = None, **extra: Any) -> None:
    """Where each of 8 values first stands in its partition."""
    _only_known("nc_find_index8", extra)
    call = "nc_find_index8"
    search.nc_find_index8(_dst(dst, call), _tile(data, call, "data"), _tile(vals, call, "vals"))


def nc_match_replace8(dst: View, data: View, vals: View, imm: float, dst_idx: Any = None, name: Any = None, **extra: Any) -> None:
    """`data` with the first match of each of 8 values replaced."""
    _only_known("nc_match_replace8", extra)
    call = "nc_match_replace8"
    index = None if dst_idx is None else _tile(dst_idx, call, "dst_idx")
    search.nc_match_replace8(_dst(dst, call), _tile(data, call, "data"), _tile(vals, call, "vals"), imm, index)


def nc_stream_shuffle(dst: View, src: View, shuffle_mask: Any, name: Any = None, **extra: Any) -> None:
    """Partitions of each quadrant in another order."""
    _only_known("nc_stream_shuffle", extra)
    shuffle.nc_stream_shuffle(_dst(dst, "nc_stream_shuffle"), _tile(src, "nc_stream_shuffle", "src"), shuffle_mask)


def nc_n_gather(dst: View, data: View, indices: View, name: Any = None, **extra: Any) -> None:
    """The elements of each partition at flattened indices."""
    _only_known("nc_n_gather", extra)
    call = "nc_n_gather"
    gather.nc_n_gather(_dst(dst, call), _tile(data, call, "data"), _tile(indices, call, "indices"))


def local_gather(
    dst: View,
    src_buffer: View,
    index: View,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: Any = None,
    **extra: Any,
) -> None:
    """Gather within each group of 16 partitions."""
    _only_known("local_gather", extra)
    call = "local_gather"
    source, places = _tile(src_buffer, call, "src_buffer"), _tile(index, call, "index")
    gather.local_gather(_dst(dst, call), source, places, num_elem_per_idx, num_valid_indices)


def nonzero_with_count(dst: View, src: View, index_offset: int = 0, padding_val: int = -1, name: Any = None, **extra: Any) -> None:
    """Where elements are not zero, and how many there are, in every 16th partition."""
    _only_known("nonzero_with_count", extra)
    call = "nonzero_with_count"
    gather.nonzero_with_count(_dst(dst, call), _tile(src, call, "src"), index_offset, padding_val)


def sequence_bounds(dst: View, segment_ids: View, name: Any = None, **extra: Any) -> None:
    """Where the segment of each element begins and ends."""
    _only_known("sequence_bounds", extra)
    gather.sequence_bounds(_dst(dst, "sequence_bounds"), _tile(segment_ids, "sequence_bounds", "segment_ids"))


def dropout(dst: View, data: View, prob: Any, name: Any = None, **extra: Any) -> None:
    """`data` with random elements set to zero."""
    _only_known("dropout", extra)
    target, source = _dst(dst, "dropout"), _tile(data, "dropout", "data")
    needs_dtype("nki.isa.dropout", "dst", target, dtypes.name(source.dtype))
    random.dropout(target, source, prob)


def rng(dst: View, engine: Any = _engine.vector, name: Any = None, **extra: Any) -> None:
    """Random bits."""
    _only_known("rng", extra)
    random.rng(_dst(dst, "rng"), engine)


def rand2(dst: View, min: Any, max: Any, name: Any = None, **extra: Any) -> None:
    """Random numbers from `min` to `max`."""
    _only_known("rand2", extra)
    random.rand2(_dst(dst, "rand2"), min, max)


def set_rng_seed(src_seeds: View, name: Any = None, **extra: Any) -> None:
    """Seed the Vector engine's random numbers."""
    _only_known("set_rng_seed", extra)
    random.set_rng_seed(_tile(src_seeds, "set_rng_seed", "src_seeds"))


def register_alloc(x: Any = None) -> VirtualRegister:
    """A new register, empty or with an integer."""
    return registers.alloc(x)


def register_move(dst: Any, src: Any) -> None:
    """Put an integer or another register's value into a register."""
    registers.move(dst, src)


def register_load(dst: Any, src: View) -> None:
    """Load one element into a register."""
    registers.load(dst, _tile(src, "register_load", "src"))


def register_store(dst: View, src: Any) -> None:
    """Write a register's value into one element."""
    registers.store(_dst(dst, "register_store"), src)


def dma_compute(
    dst: View,
    srcs: Any,
    reduce_op: Any,
    scales: Any = None,
    unique_indices: bool = True,
    oob_mode: Any = None,
    name: Any = None,
    **extra: Any,
) -> None:
    """The sum of `srcs`, made by the DMA engines."""
    _only_known("dma_compute", extra)
    call = "dma_compute"
    dma.dma_compute(_dst(dst, call), [_tile(src, call, f"srcs[{i}]") for i, src in enumerate(srcs)], reduce_op, scales)
