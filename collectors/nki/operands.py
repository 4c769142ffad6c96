"""Operands as text: which part of which named tensor an instruction reads and writes."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collectors.nki.rows import Int, rank_within, take, unique_rows
from emulator.program import Access, Operands, Program, Space, TensorSpec


def operand_texts(program: Program) -> pa.Array:
    """For each instruction its operands, sources first: "src=bf16@x[0:128, 0:512] dst=fp32@acc[0:128, 0:512]".

    A region is written as slices of the tensor's own shape where that says all; else in the pattern notation that hardware
    profiles use, `[strides][sizes]` in elements with the innermost dimension first, after the partitions and the offset.
    """
    ops = program.operands
    count = len(ops.tensor)
    if count == 0:
        return pa.array([""] * len(program), pa.string())
    owner = np.repeat(np.arange(len(program)), np.diff(ops.ptr))
    writes = (ops.access & Access.WRITE) != 0
    nth = rank_within(owner * 2 + writes)
    several = np.bincount(owner * 2 + writes, minlength=2 * len(program))[owner * 2 + writes] > 1
    label = np.where(writes, 1, 0) + 2 * np.where(several, nth + 1, 0)
    most = int(nth.max()) + 1
    labels = ["src=", "dst=", *(f"{kind}{i}=" for i in range(most) for kind in ("src", "dst"))]
    suffix = np.where((ops.access & Access.ACCUMULATE) != 0, 1, 0) + np.where((ops.access & Access.INDIRECT) != 0, 2, 0)
    first, inverse = region_keys(program)
    regions = [region_text(program.tensors[ops.tensor[i]], ops, i) for i in first.tolist()]
    text = pc.binary_join_element_wise(
        take(labels, label),
        take([f"{short_dtype(d)}@" for d in program.dtypes], ops.dtype),
        take([t.name for t in program.tensors], ops.tensor),
        take(regions, inverse),
        take(["", "(accumulate)", "(indirect)", "(accumulate,indirect)"], suffix),
        "",
    )
    order = np.lexsort((nth, writes, owner))
    lists = pa.ListArray.from_arrays(pa.array(ops.ptr.astype(np.int32)), text.take(pa.array(order)))
    return pc.binary_join(lists, " ")


def short_dtype(dtype: str) -> str:
    """A dtype in hardware's spelling: float32 is fp32, bfloat16 bf16, float8_e4m3 fp8e4m3; others as they are."""
    if dtype.startswith("bfloat"):
        return "bf" + dtype.removeprefix("bfloat")
    if dtype.startswith("float"):
        return "fp" + dtype.removeprefix("float").replace("_", "")
    return dtype


def region_keys(program: Program) -> tuple[Int, Int]:
    """First operand of each distinct region (apart from the tensor's name), and for each operand the number of its region."""
    ops = program.operands
    kinds: dict[tuple[object, ...], int] = {}
    kind = np.array([kinds.setdefault((t.shape, t.dtype, t.space, t.partitions), len(kinds)) for t in program.tensors], np.int64)
    scalars = (kind[ops.tensor], ops.itemsize, ops.partition_start, ops.partitions, ops.offset)
    return unique_rows([*scalars, *ops.size.T, *ops.stride.T])


def region_text(tensor: TensorSpec, ops: Operands, row: int) -> str:
    """The region of one operand: "[0:128, 0:512]", or "[0:128]+64[1,4][512,8]" where no slices say it."""
    item = int(ops.itemsize[row]) or 1
    offset, sizes, strides = int(ops.offset[row]), ops.size[row].tolist(), ops.stride[row].tolist()
    on_chip = tensor.space != Space.HBM
    start, count = int(ops.partition_start[row]), int(ops.partitions[row])
    rows = [f"{start}:{start + count}"] if on_chip else []
    shape = list(tensor.shape[1:] if on_chip else tensor.shape)
    whole = tensor.partition_bytes if on_chip else tensor.nbytes
    if on_chip and tensor.shape and tensor.shape[0] != tensor.partitions:
        shape = [max(whole // item, 1)]
    steps = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
    if math.prod(shape) * item == whole and offset % item == 0 and all(s > 0 and s % item == 0 for _, s in steps):
        cut = slices(tuple(shape), offset // item, tuple((n, s // item) for n, s in steps))
        if cut is not None:
            return f"[{', '.join(rows + cut)}]"
    inner = list(reversed(steps)) or [(1, item)]
    strided = ",".join(elements(s, item) for _, s in inner)
    sized = ",".join(str(n) for n, _ in inner)
    return f"[{', '.join(rows)}]+{elements(offset, item)}[{strided}][{sized}]"


def elements(nbytes: int, item: int) -> str:
    """A distance in elements of `item` bytes, exactly: "3", or "5/2" where an operand reinterprets wider elements."""
    return str(nbytes // item) if nbytes % item == 0 else f"{nbytes}/{item}"


def slices(shape: tuple[int, ...], offset: int, pattern: tuple[tuple[int, int], ...]) -> list[str] | None:
    """One slice text for each dimension of a row-major `shape` that together are the pattern, or None if there are none.

    `pattern` is size and stride (both in elements, strides positive) of each dimension, outermost first.
    """
    weight = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    index = [offset // w % n if n else 0 for w, n in zip(weight, shape, strict=True)]
    if offset >= math.prod(shape):
        return None
    cut: list[str | None] = [None] * len(shape)
    last = len(shape)
    for size, stride in reversed(pattern):
        d = next((d for d in range(len(shape)) if weight[d] <= stride and shape[d] > 1), None)
        while d is not None and size > 1:
            step = stride // weight[d]
            if stride % weight[d] or d >= last:
                return None
            room = -(-(shape[d] - index[d]) // step)
            if size <= room:
                end = index[d] + (size - 1) * step + 1
                cut[d] = f"{index[d]}:{end}" if step == 1 else f"{index[d]}:{end}:{step}"
                size, last = 1, d
            elif step == 1 and index[d] == 0 and size % shape[d] == 0:
                cut[d] = f"0:{shape[d]}"
                size, stride, last = size // shape[d], weight[d] * shape[d], d
                d = next((e for e in range(d - 1, -1, -1) if shape[e] > 1), None)
            else:
                return None
        if size > 1:
            return None
    return [c or (f"0:{n}" if n == 1 else str(i)) for c, i, n in zip(cut, index, shape, strict=True)]
