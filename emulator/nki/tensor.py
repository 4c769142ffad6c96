"""Tensors of a kernel: storage, and views of it by byte offset, sizes and strides.

A view knows exactly which bytes it covers whether or not values are kept. On chip the storage is one row of
`partition_bytes` for each partition, so the same strides serve numpy and the regions that instructions record.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule, unsupported
from emulator.nki import dtypes
from emulator.program import Space

Array = NDArray[Any]


class Storage:
    """The memory of one tensor. `buffer` is its bytes, None while values are off."""

    __slots__ = (
        "__weakref__",
        "buffer",
        "buffer_kind",
        "forward",
        "ident",
        "matmuls",
        "name",
        "nbytes",
        "partition_bytes",
        "partitions",
        "space",
        "tentative",
    )

    def __init__(self, ident: int, name: str, space: Space, nbytes: int, partitions: int, partition_bytes: int, kind: str) -> None:
        self.ident = ident
        self.name = name
        self.space = space
        self.nbytes = nbytes
        self.partitions = partitions
        self.partition_bytes = partition_bytes
        self.buffer_kind = kind
        self.buffer: NDArray[np.uint8] | None = None
        #: Regions of PSUM that a matmul has written: later matmuls add to them.
        self.matmuls: dict[tuple[Any, ...], View] = {}
        #: The row of a memset that counts only if something other than a matmul depends on it.
        self.tentative: int | None = None
        #: How to give a result that was stored straight into another tensor its own storage again.
        self.forward: Any = None


class View:
    """A region of a tensor, as kernels see tensors and tiles."""

    __slots__ = (
        "dtype",
        "fresh",
        "indirect",
        "legacy",
        "limits",
        "offset",
        "paxis",
        "shape",
        "storage",
        "strides",
        "symbols",
        "valid",
    )
    __array_ufunc__ = None

    def __init__(
        self,
        storage: Storage,
        dtype: Any,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        paxis: int | None,
        legacy: bool,
        symbols: tuple[int, ...] = (),
    ) -> None:
        self.storage = storage
        self.dtype = dtype
        #: Bytes from the start of the storage; strides likewise in bytes.
        self.offset = offset
        self.shape = shape
        self.strides = strides
        #: The partition dimension; None in HBM, and where an integer index removed it.
        self.paxis = paxis
        self.legacy = legacy
        #: Which index expression each dimension comes from; empty unless indexed by expressions.
        self.symbols = symbols
        #: (size, constant, ((dimension, coefficient), ...), name) of indices that a mask has to bring within bounds.
        self.limits: tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...] = ()
        #: The instruction that just made this tile, while nothing else has run.
        self.fresh: Any = None
        #: How indices in memory choose the first dimension (`indirect.Rows`); None: they do not.
        self.indirect: Any = None
        #: The box of the result that a mask let an instruction write; None: all of it.
        self.valid: Any = None

    # -- what it is

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self.storage.name

    @property
    def space(self) -> Space:
        """The memory it lives in."""
        return self.storage.space

    @property
    def buffer(self) -> Any:
        """The memory region, as `nl.sbuf` and its kin compare."""
        from emulator.nki.constants import MemoryRegion

        return MemoryRegion(self.storage.buffer_kind)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return dtypes.itemsize(self.dtype)

    @property
    def partitions(self) -> int:
        """Partitions that the tile spans; 1 where an index removed the dimension."""
        return 1 if self.paxis is None else self.shape[self.paxis]

    @property
    def free(self) -> int:
        """Elements per partition (all of them in HBM)."""
        return prod(self.shape) // max(1, self.partitions)

    @property
    def on_chip(self) -> bool:
        """Whether it lives in SBUF or PSUM."""
        return self.storage.space is not Space.HBM

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        broken_rule(f"{self.name} as a condition: its values exist only on the device; use a mask or a select")

    def __repr__(self) -> str:
        return f"<{self.storage.space.name} tensor {self.name} {list(self.shape)} {dtypes.name(self.dtype)}>"

    # -- values

    def array(self) -> Array:
        """The elements in place, as numpy sees them."""
        buffer = self.storage.buffer
        assert buffer is not None
        return np.ndarray(self.shape, dtypes.storage(self.dtype), buffer, self.offset, self.strides)

    def tile(self) -> Array:
        """The elements in place with the partition dimension first, of at least two dimensions."""
        array = self.array()
        if not self.on_chip:
            return array.reshape(1, 1) if array.ndim == 0 else array
        if self.paxis is None:
            return array[None] if array.ndim else array.reshape(1, 1)
        if self.paxis:
            array = np.moveaxis(array, self.paxis, 0)
        return array if array.ndim > 1 else array[:, None]

    def fp32(self) -> Array:
        """A copy of the elements in fp32, partition dimension first."""
        return self.tile().astype(np.float32)

    def write(self, values: Array) -> None:
        """Store `values` (partition dimension first), cast to the view's dtype; equal element counts suffice."""
        target = self.tile()
        if values.dtype != self.dtype:
            values = dtypes.cast(values, self.dtype)
        if values.shape != target.shape and values.size == target.size:
            values = values.reshape(target.shape)
        target[...] = values

    # -- views

    def derive(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], paxis: int | None, dtype: Any = None) -> View:
        """Another view of the same storage. Raises `UnsupportedCall` of a view whose rows indices choose."""
        if self.indirect is not None:
            unsupported(f"a further view of {self.name} after tensor.ap with vector_offset")
        return View(self.storage, self.dtype if dtype is None else dtype, offset, shape, strides, paxis, self.legacy)

    def as_generation(self, legacy: bool) -> View:
        """The same view, indexing as kernels of the other API generation do."""
        made = View(self.storage, self.dtype, self.offset, self.shape, self.strides, self.paxis, legacy, self.symbols)
        made.indirect = self.indirect
        return made

    def same_region(self, other: View) -> bool:
        """Whether both cover the same elements in the same order."""
        return (
            self.storage is other.storage
            and self.offset == other.offset
            and compressed(self.shape, self.strides) == compressed(other.shape, other.strides)
        )

    def __getitem__(self, key: Any) -> View:
        from emulator.nki.indexing import index

        return index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from emulator.nki.assign import assign

        assign(self[key], value)

    def reshape(self, *sizes: Any, shape: Any = None) -> View:
        """The same elements in another shape, without a copy. Raises `RuleError` where the layout does not allow it."""
        from emulator.nki import reshaping

        return reshaping.reshape(self, shape if shape is not None else sizes[0] if len(sizes) == 1 else sizes)

    def permute(self, dims: Any) -> View:
        """The dimensions in another order."""
        from emulator.nki import reshaping

        return reshaping.permute(self, dims)

    def broadcast(self, dim: int, size: int) -> View:
        """Dimension `dim` of one element, repeated."""
        from emulator.nki import reshaping

        return reshaping.broadcast(self, dim, size)

    def expand_dim(self, dim: int) -> View:
        """A new dimension of one element."""
        from emulator.nki import reshaping

        return reshaping.expand_dim(self, dim)

    expand_dims = expand_dim

    def squeeze_dim(self, dim: int) -> View:
        """Without a dimension of one element."""
        from emulator.nki import reshaping

        return reshaping.squeeze_dim(self, dim)

    def reshape_dim(self, dim: int, shape: Any) -> View:
        """One dimension split into several."""
        from emulator.nki import reshaping

        return reshaping.reshape_dim(self, dim, shape)

    def flatten_dims(self, start_dim: int, end_dim: int) -> View:
        """Dimensions `start_dim` to `end_dim`, both included, as one."""
        from emulator.nki import reshaping

        return reshaping.flatten_dims(self, start_dim, end_dim)

    def rearrange(self, src_pattern: Any, dst_pattern: Any, fixed_sizes: dict[str, int] | None = None) -> View:
        """Dimensions split, ordered and merged by name."""
        from emulator.nki import reshaping

        return reshaping.rearrange(self, src_pattern, dst_pattern, fixed_sizes)

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> View:
        """Part of one dimension."""
        return self[(slice(None),) * dim + (slice(start, end, step),)]

    def select(self, dim: int, index: Any) -> View:
        """One element of a dimension, which is removed."""
        return self[(slice(None),) * dim + (index,)]

    def ap(
        self,
        pattern: Any,
        offset: int | None = None,
        scalar_offset: Any = None,
        vector_offset: Any = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> View:
        """The storage walked by an access pattern of `[stride, count]` pairs."""
        from emulator.nki import reshaping

        return reshaping.access_pattern(self, pattern, offset, scalar_offset, vector_offset, indirect_dim, dtype)

    def view(self, dtype: Any) -> View:
        """The same bytes as another type."""
        from emulator.nki import reshaping

        return reshaping.reinterpret(self, dtype)

    reinterpret_cast = view

    def get_pattern(self) -> list[list[int]]:
        """`[[stride, count], ...]` in elements."""
        from emulator.nki import reshaping

        return reshaping.pattern_of(self)

    def is_contiguous(self) -> bool:
        """Whether the free dimensions lie row after row."""
        from emulator.nki import reshaping

        return reshaping.is_contiguous(self)

    def is_indirect(self) -> bool:
        """Whether the address depends on data."""
        return self.indirect is not None

    def broadcast_to(self, *shape: Any) -> View:
        """Broadcast to a shape: a view along free dimensions, a new tile along partitions."""
        from emulator.nki.language.broadcast import broadcast_to

        return broadcast_to(self, shape[0] if len(shape) == 1 else shape, legacy=self.legacy)

    def astype(self, dtype: Any) -> View:
        """A copy of the tile in another type."""
        from emulator.nki.language import arithmetic

        return arithmetic.unary("copy", self, dtype, legacy=self.legacy)

    # -- operators

    def __iadd__(self, other: Any) -> View:
        from emulator.nki.assign import add_in_place

        return add_in_place(self, other)

    def __isub__(self, other: Any) -> View:
        from emulator.nki.language import arithmetic

        return arithmetic.into(self, "subtract", self, other)

    def __imul__(self, other: Any) -> View:
        from emulator.nki.language import arithmetic

        return arithmetic.into(self, "multiply", self, other)

    def __itruediv__(self, other: Any) -> View:
        from emulator.nki.language import arithmetic

        return arithmetic.into(self, "divide", self, other)

    def __neg__(self) -> View:
        from emulator.nki.language import arithmetic

        return arithmetic.unary("negative", self, legacy=self.legacy)

    def __invert__(self) -> View:
        from emulator.nki.language import arithmetic

        return arithmetic.unary("invert", self, legacy=self.legacy)


def _operator(name: str, reverse: bool = False) -> Any:
    def method(self: View, other: Any) -> View:
        x, y = (other, self) if reverse else (self, other)
        from emulator.nki.language import arithmetic

        return arithmetic.binary(name, x, y, legacy=self.legacy)

    return method


for _symbol, _name in {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
    "mod": "mod",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}.items():
    setattr(View, f"__{_symbol}__", _operator(_name))
    setattr(View, f"__r{_symbol}__", _operator(_name, reverse=True))
for _symbol, _name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.items():
    setattr(View, f"__{_symbol}__", _operator(_name))


_compressed: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]] = {}


def compressed(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The same addresses in the same order with as few dimensions as possible, at least one."""
    key = (shape, strides)
    found = _compressed.get(key)
    if found is None:
        sizes: list[int] = []
        steps: list[int] = []
        for size, stride in zip(shape, strides, strict=True):
            if size == 1:
                continue
            if sizes and steps[-1] == stride * size:
                sizes[-1] *= size
                steps[-1] = stride
            else:
                sizes.append(size)
                steps.append(stride)
        found = _compressed[key] = (tuple(sizes) or (1,), tuple(steps) or (0,))
    return found


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Byte strides of a row-major array."""
    strides = []
    step = itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def need_view(value: Any, call: str, argument: str) -> View:
    """`value` as a tensor. Raises `RuleError` for anything else."""
    if not isinstance(value, View):
        broken_rule(f"{call}: {argument} is {type(value).__name__}, not a tensor")
    return value
