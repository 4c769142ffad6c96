"""Each thing that is easily wrong when kernels run on a host, as a kernel of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.program import Program
from emulator.run import Run, load_kernel, run_kernel
from tests.bounds import check, exact, matmul

KERNELS = Path(__file__).parents[1] / "kernels"


def _run(file: str, function: str, *args: Any) -> Run:
    return run_kernel(load_kernel(KERNELS / f"{file}.py", function), args)


def _random(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def _opcodes(program: Program) -> list[str]:
    return [program.opcodes[code] for code in program.opcode]


def test_arguments_may_be_written() -> None:
    x, delta = _random(16, 8), _random(16, 8)
    before = x.copy()
    assert _run("current_pitfalls", "in_place", x, delta).outputs is None
    np.testing.assert_array_equal(x, before + delta)


def test_tuples_and_python_values_are_returned() -> None:
    x = _random(16, 8)
    same, squares, width = _run("current_pitfalls", "several_results", x).outputs
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(squares, x * x)
    assert width == 8


def test_dma_needs_equal_counts_not_equal_shapes() -> None:
    x = _random(4, 6)
    np.testing.assert_array_equal(_run("current_pitfalls", "any_shape_of_as_many_elements", x).outputs, x.reshape(-1))


def test_index_of_a_partition_keeps_the_dimension_on_chip_only() -> None:
    x = _random(16, 8)
    np.testing.assert_array_equal(_run("current_pitfalls", "partition_index_keeps_its_dimension", x).outputs, x[3:4])


def test_new_psum_tiles_start_afresh() -> None:
    left_t, right = _random(128, 64), _random(128, 96)
    result = _run("current_pitfalls", "psum_of_a_new_tile_starts_afresh", left_t, right).outputs
    for product in result:
        check(product, matmul(left_t.T, right))


def test_objects_take_fields_without_annotation() -> None:
    x = _random(16, 32)
    check(_run("current_pitfalls", "objects_with_fields", x).outputs, exact(x[:, 4:12]).exp())


def test_kernels_call_kernels() -> None:
    x = _random(16, 8)
    run = _run("current_pitfalls", "kernel_in_kernel", x)
    check(run.outputs, exact(x) * x * 2.0)
    inlined = [stack for stack in run.program.stacks if stack[-1].function == "several_results"]
    assert inlined
    assert all(stack[0].function == "kernel_in_kernel" for stack in inlined)


def test_nan_is_a_legal_input_of_accumulation() -> None:
    left_t, right = _random(256, 128), _random(256, 192)
    left_t[3, 5] = np.nan
    result = _run("current_compute", "tiles_in_lists", left_t, right).outputs
    assert np.isnan(result[5]).all()
    finite = np.delete(np.arange(128), 5)
    check(result[finite], matmul(left_t[:, finite].T, right).stored(np.float32))


def test_assigning_a_result_is_no_copy() -> None:
    x = _random(16, 8)
    run = _run("legacy_pitfalls", "results_are_stored_where_they_are_assigned", x)
    check(run.outputs, exact(x).exp() + exact(x) * 2.0)
    dma = "DMA_DIRECT2D"
    assert _opcodes(run.program) == [dma, "ACTIVATE", "TENSOR_SCALAR", "TENSOR_TENSOR", dma]


def test_accumulation_in_psum_is_no_addition() -> None:
    left_t, right = _random(256, 128), _random(256, 192)
    for function in ("accumulate_in_psum", "accumulate_blocks_in_psum"):
        opcodes = _opcodes(_run("legacy_compute", function, left_t, right).program)
        assert opcodes.count("MATMUL") == 2 * 2, "float32 takes two passes for each of two tiles of K"
        assert "TENSOR_TENSOR" not in opcodes
        assert "MEMSET" not in opcodes


def test_a_result_keeps_its_value_after_its_copy_changed() -> None:
    x = _random(16, 8)
    result = _run("legacy_pitfalls", "result_used_after_it_was_assigned", x).outputs
    check(result, (exact(x) * 2.0 + 100.0) - exact(x) * 2.0)


@pytest.mark.parametrize("shape", [(20, 12), (200, 33)])
def test_indices_may_leave_the_tensor_where_the_mask_excludes_them(shape: tuple[int, int]) -> None:
    x = _random(*shape)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3)).max(axis=(2, 3))
    np.testing.assert_array_equal(_run("legacy_pitfalls", "windows_beyond_the_edge", x, 3).outputs, windows)


def test_one_dimension_loads_as_a_column() -> None:
    x = _random(16, 8)
    np.testing.assert_array_equal(_run("legacy_pitfalls", "one_dimensional_loads", x).outputs, x[:, 1:2])


def test_index_arrays_mix_with_integers_and_slices() -> None:
    x = _random(3, 16, 8)
    np.testing.assert_array_equal(_run("legacy_pitfalls", "slices_after_index_arrays", x).outputs, x[1])


def test_a_number_may_be_stored() -> None:
    np.testing.assert_array_equal(_run("legacy_pitfalls", "number_stored", _random(16, 8)).outputs, np.full((16, 8), 7))


def test_the_first_generation_loads_its_identity_matrix() -> None:
    x = _random(64, 96)
    np.testing.assert_array_equal(_run("legacy_pitfalls", "transposed_by_identity", x).outputs, x.T)
