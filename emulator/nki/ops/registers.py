"""Registers of the engines' sequencers, and loops whose bounds or conditions they hold.

Source: aws-neuron-sdk nki/api/nki/isa/__init__.py (`register_alloc` and its kin), nki/api/nki/language/__init__.py (`fori_loop`,
`while_loop`). Which sequencers hold a register is the compiler's choice and not published: its instructions stand on Sync.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from emulator.errors import broken_rule
from emulator.nki import dtypes
from emulator.nki.access import READ, WRITE, operand, values_on
from emulator.nki.register import VirtualRegister
from emulator.nki.session import current
from emulator.nki.tensor import View
from emulator.opcodes import opcodes
from emulator.program import InstructionFlag, Space
from emulator.recorder import Operand


def alloc(x: Any = None) -> VirtualRegister:
    """A new register, empty or with the integer `x`."""
    register = VirtualRegister()
    if x is not None:
        move(register, x, call="nki.isa.register_alloc")
    return register


def move(dst: Any, src: Any, *, call: str = "nki.isa.register_move") -> int:
    """The row that puts an integer or another register's value into `dst`."""
    target = _register(call, "dst", dst)
    if isinstance(src, VirtualRegister):
        target.value, target.unknown = src.value, src.unknown
    else:
        try:
            target.value, target.unknown = _fits(call, operator.index(src)), False
        except TypeError:
            broken_rule(f"{call}: the value is {type(src).__name__}; it has to be an integer or a register")
    return _emit("register_move", call, ())


def load(dst: Any, src: View) -> int:
    """The row that loads the one element of `src`, in HBM or SBUF, into `dst`."""
    call = "nki.isa.register_load"
    target = _register(call, "dst", dst)
    _one_element(call, "src", src)
    row = _emit("register_load", call, (operand(src, READ),))
    current(call).recorder.warn("that an engine waits for the value of a register is not modelled")
    target.value, target.unknown = None, True
    if values_on():
        held = np.ravel(src.array())[0]
        if not np.isfinite(held):
            broken_rule(f"{call}: {src.name} holds {held}, which no register can hold; write it before")
        target.value, target.unknown = int(held), False
    return row


def store(dst: View, src: Any) -> int:
    """The row that writes a register's value into the one element of `dst`, in HBM or SBUF."""
    call = "nki.isa.register_store"
    source = _register(call, "src", src)
    _one_element(call, "dst", dst)
    row = _emit("register_store", call, (operand(dst, WRITE),))
    if values_on():
        dst.array()[...] = dtypes.cast(np.asarray(operator.index(source)), dst.dtype)
    return row


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[VirtualRegister], Any], step: int = 1) -> None:
    """Run `body_fun(i)`, `i` a register, for each i from `lower` to below `upper`."""
    call = "nki.language.fori_loop"
    width = operator.index(step)
    if width < 1:
        broken_rule(f"{call}: step is {width}; it has to be positive")
    loops = current(call).recorder.loops
    code = getattr(body_fun, "__code__", None)
    name = code.co_varnames[0] if code is not None and code.co_argcount else "i"
    level = loops.push(name, code.co_filename if code else "", code.co_firstlineno if code else 0)
    try:
        for value in range(operator.index(lower), operator.index(upper), width):
            loops.set(level, value)
            body_fun(VirtualRegister(value))
    finally:
        loops.pop(level)


def while_loop(init: Any, body_fun: Callable[[VirtualRegister], Any]) -> None:
    """Run `register = body_fun(register)` as long as the register is not 0."""
    call = "nki.language.while_loop"
    condition = _register(call, "init", init)
    while condition:
        condition = _register(call, "what body_fun returns", body_fun(VirtualRegister(condition.value)))


def _register(call: str, argument: str, value: Any) -> VirtualRegister:
    if not isinstance(value, VirtualRegister):
        broken_rule(f"{call}: {argument} is {type(value).__name__}, not a register; make one with nki.isa.register_alloc")
    return value


def _one_element(call: str, argument: str, view: View) -> None:
    if view.size != 1 or view.itemsize > 4 or view.space is Space.PSUM:
        broken_rule(
            f"{call}: {argument} {view.name} {list(view.shape)} in {view.space.name} has to be one element of up to 32 bits "
            "in SBUF or HBM"
        )


def _fits(call: str, value: int) -> int:
    if not -(2**31) <= value < 2**32:
        broken_rule(f"{call}: {value} does not fit into 32 bits")
    return value


def _emit(spec: str, call: str, operands: tuple[Operand, ...]) -> int:
    entry = opcodes()[spec]
    flags = int(InstructionFlag.ENGINE_CHOSEN)
    return current(call).recorder.emit(entry.opcode, entry.engines[0], entry.cost_class, operands, 1, 0, 1, flags)
