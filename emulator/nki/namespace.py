"""The contents of the language modules of both generations, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from emulator.errors import broken_rule, unsupported
from emulator.nki import alu, dtypes
from emulator.nki import constants as c
from emulator.nki.index import MGrid, ParDim, Slice, arange
from emulator.nki.language import arithmetic, broadcast, composite, memory, randoms
from emulator.nki.language.loops import LoopRange
from emulator.nki.launch import NeuronCores, SpmdDim
from emulator.nki.nkiobject import NKIObject
from emulator.nki.ops import registers
from emulator.nki.session import current
from emulator.nki.tensor import View

_REDUCTIONS = ("sum", "max", "min", "mean", "prod", "var", "all")
#: Names that are operation tokens only.
_TOKENS = ("average", "bypass")
_BINARY = tuple(name for name, op in alu.OPS.items() if op.arity == 2 and name not in (*_REDUCTIONS, *_TOKENS))


class Function:
    """A language function: a call gives a tile, and `op=` takes it as the name of an operation."""

    __slots__ = ("__name__", "_run", "op")

    def __init__(self, name: str, run: Callable[..., Any] | None) -> None:
        self.__name__ = name
        self.op = alu.OPS.get(name)
        self._run = run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._run is None:
            broken_rule(f"nki.language.{self.__name__} is an operation for op=, not a function")
        return self._run(*args, **kwargs)

    def __repr__(self) -> str:
        return f"nki.language.{self.__name__}"


@dataclass(frozen=True, slots=True)
class Allocator:
    """What `nki.compiler.sbuf.alloc` and its kin give as a buffer. Where a tensor is placed is left to the memory model."""

    region: c.MemoryRegion
    arguments: dict[str, Any] = field(default_factory=dict)


class Allocators:
    """`nki.compiler.sbuf` or `nki.compiler.psum`: a memory, and makers of allocators for it."""

    def __init__(self, region: c.MemoryRegion) -> None:
        self.region = region

    def alloc(self, *args: Any, **kwargs: Any) -> Allocator:
        """A buffer placed by a function of the kernel."""
        return Allocator(self.region, kwargs)

    mod_alloc = alloc
    auto_alloc = alloc


def _function(name: str, legacy: bool) -> Function:
    if name in _BINARY:
        return Function(name, lambda x, y, dtype=None, mask=None, **_: arithmetic.binary(name, x, y, dtype, mask, legacy=legacy))
    if name in _REDUCTIONS:
        return Function(
            name,
            lambda x, axis, dtype=None, mask=None, keepdims=False, **_: arithmetic.reduction(
                name, x, axis, dtype, mask, keepdims, legacy=legacy
            ),
        )
    if name == "copy" and legacy:
        return Function(name, lambda src, dtype=None, mask=None, **_: arithmetic.unary(name, src, dtype, mask, legacy=True))
    return Function(name, lambda x, dtype=None, mask=None, **_: arithmetic.unary(name, x, dtype, mask, legacy=legacy))


def program_id(axis: int = 0) -> int:
    """This instance's index along a dimension of the launch grid, 0 without a grid."""
    program = current("nl.program_id").program
    if axis >= max(1, len(program)):
        broken_rule(
            f"nl.program_id({axis}): the kernel is launched with {len(program)} grid dimensions; launch it as kernel[n, m](...)"
        )
    return program[axis] if program else 0


def num_programs(axes: Any = None) -> Any:
    """The launch grid's size along a dimension, several, or in all; 1 without a grid."""
    grid = current("nl.num_programs").grid or (1,)
    if axes is None:
        return prod(grid)
    return tuple(grid[axis] for axis in axes) if isinstance(axes, (tuple, list)) else grid[axes]


def program_ndim() -> int:
    """Dimensions of the launch grid."""
    return len(current("nl.program_ndim").grid)


