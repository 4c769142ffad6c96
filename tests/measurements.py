"""What devices measured beside what the clock says, as rows: `python -m tests.measurements [TRACES] [NKI_SAMPLES]` prints a table.

TRACES is a folder of inf2 profiles (profile_128x128xN.json), NKI_SAMPLES a checkout of aws-neuron/nki-samples. Without them
their rows are left out. Sources of the figures stand in docs/clock.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from emulator.program import ENGINES, Program, Timeline
from emulator.run import load_kernel, run_kernel
from emulator.simulate import simulate
from tests.programs import Builder, busy, matmul_blocked, matmul_unblocked, total

FITTED = (136, 200, 304, 512, 552, 768)
TESTED = (256, 400, 640, 896, 1024)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure in nanoseconds. `part` is "fit" (a constant was fitted on it), "check" (free to be, but not used) or "test"."""

    part: str
    what: str
    target: str
    measured: float
    emulated: float

    @property
    def error(self) -> float:
        """Emulated against measured, in per cent."""
        return 100 * (self.emulated / self.measured - 1)


def engine_busy(program: Program, timeline: Timeline, engine: str) -> int:
    """Nanoseconds that an engine was busy."""
    mine = program.engine == ENGINES.index(engine)
    return busy(timeline.start[mine], timeline.end[mine])


def dma_busy(timeline: Timeline) -> int:
    """Nanoseconds in which any DMA engine moved data."""
    return busy(timeline.packets.start, timeline.packets.end)


def back_to_back(count: int, dtype: str = "bfloat16") -> tuple[Program, Timeline]:
    """Matmuls of 128 x 128 x 512 on one pair of SBUF tiles."""
    b = Builder("trn2")
    stationary, moving = b.tile(128, 128, dtype), b.tile(128, 512, dtype)
    sums = [b.psum() for _ in range(8)]
    for turn in range(count):
        b.matmul(sums[turn % 8], stationary, moving)
    program = b.program()
    return program, simulate(program)


def one_transfer(rows: int, columns: int) -> Timeline:
    """A bf16 load."""
    b = Builder("trn2")
    b.copy(b.tile(rows, columns), b.hbm(rows, columns))
    return simulate(b.program())


def published() -> Iterator[Row]:
    """Figures that need no files."""
    program, timeline = back_to_back(2048)
    yield Row("fit", "2,048 matmuls 128x128x512 bf16 back to back", "trn2", program.raw_flops.sum() / 77.2e3, total(timeline))
    yield Row("test", "fp32 matmul 128x128x512, each of 200", "trn2", 859, total(back_to_back(200, "float32")[1]) / 200)
    b = Builder("trn1")
    b.op("vector", "tensor_tensor", *(b.tile(64, 8192, "float32") for _ in range(3)), op="add")
    timeline = simulate(b.program())
    yield Row("check", "TENSOR_TENSOR add fp32 [64,8192]", "trn1", 14_968, int(timeline.end[0] - timeline.start[0]))
    b = Builder("trn1")
    tile = b.tile(1, 1, "float32")
    for _ in range(3):
        b.op("scalar", "activation", tile, tile, function="identity")
    timeline = simulate(b.program())
    yield Row("fit", "ACTIVATE of 1 element, duration", "trn1", 159, int(timeline.end[1] - timeline.start[1]))
    yield Row("fit", "ACTIVATE of 1 element, start to start in a chain", "trn1", 189, int(timeline.start[2] - timeline.start[1]))
    loads = one_transfer(4, 4096).transfers
    yield Row("fit", "load of 4 x 8 KiB, one engine", "trn2", 1416, int(loads.end[0] - loads.start[0]))
    loads = one_transfer(128, 128).transfers
    yield Row("fit", "load of 8 x 256 B on each engine", "trn2", 97, int(loads.end[0] - loads.start[0]))
    b = Builder("trn2")
    source, out = b.hbm(128, 8192), b.hbm(128, 8192, role="output")
    for start in range(0, 8192, 512):
        tile = b.tile(128, 512)
        b.copy(tile, source[:, start : start + 512])
        b.copy(out[:, start : start + 512], tile)
    yield Row("test", "16 tiles [128,512] bf16 loaded and stored", "trn2", 16_000, total(simulate(b.program())))
    program = matmul_unblocked(4096)
    timeline = simulate(program)
    yield Row("test", "matmul 4096^3 bf16 unblocked", "trn2", 8_602_000, total(timeline))
    yield Row("test", "  TensorE active", "trn2", 4_806_000, engine_busy(program, timeline, "tensor"))
    yield Row("test", "  VectorE active", "trn2", 176_000, engine_busy(program, timeline, "vector"))
    yield Row("test", "  DMA active", "trn2", 7_906_000, dma_busy(timeline))
    program = matmul_blocked(4096)
    timeline = simulate(program)
    yield Row("check", "matmul 4096^3 bf16 blocked (8 x 128, 2 x 512)", "trn2", 1_801_000, total(timeline))
    yield Row("check", "  TensorE active", "trn2", 1_781_000, engine_busy(program, timeline, "tensor"))
    yield Row("check", "  VectorE active", "trn2", 172_000, engine_busy(program, timeline, "vector"))
    yield Row("check", "  DMA active", "trn2", 819_000, dma_busy(timeline))


