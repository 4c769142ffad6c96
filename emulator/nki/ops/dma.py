"""DMA: copies and transposes between HBM and SBUF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from emulator.errors import broken_rule, unsupported
from emulator.nki import alu, dtypes
from emulator.nki.access import READ, WRITE, operand, values_on
from emulator.nki.constants import engine_name
from emulator.nki.session import current
from emulator.nki.tensor import View
from emulator.opcodes import opcodes
from emulator.program import InstructionFlag, Space
from emulator.recorder import Operand

#: What `axes=None` means, by number of dimensions (aws-neuron-sdk nki/api/nki/isa/__init__.py, `dma_transpose`).
TRANSPOSED = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
#: Tensors that one DMA adds at most (aws-neuron-sdk nki/api/nki/isa/__init__.py, `dma_compute`).
COMPUTE_SOURCES: Final = 16


def dma_copy(
    dst: View, src: View, *, engine: Any = None, dge_mode: Any = None, oob: Any = None, call: str = "nki.isa.dma_copy"
) -> int:
    """The row of a DMA of `src` to `dst`: as many elements, any shapes, cast through fp32 where the types differ."""
    _reaches(call, dst, src)
    if dst.indirect is not None or src.indirect is not None:
        from emulator.nki import indirect

        return indirect.dma_copy(dst, src, engine=engine_name(engine), dge_mode=dge_mode, oob=oob, call=call)
    if dst.size != src.size:
        broken_rule(
            f"{call}: {dst.name} {list(dst.shape)} has {dst.size} elements and {src.name} {list(src.shape)} has {src.size}; "
            "a DMA needs as many on both sides"
        )
    row = transfer("dma_copy", call, dst, src, engine, dge_mode)
    if values_on():
        target, values = dst.array(), src.array()
        target[...] = dtypes.cast(values, dst.dtype).reshape(target.shape)
    return row


def dma_transpose(dst: View, src: View, axes: Any = None, *, engine: Any = None, dge_mode: Any = None) -> int:
    """The row of a DMA that permutes `src`'s dimensions on the way."""
    call = "nki.isa.dma_transpose"
    _reaches(call, dst, src)
    order = tuple(axes) if axes is not None else TRANSPOSED.get(src.ndim)
    if order is None or sorted(order) != list(range(src.ndim)):
        broken_rule(f"{call}: axes {axes} do not permute the {src.ndim} dimensions of {src.name}")
    shape = tuple(src.shape[axis] for axis in order)
    if shape != dst.shape and (dst.size != src.size or dst.shape[0] != shape[0]):
        broken_rule(f"{call}: {src.name} {list(src.shape)} transposed is {list(shape)}, and {dst.name} is {list(dst.shape)}")
    if dtypes.itemsize(src.dtype) > 4:
        unsupported(f"{call} of {dtypes.name(src.dtype)}")
    row = transfer("dma_transpose", call, dst, src, engine, dge_mode, flags=int(InstructionFlag.TRANSPOSE))
    if values_on():
        target = dst.array()
        target[...] = dtypes.cast(src.array().transpose(order), dst.dtype).reshape(target.shape)
    return row


def dma_compute(dst: View, srcs: Sequence[View], reduce_op: Any, scales: Any = None, *, call: str = "nki.isa.dma_compute") -> int:
    """The row of a DMA that adds its sources element by element in fp32 on the way to `dst`.

    Raises `RuleError` for another operation than add, scales other than 1, more than 16 sources or different numbers of elements.
    """
    if not 1 <= len(srcs) <= COMPUTE_SOURCES:
        broken_rule(f"{call}: {len(srcs)} sources; it takes 1 to {COMPUTE_SOURCES}")
    if (name := alu.find(reduce_op).name) not in ("add", "sum"):
        broken_rule(f"{call}: reduce_op is {name}; the DMA engines can only add")
    if scales is not None and any(scale != 1.0 for scale in scales):
        broken_rule(f"{call}: scales {list(scales)}; all have to be 1.0")
    for src in srcs:
        _reaches(call, dst, src)
        if src.size != dst.size:
            broken_rule(
                f"{call}: {src.name} {list(src.shape)} has {src.size} elements and {dst.name} {list(dst.shape)} has {dst.size}"
            )
    operands = [operand(dst, WRITE), *(operand(src, READ) for src in srcs)]
    row = transfer("dma_compute", call, dst, srcs[0], None, None, operands=operands)
    if values_on():
        target = dst.array()
        total = dtypes.to_float32(srcs[0].array()).reshape(target.shape)
        for src in srcs[1:]:
            total = total + dtypes.to_float32(src.array()).reshape(target.shape)
        target[...] = dtypes.cast(total, dst.dtype)
    return row


def _reaches(call: str, dst: View, src: View) -> None:
    for view in (dst, src):
        if view.space is Space.PSUM:
            broken_rule(f"{call}: {view.name} is in PSUM, which DMA cannot reach; copy it to SBUF first (nki.isa.tensor_copy)")


def transfer(
    spec: str,
    call: str,
    dst: View,
    src: View,
    engine: Any,
    dge_mode: Any,
    flags: int = 0,
    operands: list[Operand] | None = None,
) -> int:
    """The row of a DMA; `operands` if they are not just `dst` and `src`. Raises `RuleError` for an engine that cannot start one."""
    entry = opcodes()[spec]
    mode = getattr(dge_mode, "name", None) or "unknown"
    name = engine_name(engine) or ("gpsimd" if mode == "swdge" else "")
    if name and name not in entry.engines:
        broken_rule(f"{call}: the {name} engine cannot start a DMA; use {', '.join(entry.engines)}")
    if any(size > 1 and not stride for size, stride in zip(dst.shape, dst.strides, strict=True)):
        broken_rule(f"{call}: {dst.name} is a broadcast and cannot be written")
    partitions = max(dst.partitions if dst.on_chip else 1, src.partitions if src.on_chip else 1)
    detail = () if mode == "unknown" else (("dge_mode", mode),)
    flags |= 0 if name else int(InstructionFlag.ENGINE_CHOSEN)
    return current(call).recorder.emit(
        entry.opcode,
        # A store waits for its data; on the queue of the loads it would hold up the next iteration's.
        name or (entry.engines[0] if dst.on_chip else "gpsimd"),
        entry.cost_class,
        operands or (operand(dst, WRITE), operand(src, READ)),
        max(1, dst.size // partitions),
        0,
        partitions,
        flags,
        detail=detail,
    )
