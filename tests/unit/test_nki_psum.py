"""Accumulation in PSUM: first write overwrites, later ones add, without a vector addition or a memset, in both generations."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.program import Access
from tests.unit.nki_names import access, loads, nisa, nki, nl, oisa, old, onl, opcodes, operands, run

RNG = np.random.default_rng(7)
A = RNG.standard_normal((256, 64)).astype(np.float16)
B = RNG.standard_normal((256, 96)).astype(np.float16)
OVERWRITE, ADD, READ = int(Access.WRITE), int(Access.WRITE | Access.ACCUMULATE), int(Access.READ)
EXPECTED = A.astype(np.float64).T @ B.astype(np.float64)


def accesses(program):
    return [access(program, row)[0] for row, opcode in enumerate(opcodes(program)) if opcode == "MATMUL"]


@old.jit
def legacy_zeros(a, b):
    out = onl.ndarray((64, 96), dtype=onl.float32, buffer=onl.shared_hbm)
    total = onl.zeros((64, 96), dtype=onl.float32, buffer=onl.psum)
    for k in onl.affine_range(2):
        total[...] += oisa.nc_matmul(onl.load(a[k * 128 : (k + 1) * 128, :]), onl.load(b[k * 128 : (k + 1) * 128, :]))
    onl.store(out, oisa.tensor_copy(total))
    return out


@old.jit
def legacy_uninitialised(a, b):
    out = onl.ndarray((64, 96), dtype=onl.float32, buffer=onl.shared_hbm)
    total = onl.ndarray((1, onl.par_dim(64), 96), dtype=onl.float32, buffer=onl.psum)
    for k in onl.affine_range(2):
        total[0, :, :] += oisa.nc_matmul(onl.load(a[k * 128 : (k + 1) * 128, :]), onl.load(b[k * 128 : (k + 1) * 128, :]))
    onl.store(out, oisa.tensor_copy(total[0]))
    return out


@nki.jit
def current_default(a, b):
    out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
    for k in nl.affine_range(2):
        left, right = nl.load(a[k * 128 : (k + 1) * 128, :]), nl.load(b[k * 128 : (k + 1) * 128, :])
        nisa.nc_matmul(total, left, right)
    nl.store(out, total)
    return out


@pytest.mark.parametrize("kernel", [legacy_zeros, legacy_uninitialised, current_default])
def test_first_overwrites_then_adds(kernel) -> None:
    result = run(kernel, A, B)
    np.testing.assert_allclose(result.outputs, EXPECTED, rtol=1e-4, atol=1e-3)
    assert accesses(result.program) == [OVERWRITE, ADD]
    assert loads(result.program) == {"DMA_DIRECT2D": 5, "LDWEIGHTS": 2, "MATMUL": 2, "TENSOR_COPY": 1}


def test_nan_is_a_legal_input_and_is_not_taken_for_unwritten() -> None:
    a = A.copy()
    a[3, 5] = np.nan
    result = run(current_default, a, B)
    assert np.isnan(result.outputs[5]).all() and not np.isnan(np.delete(result.outputs, 5, axis=0)).any()
    assert accesses(result.program) == [OVERWRITE, ADD]


def test_accumulate_given_by_the_kernel_is_obeyed() -> None:
    @nki.jit
    def kernel(a, b):
        out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
        left, right = nl.load(a[0:128]), nl.load(b[0:128])
        nisa.nc_matmul(total, left, right)
        nisa.nc_matmul(total, left, right, accumulate=False)
        nisa.nc_matmul(total, left, right, accumulate=True)
        nl.store(out, total)
        return out

    result = run(kernel, A, B)
    np.testing.assert_allclose(result.outputs, 2 * (A[:128].astype(float).T @ B[:128].astype(float)), rtol=1e-4, atol=1e-3)
    assert accesses(result.program) == [OVERWRITE, OVERWRITE, ADD]


def test_accumulating_on_memory_that_no_matmul_began_stays_undefined() -> None:
    @nki.jit
    def kernel(a, b):
        out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(total, nl.load(a[0:128]), nl.load(b[0:128]), accumulate=True)
        nl.store(out, total)
        return out

    assert np.isnan(run(kernel, A, B).outputs).all()


def test_regions_of_one_tile_are_told_apart() -> None:
    @nki.jit
    def kernel(a, b):
        out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
        left, right = nl.load(a[0:128]), nl.load(b[0:128])
        nisa.nc_matmul(total[:, 0:48], left, right[:, 0:48])
        nisa.nc_matmul(total[:, 48:96], left, right[:, 48:96])
        nisa.nc_matmul(total[:, 24:72], left, right[:, 24:72])
        nl.store(out, total)
        return out

    result = run(kernel, A, B)
    once = A[:128].astype(float).T @ B[:128].astype(float)
    once[:, 24:72] *= 2
    np.testing.assert_allclose(result.outputs, once, rtol=1e-4, atol=1e-3)
    assert accesses(result.program) == [OVERWRITE, OVERWRITE, ADD]


def test_a_region_written_in_part_adds_only_there() -> None:
    @nki.jit
    def kernel(a, b):
        out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
        left, right = nl.load(a[0:128]), nl.load(b[0:128])
        nisa.nc_matmul(total[:, 0:48], left, right[:, 0:48])
        nisa.nc_matmul(total, left, right)
        nl.store(out, total)
        return out

    once = A[:128].astype(float).T @ B[:128].astype(float)
    once[:, :48] *= 2
    np.testing.assert_allclose(run(kernel, A, B).outputs, once, rtol=1e-4, atol=1e-3)


def test_a_new_tile_begins_a_new_group() -> None:
    @nki.jit
    def kernel(a, b):
        left, right = nl.load(a[0:128]), nl.load(b[0:128])
        for _ in nl.affine_range(2):
            total = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(total, left, right)

    assert accesses(run(kernel, A, B).program) == [OVERWRITE, OVERWRITE]


def test_zeros_cost_a_memset_where_something_else_reads_them() -> None:
    @old.jit
    def kernel(a, b):
        out = onl.ndarray((64, 96), dtype=onl.float32, buffer=onl.shared_hbm)
        total = onl.zeros((64, 96), dtype=onl.float32, buffer=onl.psum)
        total[:, 0:48] += oisa.nc_matmul(onl.load(a[0:128, :]), onl.load(b[0:128, 0:48]))
        onl.store(out, oisa.tensor_copy(total))
        return out

    result = run(kernel, A, B)
    assert opcodes(result.program)[0] == "MEMSET"
    assert not result.outputs[:, 48:].any()


def test_float32_is_two_pairs_and_the_second_adds_to_the_first() -> None:
    a, b = A[:128].astype(np.float32), B[:128].astype(np.float32)

    @nki.jit
    def kernel(a, b):
        total = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(total, nl.load(a), nl.load(b))

    program = run(kernel, a, b).program
    assert opcodes(program)[2:] == ["LDWEIGHTS", "MATMUL", "LDWEIGHTS", "MATMUL"]
    assert accesses(program) == [OVERWRITE, ADD]
    assert program.raw_flops.sum() == 2 * 128 * 64 * 96 and len(set(program.raw_flops[[3, 5]])) == 1
    assert program.adjusted_flops.sum() == 4 * program.raw_flops.sum()
    assert [int(x) for x in (program.n[3], program.m[3], program.k[3])] == [96, 64, 128]


def test_legacy_redirected_float32_result_keeps_both_instructions() -> None:
    @old.jit
    def kernel(a, b):
        out = onl.ndarray((64, 96), dtype=onl.float32, buffer=onl.shared_hbm)
        total = onl.ndarray((64, 96), dtype=onl.float32, buffer=onl.psum)
        for _ in range(2):
            total += oisa.nc_matmul(onl.load(a), onl.load(b))
        onl.store(out, oisa.tensor_copy(total))
        return out

    a, b = A[:128].astype(np.float32), B[:128].astype(np.float32)
    result = run(kernel, a, b)
    assert accesses(result.program) == [OVERWRITE, ADD, ADD, ADD]
    targets = {operands(result.program, row)[0][0] for row, opcode in enumerate(opcodes(result.program)) if opcode == "MATMUL"}
    assert targets == {"total"}
    np.testing.assert_allclose(result.outputs, 2 * (a.astype(float).T @ b), rtol=1e-4, atol=1e-3)


def test_iadd_of_anything_else_is_a_vector_addition() -> None:
    @old.jit
    def kernel(a):
        out = onl.ndarray((128, 64), dtype=onl.float16, buffer=onl.shared_hbm)
        x = onl.load(a[0:128, :])
        x[:, 0:32] += x[:, 32:64]
        onl.store(out, x)
        return out

    result = run(kernel, A)
    assert loads(result.program) == {"DMA_DIRECT2D": 2, "TENSOR_TENSOR": 1}
    assert operands(result.program, 1)[0][:2] == ("x", OVERWRITE)
    np.testing.assert_array_equal(result.outputs[:, :32], (A[:128, :32].astype(np.float32) + A[:128, 32:]).astype(np.float16))
