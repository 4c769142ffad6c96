"""Collects a kernel's instructions while it runs, and makes the `Program` of them.

The recorder appends to flat arrays and resolves nothing: source positions, loop rows and tensors are looked up when the
program is finished, so that one instruction costs a few microseconds.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final

import ml_dtypes  # noqa: F401  registers bfloat16 and the float8 types by name
import numpy as np

from emulator.program import (
    ENGINES,
    PATTERN_DIMS,
    Int,
    Operands,
    Program,
    Space,
    TensorSpec,
)
from emulator.stacks import LoopStack, StackTable

#: (tensor id, access, dtype name, first partition, partitions, offset in bytes, sizes, strides in bytes): see `program.Operands`.
Operand = tuple[int, int, str, int, int, int, tuple[int, ...], tuple[int, ...]]

_ENGINE_CODE: Final = {name: code for code, name in enumerate(ENGINES)}
_ONES: Final = tuple((1,) * n for n in range(PATTERN_DIMS + 1))
_ZEROS: Final = tuple((0,) * n for n in range(PATTERN_DIMS + 1))
#: Types without a numpy type of their own name.
_ITEMSIZE: Final = {"tfloat32": 4, "bool": 1}


class Recorder:
    """The instructions of one kernel launch in the order in which the kernel asked for them.

    `core` is the physical core that the following instructions run on; `entry` is the frame below which the
    kernel's own call stack begins (frames from it outwards are not recorded).
    """

    def __init__(self, kernel: str, target: str) -> None:
        self.kernel = kernel
        self.target = target
        self.core = 0
        self.stacks = StackTable()
        self.loops = LoopStack()
        self.warnings: dict[str, None] = {}
        self._tensors: list[TensorSpec] = []
        self._dropped: set[int] = set()
        self._cancelled: set[int] = set()
        self._opcodes: dict[str, int] = {}
        self._cost_classes: dict[str, int] = {}
        self._dtypes: dict[str, int] = {}
        self._itemsizes: list[int] = []
        self._scopes: dict[str, int] = {}
        self._scope_stack: list[str] = []
        self._scope = -1
        self._details: dict[tuple[tuple[str, str], ...], int] = {}
        self._call = -1
        self._call_stack = -1
        # Row columns: small ones together in one array per type keeps the append count low.
        self._row = array("q")
        self._operand_head = array("q")
        self._size = array("q")
        self._stride = array("q")
        self._ptr = array("q", [0])

    # -- what instructions refer to

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        space: Space,
        role: str,
        stack: int = -1,
        *,
        core: int = -1,
        partitions: int | None = None,
        partition_bytes: int | None = None,
    ) -> int:
        """The id of a new tensor. On chip, partitions are axis 0 unless `partitions` and `partition_bytes` say otherwise."""
        self.dtype(dtype)
        itemsize = self._itemsizes[self._dtypes[dtype]]
        if space is Space.HBM:
            partitions, partition_bytes = 0, 0
        else:
            partitions = shape[0] if partitions is None else partitions
            partition_bytes = prod(shape[1:]) * itemsize if partition_bytes is None else partition_bytes
        nbytes = prod(shape) * itemsize
        self._tensors.append(TensorSpec(name, shape, dtype, space, role, nbytes, partitions, partition_bytes, stack, core))
        return len(self._tensors) - 1

    def set_role(self, tensor: int, role: str) -> None:
        """Give a tensor another role once it is known: results are outputs."""
        self._tensors[tensor] = replace(self._tensors[tensor], role=role)

    def drop_tensor(self, tensor: int) -> None:
        """Leave a tensor that no instruction refers to any more out of the program."""
        self._dropped.add(tensor)

    def dtype(self, name: str) -> int:
        """The code of a dtype by name."""
        code = self._dtypes.get(name)
        if code is None:
            code = self._dtypes[name] = len(self._dtypes)
            self._itemsizes.append(_ITEMSIZE[name] if name in _ITEMSIZE else np.dtype(name).itemsize)
        return code

    def capture_stack(self) -> int:
        """The id of the kernel's call stack at this moment, in `Program.stacks`."""
        return self.stacks.capture(sys._getframe(1))

    def push_scope(self, name: str) -> None:
        """Instructions from here on belong to the named scope `name` within the current one."""
        self._scope_stack.append(name)
        self._enter_scope()

    def pop_scope(self) -> None:
        """Leave the innermost named scope."""
        self._scope_stack.pop()
        self._enter_scope()

    def warn(self, text: str) -> None:
        """Keep a warning for the user once."""
        self.warnings[text] = None

    # -- instructions

    @property
    def rows(self) -> int:
        """The number of instructions so far: the row that the next one gets."""
        return len(self._ptr) - 1

    def begin_call(self) -> int:
        """The number of a new API call; its stack is captured here and shared by its instructions."""
        self._call += 1
        self._call_stack = self.stacks.capture(sys._getframe(1))
        return self._call

    def emit(
        self,
        opcode: str,
        engine: str,
        cost_class: str,
        operands: Sequence[Operand],
        n: int,
        m: int = 0,
        k: int = 0,
        flags: int = 0,
        raw_flops: int = 0,
        adjusted_flops: int = 0,
        transpose_flops: int = 0,
        detail: tuple[tuple[str, str], ...] = (),
        call: int | None = None,
    ) -> int:
        """The row of a new instruction.

        `call` is the number of the API call that it belongs to, from `begin_call`; None begins a new one. Operands that are
        written come first. Columns as in `program.Program`.
        """
        if call is None:
            self._call += 1
            self._call_stack = self.stacks.capture(sys._getframe(1))
            call = self._call
        dtypes = self._dtypes
        head, size, stride = self._operand_head, self._size, self._stride
        for tensor, access, dtype, first, partitions, offset, sizes, strides in operands:
            code = dtypes.get(dtype)
            if code is None:
                code = self.dtype(dtype)
            head.extend((tensor, access, code, first, partitions, offset))
            pad = PATTERN_DIMS - len(sizes)
            if pad:
                size.extend(_ONES[pad])
                stride.extend(_ZEROS[pad])
            size.extend(sizes)
            stride.extend(strides)
        row = len(self._ptr) - 1
        self._ptr.append(len(head) // 6)
        self._row.extend(
            (
                self._opcodes.setdefault(opcode, len(self._opcodes)),
                _ENGINE_CODE[engine],
                self._cost_classes.setdefault(cost_class, len(self._cost_classes)),
                flags,
                self.core,
                n,
                m,
                k,
                raw_flops,
                adjusted_flops,
                transpose_flops,
                self._call_stack,
                self.loops.current(),
                self._scope,
                self._details.setdefault(detail, len(self._details)) if detail else -1,
                call,
            )
        )
        return row

    def retarget(self, row: int, operand: Operand, position: int = 0) -> None:
        """Make instruction `row` use `operand` in place of its operand at `position`."""
        index = self._ptr[row] + position
        tensor, access, dtype, first, partitions, offset, sizes, strides = operand
        self._operand_head[index * 6 : index * 6 + 6] = array("q", (tensor, access, self.dtype(dtype), first, partitions, offset))
        pad = PATTERN_DIMS - len(sizes)
        at = index * PATTERN_DIMS
        self._size[at : at + PATTERN_DIMS] = array("q", _ONES[pad] + sizes)
        self._stride[at : at + PATTERN_DIMS] = array("q", _ZEROS[pad] + strides)

    def cancel(self, row: int) -> None:
        """Leave instruction `row` out of the program."""
        self._cancelled.add(row)

    def restore(self, row: int) -> None:
        """Take back a `cancel`."""
        self._cancelled.discard(row)

    def finish(self) -> Program:
        """The program so far, without cancelled instructions and dropped tensors."""
        rows = np.array(self._row, dtype=np.int64).reshape(-1, 16)
        head = np.array(self._operand_head, dtype=np.int64).reshape(-1, 6)
        size = np.array(self._size, dtype=np.int64).reshape(-1, PATTERN_DIMS)
        stride = np.array(self._stride, dtype=np.int64).reshape(-1, PATTERN_DIMS)
        ptr: Int = np.array(self._ptr, dtype=np.int64)
        if self._cancelled:
            keep = np.ones(len(rows), dtype=bool)
            keep[list(self._cancelled)] = False
            kept = np.repeat(keep, np.diff(ptr))
            ptr = np.concatenate(([0], np.cumsum(np.diff(ptr)[keep]))).astype(np.int64)
            rows, head, size, stride = rows[keep], head[kept], size[kept], stride[kept]
        tensor, tensors = self._compact(head[:, 0])
        itemsize = np.array(self._itemsizes or [0], dtype=np.int16)
        operands = Operands(
            ptr=ptr,
            tensor=tensor.astype(np.int32),
            access=head[:, 1].astype(np.uint8),
            dtype=head[:, 2].astype(np.int16),
            itemsize=itemsize[head[:, 2]],
            partition_start=head[:, 3].astype(np.int16),
            partitions=head[:, 4].astype(np.int16),
            offset=np.ascontiguousarray(head[:, 5]),
            size=size,
            stride=stride,
        )
        columns = [np.ascontiguousarray(rows[:, index]) for index in range(16)]
        return Program(
            kernel=self.kernel,
            target=self.target,
            opcode=columns[0].astype(np.int16),
            engine=columns[1].astype(np.int8),
            cost_class=columns[2].astype(np.int16),
            flags=columns[3].astype(np.uint16),
            core=columns[4].astype(np.int16),
            n=columns[5],
            m=columns[6],
            k=columns[7],
            raw_flops=columns[8],
            adjusted_flops=columns[9],
            transpose_flops=columns[10],
            stack=columns[11].astype(np.int32),
            loop=columns[12].astype(np.int32),
            scope=columns[13].astype(np.int32),
            detail=columns[14].astype(np.int32),
            call=columns[15],
            operands=operands,
            opcodes=tuple(self._opcodes),
            cost_classes=tuple(self._cost_classes),
            dtypes=tuple(self._dtypes),
            tensors=tensors,
            stacks=self.stacks.resolve(),
            loops=self.loops.rows(),
            scopes=tuple(self._scopes),
            details=tuple(self._details),
            warnings=tuple(self.warnings),
        )

    def _enter_scope(self) -> None:
        path = "/".join(self._scope_stack)
        self._scope = self._scopes.setdefault(path, len(self._scopes)) if path else -1

    def _compact(self, used: Int) -> tuple[Int, tuple[TensorSpec, ...]]:
        if not self._dropped:
            return used, tuple(self._tensors)
        still_used = self._dropped.intersection(np.unique(used).tolist())
        keep = np.ones(len(self._tensors), dtype=bool)
        keep[list(self._dropped - still_used)] = False
        renumbered = np.cumsum(keep) - 1
        return renumbered[used], tuple(spec for spec, kept in zip(self._tensors, keep, strict=True) if kept)