@contextmanager
def no_reorder() -> Iterator[None]:
    """A fence for the compiler's scheduler; instructions here keep the kernel's order anyway."""
    yield


def _common(legacy: bool) -> dict[str, Any]:
    names: dict[str, Any] = dict(dtypes.CONSTANTS)
    for region in c.MemoryRegion:
        names[region.name] = region
    unary = [name for name, op in alu.OPS.items() if op.arity == 1]
    for name in (*_BINARY, *_REDUCTIONS, *unary):
        names[name] = _function(name, legacy)
    for name in _TOKENS:
        names[name] = Function(name, None)
    names |= {
        "tile_size": c.TileSize(),
        "fp32": c.fp32,
        "ds": Slice,
        "affine_range": LoopRange,
        "sequential_range": LoopRange,
        "static_range": LoopRange,
        "dynamic_range": LoopRange,
        "program_id": program_id,
        "num_programs": num_programs,
        "program_ndim": program_ndim,
        "no_reorder": no_reorder,
        "ndarray": lambda shape, dtype, buffer=None, name="", address=None, **_: memory.ndarray(
            shape, dtype, buffer, name, legacy=legacy
        ),
        "zeros": lambda shape, dtype, buffer=None, name="", **_: memory.full(shape, 0, dtype, buffer, name, legacy=legacy),
        "ones": lambda shape, dtype, buffer=None, name="", **_: memory.full(shape, 1, dtype, buffer, name, legacy=legacy),
        "full": lambda shape, fill_value, dtype, buffer=None, name="", **_: memory.full(
            shape, fill_value, dtype, buffer, name, legacy=legacy
        ),
        "empty_like": lambda x, dtype=None, buffer=None, name="", **_: memory.like(x, dtype, buffer, name, legacy=legacy),
        "zeros_like": lambda x, dtype=None, buffer=None, name="", **_: _zeros_like(x, dtype, buffer, name, legacy),
        "load": lambda src, dtype=None, mask=None, **_: memory.load(src, dtype, mask, legacy=legacy),
        "load_transpose2d": lambda src, dtype=None, mask=None, **_: _unmasked(
            mask, "load_transpose2d", lambda: memory.load_transpose2d(src, dtype, legacy=legacy)
        ),
        "store": lambda dst, value, mask=None, **_: memory.store(dst, value, mask),
        "shared_constant": lambda constant, dtype=None, **_: memory.constant(constant, dtype, legacy=legacy),
        "shared_identity_matrix": lambda n, dtype=dtypes.uint8, dst=None, **_: memory.identity(n, dtype, dst, legacy=legacy),
        "broadcast_to": lambda x, shape, dtype=None, **_: broadcast.broadcast_to(x, shape, dtype, legacy=legacy),
        "expand_dims": lambda x, axis, **_: x.expand_dim(axis),
        "where": lambda condition, x, y, dtype=None, mask=None, **_: arithmetic.where(condition, x, y, dtype, mask, legacy=legacy),
        "matmul": lambda x, y, transpose_x=False, mask=None, **_: composite.matmul(x, y, transpose_x, mask, legacy=legacy),
        "transpose": lambda x, dtype=None, mask=None, **_: composite.transpose(x, dtype, mask, legacy=legacy),
        "softmax": lambda x, axis=-1, dtype=None, compute_dtype=None, mask=None, **_: composite.softmax(
            x, axis, dtype, compute_dtype, mask, legacy=legacy
        ),
        "rms_norm": lambda x, w, axis, n, epsilon=1e-6, dtype=None, compute_dtype=None, mask=None, **_: composite.rms_norm(
            x, w, axis, n, epsilon, dtype, compute_dtype, mask, legacy=legacy
        ),
        "dropout": lambda x, rate, dtype=None, mask=None, **_: _unmasked(
            mask, "dropout", lambda: randoms.dropout(x, rate, dtype, legacy=legacy)
        ),
        "rand": lambda shape, dtype=dtypes.float32, buffer=None, name="", **_: randoms.rand(
            shape, dtype, buffer, name, legacy=legacy
        ),
        "random_seed": lambda seed, mask=None, **_: _unmasked(
            mask, "random_seed", lambda: randoms.random_seed(seed, legacy=legacy)
        ),
        "gather_flattened": lambda data, indices, axis=0, dtype=None, mask=None, **_: _unmasked(
            mask, "gather_flattened", lambda: composite.gather_flattened(data, indices, axis, dtype, legacy=legacy)
        ),
        "is_hbm": lambda buffer: _space(buffer) == "HBM",
        "is_on_chip": lambda buffer: _space(buffer) != "HBM",
        "is_psum": lambda buffer: _space(buffer) == "PSUM",
        "is_sbuf": lambda buffer: _space(buffer) == "SBUF",
        "device_print": _device_print,
    }
    return names


