"""Dependencies against a reference that keeps, for every byte, who touched it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import targets
from emulator.costs import price
from emulator.dependencies import find_dependencies
from emulator.memory import Layout, lay_out
from emulator.program import PATTERN_DIMS, Access, Dependencies, Dependency, Program, Space
from emulator.recorder import Recorder
from emulator.regions import COUNT, HI, LO, covers, normalise, overlap

R, W, A = int(Access.READ), int(Access.WRITE), int(Access.WRITE | Access.ACCUMULATE)
TARGET = targets.load("trn2")

dimension = st.tuples(st.integers(1, 5), st.integers(-12, 12))
pattern = st.tuples(st.integers(0, 40), st.sampled_from((1, 2, 4)), st.lists(dimension, max_size=PATTERN_DIMS))
Pattern = tuple[int, int, list[tuple[int, int]]]


def bytes_of(spec: Pattern) -> set[int]:
    offset, itemsize, dimensions = spec
    starts = (
        offset + sum(i * stride for i, (_, stride) in zip(index, dimensions, strict=True))
        for index in product(*(range(size) for size, _ in dimensions))
    )
    return {start + byte for start in starts for byte in range(itemsize)}


def arrays(specs: list[Pattern]) -> np.ndarray:
    size, stride = np.ones((len(specs), PATTERN_DIMS), dtype=np.int64), np.zeros((len(specs), PATTERN_DIMS), dtype=np.int64)
    for row, (_, _, dimensions) in enumerate(specs):
        for at, (count, step) in enumerate(dimensions):
            size[row, at], stride[row, at] = count, step
    offset = np.array([spec[0] for spec in specs], dtype=np.int64)
    return normalise(offset, np.array([spec[1] for spec in specs], dtype=np.int64), size, stride)


@settings(max_examples=400, deadline=None)
@given(pattern, pattern, st.integers(-20, 20))
def test_overlap_and_cover_are_exact_on_bytes(first: Pattern, second: Pattern, shift: int) -> None:
    normal = arrays([first, second])
    mine, theirs = bytes_of(first), {byte + shift for byte in bytes_of(second)}
    assert (normal[0][LO], normal[0][HI]) == (min(mine), max(mine) + 1)
    assert overlap(normal[0], normal[1], shift) == bool(mine & theirs)
    if covers(normal[0], normal[1], shift):
        assert theirs <= mine


def test_cover_is_seen_where_kernels_need_it() -> None:
    row = (0, 2, [(4, 100), (8, 2)])
    part = (100, 2, [(2, 100), (4, 2)])
    whole = (0, 2, [(400, 2)])
    normal = arrays([row, part, whole])
    assert covers(normal[0], normal[1], 0)
    assert not covers(normal[1], normal[0], 0)
    assert covers(normal[2], normal[0], 0)
    assert covers(normal[0], normal[0], 0)


def test_a_search_without_end_counts_as_overlap() -> None:
    # Strides with nothing in common: no bound sees through them.
    first = (0, 1, [(45, 1756), (33, 1726), (21, 1179), (47, 685), (19, 686)])
    second = (906, 1, [(58, 701), (24, 1104), (54, 805), (31, 893), (3, 1625)])
    normal = arrays([first, second])
    assert overlap(normal[0], normal[1], 0) == 2


def test_dimensions_that_interleave_evenly_are_one() -> None:
    normal = arrays([(0, 1, [(3, 4), (5, 4), (5, 4), (2, 8)]), (1, 1, [(2, 2), (2, 2), (5, 4), (5, 4)])])
    assert normal[:, COUNT].tolist() == [1, 1]
    assert overlap(normal[0], normal[1], 0) == 0


def edges(found: Dependencies) -> set[tuple[int, int, int]]:
    consumer = np.repeat(np.arange(len(found.ptr) - 1), np.diff(found.ptr))
    return set(zip(found.producer.tolist(), consumer.tolist(), found.kind.tolist(), strict=True))


def order(pairs: set[tuple[int, int]], rows: int) -> np.ndarray:
    """Who comes before whom, through any chain of edges."""
    before = np.zeros((rows, rows), dtype=bool)
    for producer, consumer in sorted(pairs, key=lambda pair: pair[1]):
        before[consumer, producer] = True
        before[consumer] |= before[producer]
    return before


Use = tuple[int, int, int, int, int, int, int]
use = st.tuples(
    st.integers(0, 1),
    st.sampled_from((R, W, W)),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(0, 6),
    st.integers(1, 6),
    st.integers(1, 3),
)


def bytes_of_use(item: Use) -> set[tuple[int, int, int]]:
    tensor, _, first, partitions, start, count, step = item
    return {
        (tensor, p, (start + i * step) * 2 + byte)
        for p in range(first, first + partitions)
        for i in range(count)
        for byte in (0, 1)
    }


def random_program(instructions: list[list[Use]]) -> Program:
    recorder = Recorder("random", "trn2")
    for name in "ab":
        recorder.tensor(name, (8, 512), "bfloat16", Space.SBUF, "temporary")
    for number, uses in enumerate(instructions):
        operands = [
            (tensor, access, "bfloat16", first, partitions, start * 2, (count,), (step * 2,))
            for tensor, access, first, partitions, start, count, step in uses
        ]
        recorder.emit("TENSOR_COPY", ("vector", "scalar", "gpsimd")[number % 3], "tensor_copy", operands, 1)
    return recorder.finish()


def find(program: Program, layout: Layout | None = None) -> Dependencies:
    found, warnings = find_dependencies(program, layout or lay_out(program, TARGET), price(program, TARGET).is_dma)
    assert not warnings
    return found


def check(instructions: list[list[Use]]) -> None:
    """The edges of `instructions` order every conflict, name nothing else, and flow comes from the last writer of each byte."""
    found = edges(find(random_program(instructions)))
    rows = len(instructions)
    touched = [
        ({b for u in uses if u[1] == R for b in bytes_of_use(u)}, {b for u in uses if u[1] == W for b in bytes_of_use(u)})
        for uses in instructions
    ]
    possible = set()
    for j in range(rows):
        reads, writes = touched[j]
        for i in range(j):
            if touched[i][1] & reads:
                possible.add((i, j, int(Dependency.FLOW_DEPENDENCE)))
            if touched[i][0] & writes:
                possible.add((i, j, int(Dependency.ANTI_DEPENDENCE)))
            if touched[i][1] & writes:
                possible.add((i, j, int(Dependency.OUTPUT_DEPENDENCE)))
    assert found <= possible
    before = order({edge[:2] for edge in found}, rows)
    assert all(before[j, i] for i, j, _ in possible)
    writer: dict[tuple[int, int, int], int] = {}
    for j, (reads, writes) in enumerate(touched):
        for byte in reads:
            if byte in writer:
                assert (writer[byte], j, int(Dependency.FLOW_DEPENDENCE)) in found
        writer.update(dict.fromkeys(writes, j))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(use, min_size=1, max_size=3), min_size=1, max_size=14))
def test_edges_order_every_conflict_and_nothing_else(instructions: list[list[Use]]) -> None:
    check(instructions)


def test_long_histories_lose_nothing() -> None:
    # Far more accesses than a block of them holds, of both kinds, near and far from each other.
    random = np.random.default_rng(7)
    spread = [(tensor, access, 0, 4, int(start), 2, 1) for tensor, access, start in zip(
        random.integers(0, 2, 500), random.choice([R, W, W], 500), random.integers(0, 400, 500), strict=True)]  # fmt: skip
    check([[(int(use[0]), int(use[1]), *use[2:])] for use in spread])


def accumulation(groups: int, steps: int) -> Program:
    recorder = Recorder("accumulate", "trn2")
    left = recorder.tensor("left", (128, 128), "bfloat16", Space.SBUF, "temporary")
    sums = recorder.tensor("sums", (128, 512), "float32", Space.PSUM, "temporary")
    result = recorder.tensor("result", (128, 512), "float32", Space.SBUF, "temporary")
    whole = (0, 128, 0, (512,), (4,))
    for _ in range(groups):
        for step in range(steps):
            moving = (left, R, "bfloat16", 0, 128, 0, (128,), (2,))
            recorder.emit("MATMUL", "tensor", "matmul", [(sums, A if step else W, "float32", *whole), moving], 512, 128, 128)
        recorder.emit("TENSOR_COPY", "vector", "tensor_copy", [(result, W, "float32", *whole), (sums, R, "float32", *whole)], 512)
    return recorder.finish()


def test_accumulation_depends_on_the_step_before_without_a_wait_and_its_reader_waits_for_the_last() -> None:
    found = find(accumulation(2, 3))
    flow, anti, output = (int(kind) for kind in Dependency)
    listed = {
        (int(found.producer[at]), row): (int(found.kind[at]), bool(found.waits[at]))
        for row in range(8)
        for at in range(found.ptr[row], found.ptr[row + 1])
    }
    assert listed == {
        (0, 1): (flow, False),
        (1, 2): (flow, False),
        (2, 3): (flow, True),
        # The next group overwrites: it waits for the reader, not for its own engine.
        (2, 4): (output, False),
        (3, 4): (anti, True),
        (4, 5): (flow, False),
        (5, 6): (flow, False),
        (6, 7): (flow, True),
        (3, 7): (output, False),
    }


def test_an_address_that_is_used_again_waits_for_its_last_users() -> None:
    small = replace(TARGET, sbuf=replace(TARGET.sbuf, partition_bytes=192))
    recorder = Recorder("reuse", "trn2")
    for turn in range(3):
        first = recorder.tensor(f"tile{turn}", (4, 32), "bfloat16", Space.SBUF, "temporary")
        second = recorder.tensor(f"copy{turn}", (4, 32), "bfloat16", Space.SBUF, "temporary")
        whole = (0, 4, 0, (32,), (2,))
        recorder.emit("MEMSET", "gpsimd", "memset", [(first, W, "bfloat16", *whole)], 32)
        recorder.emit("TENSOR_COPY", "vector", "tensor_copy", [(second, W, "bfloat16", *whole), (first, R, "bfloat16", *whole)], 32)
    program = recorder.finish()
    layout = lay_out(program, small)
    assert layout.address.tolist() == [0, 64, 128, 0, 64, 128]
    anti, output = int(Dependency.ANTI_DEPENDENCE), int(Dependency.OUTPUT_DEPENDENCE)
    reuse = {edge for edge in edges(find(program, layout)) if edge[2] != int(Dependency.FLOW_DEPENDENCE)}
    # copy1 lies where tile0 lay, tile2 where copy0 lay, copy2 where tile1 lay.
    assert reuse == {(0, 3, output), (1, 3, anti), (1, 4, output), (2, 5, output), (3, 5, anti)}


def test_only_the_first_write_of_a_byte_looks_at_who_lay_there() -> None:
    small = replace(TARGET, sbuf=replace(TARGET.sbuf, partition_bytes=64))
    recorder = Recorder("rewrite", "trn2")
    whole = (0, 4, 0, (32,), (2,))
    for turn in range(2):
        tile = recorder.tensor(f"tile{turn}", (4, 32), "bfloat16", Space.SBUF, "temporary")
        for _ in range(2):
            recorder.emit("MEMSET", "gpsimd", "memset", [(tile, W, "bfloat16", *whole)], 32)
    program = recorder.finish()
    output = int(Dependency.OUTPUT_DEPENDENCE)
    assert edges(find(program, lay_out(program, small))) == {(0, 1, output), (1, 2, output), (2, 3, output)}


def test_what_was_overwritten_piece_by_piece_is_not_depended_on() -> None:
    recorder = Recorder("slices", "trn2")
    tile = recorder.tensor("tile", (128, 512), "float32", Space.SBUF, "temporary")
    copy = recorder.tensor("copy", (128, 512), "float32", Space.SBUF, "temporary")
    for _ in range(5):
        for start in range(0, 512, 128):
            recorder.emit("MEMSET", "vector", "memset", [(tile, W, "float32", 0, 128, start * 4, (128,), (4,))], 128)
        whole = (0, 128, 0, (512,), (4,))
        recorder.emit("COPY", "scalar", "tensor_copy", [(copy, W, "float32", *whole), (tile, R, "float32", *whole)], 512)
    found = find(recorder.finish())
    for turn in range(5):
        row = turn * 5 + 4
        flow = [
            producer for producer, consumer, kind in edges(found) if consumer == row and kind == int(Dependency.FLOW_DEPENDENCE)
        ]
        assert sorted(flow) == [row - 4, row - 3, row - 2, row - 1]
        # A slice waits for the last reader and follows the slice before it: not for all the turns before.
        assert turn == 0 or np.diff(found.ptr)[row - 4 : row].tolist() == [2, 2, 2, 2]


def test_a_gather_does_not_settle_what_came_before() -> None:
    recorder = Recorder("scatter", "trn2")
    tile = recorder.tensor("tile", (4, 32), "bfloat16", Space.SBUF, "temporary")
    whole = (0, 4, 0, (32,), (2,))
    for access in (W, W | int(Access.INDIRECT), R):
        recorder.emit("TENSOR_COPY", "vector", "tensor_copy", [(tile, access, "bfloat16", *whole)], 32)
    flow = int(Dependency.FLOW_DEPENDENCE)
    assert {edge for edge in edges(find(recorder.finish())) if edge[2] == flow} == {(0, 2, flow), (1, 2, flow)}


def test_an_input_that_is_only_read_costs_nothing() -> None:
    recorder = Recorder("reads", "trn2")
    source = recorder.tensor("source", (64, 64), "float32", Space.HBM, "input")
    for turn in range(4):
        tile = recorder.tensor(f"tile{turn}", (64, 64), "float32", Space.SBUF, "temporary")
        operands = [(tile, W, "float32", 0, 64, 0, (64,), (4,)), (source, R, "float32", 0, 0, 0, (64, 64), (256, 4))]
        recorder.emit("DMA_DIRECT2D", "sync", "dma_copy", operands, 64)
    assert len(find(recorder.finish()).producer) == 0
