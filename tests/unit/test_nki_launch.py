"""Launches: grids, cores, shared outputs, in-place arguments, nested results; and functions that launch kernels."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.errors import KernelError, RuleError
from emulator.run import run_kernel
from tests.unit.nki_names import nki, nl, old, onl, run


@old.jit
def fill(x):
    out = onl.ndarray((4, 6), dtype=onl.float32, buffer=onl.shared_hbm)
    i, j = onl.program_id(0), onl.program_id(1)
    tile = onl.full((1, 1), 10 * i + j, dtype=onl.float32)
    onl.store(out[i : i + 1, j : j + 1], tile)
    assert (onl.num_programs(0), onl.num_programs([0, 1]), onl.num_programs(), onl.program_ndim()) == (4, (4, 6), 24, 2)
    return out


EXPECTED = 10 * np.arange(4)[:, None] + np.arange(6)
ONE = np.zeros((1, 1), np.float32)


def test_instances_run_in_order_and_share_outputs() -> None:
    result = run(fill[4, 6], ONE)
    np.testing.assert_array_equal(result.outputs, EXPECTED)
    assert set(result.program.core) == {0}
    assert [tensor.name for tensor in result.program.tensors if tensor.role == "output"] == ["out"]
    assert [tensor.core for tensor in result.program.tensors if tensor.role == "output"] == [-1]


def test_a_grid_may_be_given_to_the_run() -> None:
    np.testing.assert_array_equal(run(fill, ONE, grid=(4, 6)).outputs, EXPECTED)


@pytest.mark.parametrize(
    ("grid", "cores"),
    [
        ((onl.nc(4), 6), [0, 1, 2, 3]),
        ((onl.spmd_dim(2, onl.nc(2)), 6), [0, 1, 0, 1]),
        ((onl.spmd_dim(onl.nc(2), 2), 6), [0, 0, 1, 1]),
        ((onl.nc(2) * 2, 6), [0, 0, 1, 1]),
        ((4, 6), [0, 0, 0, 0]),
    ],
)
def test_grid_dimensions_name_cores(grid, cores: list[int]) -> None:
    result = run(fill[grid], ONE)
    np.testing.assert_array_equal(result.outputs, EXPECTED)
    stores = [int(core) for core, opcode in zip(result.program.core, result.program.opcode, strict=True) if opcode == 1]
    assert stores[::6] == cores


def test_two_programs_of_the_current_generation_are_two_cores() -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, 4), nl.float32, buffer=nl.shared_hbm)
        here = nl.program_id(0)
        nl.store(out[here : here + 1], nl.load(x[here : here + 1]))
        return out

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    result = run(kernel[2], x)
    np.testing.assert_array_equal(result.outputs, x)
    assert list(result.program.core) == [0, 0, 1, 1]
    with pytest.raises(RuleError, match="launches on 1 or 2 cores"):
        run(kernel[4], x)


def test_instances_have_to_agree_on_what_they_share() -> None:
    @old.jit
    def kernel(x):
        onl.ndarray((4, 1 + onl.program_id(0)), dtype=onl.float32, buffer=onl.shared_hbm)

    with pytest.raises(RuleError, match="different shared_hbm tensors"):
        run(kernel[2], ONE)


def test_a_grid_within_a_kernel_is_refused() -> None:
    @old.jit
    def outer(x):
        fill[4, 6](x)

    with pytest.raises(RuleError, match="fill is launched with a grid from within a kernel"):
        run(outer, ONE)


def test_arguments_are_written_in_place() -> None:
    @nki.jit
    def kernel(x):
        nl.store(x[0:2], nl.exp(nl.load(x[0:2])))

    x = np.zeros((4, 3), np.float32)
    assert run(kernel, x).outputs is None
    np.testing.assert_array_equal(x, [[1] * 3, [1] * 3, [0] * 3, [0] * 3])


def test_arguments_that_are_not_contiguous_are_copied() -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return out

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    x.flags.writeable = False
    np.testing.assert_array_equal(run(kernel, x.T).outputs, x.T)


def test_results_keep_their_nesting() -> None:
    @nki.jit
    def kernel(pair, named):
        assert named["b"] == 7
        a, b = pair
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(a) + nl.load(b))
        return (out, [a, 3])

    x = np.ones((2, 2), np.float32)
    outputs = run(kernel, (x, 2 * x), {"b": 7}).outputs
    np.testing.assert_array_equal(outputs[0], 3)
    np.testing.assert_array_equal(outputs[1][0], 1)
    assert outputs[1][1] == 3


def test_one_array_given_twice_is_one_tensor() -> None:
    @nki.jit
    def kernel(a, b):
        nl.store(b, nl.load(a) + nl.load(b))
        return a

    x = np.ones((2, 2), np.float32)
    result = run(kernel, x, x)
    np.testing.assert_array_equal(result.outputs, 2)
    assert len([tensor for tensor in result.program.tensors if tensor.role != "temporary"]) == 1


def test_a_function_that_launches_twice_makes_one_program() -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x) * 2.0)
        return out

    def host(x):
        return kernel(kernel(x)) + 1

    result = run(host, np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(result.outputs, 5)
    assert len(result.program) == 6


def test_an_undecorated_kernel_runs_in_its_own_generation() -> None:
    def current(x):
        return x if nl.load(x)[:, 0].shape == (4, 1) else None

    result = run(current, np.ones((4, 2), np.float32))
    np.testing.assert_array_equal(result.outputs, 1)


def test_a_function_that_launches_nothing_is_refused() -> None:
    with pytest.raises(RuleError, match=r"launched no kernel; name a function decorated with @nki\.jit"):
        run_kernel(lambda x: x, (1,))


def test_without_values_only_shapes_count() -> None:
    class Spec:
        shape = (128, 4096)
        dtype = "bfloat16"

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return out

    result = run(kernel, Spec(), values=False)
    assert result.outputs is None and len(result.program) == 2


def test_a_kernel_that_raises_shows_its_own_traceback_only() -> None:
    @nki.jit
    def kernel(x):
        for i in nl.affine_range(3):
            nl.load(x)
            assert i < 1, f"no\nmore than one, got {i}"

    with pytest.raises(KernelError) as caught:
        run(kernel, ONE)
    message, trace = str(caught.value), caught.value.traceback
    assert message.startswith("AssertionError at ") and "no more than one, got 1" in message and "\n" not in message
    assert trace.count("File ") == 1 and 'assert i < 1, f"no' in trace and "emulator" not in trace


def test_a_wrong_call_is_the_kernels_own_error() -> None:
    @nki.jit
    def kernel(x):
        nl.load()

    with pytest.raises(KernelError, match=r"TypeError at .*test_nki_launch.py:\d+: .*missing 1 required positional argument"):
        run(kernel, ONE)


def test_called_directly_a_kernel_raises_what_it_raises() -> None:
    @nki.jit
    def kernel(x):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        kernel(ONE)


def test_the_environment_chooses_the_target_of_direct_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @nki.jit
    def kernel(x):
        import nki.isa as inner

        seen.append(inner.get_nc_version().name)

    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "inf2")
    kernel(ONE)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "tpu")
    with pytest.raises(RuleError, match="NEURON_PLATFORM_TARGET_OVERRIDE=tpu: use one of trn1"):
        kernel(ONE)
    assert seen == ["gen2"]