def inf2_program(n: int) -> tuple[Program, Timeline]:
    """The instructions of the traces: [128,128] turned on the Tensor engine, then multiplied by [128,n], on trn1."""
    b = Builder("trn1")
    left, right, out = b.hbm(128, 128, "float16"), b.hbm(128, n, "float16"), b.hbm(128, n, "float16", "output")
    tile, moving = b.tile(128, 128, "float16"), b.tile(128, n, "float16")
    b.op("scalar", "activation", b.tile(128, 1, "float32"), b.tile(128, 1, "float32"), function="copy")
    b.copy(tile, left, "gpsimd", dge_mode="swdge")
    b.copy(moving, right, "gpsimd", dge_mode="swdge")
    turned_sums, turned = b.psum(columns=128), b.tile(128, 128, "float16")
    b.matmul(turned_sums, tile, tile)
    b.op("scalar", "activation", turned, turned_sums, function="copy")
    parts = [(start, min(start + 512, n)) for start in range(0, n, 512)]
    sums = [b.psum(columns=end - start) for start, end in parts]
    result = b.tile(128, n, "float16" if n > 512 else "float32")
    for number, (start, end) in enumerate(parts):
        b.matmul(sums[number], turned, moving[:, start:end])
    for number, (start, end) in enumerate(parts):
        b.op("scalar", "activation", result[:, start:end], sums[number], function="copy")
    b.copy(out, result, "gpsimd", dge_mode="swdge")
    program = b.program()
    return program, simulate(program)


def traces(folder: Path) -> Iterator[Row]:
    """Durations and handovers of every trace that is there, against the same instructions here."""
    for n in (*FITTED, *TESTED):
        file = folder / f"profile_128x128x{n}.json"
        if not file.is_file():
            continue
        part = "fit" if n in FITTED else "test"
        rows = sorted(json.loads(file.read_text())["instruction"], key=lambda row: row["timestamp"])
        real = {
            name: [row for row in rows if row["opcode"] == name] for name in ("LDWEIGHTS", "MATMUL", "ACTIVATE", "DMA_DIRECT2D")
        }
        program, timeline = inf2_program(n)
        names = np.array(program.opcodes)[program.opcode]
        mine = {name: np.flatnonzero(names == {"ACTIVATE": "ACTIVATION"}.get(name, name)) for name in real}
        mine["ACTIVATE"] = mine["ACTIVATE"][1:]

        def lasts(name: str, at: int, mine: dict[str, Any] = mine, timeline: Timeline = timeline) -> int:
            row = mine[name][at]
            return int(timeline.end[row] - timeline.start[row])

        yield Row(part, f"N = {n}: LDWEIGHTS", "trn1", real["LDWEIGHTS"][1]["duration"], lasts("LDWEIGHTS", 1))
        for at, row in enumerate(real["MATMUL"]):
            width = (128, *(min(512, n - start) for start in range(0, n, 512)))[at]
            yield Row(part, f"N = {n}: MATMUL {width}", "trn1", row["duration"], lasts("MATMUL", at))
        for at, row in enumerate(real["ACTIVATE"][:2]):
            width = (128, min(512, n))[at]
            yield Row(part, f"N = {n}: ACTIVATE {width}", "trn1", row["duration"], lasts("ACTIVATE", at))
        done = next(row["timestamp"] for row in rows if "S[26] (qGpSimdDynamic)>=16" in str(row.get("operands")))
        began = real["DMA_DIRECT2D"][0]["timestamp"]
        whole = int(timeline.transfers.completion[-1] - timeline.end[mine["DMA_DIRECT2D"][0]])
        yield Row(part, f"N = {n}: first trigger to the store's completion", "trn1", done - began, whole)


