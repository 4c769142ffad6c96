"""How full the memories are, and how often tensors are loaded."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.nki import memory
from collectors.nki.ids import ids
from emulator.program import Program, Space, Timeline
from emulator.targets import load
from tests.unit import collect_program as made
from tests.unit.collect_program import TILES, rows


def _lives(program: Program, timeline: Timeline, space: Space) -> list[tuple[int, int, int]]:
    """Tensor, and from when to when it is in use, found the slow way."""
    moves = timeline.transfers
    ends = dict(zip(moves.instruction.tolist(), moves.end.tolist(), strict=True))
    found = []
    for t, spec in enumerate(program.tensors):
        if spec.space != space:
            continue
        ptr = program.operands.ptr
        users = [i for i in range(len(program)) if t in program.operands.tensor[ptr[i] : ptr[i + 1]]]
        last = max(max(int(timeline.end[i]), ends.get(i, 0)) for i in users)
        found.append((t, min(int(timeline.start[i]) for i in users), last))
    return found


@pytest.mark.parametrize(("name", "space"), [("SbufUsage", Space.SBUF), ("PsumUsage", Space.PSUM)])
def test_usage_is_what_is_live_over_capacity(name: str, space: Space) -> None:
    program, timeline, target = made.program(), made.timeline(), load("trn2")
    lives = _lives(program, timeline, space)
    size = target.sbuf.partition_bytes if space == Space.SBUF else target.psum.partition_bytes
    found = rows(name)
    assert {r["timestamp"] for r in found} == {t for _, start, end in lives for t in (start, end)}
    for row in found:
        live = [program.tensors[t] for t, start, end in lives if start <= row["timestamp"] < end]
        assert row["avg_util_percent"] == pytest.approx(sum(s.partitions * s.partition_bytes for s in live) / (128 * size))
    assert found[-1]["avg_util_percent"] == 0.0


def test_banks_follow_addresses() -> None:
    program, timeline, bank = made.program(), made.timeline(), load("trn2").psum.bank_bytes
    lives = _lives(program, timeline, Space.PSUM)
    for row in rows("PsumUsage"):
        live = [int(timeline.address[t]) // bank for t, start, end in lives if start <= row["timestamp"] < end]
        for b in range(8):
            # sums is [128, 512] float32: one whole bank.
            assert row[f"bank_{b}_util_percent"] == live.count(b)


def test_a_bank_is_unknown_where_a_tensor_has_no_address() -> None:
    program, timeline = made.program(), made.timeline()
    unplaced = Timeline(**{f: getattr(timeline, f) for f in Timeline.__slots__} | {"address": np.full_like(timeline.address, -1)})
    table = memory.psum_usage(program, unplaced, ids(program, unplaced), memory.Capacity(128, 229376, 16384, 8))
    assert table["bank_0_util_percent"].null_count == table.num_rows
    assert table["avg_util_percent"].null_count == 0


def test_sbuf_partitions_count_only_tensors_that_reach_them() -> None:
    for row in rows("SbufUsage"):
        assert row["partition_0_util_percent"] == row["partition_96_util_percent"] == row["avg_util_percent"]


def test_tensors_say_how_often_they_are_loaded() -> None:
    x, y = rows("TensorInfo")
    assert (x["variable_name"], x["type"], x["shape"], x["size"]) == ("x", "IN", f"[128 {512 * TILES}]", 131072 * TILES)
    assert (x["load_to_sbuf_dma_count"], x["load_to_sbuf_total_size_bytes"]) == (TILES, 131072 * TILES)
    assert (x["load_to_sbuf_repeat_factor"], x["load_to_sbuf_avg_size_bytes"]) == (1.0, 131072)
    assert (y["type"], y["load_to_sbuf_dma_count"], y["load_to_sbuf_avg_size_bytes"]) == ("OUT", 0, None)
    assert y["ts_store_total_size_bytes"] == 131072 * TILES
