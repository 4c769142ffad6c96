"""The recorder: columns, operands, redirection, what is left out, scopes, details; fast enough for large programs."""

from __future__ import annotations

import sys
import time

import numpy as np

from emulator.program import Access, InstructionFlag, Space
from emulator.recorder import Operand, Recorder


def recorder() -> tuple[Recorder, int, int]:
    made = Recorder("kernel", "trn2")
    source = made.tensor("source", (256, 512), "bfloat16", Space.HBM, "input")
    tile = made.tensor("tile", (128, 2, 512), "bfloat16", Space.SBUF, "temporary")
    return made, source, tile


def operand(tensor: int, access: int = 1, offset: int = 0) -> Operand:
    return (tensor, access, "bfloat16", 0, 128, offset, (512,), (2,))


def test_an_instruction_is_a_row_of_every_column() -> None:
    made, source, tile = recorder()
    made.core = 1
    row = made.emit(
        "MATMUL",
        "tensor",
        "matmul",
        [(tile, 6, "float32", 32, 64, 2048, (2, 3, 4), (100, 20, 4)), operand(source)],
        512,
        m=64,
        k=128,
        flags=int(InstructionFlag.TRANSPOSE),
        raw_flops=10,
        adjusted_flops=20,
        transpose_flops=5,
        detail=(("op", "add"),),
    )
    program = made.finish()
    assert row == 0 and len(program) == 1 and (program.kernel, program.target) == ("kernel", "trn2")
    assert program.opcodes[program.opcode[0]] == "MATMUL" and program.cost_classes[program.cost_class[0]] == "matmul"
    assert [program.engine[0], program.core[0], program.flags[0]] == [0, 1, 1]
    assert [program.n[0], program.m[0], program.k[0]] == [512, 64, 128]
    assert [program.raw_flops[0], program.adjusted_flops[0], program.transpose_flops[0]] == [10, 20, 5]
    assert program.details[program.detail[0]] == (("op", "add"),)
    table = program.operands
    assert table.ptr.tolist() == [0, 2] and table.tensor.tolist() == [tile, source]
    assert [program.dtypes[code] for code in table.dtype] == ["float32", "bfloat16"] and table.itemsize.tolist() == [4, 2]
    assert table.size[0].tolist() == [1, 1, 2, 3, 4] and table.stride[0].tolist() == [0, 0, 100, 20, 4]
    assert [table.partition_start[0], table.partitions[0], table.offset[0]] == [32, 64, 2048]


def test_tensors_know_their_size() -> None:
    made, source, tile = recorder()
    specs = made.finish().tensors
    assert (specs[source].nbytes, specs[source].partitions, specs[source].partition_bytes) == (256 * 512 * 2, 0, 0)
    assert (specs[tile].nbytes, specs[tile].partitions, specs[tile].partition_bytes) == (128 * 2 * 512 * 2, 128, 2048)


def test_an_empty_program_is_a_program() -> None:
    program = Recorder("kernel", "trn2").finish()
    assert len(program) == 0 and program.operands.ptr.tolist() == [0]


def test_calls_number_and_share_stacks() -> None:
    made, _, _ = recorder()
    first = made.emit("A", "vector", "a", [], 1)
    call = made.begin_call()
    made.emit("B", "tensor", "b", [], 1, call=call)
    made.emit("C", "tensor", "b", [], 1, call=call)
    program = made.finish()
    assert program.call.tolist() == [0, 1, 1] and first == 0
    assert program.stack[1] == program.stack[2] != program.stack[0]


def test_a_redirected_operand_replaces_one_of_its_row() -> None:
    made, source, tile = recorder()
    made.emit("A", "vector", "a", [operand(tile, 2), operand(source)], 512)
    row = made.emit("A", "vector", "a", [operand(tile, 2), operand(source)], 512)
    made.retarget(row, (source, 3, "float32", 0, 0, 64, (2, 2), (8, 4)))
    table = made.finish().operands
    assert table.tensor.tolist() == [tile, source, source, source]
    assert table.access.tolist() == [2, 1, 3, 1] and table.size[2].tolist() == [1, 1, 1, 2, 2] and table.itemsize[2] == 4
    assert table.size[1].tolist() == table.size[3].tolist() == [1, 1, 1, 1, 512]


def test_cancelled_rows_and_dropped_tensors_are_left_out() -> None:
    made, source, tile = recorder()
    phantom = made.tensor("phantom", (128, 4), "float32", Space.SBUF, "temporary")
    last = made.tensor("last", (128, 4), "float32", Space.SBUF, "temporary")
    made.emit("A", "vector", "a", [operand(tile)], 1)
    made.cancel(made.emit("B", "vector", "a", [operand(tile), operand(last)], 2))
    kept = made.emit("C", "vector", "a", [operand(last), operand(source)], 3)
    made.cancel(kept)
    made.restore(kept)
    made.drop_tensor(phantom)
    program = made.finish()
    assert program.n.tolist() == [1, 3] and program.operands.ptr.tolist() == [0, 1, 3]
    assert [program.tensors[index].name for index in program.operands.tensor] == ["tile", "last", "source"]
    assert [tensor.name for tensor in program.tensors] == ["source", "tile", "last"]


def test_a_dropped_tensor_that_is_used_after_all_stays() -> None:
    made, _, tile = recorder()
    made.drop_tensor(tile)
    made.emit("A", "vector", "a", [operand(tile)], 1)
    assert [tensor.name for tensor in made.finish().tensors] == ["source", "tile"]


def test_scopes_are_paths() -> None:
    made, _, _ = recorder()
    made.emit("A", "vector", "a", [], 1)
    made.push_scope("layer")
    made.push_scope("norm")
    made.emit("A", "vector", "a", [], 1)
    made.pop_scope()
    made.emit("A", "vector", "a", [], 1)
    made.pop_scope()
    made.emit("A", "vector", "a", [], 1)
    program = made.finish()
    assert [program.scopes[code] if code >= 0 else "" for code in program.scope] == ["", "layer/norm", "layer", ""]


def test_roles_and_warnings() -> None:
    made, source, _ = recorder()
    made.set_role(source, "output")
    made.warn("twice")
    made.warn("twice")
    program = made.finish()
    assert program.tensors[source].role == "output" and program.warnings == ("twice",)


def test_stacks_begin_below_the_entry_frame() -> None:
    made, _, _ = recorder()

    def kernel() -> None:
        made.emit("A", "vector", "a", [], 1)

    def launcher() -> None:
        made.stacks.enter(sys._getframe())
        kernel()

    launcher()
    ((frame,),) = made.finish().stacks
    assert frame.function.endswith("kernel") and frame.line == kernel.__code__.co_firstlineno + 1


def test_a_hundred_thousand_instructions_take_seconds() -> None:
    """The bound is ten times what a loaded machine needs; `make bench` measures."""
    made, source, tile = recorder()
    made.stacks.enter(sys._getframe())
    given = [operand(tile, int(Access.WRITE)), operand(source), operand(source, offset=1024)]
    begun = time.process_time()
    for _ in range(100_000):
        made.emit("TENSOR_TENSOR", "vector", "tensor_tensor", given, 512)
    program = made.finish()
    assert time.process_time() - begun < 10
    assert len(program) == 100_000 and np.all(np.diff(program.operands.ptr) == 3)
