"""Addresses: no two live tensors share a byte, reuse is spread, PSUM tiles keep to a bank, and a full memory says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import targets
from emulator.errors import EmulatorError
from emulator.memory import Layout, MemoryExhausted, lay_out
from emulator.program import Program, Space
from tests.programs import Builder

TRN2 = targets.load("trn2")


def small(partition_bytes: int) -> targets.Target:
    return replace(TRN2, sbuf=replace(TRN2.sbuf, partition_bytes=partition_bytes))


def program_of(lives: list[tuple[int, int, int]], space: Space = Space.SBUF) -> Program:
    """Tensors of (bytes per partition, first use, last use) in units of one instruction."""
    b = Builder()
    tiles = [b.tile(4, size, "uint8", space) for size, _, _ in lives]
    for row in range(max(last for _, _, last in lives) + 1):
        used = [tile for tile, (_, first, last) in zip(tiles, lives, strict=True) if row in (first, last)]
        b.recorder.emit("NOP", "vector", "tensor_copy", [tile(2) for tile in used], 1)
    return b.program()


def shares(layout: Layout, sizes: list[int], i: int, j: int) -> bool:
    low, high = sorted((i, j), key=lambda tensor: int(layout.address[tensor]))
    return bool(layout.address[low] + sizes[low] > layout.address[high])


def live_together(layout: Layout, i: int, j: int) -> bool:
    return bool(layout.first_use[i] <= layout.last_use[j] and layout.first_use[j] <= layout.last_use[i])


life = st.tuples(st.integers(1, 40), st.integers(0, 12), st.integers(0, 6)).map(lambda x: (x[0], x[1], x[1] + x[2]))


@settings(max_examples=150, deadline=None)
@given(st.lists(life, min_size=1, max_size=16), st.sampled_from([100, 160, 4000]))
def test_no_live_bytes_are_shared_and_reuse_names_the_last_owner(lives: list[tuple[int, int, int]], capacity: int) -> None:
    program = program_of(lives)
    sizes = [size for size, _, _ in lives]
    try:
        layout = lay_out(program, small(capacity))
    except MemoryExhausted:
        most = max(sum((size + 3) // 4 * 4 for size, first, last in lives if first <= row <= last) for row in range(20))
        # Only fragments can make a fitting set fail: never with half of the memory free.
        assert most > capacity // 2
        return
    assert layout.first_use.tolist() == [first for _, first, _ in lives]
    assert layout.last_use.tolist() == [last for _, _, last in lives]
    owner = np.full(capacity, -1)
    for i in sorted(range(len(lives)), key=lambda tensor: (lives[tensor][1], tensor)):
        assert 0 <= layout.address[i] <= capacity - sizes[i]
        assert not any(shares(layout, sizes, i, j) and live_together(layout, i, j) for j in range(len(lives)) if j != i)
        span = slice(int(layout.address[i]), int(layout.address[i]) + sizes[i])
        before = set(layout.previous[layout.previous_ptr[i] : layout.previous_ptr[i + 1]].tolist())
        assert before == set(owner[span].tolist()) - {-1}
        owner[span] = i


def test_buffers_rotate_through_the_memory() -> None:
    layout = lay_out(program_of([(32, turn, turn) for turn in range(6)]), small(128))
    assert layout.address.tolist() == [0, 32, 64, 96, 0, 32]


def test_fragments_are_retried_with_the_smallest_gap() -> None:
    # Rotating puts b behind a and leaves no 64 together; the smallest gap does not.
    lives = [(32, 0, 0), (32, 1, 6), (32, 2, 2), (32, 3, 6), (64, 4, 6)]
    layout = lay_out(program_of(lives), small(128))
    sizes = [size for size, _, _ in lives]
    assert not any(shares(layout, sizes, i, j) and live_together(layout, i, j) for i in range(5) for j in range(i))


def test_psum_tiles_keep_to_a_bank_and_large_ones_begin_one() -> None:
    bank = TRN2.psum.bank_bytes
    lives = [(1200, 0, 9), (1200, 1, 9), (500, 2, 9), (4096, 3, 9), (2048, 4, 9)]
    layout = lay_out(program_of(lives, Space.PSUM), TRN2)
    for (size, _, _), address in zip(lives, layout.address.tolist(), strict=True):
        assert address // bank == (address + min(size, bank) - 1) // bank
        assert size <= bank or address % bank == 0
    assert len(set(layout.address.tolist())) == len(lives)


def test_unused_tensors_and_hbm_have_no_address() -> None:
    b = Builder()
    b.tile(128, 8)
    b.copy(b.tile(128, 8), b.hbm(128, 8))
    layout = lay_out(b.program(), TRN2)
    assert layout.address.tolist() == [-1, 0, -1]
    assert layout.first_use.tolist() == [-1, 0, 0]


@pytest.mark.parametrize(("space", "columns", "capacity"), [(Space.SBUF, 40_000, "229,376"), (Space.PSUM, 600, "16,384")])
def test_a_full_memory_names_tensor_need_place_and_what_is_live(space: Space, columns: int, capacity: str) -> None:
    b = Builder()
    stack = b.recorder.capture_stack()
    tiles = []
    for number in range(9):
        tensor = b.recorder.tensor(f"panel{number}", (128, columns), "float32", space, "temporary", stack)
        tiles.append((tensor, 2, "float32", 0, 128, 0, (columns,), (4,)))
        b.recorder.emit("MEMSET", "vector", "memset", [tiles[-1]], columns)
    b.recorder.emit("NOP", "vector", "tensor_copy", tiles, columns)
    with pytest.raises(MemoryExhausted) as caught:
        lay_out(b.program(), TRN2)
    text = str(caught.value)
    assert isinstance(caught.value, EmulatorError)
    assert "\n" not in text
    lost = 1 if space is Space.SBUF else 4
    assert f"{space.name} exhausted: tensor panel{lost} [128, {columns}] float32 needs {columns * 4:,} bytes per partition" in text
    assert f"of trn2's {capacity} are free" in text
    assert f"panel0 {columns * 4:,} (" in text and "test_memory.py:" in text
    assert "use smaller tiles" in text


def test_one_tensor_too_large_for_the_memory_says_so() -> None:
    with pytest.raises(MemoryExhausted, match=r"needs 300 bytes per partition, 128 of trn2's 128 are free; live: nothing else"):
        lay_out(program_of([(300, 0, 1)]), small(128))
