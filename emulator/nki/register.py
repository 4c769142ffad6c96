"""A register of an engine's sequencer, as kernels hold it."""

from __future__ import annotations

import operator
from typing import Any, Final, Never

from emulator.errors import broken_rule

_NO_VALUES: Final = "without values, what a register is loaded with is not known; capture with values"


class VirtualRegister:
    """A 32-bit register: usable as a loop bound and as a condition. Kernels cannot calculate with it."""

    __slots__ = ("unknown", "value")

    def __init__(self, value: int | None = None, unknown: bool = False) -> None:
        self.value = value
        #: Loaded from memory while values are off.
        self.unknown = unknown

    def __index__(self) -> int:
        if self.unknown:
            broken_rule(_NO_VALUES)
        if self.value is None:
            broken_rule("a register is read before anything was put into it; use nki.isa.register_move or register_load")
        return self.value

    def __bool__(self) -> bool:
        return operator.index(self) != 0

    def __repr__(self) -> str:
        return f"<register {'?' if self.value is None else self.value}>"


def _no_arithmetic(self: VirtualRegister, *others: Any) -> Never:
    broken_rule("kernels cannot calculate with registers; calculate in a tile and load the result (nki.isa.register_load)")


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "floordiv",
    "rfloordiv",
    "truediv",
    "mod",
    "neg",
    "lt",
    "le",
    "gt",
    "ge",
):
    setattr(VirtualRegister, f"__{_name}__", _no_arithmetic)
