"""Tensors and their movement: `nl.ndarray` and its kin, `nl.load`, `nl.store`, constants."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from emulator.errors import broken_rule, unsupported
from emulator.nki import dtypes
from emulator.nki.access import PARTITIONS, allocate
from emulator.nki.assign import fresh
from emulator.nki.constants import MemoryRegion
from emulator.nki.index import ParDim
from emulator.nki.indexing import boxed, crop, mask_box
from emulator.nki.ops import dma, elementwise
from emulator.nki.session import current
from emulator.nki.tensor import View, need_view
from emulator.program import Space


def ndarray(shape: Any, dtype: Any, buffer: Any = None, name: str = "", *, legacy: bool) -> View:
    """A new tensor, not initialised. Instances of an SPMD launch share `shared_hbm` tensors in order of allocation."""
    region = _region(buffer)
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    paxis = next((axis for axis, size in enumerate(sizes) if isinstance(size, ParDim)), 0)
    if region is not MemoryRegion.shared_hbm:
        return allocate(
            sizes, dtype, region, name=name, paxis=0 if region.space is Space.HBM else paxis, legacy=legacy, unnamed=region.value
        )
    session = current("nl.ndarray")
    session.shared_used += 1
    if session.shared_used <= len(session.shared):
        tensor: View = session.shared[session.shared_used - 1]
        if tensor.shape != tuple(int(size) for size in sizes):
            broken_rule(
                f"instances of the launch allocate different shared_hbm tensors: {list(tensor.shape)} in the first, "
                f"{list(sizes)} in this one"
            )
        return tensor.as_generation(legacy)
    tensor = allocate(sizes, dtype, region, name=name, legacy=legacy, shared=True, unnamed=region.value)
    session.shared.append(tensor)
    return tensor


def _region(buffer: Any) -> MemoryRegion:
    if buffer is None:
        return MemoryRegion.sbuf
    if isinstance(buffer, MemoryRegion):
        return buffer
    region = getattr(buffer, "region", buffer)
    if isinstance(region, MemoryRegion):
        return region
    try:
        return MemoryRegion(str(region))
    except ValueError:
        broken_rule(f"{buffer!r} is no memory; use nl.sbuf, nl.psum, nl.hbm, nl.private_hbm or nl.shared_hbm")


def full(shape: Any, value: Any, dtype: Any, buffer: Any = None, name: str = "", *, legacy: bool) -> View:
    """A new tensor filled with `value`. Zeros in PSUM cost nothing as long as only matmuls add to them."""
    tensor = ndarray(shape, dtype, buffer, name, legacy=legacy)
    if not tensor.on_chip:
        elementwise.fill(tensor, value)
        current().recorder.warn(f"{tensor.name} is filled in HBM; how the compiler does that is not modelled and costs nothing")
        return tensor
    row = elementwise.memset(tensor, value)
    if tensor.space is Space.PSUM and not value:
        current().recorder.cancel(row)
        tensor.storage.tentative = row
    return tensor


def like(x: Any, dtype: Any = None, buffer: Any = None, name: str = "", *, legacy: bool) -> View:
    """A new tensor of `x`'s shape, dtype and memory unless given."""
    x = need_view(x, "nki.language.empty_like", "x")
    region = buffer if buffer is not None else MemoryRegion(x.storage.buffer_kind)
    return ndarray(x.shape, dtype or x.dtype, region, name, legacy=legacy)