class _Shape:
    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)


def samples(checkout: Path) -> Iterator[Row]:
    """Kernels of aws-neuron/nki-samples with values off."""
    tutorials = checkout / "src" / "nki_samples" / "tutorials"

    def ran(file: str, name: str, target: str, *shapes: tuple[int, ...], dtype: Any = np.float32) -> tuple[Program, Timeline]:
        kernel = load_kernel(tutorials / file, name)
        program = run_kernel(kernel, tuple(_Shape(shape, dtype) for shape in shapes), target=target, values=False).program
        return program, simulate(program)

    matmul, bf16 = "matrix_multiplication/matrix_multiplication_nki_kernels.py", ml_dtypes.bfloat16
    sizes = ((8192, 4096), (8192, 8192))
    tiled, optimized = "nki_matmul_tiled_", "nki_matmul_fully_optimized_"
    yield Row("test", "tutorial matmul, tiled, bf16", "trn1", 42_960_000, total(ran(matmul, tiled, "trn1", *sizes, dtype=bf16)[1]))
    yield Row(
        "check", "tutorial matmul, optimized, bf16", "trn1", 6_970_000, total(ran(matmul, optimized, "trn1", *sizes, dtype=bf16)[1])
    )
    program, timeline = ran(matmul, optimized, "trn2", *sizes)
    yield Row(
        "test", "tutorial matmul, optimized, fp32: TensorE active", "trn2", 28_160_000, engine_busy(program, timeline, "tensor")
    )
    yield Row("test", "  VectorE active", "trn2", 2_990_000, engine_busy(program, timeline, "vector"))
    yield Row("test", "  DMA active", "trn2", 6_100_000, dma_busy(timeline))
    mamba = "fused_mamba/mamba_nki_kernels.py"

    def shapes(channels: int, length: int) -> tuple[tuple[int, ...], ...]:
        return (1, channels, length), (1, channels, length), (channels, 16), (1, 16, length), (1, 16, length)

    yield Row("check", "fused mamba v1, core window", "trn1", 150_930, total(ran(mamba, "mamba_v1", "trn1", *shapes(256, 512))[1]))
    yield Row("test", "fused mamba v3", "trn1", 27_800_000, total(ran(mamba, "mamba_v3", "trn1", *shapes(4096, 8192))[1]))


def table(rows: Iterator[Row]) -> str:
    """A Markdown table."""
    lines = ["| part | what | target | measured ns | emulated ns | error |", "|---|---|---|---:|---:|---:|"]
    for row in rows:
        what = row.what.replace("  ", "&nbsp;&nbsp;")
        lines.append(f"| {row.part} | {what} | {row.target} | {row.measured:,.0f} | {row.emulated:,.0f} | {row.error:+.1f} % |")
    return "\n".join(lines)


def condensed(rows: Iterator[Row]) -> str:
    """A Markdown table of many rows of the same kinds: mean and worst error."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        kind = row.what.partition(": ")[2].rstrip("0123456789 ")
        groups.setdefault((row.part, kind), []).append(row)
    lines = ["| part | what | target | rows | measured ns | mean error | worst error |", "|---|---|---|---:|---:|---:|---:|"]
    for (part, kind), members in sorted(groups.items()):
        errors = [row.error for row in members]
        low, high = min(row.measured for row in members), max(row.measured for row in members)
        mean, worst = sum(errors) / len(errors), max(errors, key=abs)
        cells = (part, kind, members[0].target, len(members), f"{low:,.0f} to {high:,.0f}", f"{mean:+.1f} %", f"{worst:+.1f} %")
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the tables for what is there."""
    folders = [Path(argument) for argument in arguments]
    print(table(published()))
    for folder in folders:
        kernels = (folder / "src" / "nki_samples").is_dir()
        print("\n" + (table(samples(folder)) if kernels else condensed(traces(folder))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
