"""Every instruction names the statement that issued it, how the kernel got there, and the loop values at that moment."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from emulator.program import Program
from emulator.run import load_kernel, run_kernel
from emulator.stacks import LoopStack
from tests.unit.nki_names import nisa, nki, nl, onl, run

TILE = np.zeros((128, 64), np.float32)
HERE = Path(__file__)


@nki.jit
def ten_calls(src):
    tile = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src)  # call 0
    nisa.memset(tile, 1.0)  # call 1
    for row in nl.affine_range(2):
        nisa.tensor_scalar(  # call 2
            dst=tile,
            data=tile,
            op0=nl.add,
            operand0=float(row),
        )
        for _column in nl.sequential_range(1, 5, 2):
            nisa.activation(dst=tile, op=nl.exp, data=tile[0:128, 0:64])  # call 3

    def closure(factor):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)  # call 4

    closure(2.0)  # from here
    (lambda: nisa.reciprocal(dst=tile, data=tile))()  # call 5
    [nisa.memset(tile, float(value)) for value in nl.static_range(2)]  # call 6
    helper_of_this_file(tile)
    out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)  # call 8
    result = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    nl.store(result, tile)  # call 9
    return result


def helper_of_this_file(tile):
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)  # call 7


def line_of(mark: str) -> int:
    lines = HERE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.rstrip().endswith(mark))


def loop_values(program: Program, row: int) -> list[tuple[str, int]]:
    found = []
    loop = program.loop[row]
    while loop >= 0:
        found.append((program.loops[loop].name, program.loops[loop].value))
        loop = program.loops[loop].parent
    return found[::-1]


def test_each_call_has_its_line_stack_and_loop_values() -> None:
    program = run(ten_calls, TILE).program
    stacks = [program.stacks[index] for index in program.stack]
    assert {stack[0].function for stack in stacks} == {"ten_calls"}
    assert {stack[0].file for stack in stacks} == {str(HERE)}
    innermost = [(stack[-1].line, stack[-1].function.split(".")[-1]) for stack in stacks]
    call = {number: line_of(f"# call {number}") for number in range(10)}
    expected = [
        (call[0], "ten_calls", []),
        (call[1], "ten_calls", []),
        (call[2], "ten_calls", [("row", 0)]),
        (call[3], "ten_calls", [("row", 0), ("_column", 1)]),
        (call[3], "ten_calls", [("row", 0), ("_column", 3)]),
        (call[2], "ten_calls", [("row", 1)]),
        (call[3], "ten_calls", [("row", 1), ("_column", 1)]),
        (call[3], "ten_calls", [("row", 1), ("_column", 3)]),
        (call[4], "closure", []),
        (call[5], "<lambda>", []),
        (call[6], "<listcomp>", [("value", 0)]),
        (call[6], "<listcomp>", [("value", 1)]),
        (call[7], "helper_of_this_file", []),
        (call[8], "ten_calls", []),
        (call[9], "ten_calls", []),
    ]
    assert [(*at, loop_values(program, row)) for row, at in enumerate(innermost)] == expected
    assert [frame.line for frame in stacks[8]] == [line_of("# from here"), call[4]]
    assert stacks[2][-1].end_line == call[2] + 5


def test_a_helper_in_another_file_is_the_innermost_frame(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import nki.isa as nisa\n\ndef fill(tile):\n    nisa.memset(tile, 0.0)\n")
    kernel = tmp_path / "kernel.py"
    kernel.write_text(
        "import nki\nimport nki.language as nl\nfrom beside import fill\n\n@nki.jit\ndef entry(x):\n"
        "    tile = nl.ndarray((128, 4), nl.float32)\n    for i in nl.affine_range(2):\n        fill(tile)\n    nl.store(x, tile)\n"
    )
    program = run_kernel(load_kernel(kernel), (np.zeros((128, 4), np.float32),)).program
    stacks = [program.stacks[index] for index in program.stack]
    assert [[(Path(f.file).name, f.line, f.function) for f in stack] for stack in stacks] == [
        [("kernel.py", 9, "entry"), ("beside.py", 4, "fill")],
        [("kernel.py", 9, "entry"), ("beside.py", 4, "fill")],
        [("kernel.py", 10, "entry")],
    ]
    assert [loop_values(program, row) for row in range(3)] == [[("i", 0)], [("i", 1)], []]


def test_loops_left_early_leave_no_value_behind() -> None:
    @nki.jit
    def kernel(src):
        tile = nl.ndarray((128, 64), nl.float32)
        for first in nl.affine_range(3):
            nisa.memset(tile, float(first))
            break
        nisa.memset(tile, 7.0)
        try:
            for second in nl.affine_range(3):
                raise KeyError(second)
        except KeyError:
            nisa.memset(tile, 8.0)
        for third in nl.affine_range(2):
            if third == 0:
                continue
            nisa.memset(tile, 9.0)

    program = run(kernel, TILE).program
    assert [loop_values(program, row) for row in range(4)] == [[("first", 0)], [], [], [("third", 1)]]


def test_zipped_and_unpacked_loop_variables_are_named_together() -> None:
    @nki.jit
    def kernel(src):
        tile = nl.ndarray((128, 64), nl.float32)
        for count, at in enumerate(nl.affine_range(4, 6)):
            nisa.memset(tile, float(count + at))

    program = run(kernel, TILE).program
    assert [loop_values(program, row) for row in range(2)] == [[("count, at", 4)], [("count, at", 5)]]


def test_a_list_of_a_range_is_no_loop() -> None:
    @nki.jit
    def kernel(src):
        tile = nl.ndarray((128, 64), nl.float32)
        for value in list(nl.affine_range(2)):
            nisa.memset(tile, float(value))

    assert [loop_values(run(kernel, TILE).program, row) for row in range(2)] == [[], []]


def test_a_kernel_called_from_a_kernel_is_inlined_in_the_stack() -> None:
    @nki.jit
    def inner(tile):
        nisa.memset(tile, 1.0)

    @nki.jit
    def outer(src):
        inner(nl.ndarray((128, 64), nl.float32))

    (stack,) = run(outer, TILE).program.stacks[1:] or run(outer, TILE).program.stacks[:1]
    assert [frame.function.split(".")[-1] for frame in stack] == ["outer", "inner"]


def test_instructions_of_one_call_share_its_stack_and_number() -> None:
    @nki.jit
    def kernel(src):
        a = nl.ndarray((128, 64), nl.float32)
        product = nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
        nisa.memset(a, 1.0)
        nisa.nc_matmul(product, a, a)

    program = run(kernel, TILE).program
    assert len(set(program.call[1:])) == 1 and program.call[0] != program.call[1]
    assert len(set(program.stack[1:])) == 1


def test_the_kernel_entry_is_outermost_whoever_calls_it() -> None:
    def host(src):
        return ten_calls(src)

    program = run(host, TILE).program
    assert {program.stacks[index][0].function for index in program.stack} == {"ten_calls"}


def test_allocations_have_stacks_and_the_names_of_their_variables() -> None:
    program = run(ten_calls, TILE).program
    named = {tensor.name: tensor for tensor in program.tensors}
    assert named["src"].stack == -1 and named["src"].role == "input"
    assert program.stacks[named["tile"].stack][-1].line == inspect.getsourcelines(ten_calls.function)[1] + 2
    assert named["result"].role == "output" and named["out"].role == "temporary"


def test_loops_outside_a_kernel_are_plain_ranges() -> None:
    assert list(nl.affine_range(3)) == [0, 1, 2]
    assert list(onl.sequential_range(1, 6, 2)) == [1, 3, 5]
    assert len(nl.static_range(4)) == 4


def test_loop_values_get_a_row_only_when_an_instruction_needs_one() -> None:
    loops = LoopStack()
    level = loops.push("i", "f.py", 3)
    for value in range(5):
        loops.set(level, value)
        if value in (1, 4):
            loops.current()
    loops.pop(level)
    assert [row.value for row in loops.rows()] == [1, 4]
    assert loops.current() == -1


@pytest.mark.parametrize("flag", ["-OO"])
def test_line_numbers_are_those_of_the_source(flag: str) -> None:
    """Positions come from the code object, so they hold in a process without assertions and docstrings too."""
    import subprocess
    import sys

    text = (
        "import numpy as np\nfrom tests.unit.test_stacks import ten_calls, TILE\nfrom tests.unit.nki_names import run\n"
        "p = run(ten_calls, TILE).program\nprint(p.stacks[p.stack[0]][-1].line)"
    )
    found = subprocess.run([sys.executable, flag, "-c", text], capture_output=True, text=True, cwd=HERE.parents[2], check=False)
    assert found.stdout.strip() == str(line_of("# call 0")), found.stderr
