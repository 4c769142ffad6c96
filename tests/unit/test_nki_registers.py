"""Registers and the loops that they steer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.errors import EmulatorError
from emulator.program import ENGINES
from emulator.simulate import simulate
from tests.unit.nki_names import loads, nisa, nki, nl, opcodes, operands, run

X = np.arange(8, dtype=np.float32)[:, None]


@nki.jit
def counted(x, bound):
    out = nl.ndarray((8, 1), nl.float32, buffer=nl.shared_hbm)
    total, step = nl.zeros((8, 1), nl.float32), nl.load(x)
    register = nisa.register_alloc()
    nisa.register_load(register, bound)
    nl.fori_loop(1, register, lambda index: nisa.tensor_tensor(total, total, step, nl.add), step=2)
    nl.store(out, total)
    return out


@pytest.mark.parametrize("bound", [0, 1, 2, 7])
def test_a_counted_loop_runs_to_the_bound_in_memory(bound: int) -> None:
    made = run(counted, X, np.array([[bound]], np.int32))
    rounds = len(range(1, bound, 2))
    np.testing.assert_array_equal(made.outputs, X * rounds)
    program = made.program
    rows = [row for row, name in enumerate(opcodes(program)) if name == "TENSOR_TENSOR"]
    assert [(program.loops[program.loop[row]].name, program.loops[program.loop[row]].value) for row in rows] == [
        ("index", value) for value in range(1, bound, 2)
    ]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_loops_with_a_condition(count: int) -> None:
    @nki.jit
    def structured(x, n):
        out = nl.ndarray((8, 1), nl.float32, buffer=nl.shared_hbm)
        total, step, left, one = nl.zeros((8, 1), nl.float32), nl.load(x), nl.load(n), nl.full((1, 1), 1, nl.int32)
        register = nisa.register_alloc()
        nisa.register_load(register, left)

        def body(r):
            nisa.tensor_tensor(total, total, step, nl.add)
            nisa.tensor_tensor(left, left, one, nl.subtract)
            nisa.register_load(r, left)
            return r

        nl.while_loop(register, body)
        nl.store(out, total)
        return out

    @nki.jit
    def plain(x, n):
        out = nl.ndarray((8, 1), nl.float32, buffer=nl.shared_hbm)
        total, step, left, one = nl.zeros((8, 1), nl.float32), nl.load(x), nl.load(n), nl.full((1, 1), 1, nl.int32)
        register = nisa.register_alloc()
        nisa.register_load(register, left)
        while register:
            nisa.tensor_tensor(total, total, step, nl.add)
            nisa.tensor_tensor(left, left, one, nl.subtract)
            nisa.register_load(register, left)
        nl.store(out, total)
        return out

    @nki.jit
    def ranged(x, n):
        out = nl.ndarray((8, 1), nl.float32, buffer=nl.shared_hbm)
        total, step = nl.zeros((8, 1), nl.float32), nl.load(x)
        register = nisa.register_alloc()
        nisa.register_load(register, n)
        for _ in nl.dynamic_range(register):
            nisa.tensor_tensor(total, total, step, nl.add)
        nl.store(out, total)
        return out

    for kernel in (structured, plain, ranged):
        np.testing.assert_array_equal(run(kernel, X, np.array([[count]], np.int32)).outputs, X * count)


def test_moves_and_stores_are_instructions_with_their_operands() -> None:
    @nki.jit
    def kernel():
        out = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
        first, second = nisa.register_alloc(7), nisa.register_alloc()
        nisa.register_move(second, first)
        nisa.register_move(first, 3)
        held = nl.ndarray((1, 1), nl.int32)
        nisa.register_store(held, second)
        nl.store(out, held)
        return out

    made = run(kernel)
    assert made.outputs.tolist() == [[7]]
    assert loads(made.program) == {"REGISTER_MOVE": 3, "REGISTER_STORE": 1, "DMA_DIRECT2D": 1}
    row = opcodes(made.program).index("REGISTER_STORE")
    assert [entry[:2] for entry in operands(made.program, row)] == [("held", 2)]
    assert ENGINES[made.program.engine[row]] == "sync"
    timeline = simulate(made.program)
    assert any(text.startswith("the cost of REGISTER_STORE is not published") for text in timeline.warnings)
    assert timeline.start[row + 1] >= timeline.end[row]


REFUSED: list[tuple[Any, str]] = [
    (lambda r, t: r + 1, r"kernels cannot calculate with registers"),
    (lambda r, t: r < 1, r"kernels cannot calculate with registers"),
    (lambda r, t: range(nisa.register_alloc()), r"a register is read before anything was put into it"),
    (lambda r, t: nisa.register_move(3, r), r"dst is int, not a register; make one with nki.isa.register_alloc"),
    (lambda r, t: nisa.register_move(r, 1.5), r"the value is float; it has to be an integer or a register"),
    (lambda r, t: nisa.register_move(r, 2**32), r"4294967296 does not fit into 32 bits"),
    (lambda r, t: nisa.register_load(r, t), r"src t.* \[8, 1\] in SBUF has to be one element"),
    (lambda r, t: nisa.register_load(r, nl.ndarray((1, 1), nl.float32)), r"holds nan, which no register can hold"),
    (lambda r, t: nl.while_loop(r, lambda c: None), r"what body_fun returns is NoneType, not a register"),
    (lambda r, t: nl.fori_loop(0, 3, lambda i: None, step=0), r"step is 0; it has to be positive"),
    (lambda r, t: t[nl.ds(r, 1), :], r"a start from memory or a register is not emulated"),
    (lambda r, t: t[r, 0], r"a value from memory or a register is not emulated"),
]


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_refused(body: Any, message: str) -> None:
    @nki.jit
    def kernel(x):
        t = nl.load(x)
        body(nisa.register_alloc(1), t)

    with pytest.raises(EmulatorError, match=rf"test_nki_registers.py:\d+: .*{message}") as caught:
        run(kernel, X)
    assert "\n" not in str(caught.value)


def test_without_values_a_bound_from_memory_is_not_known() -> None:
    with pytest.raises(EmulatorError, match="without values, what a register is loaded with is not known; capture with values"):
        run(counted, X, np.array([[3]], np.int32), values=False)
