"""What `tile[...] = value` and `tile[...] += value` mean.

Calls of the first generation return tiles. `x[...] = nisa.op(...)` is no copy: the instruction writes `x`. And
`psum[...] += nisa.nc_matmul(...)` is accumulation in PSUM, not an addition by the Vector engine. The result of a call is
therefore `Fresh` until another instruction follows, and is redirected when it is assigned. A copy is recorded but left out;
should the kernel use the returned tile later after all, the redirection is taken back and the copy counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emulator.errors import broken_rule, unsupported
from emulator.nki import dtypes
from emulator.nki.access import ACCUMULATE, WRITE, need_memset, operand, same_tile
from emulator.nki.index import Affine
from emulator.nki.indexing import boxed
from emulator.nki.ops import elementwise, psum
from emulator.nki.session import current
from emulator.nki.tensor import View
from emulator.program import Space
from emulator.recorder import Operand, Recorder


@dataclass(frozen=True, slots=True)
class Fresh:
    """The instructions that made a tile: the rows whose first operand it is, and the number of rows just after them."""

    rows: tuple[int, ...]
    end: int
    #: Memories that the instruction can write.
    spaces: tuple[Space, ...]
    matmul: bool = False


ON_CHIP = (Space.SBUF, Space.PSUM)


def fresh(view: View, rows: tuple[int, ...], *, spaces: tuple[Space, ...] = ON_CHIP, matmul: bool = False) -> View:
    """`view`, marked as the result of the instructions at `rows`."""
    view.fresh = Fresh(rows, current().recorder.rows, spaces, matmul)
    return view


class Forward:
    """A result that was redirected, and how to take that back."""

    __slots__ = ("copy", "operands", "recorder", "rows", "view")

    def __init__(self, recorder: Recorder, rows: tuple[int, ...], operands: list[Operand], copy: int, view: View) -> None:
        self.recorder = recorder
        self.rows = rows
        self.operands = operands
        self.copy = copy
        self.view = view

    def undo(self) -> None:
        """The result gets its own tensor again, and the copy counts."""
        self.view.storage.forward = None
        for row, own in zip(self.rows, self.operands, strict=True):
            self.recorder.retarget(row, own)
        self.recorder.restore(self.copy)


def assign(target: View, value: Any) -> None:
    """`target[...] = value`: nothing if value is already there, a redirection of a fresh result, else a copy or a fill."""
    if not isinstance(value, View):
        _fill(target, value)
        return
    if value.same_region(target):
        return
    if target.space is Space.HBM:
        broken_rule(f"{target.name} is in HBM and cannot be assigned; use nl.store or nki.isa.dma_copy")
    made = value.fresh
    if value.size == 1 and target.size > 1 and not target.same_region(value):
        broken_rule(f"{value.name} {list(value.shape)} does not fill {target.name} {list(target.shape)}")
    if value.space is Space.HBM:
        broken_rule(f"{value.name} is in HBM; load it with nl.load or nki.isa.dma_copy")
    same_tile("assignment", target, value)
    if value.valid == ():
        return
    if value.valid is not None:
        if target.ndim != value.ndim:
            unsupported("assigning a masked result to a tile of another shape")
        target, value = boxed(target, value.valid), boxed(value, value.valid)
    if made is None or made.end != current().recorder.rows or target.space not in made.spaces or value.storage.forward is not None:
        elementwise.tensor_copy(target, value, call="assignment")
        return
    _redirect(target, value, made)


def _fill(target: View, value: Any) -> None:
    if isinstance(value, Affine) or not hasattr(value, "__float__"):
        broken_rule(f"{target.name}: a tile can be assigned a tile or a number, not {type(value).__name__}")
    elementwise.memset(target, value)


def _redirect(target: View, value: View, made: Fresh) -> None:
    recorder = current().recorder
    own = [operand(value, WRITE if index == 0 else ACCUMULATE) for index in range(len(made.rows))]
    # The copy is left out, so it must not make the target's memset count.
    tentative, target.storage.tentative = target.storage.tentative, None
    copy = elementwise.tensor_copy(target, value, call="assignment")
    recorder.cancel(copy)
    target.storage.tentative = tentative
    if not made.matmul:
        need_memset(target)
    for index, row in enumerate(made.rows):
        recorder.retarget(row, operand(target, WRITE if index == 0 else ACCUMULATE))
    if made.matmul:
        psum.mark(target)
    recorder.drop_tensor(value.storage.ident)
    value.storage.forward = Forward(recorder, made.rows, own, copy, value)


def add_in_place(target: View, value: Any) -> View:
    """`target += value`: PSUM accumulation of a fresh matmul result, else an addition into `target`."""
    made = value.fresh if isinstance(value, View) else None
    recorder = current().recorder
    if made is None or not made.matmul or target.space is not Space.PSUM or made.end != recorder.rows:
        from emulator.nki.language.arithmetic import into

        return into(target, "add", target, value)
    same_tile("accumulation", target, value)
    value.fresh = None
    written = psum.written_by_matmul(target)
    if current().values:
        old, new = dtypes.to_float32(target.tile()), dtypes.to_float32(value.tile()).reshape(target.tile().shape)
        if written is True:
            new = old + new
        elif written is not False:
            new[written] += old[written]
        target.write(new)
    psum.mark(target)
    first = WRITE if written is False else ACCUMULATE
    for index, row in enumerate(made.rows):
        recorder.retarget(row, operand(target, ACCUMULATE if index else first))
    recorder.drop_tensor(value.storage.ident)
    return target
