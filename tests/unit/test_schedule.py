"""The schedule: order, waits, overlap, semaphores, and the latencies between engines."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emulator import targets
from emulator.program import ENGINES, Program, Timeline
from emulator.simulate import NOT_MODELLED, simulate
from tests.programs import Builder, busy, total

TRN1, TRN2 = targets.load("trn1"), targets.load("trn2")


def chain(engines: list[str], target: str = "trn2", n: int = 512) -> tuple[Program, Timeline]:
    """Each instruction reads what the one before wrote."""
    b = Builder(target)
    tile = b.tile(128, n, "float32")
    b.op(engines[0], "tensor_copy", tile, b.tile(128, n, "float32"))
    for engine in engines[1:]:
        result = b.tile(128, n, "float32")
        b.op(engine, "tensor_copy", result, tile)
        tile = result
    program = b.program()
    return program, simulate(program)


def test_a_serial_chain_does_not_overlap_and_names_what_it_waited_for() -> None:
    _, timeline = chain(["vector", "scalar", "vector", "gpsimd"])
    semaphore = round(TRN2.core.semaphore)
    assert (timeline.start[1:] - timeline.end[:-1]).tolist() == [semaphore] * 3
    assert timeline.blocked_by.tolist() == [-1, 0, 1, 2]
    assert busy(timeline.start, timeline.end) == (timeline.end - timeline.start).sum()


def test_the_same_engine_waits_for_its_own_result_but_not_otherwise() -> None:
    _, timeline = chain(["scalar", "scalar"], "trn1", 1)
    assert timeline.start[1] - timeline.end[0] == TRN1.core.dependent
    b = Builder("trn1")
    for _ in range(3):
        b.op("vector", "tensor_copy", b.tile(128, 512, "float32"), b.tile(128, 512, "float32"))
    timeline = simulate(b.program())
    cycles = 512 + TRN1.vector.overhead
    assert np.abs(np.diff(timeline.start) - cycles / TRN1.vector.clock).max() < 1
    assert timeline.wait.tolist() == [0, 0, 0]
    assert (timeline.end[:-1] > timeline.start[1:]).all()


def test_engines_that_can_overlap_do() -> None:
    b = Builder()
    for _ in range(20):
        b.op("vector", "tensor_copy", b.tile(128, 512, "float32"), b.tile(128, 512, "float32"))
        b.op("scalar", "tensor_copy", b.tile(128, 512, "float32"), b.tile(128, 512, "float32"))
    program = b.program()
    timeline = simulate(program)
    alone = [busy(timeline.start[program.engine == e], timeline.end[program.engine == e]) for e in (1, 2)]
    assert total(timeline) == max(alone)


def test_weights_load_behind_the_matmul_that_runs() -> None:
    b = Builder()
    moving = b.tile(128, 512)
    for _ in range(4):
        b.matmul(b.psum(), b.tile(128, 128), moving)
    timeline = simulate(b.program())
    loads, matmuls = timeline.start[::2], timeline.start[1::2]
    assert loads[1:].tolist() == matmuls[:-1].tolist()
    interval = (512 + TRN2.tensor.matmul_overhead) / TRN2.tensor.clock
    assert np.abs(np.diff(matmuls) - interval).max() < 1
    # Small matmuls cannot hide it: the next one begins when its weights are there.
    b = Builder()
    for _ in range(4):
        b.matmul(b.psum(columns=16), b.tile(128, 128), b.tile(128, 16))
    timeline = simulate(b.program())
    least = (TRN2.tensor.issue_min + TRN2.tensor.matmul_overhead) / TRN2.tensor.clock
    assert np.abs(np.diff(timeline.start[1::2]) - least).max() < 1


def test_equal_times_round_to_equal_nanoseconds() -> None:
    # 64 + 22 cycles at 1.12 GHz are 76.79 ns: intervals of 76 or 77, never a gap between end and start.
    b = Builder("trn1")
    for _ in range(200):
        b.recorder.emit("NOP", "sync", "control", [], 0)
    timeline = simulate(b.program())
    assert (timeline.start[1:] == timeline.end[:-1]).all()
    assert abs(total(timeline) - 200 * TRN1.sync.control / TRN1.sync.clock) < 1


def test_semaphores_count_what_others_wait_for() -> None:
    b = Builder()
    source, tile, sums, result = b.hbm(128, 128), b.tile(128, 128), b.psum(columns=128), b.tile(128, 128)
    b.copy(tile, source)
    b.matmul(sums, tile, tile)
    b.matmul(sums, tile, tile, add=True)
    b.op("scalar", "activation", result, sums, function="copy")
    b.copy(b.hbm(128, 128, role="output"), result)
    timeline = simulate(b.program())

    def named(ids: np.ndarray) -> list[str]:
        return [timeline.semaphores[i] if i >= 0 else "" for i in ids]

    assert named(timeline.semaphore) == ["qSyncIO0", "", "", "", "Tensor", "Scalar", "qGpSimdIO0"]
    assert timeline.semaphore_value.tolist() == [16, 0, 0, 0, 1, 1, 16]
    # The second pair waits for nothing new; the activation for the last matmul, the store for the activation.
    assert named(timeline.wait_semaphore)[:2] == ["", "qSyncIO0"]
    assert named(timeline.wait_semaphore)[5:] == ["Tensor", "Scalar"]
    assert timeline.wait_value.tolist()[5:] == [1, 1]
    assert timeline.blocked_by.tolist()[5:] == [4, 5]


def test_a_load_is_seen_by_its_reader_after_the_completion_latency() -> None:
    b = Builder()
    tile = b.tile(128, 512)
    b.copy(tile, b.hbm(128, 512))
    b.op("vector", "tensor_copy", b.tile(128, 512), tile)
    timeline = simulate(b.program())
    transfers = timeline.transfers
    assert transfers.start[0] - timeline.end[0] == TRN2.dma.first_packet
    assert transfers.completion[0] - transfers.end[0] == TRN2.dma.completion
    assert timeline.start[1] == transfers.completion[0] == timeline.wait[1]


def pipeline(buffers: int) -> int:
    """Loads into `buffers` tiles in turn and works on each."""
    b = Builder()
    source = b.hbm(128, 4096)
    tiles = [b.tile(128, 4096) for _ in range(buffers)]
    result = b.tile(128, 4096, "float32")
    for turn in range(12):
        tile = tiles[turn % buffers]
        b.copy(tile, source)
        b.op("scalar", "activation", result, tile, function="exp")
    return total(simulate(b.program()))


def test_double_buffering_shows_its_gain() -> None:
    one, two, three = (pipeline(buffers) for buffers in (1, 2, 3))
    assert two < 0.7 * one
    assert three <= two


instruction = st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 5), st.integers(1, 600))


@settings(max_examples=100, deadline=None)
@given(st.lists(instruction, min_size=1, max_size=30))
def test_any_program_runs_in_order_and_after_what_it_depends_on(instructions: list[tuple[int, int, int, int]]) -> None:
    b = Builder()
    tiles = [b.tile(128, 600, "float32") for _ in range(6)]
    source = b.hbm(128, 600, "float32")
    for kind, to, other, n in instructions:
        if kind == 3:
            b.copy(tiles[to][:, :n], source[:, :n])
        else:
            b.op(("vector", "scalar", "gpsimd")[kind], "tensor_copy", tiles[to][:, :n], tiles[other][:, :n])
    program = b.program()
    timeline = simulate(program)
    edges = timeline.dependencies
    done = timeline.end.copy()
    done[timeline.transfers.instruction] = timeline.transfers.completion
    for row in range(len(program)):
        producers = edges.producer[edges.ptr[row] : edges.ptr[row + 1]][edges.waits[edges.ptr[row] : edges.ptr[row + 1]]]
        assert (done[producers] <= timeline.start[row]).all()
        if timeline.blocked_by[row] >= 0:
            assert timeline.blocked_by[row] in producers
            assert timeline.wait[row] >= 0
    for engine in range(len(ENGINES)):
        assert (np.diff(timeline.start[program.engine == engine]) >= 0).all()
    assert (timeline.start >= 0).all() and (timeline.end >= timeline.start).all()
    again = simulate(program)
    assert all(
        np.array_equal(getattr(timeline, name), getattr(again, name)) for name in ("start", "end", "wait", "blocked_by", "address")
    )


def test_cores_run_beside_each_other() -> None:
    b = Builder()
    for core in (0, 1):
        b.recorder.core = core
        b.op("vector", "tensor_copy", b.tile(128, 512, "float32"), b.tile(128, 512, "float32"))
    timeline = simulate(b.program())
    assert timeline.start.tolist() == [0, 0]
    assert "Vector (core 1)" in timeline.semaphores


def test_what_is_not_modelled_is_said() -> None:
    _, timeline = chain(["vector"])
    assert NOT_MODELLED in timeline.warnings


def test_an_empty_program_takes_no_time() -> None:
    timeline = simulate(Builder().program())
    assert len(timeline.start) == 0
    assert len(timeline.packets.start) == 0


step = st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 9), st.integers(1, 4))


@given(st.lists(step, min_size=3, max_size=30))
@example([(1, False, 0, 4), (2, False, 0, 4), (0, True, 8, 1), (0, True, 0, 4)])
@settings(deadline=None, max_examples=60)
def test_bytes_that_are_used_again_are_never_overwritten_before_their_users_are_done(
    steps: list[tuple[int, bool, int, int]],
) -> None:
    # Only one tile of 120,000 bytes fits at a time: each piece of memory has many owners, most of which touch a part of it.
    b = Builder()
    unit = 3_000
    tile, outside = b.tile(128, 10 * unit, "float32"), b.hbm(128, 10 * unit, "float32")
    uses = []
    for what, fresh, first, count in steps:
        if fresh:
            tile = b.tile(128, 10 * unit, "float32")
        part = tile[:, first * unit : min(first + count, 10) * unit]
        if what == 0:
            row = b.op("vector", "memset", part)
        elif what == 1:
            row = b.copy(part, outside[:, : part.n])
        elif what == 2:
            row = b.copy(outside[:, : part.n], part)
        else:
            row = b.op("scalar", "activation", b.tile(128, 1, "float32"), part, function="copy")
        uses.append((row, part.tensor, part.columns, what < 2))
    program = b.program()
    timeline = simulate(program)
    done, transfers = timeline.end.copy(), set(timeline.transfers.instruction.tolist())
    done[timeline.transfers.instruction] = timeline.transfers.completion
    for at, (late, mine, (low, high), writes) in enumerate(uses):
        for early, other, (first, last), wrote in uses[:at]:
            shift = int(timeline.address[other] - timeline.address[mine]) // 4
            apart = first + shift >= high or last + shift <= low
            # What nobody wrote since another tensor lay there holds nothing: reading it has to wait for nobody.
            if apart or not (writes or (wrote and other == mine)):
                continue
            one_engine = program.engine[early] == program.engine[late] and not {early, late} & transfers
            in_order = one_engine and not (wrote and not writes)
            assert timeline.start[late] >= (timeline.start[early] if in_order else done[early]), (early, late)


def test_a_queues_completions_are_seen_in_its_order() -> None:
    b = Builder()
    tile, matrix = b.tile(128, 30_000), b.hbm(128, 30_000)
    # The second transfer is short and has a DMA engine of its own.
    b.copy(tile[0:8, :], matrix[0:8, :])
    b.copy(tile[64:72, 0:16], matrix[64:72, 0:16])
    timeline = simulate(b.program())
    assert len(set(timeline.transfers.queue.tolist())) == 1
    assert timeline.transfers.end[1] < timeline.transfers.end[0]
    assert timeline.transfers.completion[1] == timeline.transfers.completion[0]
