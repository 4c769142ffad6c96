"""From views to instructions: operands as regions, engines, allocation, and the rules that every call shares."""

from __future__ import annotations

import sys
from math import prod
from typing import Any, Final

import numpy as np

from emulator.errors import broken_rule, unsupported
from emulator.nki import dtypes
from emulator.nki.constants import MemoryRegion, engine_name
from emulator.nki.indexing import check_limits
from emulator.nki.session import current
from emulator.nki.tensor import Storage, View, compressed, contiguous_strides
from emulator.opcodes import Opcode, opcodes
from emulator.program import PATTERN_DIMS, Access, InstructionFlag, Space
from emulator.recorder import Operand
from emulator.stacks import assigned_name, is_internal

#: Partitions of SBUF and PSUM (aws-neuron-sdk nki/guides/architecture/trainium_inferentia2_arch.rst).
PARTITIONS: Final = 128
READ: Final = int(Access.READ)
WRITE: Final = int(Access.WRITE)
ACCUMULATE: Final = int(Access.WRITE | Access.ACCUMULATE)


def allocate(
    shape: tuple[int, ...],
    dtype: Any,
    region: MemoryRegion,
    *,
    name: str = "",
    paxis: int = 0,
    legacy: bool,
    role: str = "temporary",
    shared: bool = False,
    unnamed: str = "",
) -> View:
    """A new tensor. On chip, `paxis` is its partition dimension; dimensions before it are blocks within a partition.

    Without a name it has that of the variable it is assigned to, else `unnamed`, else that of the call that makes it.

    Raises `RuleError` for more than 128 partitions or an empty shape.
    """
    session = current("nl.ndarray")
    recorder = session.recorder
    dtype = dtypes.as_dtype(dtype)
    shape = tuple(int(size) for size in shape)
    if not shape or min(shape) < 1:
        broken_rule(f"a tensor of shape {list(shape)} is empty; every dimension needs at least one element")
    space = region.space
    name = session.unique(name or _assigned(unnamed))
    itemsize = dtypes.itemsize(dtype)
    nbytes = prod(shape) * itemsize
    partitions = partition_bytes = 0
    strides = contiguous_strides(shape, itemsize)
    if space is not Space.HBM:
        partitions = shape[paxis]
        if partitions > PARTITIONS:
            broken_rule(
                f"{name} of shape {list(shape)} has {partitions} partitions in {space.name}, which has {PARTITIONS}: "
                "tile the first dimension"
            )
        partition_bytes = nbytes // partitions
        if paxis or len(shape) == 1:
            free = contiguous_strides((*shape[:paxis], *shape[paxis + 1 :]), itemsize)
            strides = (*free[:paxis], partition_bytes, *free[paxis:])
    ident = recorder.tensor(
        name,
        shape,
        dtypes.name(dtype),
        space,
        role,
        recorder.capture_stack(),
        core=-1 if shared else recorder.core,
        partitions=partitions,
        partition_bytes=partition_bytes,
    )
    storage = Storage(ident, name, space, nbytes, partitions, partition_bytes, region.value)
    if session.values:
        storage.buffer = dtypes.unwritten(shape, dtype).reshape(-1).view(np.uint8)
    return View(storage, dtype, 0, shape, strides, None if space is Space.HBM else paxis, legacy)


def operand(view: View, access: int) -> Operand:
    """The view as an instruction's operand: exact bytes. Raises `RuleError` if it reaches outside its tensor."""
    storage = view.storage
    if view.limits:
        check_limits(view)
    if storage.forward is not None:
        storage.forward.undo()
    if view.indirect is not None:
        unsupported(f"{view.name} with vector_offset in a call other than nki.isa.dma_copy")
    dtype = dtypes.name(view.dtype)
    if storage.space is Space.HBM:
        sizes, strides = compressed(view.shape, view.strides)
        if len(sizes) > PATTERN_DIMS:
            sizes, strides = _box(sizes, strides, view.itemsize)
            access |= Access.INDIRECT
        return storage.ident, access, dtype, 0, 0, view.offset, sizes, strides
    first, offset = divmod(view.offset, storage.partition_bytes)
    paxis = view.paxis
    if paxis is None:
        partitions = 1
        sizes, strides = compressed(view.shape, view.strides)
    else:
        step = view.strides[paxis]
        partitions = view.shape[paxis]
        if step == 0:
            partitions = 1
        elif step != storage.partition_bytes:
            partitions = (partitions - 1) * step // storage.partition_bytes + 1
            access |= Access.INDIRECT
        sizes, strides = compressed(
            (*view.shape[:paxis], *view.shape[paxis + 1 :]), (*view.strides[:paxis], *view.strides[paxis + 1 :])
        )
    if len(sizes) > PATTERN_DIMS:
        sizes, strides = _box(sizes, strides, view.itemsize)
        access |= Access.INDIRECT
    if access & READ and storage.tentative is not None:
        need_memset(view)
    return storage.ident, access, dtype, first, partitions, offset, sizes, strides


