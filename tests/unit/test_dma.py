"""DMA: queues, descriptors, the engines that work, and times against what devices showed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from emulator import targets
from emulator.costs import price
from emulator.dma import MAX_PACKETS, Plan, plan
from emulator.program import Access
from emulator.simulate import simulate
from tests.programs import READ, Builder, total

TRN1, TRN2 = targets.load("trn1"), targets.load("trn2")


def plan_of(b: Builder, target: targets.Target = TRN2) -> Plan:
    program = b.program()
    return plan(program, price(program, target), target)


def test_queue_types_follow_what_is_moved() -> None:
    b = Builder()
    tile, scratch, gathered = b.tile(128, 64), b.hbm(128, 64, role="temporary"), b.tile(128, 64)
    source = b.hbm(128, 64)
    b.copy(tile, source)
    b.copy(b.hbm(128, 64, role="output"), tile)
    b.copy(scratch, tile)
    b.copy(tile, scratch)
    b.copy(tile, source, dge_mode="hwdge")
    b.copy(tile, source, "gpsimd", dge_mode="swdge")
    operands = [gathered(2), source(READ | int(Access.INDIRECT))]
    b.recorder.emit("DMA_DIRECT2D", "gpsimd", "dma_copy", operands, 64)
    found = plan_of(b)
    types = [found.queues[queue].type for queue in found.queue]
    assert types == ["input", "output", "data", "data", "hardware_dynamic", "software_dynamic", "software_dynamic"]
    names = [found.queues[queue].name for queue in found.queue]
    assert names == [
        "qSyncIO0",
        "qGpSimdIO0",
        "qGpSimdSpillReload0",
        "qSyncSpillReload0",
        "qSyncDynamic0",
        "qGpSimdDynamic0",
        "qGpSimdDynamic0",
    ]


def test_each_tensor_has_its_queue_until_half_of_them_are_taken() -> None:
    b = Builder()
    sources = [b.hbm(128, 64) for _ in range(20)]
    for _ in range(2):
        for source in sources:
            b.copy(b.tile(128, 64), source)
    found = plan_of(b)
    assert len(found.queues) == 1 + TRN2.dma.queues_per_engine // 2
    assert found.queue[:20].tolist() == found.queue[20:].tolist()
    assert [queue.index for queue in found.queues] == list(range(len(found.queues)))


@pytest.mark.parametrize(
    ("rows", "columns", "of", "descriptors", "nbytes"),
    [
        (128, 512, 512, 128, 1024),  # whole rows: a descriptor ends with its partition
        (128, 512, 4096, 128, 1024),  # a box of a wider matrix
        (4, 4096, 4096, 4, 8192),
    ],
)
def test_descriptors_are_runs_that_are_contiguous_on_both_sides(
    rows: int, columns: int, of: int, descriptors: int, nbytes: int
) -> None:
    b = Builder()
    b.copy(b.tile(rows, columns), b.hbm(rows, of)[:, :columns])
    found = plan_of(b)
    assert (found.descriptors[0], found.descriptor_bytes[0]) == (descriptors, nbytes)
    assert found.read_bytes[0] == found.write_bytes[0] == rows * columns * 2


def test_a_transposing_access_moves_one_element_at_a_time() -> None:
    b = Builder()
    tile, source = b.tile(128, 64), b.hbm(64, 128)
    turned = (source.tensor, READ, "bfloat16", 0, 0, 0, (128, 64), (2, 256))
    b.recorder.emit("DMA_DIRECT2D", "sync", "dma_copy", [tile(2), turned], 64)
    found = plan_of(b)
    assert (found.descriptors[0], found.descriptor_bytes[0]) == (128 * 64, 2)


def test_a_cast_counts_bytes_on_both_sides() -> None:
    b = Builder()
    b.copy(b.tile(128, 512, "float32"), b.hbm(128, 512))
    found = plan_of(b)
    assert (found.read_bytes[0], found.write_bytes[0]) == (131072, 262144)


@pytest.mark.parametrize(("first", "rows", "engines"), [(0, 128, range(16)), (0, 4, [0]), (64, 32, range(8, 12)), (4, 8, [0, 1])])
def test_engines_serve_their_own_partitions(first: int, rows: int, engines: list[int]) -> None:
    b = Builder()
    b.copy(b.tile(128, 64)[first : first + rows, :], b.hbm(rows, 64))
    packets = simulate(b.program()).packets
    assert sorted(set(packets.engine.tolist())) == list(engines)
    assert packets.nbytes.sum() == rows * 128


def test_transfers_within_hbm_use_all_engines() -> None:
    b = Builder()
    b.copy(b.hbm(16, 64, role="output"), b.hbm(16, 64), "gpsimd")
    packets = simulate(b.program()).packets
    assert packets.nbytes.tolist() == [128] * 16


def test_packets_add_up_and_large_transfers_keep_their_number() -> None:
    b = Builder()
    b.copy(b.tile(128, 512), b.hbm(128, 512))
    b.copy(b.tile(128, 5000), b.hbm(128, 5000))
    b.copy(b.tile(64, 50_000), b.hbm(64, 50_000))
    program = b.program()
    timeline = simulate(program)
    found, packets = plan_of(b), timeline.packets
    # 8 rows of 1024 bytes are two packets of 4 KiB; 80,000 bytes are 20; the last would be 196 and is cut into 64.
    assert found.packets.tolist() == [2, 20, MAX_PACKETS]
    for transfer, size in enumerate((128 * 1024, 128 * 10_000, 64 * 100_000)):
        own = packets.transfer == transfer
        assert packets.nbytes[own].sum() == size
        assert own.sum() == found.packets[transfer] * len(np.unique(packets.engine[own]))
        assert packets.start[own].min() == timeline.transfers.start[transfer]
        assert packets.end[own].max() == timeline.transfers.end[transfer]


def test_packets_of_an_engine_never_overlap() -> None:
    b = Builder()
    sources = [b.hbm(128, 4096) for _ in range(3)]
    for turn in range(12):
        b.copy(b.tile(128, 512), sources[turn % 3][:, :512])
    packets = simulate(b.program()).packets
    for engine in range(16):
        own = np.flatnonzero(packets.engine == engine)
        own = own[np.argsort(packets.start[own])]
        assert (packets.start[own][1:] >= packets.end[own][:-1]).all()


def test_queues_take_turns_at_packet_boundaries() -> None:
    b = Builder()
    b.copy(b.tile(128, 16384), b.hbm(128, 16384))
    b.copy(b.tile(128, 512), b.hbm(128, 512))
    transfers = simulate(b.program()).transfers
    # The small one does not wait for the large one that began before it.
    assert transfers.start[1] < transfers.end[0] // 2
    assert transfers.end[1] < transfers.end[0] // 2


def test_a_queue_works_in_order() -> None:
    b = Builder()
    source = b.hbm(128, 4096)
    for _ in range(6):
        b.copy(b.tile(128, 64), source[:, :64])
    transfers = simulate(b.program()).transfers
    assert (np.diff(transfers.start) >= TRN2.dma.queue_interval).all()
    assert (np.diff(transfers.completion) > 0).all()


def test_software_descriptors_keep_their_engine_busy_and_hardware_ones_delay_the_transfer() -> None:
    def first_packet(engine: str, mode: str) -> tuple[int, int]:
        b = Builder()
        b.copy(b.tile(128, 64), b.hbm(128, 64), engine, **({"dge_mode": mode} if mode else {}))
        timeline = simulate(b.program())
        return int(timeline.end[0] - timeline.start[0]), int(timeline.transfers.start[0])

    trigger, start = first_packet("sync", "")
    assert trigger == TRN2.dma.trigger
    assert start == TRN2.dma.trigger + TRN2.dma.first_packet
    assert first_packet("sync", "hwdge") == (trigger, start + 600)
    assert first_packet("gpsimd", "swdge") == (trigger + 649, start + 649)


def test_rates_are_those_of_the_devices() -> None:
    # nki-dma-intro-3 and 5: one engine loads 32 KiB in 1,416 ns, 16 engines 2 KiB each in 97 ns; a store of 32 KiB takes 1,215 ns.
    def span(rows: int, columns: int, store: bool = False) -> int:
        b = Builder()
        tile = b.tile(rows, columns)
        if store:
            b.copy(b.hbm(rows, columns, role="output"), tile)
        else:
            b.copy(tile, b.hbm(rows, columns))
        transfers = simulate(b.program()).transfers
        return int(transfers.end[0] - transfers.start[0])

    assert span(4, 4096) == pytest.approx(1416, rel=0.02)
    assert span(128, 128) == pytest.approx(97, rel=0.02)
    assert span(4, 4096, store=True) == pytest.approx(1215, rel=0.02)


@pytest.mark.parametrize(
    ("nbytes", "share"), zip((64, 256, 1024, 2048, 4096, 8192), (2.6, 10.4, 42.4, 81.5, 96.7, 98.3), strict=True)
)
def test_throughput_by_size(nbytes: int, share: float) -> None:
    # nki-dma-intro-1: per cent of the rate at 32 KiB per partition, 128 partitions, one queue.
    def rate(size: int) -> float:
        b = Builder()
        source = b.hbm(128, size // 2)
        for _ in range(40):
            b.copy(b.tile(128, size // 2), source)
        program = b.program()
        large = replace(TRN2, sbuf=replace(TRN2.sbuf, partition_bytes=1 << 30))
        transfers = simulate(program, large).transfers
        return 39 * size / float(transfers.end[-1] - transfers.end[0])

    assert 100 * rate(nbytes) / rate(32768) == pytest.approx(share, rel=0.07)


def test_loads_wait_for_nothing_that_a_store_waits_for() -> None:
    b = Builder()
    source, out = b.hbm(128, 8192), b.hbm(128, 8192, role="output")
    for turn in range(4):
        tile, result = b.tile(128, 2048), b.tile(128, 2048, "float32")
        b.copy(tile, source[:, turn * 2048 : turn * 2048 + 2048])
        b.op("scalar", "activation", result, tile, function="exp")
        b.copy(out[:, turn * 2048 : turn * 2048 + 2048], result)
    timeline = simulate(b.program())
    assert timeline.transfers.trigger[6] < timeline.transfers.trigger[1]
    assert total(timeline) > 0


def test_transposing_dma_runs_at_its_share_of_copy_throughput() -> None:
    b = Builder()
    tile, source = b.tile(128, 4096), b.hbm(4096, 128)
    turned = (source.tensor, READ, "bfloat16", 0, 0, 0, (128, 4096), (2, 256))
    b.recorder.emit("DMA_TRANSPOSE", "sync", "dma_transpose", [tile(2), turned], 4096)
    nbytes = 128 * 4096 * 2
    expected = nbytes / (0.9 * TRN2.dma.read_rate) + nbytes / TRN2.dma.packet_bytes * TRN2.dma.descriptor_cost
    assert plan_of(b).work[0] == pytest.approx(expected)
