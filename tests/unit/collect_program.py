"""A small program with every kind of row, made without a kernel: what the tests of collectors/nki start from."""

from __future__ import annotations

import functools
from pathlib import Path

import pyarrow as pa

from collectors.nki import Captured, capture
from emulator.program import Access, Program, Space, Timeline
from emulator.recorder import Operand, Recorder
from emulator.simulate import simulate
from emulator.targets import load

READ, WRITE, ACCUMULATE = int(Access.READ), int(Access.WRITE), int(Access.WRITE | Access.ACCUMULATE)
FOLDER = Path(__file__).parent
TILES = 3


def on_chip(tensor: int, access: int, columns: int, dtype: str = "bfloat16", *, first: int = 0, partitions: int = 128) -> Operand:
    """An operand of `columns` neighbouring elements from column `first` in each partition."""
    size = 4 if dtype == "float32" else 2
    return tensor, access, dtype, 0, partitions, first * size, (columns,), (size,)


def in_hbm(tensor: int, access: int, rows: int, columns: int, width: int, first: int = 0) -> Operand:
    """An operand of `rows` x `columns` bf16 elements from column `first` of a matrix that is `width` wide."""
    return tensor, access, "bfloat16", 0, 0, first * 2, (rows, columns), (width * 2, 2)


@functools.cache
def program(target: str = "trn2") -> Program:
    """`TILES` times: load a tile [128, 512], multiply it with itself into PSUM, exp it in the scope "act", store it."""
    recorder = Recorder("squares", target)
    x = recorder.tensor("x", (128, 512 * TILES), "bfloat16", Space.HBM, "input")
    y = recorder.tensor("y", (128, 512 * TILES), "bfloat16", Space.HBM, "output")
    for i in range(TILES):
        loop = recorder.loops.push("i", __file__, 42)
        recorder.loops.set(loop, i)
        tile = recorder.tensor("tile", (128, 512), "bfloat16", Space.SBUF, "temporary", recorder.capture_stack())
        sums = recorder.tensor("sums", (128, 512), "float32", Space.PSUM, "temporary", recorder.capture_stack())
        result = recorder.tensor("result", (128, 512), "bfloat16", Space.SBUF, "temporary", recorder.capture_stack())
        source = in_hbm(x, READ, 128, 512, 512 * TILES, 512 * i)
        recorder.emit("DMA_DIRECT2D", "sync", "dma_copy", [on_chip(tile, WRITE, 512), source], 512, k=128)
        call, flops = recorder.begin_call(), 2 * 128 * 128 * 512
        recorder.emit("LDWEIGHTS", "tensor", "load_stationary", [on_chip(tile, READ, 128)], 128, k=128, call=call)
        operands = [on_chip(sums, WRITE, 512, "float32"), on_chip(tile, READ, 512)]
        recorder.emit("MATMUL", "tensor", "matmul", operands, 512, 128, 128, 0, flops, flops, call=call)
        recorder.push_scope("act")
        operands = [on_chip(result, WRITE, 512), on_chip(sums, READ, 512, "float32")]
        recorder.emit("ACTIVATE", "scalar", "activation", operands, 512, k=128, detail=(("function", "exp"),))
        recorder.pop_scope()
        back = in_hbm(y, WRITE, 128, 512, 512 * TILES, 512 * i)
        recorder.emit("DMA_DIRECT2D", "sync", "dma_copy", [back, on_chip(result, READ, 512)], 512, k=128)
        recorder.loops.pop(loop)
    recorder.warn("a word from the kernel")
    return recorder.finish()


@functools.cache
def timeline(target: str = "trn2") -> Timeline:
    """When `program` runs."""
    return simulate(program(target))


@functools.cache
def captured(target: str = "trn2") -> Captured:
    """The tables of `program`."""
    return capture(program(target), timeline(target), load(target), source_root=FOLDER)


def table(name: str) -> pa.Table:
    """One table of `captured`."""
    return captured().tables[name]


def rows(name: str, *columns: str) -> list[dict[str, object]]:
    """Its rows, with those columns only."""
    found: list[dict[str, object]] = table(name).select(list(columns) or table(name).column_names).to_pylist()
    return found