def language_new() -> dict[str, Any]:
    """`nki.language`."""
    return _common(False) | {
        "NKIObject": NKIObject,
        "NkiTensor": View,
        "MemoryRegion": c.MemoryRegion,
        "fori_loop": registers.fori_loop,
        "while_loop": registers.while_loop,
    }


def language_legacy() -> dict[str, Any]:
    """`neuronxcc.nki.language`."""
    return _common(True) | {
        "arange": arange,
        "mgrid": MGrid(),
        "par_dim": ParDim,
        "nc": NeuronCores,
        "spmd_dim": SpmdDim,
        "expand_dims": lambda data, axis, **_: data.expand_dim(axis),
        "empty_like": lambda a, dtype=None, buffer=None, name="", **_: memory.like(a, dtype, buffer, name, legacy=True),
        "zeros_like": lambda a, dtype=None, buffer=None, name="", **_: _zeros_like(a, dtype, buffer, name, True),
        "broadcast_to": lambda src, shape, **_: broadcast.broadcast_to(src, shape, legacy=True),
        "static_cast": lambda input_data, dtype: dtypes.cast(input_data, dtypes.as_dtype(dtype)),
        "loop_reduce": _loop_reduce,
    }


def isa_enums() -> dict[str, Any]:
    """The enums and queries of `nki.isa`, the same in both generations."""
    names: dict[str, Any] = {
        "engine": c.engine,
        "reduce_cmd": c.reduce_cmd,
        "dge_mode": c.dge_mode,
        "oob_mode": c.oob_mode,
        "matmul_perf_mode": c.matmul_perf_mode,
        "nc_version": c.nc_version,
        "get_nc_version": c.get_nc_version,
        "dma_engine": c.dma_engine,
        "fp32": c.fp32,
    }
    return names | {f"{name}_engine": c.engine[name] for name in ("tensor", "vector", "scalar", "gpsimd", "unknown")}


def _space(buffer: Any) -> str:
    region = buffer if isinstance(buffer, c.MemoryRegion) else c.MemoryRegion(str(buffer))
    return region.space.name


def _device_print(print_prefix: str, tensor: Any = None, x: Any = None, mask: Any = None) -> None:
    """Print a tensor's values as they are now. Standard output belongs to the command's own data."""
    shown = tensor if tensor is not None else x
    values = shown.array() if isinstance(shown, View) and shown.storage.buffer is not None else shown
    print(print_prefix, values, file=sys.stderr)


def _zeros_like(x: View, dtype: Any, buffer: Any, name: str, legacy: bool) -> View:
    return memory.full(x.shape, 0, dtype or x.dtype, buffer if buffer is not None else x.buffer, name, legacy=legacy)


def _unmasked(mask: Any, call: str, run: Callable[[], Any]) -> Any:
    if mask is not None:
        unsupported(f"nki.language.{call} with a mask")
    return run()


def _loop_reduce(*args: Any, **kwargs: Any) -> Any:
    unsupported("nki.language.loop_reduce")