def load(src: Any, dtype: Any = None, mask: Any = None, *, legacy: bool) -> View:
    """A tile with `src` loaded from HBM; its first dimension goes to partitions."""
    call = "nki.language.load"
    src = need_view(src, call, "src")
    if src.space is not Space.HBM:
        broken_rule(f"{call}: {src.name} is in {src.space.name}; load reads HBM, use nl.copy on chip")
    shape = src.shape if src.ndim > 1 else (*src.shape, 1) if src.ndim else (1, 1)
    if shape[0] > PARTITIONS:
        broken_rule(
            f"{call}: {src.name} {list(src.shape)} has {shape[0]} rows for {PARTITIONS} partitions; "
            f"load tiles of at most {PARTITIONS} rows"
        )
    result = allocate(shape, dtype or src.dtype, MemoryRegion.sbuf, legacy=legacy, unnamed="load")
    if mask is None:
        return fresh(result, (dma.dma_copy(result, src, call=call),), spaces=(Space.SBUF,))
    if src.ndim > 1:
        result.symbols = src.symbols
    part, source = mask_box(src, mask), crop(src, mask)
    if part is None or source is None:
        result.valid = ()
        return result
    result.symbols = ()
    result.valid = part if src.ndim > 1 else (*part, (0, 1))
    return fresh(result, (dma.dma_copy(boxed(result, result.valid), source, call=call),), spaces=(Space.SBUF,))


def load_transpose2d(src: Any, dtype: Any = None, *, legacy: bool) -> View:
    """A tile with the transpose of the 2-D `src` loaded from HBM."""
    src = need_view(src, "nki.language.load_transpose2d", "src")
    if src.ndim != 2:
        broken_rule(f"nki.language.load_transpose2d: {src.name} has {src.ndim} dimensions; it takes 2")
    result = allocate((src.shape[1], src.shape[0]), dtype or src.dtype, MemoryRegion.sbuf, legacy=legacy, unnamed="load")
    return fresh(result, (dma.dma_transpose(result, src),), spaces=(Space.SBUF,))


def store(dst: Any, value: Any, mask: Any = None) -> None:
    """Copy a tile to HBM, through SBUF if it is in PSUM; a number fills `dst`."""
    call = "nki.language.store"
    dst = need_view(dst, call, "dst")
    if isinstance(value, (bool, int, float, np.generic)):
        held = allocate(dst.shape, dst.dtype, MemoryRegion.sbuf, name="store.value", legacy=dst.legacy)
        elementwise.memset(held, value)
        held.symbols, value = dst.symbols, held
    tile = need_view(value, call, "value")
    if dst.space is not Space.HBM:
        broken_rule(f"{call}: {dst.name} is in {dst.space.name}; store writes HBM, assign to tiles with tile[...] =")
    if tile.valid == ():
        return
    if tile.space is Space.PSUM:
        held = allocate(tile.shape, tile.dtype, MemoryRegion.sbuf, name="store.copy", legacy=tile.legacy, paxis=tile.paxis or 0)
        elementwise.tensor_copy(held, tile, call=call)
        held.symbols = tile.symbols
        tile = held
    target, source = crop(dst, mask), crop(tile, mask)
    if target is not None and source is not None:
        dma.dma_copy(target, source, call=call)


def constant(values: Any, dtype: Any = None, *, legacy: bool) -> View:
    """A numpy array (or the path of a .npy file) as a constant tensor in HBM."""
    array = np.load(values) if isinstance(values, (str, os.PathLike)) else np.asarray(values)
    kind = dtypes.as_dtype(dtype if dtype is not None else array.dtype)
    tensor = allocate(array.shape or (1,), kind, MemoryRegion.hbm, legacy=legacy, role="constant", unnamed="constant")
    if tensor.storage.buffer is not None:
        tensor.write(dtypes.cast(array, kind).reshape(tensor.shape))
    return tensor


def identity(n: int, dtype: Any = "uint8", dst: Any = None, *, legacy: bool) -> View:
    """An identity matrix: a constant in HBM, loaded into SBUF in the current generation."""
    if dst is not None:
        unsupported("nki.language.shared_identity_matrix into a given dst")
    made = constant(np.eye(n, dtype=np.float32), dtype, legacy=legacy)
    if legacy:
        return made
    tile = allocate((n, n), dtype, MemoryRegion.sbuf, legacy=legacy, unnamed="identity")
    dma.dma_copy(tile, made, call="nki.language.shared_identity_matrix")
    return tile
