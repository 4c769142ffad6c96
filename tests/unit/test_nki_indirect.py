"""Gathers and scatters by DMA, rows chosen by indices in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.nki.dma import ends
from collectors.nki.ids import ids
from collectors.nki.traffic import traffic
from emulator.errors import EmulatorError, RuleError, UnsupportedCall
from emulator.program import ENGINES, Access, Space
from emulator.simulate import simulate
from tests.unit.nki_names import nisa, nki, nl, oisa, old, onl, opcodes, operands, run


@nki.jit
def gather(table, indices, skips):
    p, f = indices.shape[0], table.shape[1]
    out = nl.ndarray((p, f), table.dtype, buffer=nl.shared_hbm)
    index = nl.load(indices)
    dst = nl.full((p, f), -1.0, table.dtype)
    mode = nisa.oob_mode.skip if skips else nisa.oob_mode.error
    nisa.dma_copy(dst=dst, src=table.ap([[f, p], [1, f]], vector_offset=index, indirect_dim=0), oob_mode=mode)
    nl.store(out, dst)
    return out


@nki.jit
def scatter(table, indices, rows, skips):
    p, f = rows.shape
    out = nl.ndarray(table.shape, table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=table)
    index, src = nl.load(indices), nl.load(rows)
    mode = nisa.oob_mode.skip if skips else nisa.oob_mode.error
    nisa.dma_copy(dst=out.ap([[f, p], [1, f]], vector_offset=index, indirect_dim=0), src=src, oob_mode=mode)
    return out


CASES = (st.integers(1, 40), st.integers(1, 60), st.integers(1, 12), st.booleans(), st.integers(0, 2**31))


@settings(max_examples=25, deadline=None)
@given(*CASES)
def test_a_gather_takes_each_row_and_leaves_out_what_is_outside(p: int, n: int, f: int, skips: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((n, f)).astype(np.float32)
    indices = rng.integers(0, n + 5 * skips, (p, 1)).astype(np.int32)
    expected = np.array([table[i] if i < n else np.full(f, -1.0) for i in indices[:, 0]])
    np.testing.assert_array_equal(run(gather, table, indices, skips).outputs, expected)


@settings(max_examples=25, deadline=None)
@given(*CASES)
def test_a_scatter_writes_each_row_and_leaves_out_what_is_outside(p: int, n: int, f: int, skips: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, rows = rng.standard_normal((n, f)).astype(np.float32), rng.standard_normal((p, f)).astype(np.float32)
    indices = rng.integers(0, n + 5 * skips, (p, 1)).astype(np.int32)
    expected = table.astype(np.float64)
    for line, place in zip(rows, indices[:, 0], strict=True):
        if place < n:
            expected[place] = line
    np.testing.assert_array_equal(run(scatter, table, indices, rows, skips).outputs, expected)


def test_a_gather_along_an_inner_dimension_with_an_offset_and_another_type() -> None:
    table = np.random.default_rng(4).standard_normal((3, 10, 8)).astype(np.float32)

    @nki.jit
    def kernel(table, indices):
        out = nl.ndarray((4, 6), nl.bfloat16, buffer=nl.shared_hbm)
        dst = nl.ndarray((4, 6), nl.bfloat16)
        # Row indices[p] of plane 1, from its column 2 on.
        nisa.dma_copy(dst=dst, src=table.ap([[1, 4], [1, 6]], offset=82, vector_offset=nl.load(indices), indirect_dim=1))
        nl.store(out, dst)
        return out

    indices = np.array([[9], [0], [3], [3]], np.uint32)
    out = run(kernel, table, indices).outputs.astype(np.float32)
    np.testing.assert_allclose(out, table[1, indices[:, 0], 2:8], rtol=2**-8)


def test_regions_bytes_queue_and_engine_are_those_of_the_rows() -> None:
    table = np.zeros((1000, 64), np.float32)
    indices = np.array([[7], [999], [0]], np.int32)
    made = run(gather, table, indices, False)
    program = made.program
    row = next(row for row in range(len(program)) if len(operands(program, row)) > 2)
    assert ENGINES[program.engine[row]] == "gpsimd" and opcodes(program)[row] == "DMA_DIRECT2D"
    read = int(Access.READ | Access.INDIRECT)
    entries = operands(program, row)
    assert [entry[:5] for entry in entries[1:4]] == [("table", read, 0, 0, place * 256) for place in (7, 999, 0)]
    assert (entries[0][1], entries[0][3]) == (int(Access.WRITE), 3)
    assert (entries[4][0], entries[4][1]) == ("index", int(Access.READ))
    timeline = simulate(program)
    transfer = int(np.flatnonzero(timeline.transfers.instruction == row)[0])
    assert timeline.queues[timeline.transfers.queue[transfer]].type == "software_dynamic"
    # Three rows of 64 elements, and the indices that the engine reads.
    assert timeline.transfers.write_bytes[transfer] == 3 * 256
    assert timeline.transfers.read_bytes[transfer] == 3 * 256 + 12
    moved = traffic(program, timeline, ids(program, timeline))
    assert (moved.read[Space.HBM][row], moved.read[Space.SBUF][row], moved.write[Space.SBUF][row]) == (3 * 256, 12, 3 * 256)
    assert (timeline.transfers.descriptors[transfer], timeline.transfers.descriptor_bytes[transfer]) == (3, 256)


def test_the_ends_of_a_transfer_are_what_moves_however_many_indices() -> None:
    narrow = np.arange(8, dtype=np.float32)[:, None]
    for kernel, rows, source, destination in ((gather, (), "table", "dst"), (scatter, (narrow[:6],), "src", "out")):
        program = run(kernel, narrow, np.arange(6, dtype=np.int32)[::-1, None] + 4, *rows, True).program
        row = next(row for row in range(len(program)) if len(operands(program, row)) > 2)
        timeline = simulate(program)
        numbers = ids(program, timeline)
        both, transfer = ends(program, timeline, numbers), numbers.transfer_of[row]
        names = [program.tensors[program.operands.tensor[end[transfer]]].name for end in (both.read, both.write)]
        assert names == [source, destination]


def test_a_scatter_waits_for_the_table_the_indices_and_the_rows() -> None:
    table, rows = np.zeros((50, 8), np.float32), np.ones((3, 8), np.float32)
    made = run(scatter, table, np.array([[7], [9], [0]], np.int32), rows, False)
    deps = simulate(made.program).dependencies
    last = len(made.program) - 1
    producers = set(deps.producer[deps.ptr[last] : deps.ptr[last + 1]].tolist())
    # The copy of the table, the indices and the rows.
    assert producers == {0, 1, 2}


def test_without_values_the_first_rows_stand_for_those_chosen() -> None:
    made = run(gather, np.zeros((10, 4), np.float32), np.zeros((6, 1), np.int32), False, values=False)
    assert made.program.warnings == ("without values, rows of table that indices choose are taken to be the first ones",)


REFUSED: list[tuple[Any, str]] = [
    (
        lambda t, i: nisa.dma_copy(nl.ndarray((4, 8), nl.float32), ap(t, i)),
        r"index 10 in partition 1 of index is outside the 10 rows",
    ),
    (lambda t, i: ap(nl.load(t), i), r"is in SBUF; with vector_offset it has to be in HBM"),
    (lambda t, i: ap(t, i, count=3), r"has to be integers in SBUF of shape \[3, 1\]"),
    (lambda t, i: t.ap([[8, 4], [1, 8]], vector_offset=i, indirect_dim=2), r"indirect_dim 2 is no dimension"),
    (
        lambda t, i: nisa.dma_copy(nl.ndarray((4, 8), nl.float32), ap(t, i), dge_mode=nisa.dge_mode.hwdge),
        r"dge_mode is hwdge; with vector_offset",
    ),
    (lambda t, i: nisa.dma_copy(nl.ndarray((8, 4), nl.float32), ap(t, i)), r"has to hold 4 rows of 8 elements"),
    (lambda t, i: nisa.dma_copy(ap(t, i), ap(t, i)), r"with vector_offset on both sides is not emulated"),
    (lambda t, i: ap(t, i)[0:2], r"after tensor.ap with vector_offset is not emulated"),
    (lambda t, i: ap(t, i).reshape((32, 1)), r"after tensor.ap with vector_offset is not emulated"),
    (lambda t, i: nl.load(ap(t, i).permute((1, 0))), r"after tensor.ap with vector_offset is not emulated"),
    (lambda t, i: nisa.dma_transpose(nl.ndarray((8, 4), nl.float32), ap(t, i)), r"in a call other than nki.isa.dma_copy"),
    (lambda t, i: t.ap([[8, 4], [1, 8]], scalar_offset=i), r"tensor.ap with scalar_offset is not emulated"),
]


def test_a_mask_does_not_make_a_gather_a_plain_copy() -> None:
    @old.jit
    def kernel(table, indices):
        index = onl.load(indices)
        rows = table.ap([[8, 4], [1, 8]], vector_offset=index, indirect_dim=0)
        i, j = onl.mgrid[0:4, 0:8]
        oisa.dma_copy(dst=onl.ndarray((4, 8), onl.float32)[i, j], src=rows, mask=i < 2)

    with pytest.raises(UnsupportedCall, match=r"a mask on table after tensor.ap with vector_offset is not emulated"):
        run(kernel, np.zeros((10, 8), np.float32), np.zeros((4, 1), np.int32))


def ap(table: Any, index: Any, count: int = 4) -> Any:
    return table.ap([[8, count], [1, 8]], vector_offset=index, indirect_dim=0)


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_refused(body: Any, message: str) -> None:
    @nki.jit
    def kernel(table, indices):
        index = nl.load(indices)
        body(table, index)

    with pytest.raises(EmulatorError, match=rf"test_nki_indirect.py:\d+: .*{message}") as caught:
        run(kernel, np.zeros((10, 8), np.float32), np.array([[1], [10], [2], [3]], np.int32))
    assert isinstance(caught.value, (RuleError, UnsupportedCall))
