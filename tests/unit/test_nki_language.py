"""What kernels rely on beyond values: shapes, constants, loose shapes, registers, and what one call becomes."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from tests.unit.nki_names import loads, nisa, nki, nl, oisa, old, onl, opcodes, operands, run

RNG = np.random.default_rng(11)
X = RNG.standard_normal((128, 64)).astype(np.float32)


def test_an_argument_of_earlier_releases_is_a_warning() -> None:
    @nki.jit(debug_kernel=True, show_compiler_tb=True, experimental_flags="", platform_target="trn2")
    def kernel(x):
        tile = nl.load(x)
        nisa.tensor_copy(dst=tile, src=tile, dtype=nl.bfloat16)

    assert run(kernel, X).program.warnings == ("nki.isa.tensor_copy has no argument dtype in this generation; dst's dtype counts",)


def test_a_kernel_looks_like_its_function() -> None:
    @nki.jit
    def kernel(x, scale: float = 2.0):
        """What it does."""

    assert (kernel.__name__, kernel.__doc__) == ("kernel", "What it does.")
    assert list(inspect.signature(kernel).parameters) == ["x", "scale"]
    assert nki.jit(kernel).function is kernel.function


def test_constants_come_as_arrays_and_as_files(tmp_path: Path) -> None:
    np.save(tmp_path / "given.npy", X)

    @nki.jit
    def kernel():
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.load(nl.shared_constant(X)) + nl.load(nl.shared_constant(tmp_path / "given.npy")))
        return out

    result = run(kernel)
    np.testing.assert_array_equal(result.outputs, X + X)
    assert [tensor.role for tensor in result.program.tensors if tensor.space.name == "HBM"] == ["output", "constant", "constant"]


def test_equal_element_counts_suffice_where_the_hardware_only_counts() -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray((64, 128), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 8, 8), nl.float32)
        nisa.dma_copy(dst=tile, src=x.reshape((64, 128)))
        flat = nl.ndarray((128, 64), nl.float32)
        nisa.tensor_copy(flat, tile)
        nisa.tensor_tensor(tile, tile, flat, nl.add)
        total = nl.ndarray((128, 1, 1), nl.float32)
        nisa.activation(flat, nl.copy, flat, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.tensor_scalar(tile, tile, nl.add, total)
        nisa.dma_copy(dst=out, src=tile)
        return out

    expected = (2 * X + X.sum(axis=1, keepdims=True)).reshape(64, 128)
    np.testing.assert_allclose(run(kernel, X).outputs, expected, rtol=1e-4, atol=1e-4)


def test_one_dimension_loads_one_element_for_each_partition() -> None:
    @old.jit
    def kernel(x):
        out = onl.ndarray((100, 1), onl.float32, buffer=onl.shared_hbm)
        column = onl.load(x[10:110, 3])
        assert column.shape == (100, 1)
        onl.store(out, column)
        return out

    np.testing.assert_array_equal(run(kernel, X).outputs, X[10:110, 3:4])


def test_reductions_drop_dimensions_in_the_first_generation_and_follow_dst_in_the_current_one() -> None:
    @old.jit
    def first(x):
        tile = onl.load(x.reshape((128, 4, 16)))
        assert oisa.tensor_reduce(onl.add, tile, axis=[2]).shape == (128, 4)
        assert oisa.tensor_reduce(onl.add, tile, axis=[1, 2]).shape == (128, 1)
        assert oisa.tensor_reduce(onl.add, tile, axis=-1, keepdims=True).shape == (128, 4, 1)
        assert onl.max(tile, axis=[1]).shape == (128, 16)

    @nki.jit
    def second(x):
        out = nl.ndarray((128, 4, 1), nl.float32, buffer=nl.shared_hbm)
        total = nl.ndarray((128, 4, 1), nl.float32)
        nisa.tensor_reduce(total, nl.add, nl.load(x.reshape((128, 4, 16))), axis=2, negate=True)
        nl.store(out, total)
        return out

    run(first, X)
    np.testing.assert_allclose(run(second, X).outputs[..., 0], -X.reshape(128, 4, 16).sum(2), rtol=1e-4, atol=1e-5)


def test_a_masked_reduction_leaves_out_what_the_mask_does() -> None:
    @old.jit
    def kernel(x):
        out = onl.ndarray((128, 1), onl.float32, buffer=onl.shared_hbm)
        i_p, i_f = onl.mgrid[0:128, 0:64]
        tile = onl.load(x[i_p, i_f], mask=i_f < 50)
        onl.store(out, onl.max(tile[i_p, i_f], axis=[1], mask=i_f < 50))
        return out

    result = run(kernel, np.ascontiguousarray(X[:, :50]))
    np.testing.assert_array_equal(result.outputs, X[:, :50].max(axis=1, keepdims=True))
    assert operands(result.program, 1)[1][5] == [50]


def test_registers_carry_sums_from_one_instruction_to_the_next() -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, 128, 1), nl.float32, buffer=nl.shared_hbm)
        tile, total, least = nl.load(x), nl.ndarray((128, 1), nl.float32), nl.ndarray((128, 1), nl.float32)
        scratch = nl.ndarray((128, 32), nl.float32)
        halves = tile[:, 0:32], tile[:, 32:64]
        nisa.activation(scratch, nl.copy, halves[0], reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.tensor_scalar_reduce(scratch, halves[0], nl.add, 0.0, nl.min)
        nisa.activation(scratch, nl.copy, halves[1], reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reduce)
        nisa.tensor_scalar_reduce(scratch, halves[1], nl.add, 0.0, nl.min, reduce_res=least, reduce_cmd=nisa.reduce_cmd.reduce)
        nl.store(out[0], total)
        nl.store(out[1], least)
        return out

    result = run(kernel, X).outputs
    np.testing.assert_allclose(result[0], X.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(result[1], X.min(axis=1, keepdims=True))


def test_loop_hints_are_accepted() -> None:
    import emulator.nki

    with emulator.nki.installed():
        import neuronxcc.nki.compiler as compiler

    assert list(onl.affine_range(2, directives=compiler.no_reorder())) == [0, 1]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda x: onl.softmax(x, axis=1), {"TENSOR_REDUCE": 1, "ACTIVATE": 1, "RECIPROCAL": 1, "TENSOR_SCALAR": 1}),
        (lambda x: onl.exp(x), {"ACTIVATE": 1}),
        (lambda x: onl.mean(x, axis=1), {"TENSOR_REDUCE": 1, "TENSOR_SCALAR": 1}),
        (lambda x: x + 1.0, {"TENSOR_SCALAR": 1}),
        (lambda x: 1.0 - x, {"TENSOR_SCALAR": 1}),
        (lambda x: x * x[:, 0:1], {"TENSOR_SCALAR": 1}),
        (lambda x: -x, {"TENSOR_SCALAR": 1}),
        (lambda x: x * x, {"TENSOR_TENSOR": 1}),
        (lambda x: onl.copy(x), {"TENSOR_COPY": 1}),
        (lambda x: onl.transpose(x), {"LDWEIGHTS": 2, "MATMUL": 2}),
        (lambda x: onl.transpose(x[0:32, 0:32]), {"TRANSPOSE": 1}),
        (lambda x: onl.matmul(x, x, transpose_x=True), {"LDWEIGHTS": 2, "MATMUL": 2}),
        (lambda x: onl.matmul(x[0:64, :], x[0:64, :]), {"LDWEIGHTS": 4, "MATMUL": 4, "TENSOR_COPY": 1}),
        (lambda x: x[0:1, :].broadcast_to((128, 64)), {"MEMSET": 1, "LDWEIGHTS": 2, "MATMUL": 2, "ACTIVATE": 1}),
        (lambda x: x[:, 0:1].broadcast_to((128, 64)), {}),
        (lambda x: onl.zeros((128, 4), onl.float32, buffer=onl.psum), {}),
        (lambda x: onl.zeros((128, 4), onl.float32), {"MEMSET": 1}),
    ],
)
def test_what_a_call_becomes(body, expected: dict[str, int]) -> None:
    @old.jit
    def kernel(x):
        body(onl.load(x))

    assert loads(run(kernel, X).program) == {"DMA_DIRECT2D": 1, **expected}


def test_the_ones_of_a_broadcast_are_made_once() -> None:
    @old.jit
    def kernel(x):
        tile = onl.load(x)
        for _ in range(3):
            tile[0:1, :].broadcast_to((128, 64))

    assert loads(run(kernel, X).program)["MEMSET"] == 1


def test_transposes_are_marked_and_their_operations_counted_apart() -> None:
    @old.jit
    def kernel(x):
        onl.transpose(onl.load(x))
        onl.matmul(onl.load(x), onl.load(x), transpose_x=True)

    program = run(kernel, X.astype(np.float16)).program
    rows = [row for row, opcode in enumerate(opcodes(program)) if opcode == "MATMUL"]
    assert [int(program.flags[row]) & 1 for row in rows] == [1, 0]
    assert program.transpose_flops[rows].tolist() == [2 * 128 * 64 * 128, 0]
    assert program.raw_flops[rows].tolist() == [2 * 128 * 64 * 128, 2 * 128 * 64 * 64]


@pytest.mark.parametrize(
    ("dtype", "target", "weight"),
    [
        ("bfloat16", "trn2", 1),
        ("float16", "trn1", 1),
        ("float8_e4m3", "trn2", 0.5),
        ("float8_e4m3", "trn1", 1),
        ("float32", "trn3", 4),
    ],
)
def test_adjusted_operations_weigh_the_type(dtype: str, target: str, weight: float) -> None:
    @nki.jit
    def kernel():
        tile = nl.ndarray((128, 64), dtype)
        nisa.nc_matmul(nl.ndarray((64, 64), nl.float32, buffer=nl.psum), tile, tile)

    program = run(kernel, target=target).program
    assert program.adjusted_flops.sum() == weight * program.raw_flops.sum() > 0


def test_unwritten_memory_is_not_zero() -> None:
    @nki.jit
    def kernel():
        out = [nl.ndarray((4, 4), dtype, buffer=nl.shared_hbm) for dtype in (nl.float32, nl.bfloat16, nl.int32)]
        for tensor in out:
            nl.store(tensor, nl.ndarray((4, 4), tensor.dtype))
        return out

    floats, halves, integers = run(kernel).outputs
    assert np.isnan(floats).all() and np.isnan(halves.astype(np.float32)).all() and (integers != 0).all()


def test_device_print_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    @nki.jit
    def kernel(x):
        nl.device_print("x is", nl.load(x))

    run(kernel, np.full((1, 2), 7, np.float32))
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == "x is [[7. 7.]]\n"