def _box(sizes: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return (reach // itemsize + 1,), (itemsize,)


def need_memset(view: View) -> None:
    """Keep the memset of a PSUM tensor unless matmuls wrote all that `view` covers."""
    storage = view.storage
    if storage.tentative is None:
        return
    if any(written.same_region(view) for written in storage.matmuls.values()):
        return
    covered = sum(written.size * written.itemsize for written in storage.matmuls.values())
    if covered < storage.nbytes:
        current().recorder.restore(storage.tentative)
    storage.tentative = None


def choose_engine(spec: Opcode, requested: Any, call: str) -> tuple[str, int]:
    """The engine that runs the call, and the flag that says so where the compiler would choose.

    Raises `RuleError` if the requested engine cannot run it.
    """
    name = engine_name(requested)
    if not name:
        return spec.engines[0], int(InstructionFlag.ENGINE_CHOSEN) if len(spec.engines) > 1 else 0
    if name not in spec.engines:
        broken_rule(f"{call} cannot run on the {name} engine; it runs on {' or '.join(spec.engines)}")
    return name, 0


def reachable(call: str, name: str, views: tuple[View, ...]) -> None:
    """Raise `RuleError` if the engine cannot reach the memory of an operand."""
    for view in views:
        space = view.storage.space
        if space is Space.HBM:
            broken_rule(
                f"{call}: {view.name} is in HBM, which the {name} engine cannot reach; "
                "bring it into SBUF first (nki.isa.dma_copy or nl.load)"
            )
        if space is Space.PSUM and name == "gpsimd":
            broken_rule(
                f"{call}: {view.name} is in PSUM, which the gpsimd engine cannot reach; copy it to SBUF or use the vector engine"
            )


def issue(
    call: str,
    spec: str,
    requested: Any,
    writes: tuple[View, ...],
    reads: tuple[View, ...],
    n: int,
    k: int,
    *,
    flags: int = 0,
    detail: tuple[tuple[str, str], ...] = (),
    by_data: View | None = None,
) -> int:
    """The row of a new instruction of a compute engine; `n` elements in each of `k` partitions.

    Of `by_data`, one of the operands that are read, values decide which elements.
    """
    entry = _OPCODES[spec]
    session = current(call)
    for view in writes:
        if 0 in view.strides and any(size > 1 and not stride for size, stride in zip(view.shape, view.strides, strict=True)):
            broken_rule(f"{call}: {view.name} is a broadcast and cannot be written")
        if view.storage.tentative is not None:
            need_memset(view)
    engine, chosen = choose_engine(entry, requested, call)
    reachable(call, engine, writes + reads)
    operands = [operand(view, WRITE) for view in writes]
    operands += [operand(view, READ if view is not by_data else READ | Access.INDIRECT) for view in reads]
    for place in operands:
        if place[3]:
            _check_start(call, place)
    return session.recorder.emit(entry.opcode, engine, entry.cost_class, operands, n, 0, k, flags | chosen, detail=detail)


def _check_start(call: str, place: Operand) -> None:
    """Warn of a tile that begins at a partition where engines cannot begin (aws-neuron-sdk
    nki/guides/architecture/trainium_inferentia2_arch.rst): the compiler may still place the tensor so that it works."""
    first, partitions = place[3], place[4]
    step = 128 if partitions > 64 else 64 if partitions > 32 else 32
    if first % step:
        current().recorder.warn(
            f"{call} accesses {partitions} partitions from {first}; engines begin at multiples of {step} for so many partitions"
        )


_OPCODES: Final = opcodes()


def same_tile(call: str, first: View, second: View, what: str = "the same partitions and elements per partition") -> None:
    """Raise `RuleError` unless both tiles have as many partitions and as many elements in each."""
    if first.shape == second.shape:
        return
    if first.partitions != second.partitions or first.free != second.free:
        broken_rule(f"{call}: {first.name} {list(first.shape)} and {second.name} {list(second.shape)} need {what}")


def values_on() -> bool:
    """Whether the running launch keeps values."""
    return current().values


def _assigned(unnamed: str) -> str:
    frame = sys._getframe(2)
    call = ""
    while is_internal(frame.f_code):
        call = frame.f_code.co_name
        if frame.f_back is None:
            return unnamed or call
        frame = frame.f_back
    return assigned_name(frame) or unnamed or call
