"""The kernel language of both generations under short names, for kernels written in tests, and shortcuts to run them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from emulator.nki import installed
from emulator.program import Program
from emulator.run import Run, run_kernel

with installed():
    import neuronxcc.nki as old
    import neuronxcc.nki.isa as oisa
    import neuronxcc.nki.language as onl
    import nki
    import nki.isa as nisa
    import nki.language as nl

__all__ = ["access", "loads", "nisa", "nki", "nl", "oisa", "old", "onl", "opcodes", "operands", "run"]


def run(kernel: Any, *args: Any, **options: Any) -> Run:
    """Outputs and program of a kernel."""
    return run_kernel(kernel, args, **options)


def opcodes(program: Program) -> list[str]:
    """Opcodes in program order."""
    return [program.opcodes[code] for code in program.opcode]


def loads(program: Program) -> Counter[str]:
    """How many instructions of each opcode."""
    return Counter(opcodes(program))


def operands(program: Program, row: int) -> list[tuple[str, int, int, int, int, list[int], list[int]]]:
    """Tensor name, access, first partition, partitions, offset, sizes and strides (without unused dimensions) of each operand."""
    found = []
    table = program.operands
    for index in range(table.ptr[row], table.ptr[row + 1]):
        used = [d for d in range(table.size.shape[1]) if table.size[index, d] > 1 or table.stride[index, d]]
        found.append(
            (
                program.tensors[table.tensor[index]].name,
                int(table.access[index]),
                int(table.partition_start[index]),
                int(table.partitions[index]),
                int(table.offset[index]),
                [int(table.size[index, d]) for d in used],
                [int(table.stride[index, d]) for d in used],
            )
        )
    return found


def access(program: Program, row: int) -> list[int]:
    """Access flags of each operand of an instruction."""
    return [entry[1] for entry in operands(program, row)]
