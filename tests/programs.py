"""Programs made by hand for tests of the clock: instructions with operands, without a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.program import Access, Program, Space, Timeline
from emulator.recorder import Operand, Recorder

READ, WRITE = int(Access.READ), int(Access.WRITE)
ACCUMULATE = int(Access.WRITE | Access.ACCUMULATE)


@dataclass(frozen=True, slots=True)
class Tile:
    """A tensor or a box of it: rows (partitions on chip) by columns, `pitch` columns apart in HBM."""

    tensor: int
    dtype: str
    itemsize: int
    on_chip: bool
    pitch: int
    rows: tuple[int, int]
    columns: tuple[int, int]

    def __getitem__(self, key: tuple[slice, slice]) -> Tile:
        rows, columns = (
            (start + (part.start or 0), start + (end - start if part.stop is None else part.stop))
            for part, (start, end) in zip(key, (self.rows, self.columns), strict=True)
        )
        return Tile(self.tensor, self.dtype, self.itemsize, self.on_chip, self.pitch, rows, columns)

    def __call__(self, access: int) -> Operand:
        (top, bottom), (left, right) = self.rows, self.columns
        if self.on_chip:
            sizes, strides = (right - left,), (self.itemsize,)
            return self.tensor, access, self.dtype, top, bottom - top, left * self.itemsize, sizes, strides
        offset = (top * self.pitch + left) * self.itemsize
        return (
            self.tensor,
            access,
            self.dtype,
            0,
            0,
            offset,
            (bottom - top, right - left),
            (self.pitch * self.itemsize, self.itemsize),
        )

    @property
    def n(self) -> int:
        return self.columns[1] - self.columns[0]

    @property
    def k(self) -> int:
        return self.rows[1] - self.rows[0]


class Builder:
    """Emits instructions as the kernel language does."""

    def __init__(self, target: str = "trn2", name: str = "test") -> None:
        self.recorder = Recorder(name, target)
        self._names = 0

    def tile(self, rows: int, columns: int, dtype: str = "bfloat16", space: Space = Space.SBUF, role: str = "temporary") -> Tile:
        self._names += 1
        tensor = self.recorder.tensor(f"t{self._names}", (rows, columns), dtype, space, role)
        itemsize = {"bfloat16": 2, "float16": 2}.get(dtype, 4)
        return Tile(tensor, dtype, itemsize, space is not Space.HBM, columns, (0, rows), (0, columns))

    def psum(self, rows: int = 128, columns: int = 512) -> Tile:
        return self.tile(rows, columns, "float32", Space.PSUM)

    def hbm(self, rows: int, columns: int, dtype: str = "bfloat16", role: str = "input") -> Tile:
        return self.tile(rows, columns, dtype, Space.HBM, role)

    def copy(self, to: Tile, source: Tile, engine: str = "", **detail: str) -> int:
        """A DMA; loads on Sync, stores on GpSimd."""
        engine = engine or ("sync" if to.on_chip else "gpsimd")
        operands, pairs = [to(WRITE), source(READ)], tuple(detail.items())
        return self.recorder.emit("DMA_DIRECT2D", engine, "dma_copy", operands, to.n, 0, to.k, detail=pairs)

    def matmul(self, sums: Tile, stationary: Tile, moving: Tile, add: bool = False) -> int:
        call = self.recorder.begin_call()
        passes = 2 if stationary.dtype == "float32" else 1
        k, m, n = stationary.k, stationary.n, moving.n
        for step in range(passes):
            self.recorder.emit("LDWEIGHTS", "tensor", "load_stationary", [stationary(READ)], m, 0, k, call=call)
            adds = ACCUMULATE if add or step else WRITE
            flops = 2 * k * m * n // passes
            row = self.recorder.emit(
                "MATMUL", "tensor", "matmul", [sums(adds), moving(READ)], n, m, k, 0, flops, flops * passes * passes, call=call
            )
        return row

    def op(self, engine: str, cost_class: str, to: Tile, *sources: Tile, flags: int = 0, **detail: str) -> int:
        operands = [to(WRITE), *(source(READ) for source in sources)]
        n = max(tile.n for tile in (to, *sources))
        return self.recorder.emit(cost_class.upper(), engine, cost_class, operands, n, 0, to.k, flags, detail=tuple(detail.items()))

    def program(self) -> Program:
        return self.recorder.finish()


def total(timeline: Timeline) -> int:
    """Nanoseconds from 0 to the last completion."""
    return int(max(timeline.end.max(), timeline.transfers.completion.max(initial=0)))


def busy(starts: np.ndarray, ends: np.ndarray) -> int:
    """Length of the union of intervals."""
    covered, reached = 0, -1
    for start, end in sorted(zip(starts.tolist(), ends.tolist(), strict=True)):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered


def matmul_unblocked(size: int, target: str = "trn2") -> Program:
    """[size, size] bf16 product that loads both tiles for every multiplication."""
    b = Builder(target, "matmul_unblocked")
    left, right, out = b.hbm(size, size), b.hbm(size, size), b.hbm(size, size, role="output")
    for m in range(0, size, 128):
        for n in range(0, size, 512):
            sums = b.psum()
            for k in range(0, size, 128):
                left_tile, right_tile = b.tile(128, 128), b.tile(128, 512)
                b.copy(left_tile, left[k : k + 128, m : m + 128])
                b.copy(right_tile, right[k : k + 128, n : n + 512])
                b.matmul(sums, left_tile, right_tile, add=k > 0)
            result = b.tile(128, 512)
            b.op("vector", "tensor_copy", result, sums)
            b.copy(out[m : m + 128, n : n + 512], result)
    return b.program()


def matmul_blocked(size: int, block: int = 1024, target: str = "trn2") -> Program:
    """The same product in blocks of `block` rows and columns; a block of the right matrix stays while the left one passes."""
    b = Builder(target, "matmul_blocked")
    left, right, out = b.hbm(size, size), b.hbm(size, size), b.hbm(size, size, role="output")

    def panel(matrix: Tile, start: int) -> list[Tile]:
        tiles = [b.tile(128, block) for _ in range(0, size, 128)]
        for number, tile in enumerate(tiles):
            b.copy(tile, matrix[number * 128 : number * 128 + 128, start : start + block])
        return tiles

    for n in range(0, size, block):
        right_panel = panel(right, n)
        for m in range(0, size, block):
            left_panel = panel(left, m)
            for row in range(0, block, 128):
                result = b.tile(128, block)
                for column in range(0, block, 512):
                    sums = b.psum()
                    for k, (left_tile, right_tile) in enumerate(zip(left_panel, right_panel, strict=True)):
                        b.matmul(sums, left_tile[:, row : row + 128], right_tile[:, column : column + 512], add=k > 0)
                    b.op("vector", "tensor_copy", result[:, column : column + 512], sums)
                b.copy(out[m + row : m + row + 128, n : n + block], result)
    return b.program()
