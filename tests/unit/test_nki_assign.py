"""`x[...] = nisa.op(...)` is the op writing x: no phantom copy, unless the result is used again."""

from __future__ import annotations

import numpy as np

from tests.unit.nki_names import loads, oisa, old, onl, opcodes, operands, run

X = np.random.default_rng(3).standard_normal((128, 64)).astype(np.float32)


def test_a_result_is_written_where_it_is_assigned() -> None:
    @old.jit
    def kernel(x):
        out = onl.ndarray((128, 64), dtype=x.dtype, buffer=onl.shared_hbm)
        kept = onl.ndarray((onl.par_dim(128), 2, 64), dtype=onl.float32)
        kept[:, 1, :] = oisa.activation(onl.exp, onl.load(x))
        kept[:, 0, :] = onl.load(x)
        onl.store(out, kept[:, 0, :] + kept[:, 1, :])
        return out

    result = run(kernel, X)
    assert opcodes(result.program) == ["DMA_DIRECT2D", "ACTIVATE", "DMA_DIRECT2D", "TENSOR_TENSOR", "DMA_DIRECT2D"]
    name, _, first, partitions, offset, sizes, strides = operands(result.program, 1)[0]
    assert (name, first, partitions, offset, sizes, strides) == ("kept", 0, 128, 256, [64], [4])
    assert operands(result.program, 2)[0][0] == "kept"
    np.testing.assert_allclose(result.outputs, X + np.exp(X), rtol=1e-6)
    # kept, the loaded tile and the sum: the tiles that the redirected results would have had are gone.
    assert len([tensor for tensor in result.program.tensors if tensor.space.name == "SBUF"]) == 3


def test_a_result_used_again_keeps_its_own_tile_and_the_copy() -> None:
    @old.jit
    def kernel(x):
        out = onl.ndarray((128, 64), dtype=x.dtype, buffer=onl.shared_hbm)
        kept = onl.ndarray((onl.par_dim(128), 64), dtype=onl.float32)
        result = oisa.activation(onl.exp, onl.load(x))
        kept[...] = result
        kept[...] = oisa.tensor_scalar(kept, onl.multiply, 0.0)
        onl.store(out, kept + result)
        return out

    result = run(kernel, X)
    np.testing.assert_allclose(result.outputs, np.exp(X), rtol=1e-6)
    assert opcodes(result.program)[1:4] == ["ACTIVATE", "TENSOR_COPY", "TENSOR_SCALAR"]
    assert operands(result.program, 1)[0][0] == "result"
    assert [entry[0] for entry in operands(result.program, 2)] == ["kept", "result"]


def test_a_result_that_is_no_longer_fresh_is_copied() -> None:
    @old.jit
    def kernel(x):
        kept = onl.ndarray((onl.par_dim(128), 64), dtype=onl.float32)
        first = oisa.activation(onl.exp, onl.load(x))
        oisa.activation(onl.exp, first)
        kept[...] = first

    assert loads(run(kernel, X).program)["TENSOR_COPY"] == 1


def test_a_slice_of_a_result_is_copied() -> None:
    @old.jit
    def kernel(x):
        kept = onl.ndarray((onl.par_dim(128), 1), dtype=onl.float32)
        kept[...] = oisa.activation(onl.exp, onl.load(x))[0:128, 63]

    program = run(kernel, X).program
    assert opcodes(program) == ["DMA_DIRECT2D", "ACTIVATE", "TENSOR_COPY"]


def test_a_matmul_is_copied_into_sbuf_but_redirected_within_psum() -> None:
    @old.jit
    def kernel(x):
        tile = onl.load(x)
        in_psum = onl.ndarray((onl.par_dim(64), 64), dtype=onl.float32, buffer=onl.psum)
        in_psum[...] = oisa.nc_matmul(tile, tile)
        in_sbuf = onl.ndarray((onl.par_dim(64), 64), dtype=onl.float32)
        in_sbuf[...] = oisa.nc_matmul(tile, tile)

    assert loads(run(kernel, X.astype(np.float16)).program) == {"DMA_DIRECT2D": 1, "LDWEIGHTS": 2, "MATMUL": 2, "TENSOR_COPY": 1}


def test_numbers_are_a_memset() -> None:
    @old.jit
    def kernel(x):
        kept = onl.ndarray((onl.par_dim(128), 64), dtype=onl.float32)
        kept[:, 0:32] = 1.5

    program = run(kernel, X).program
    assert opcodes(program) == ["MEMSET"]
    assert operands(program, 0)[0][2:] == (0, 128, 0, [32], [4])


def test_a_masked_result_leaves_the_rest_of_the_target() -> None:
    @old.jit
    def kernel(x):
        out = onl.ndarray((128, 64), dtype=x.dtype, buffer=onl.shared_hbm)
        kept = onl.load(x)
        i_p, i_f = onl.mgrid[0:128, 0:64]
        kept[i_p, i_f] = oisa.tensor_scalar(kept[i_p, i_f], onl.multiply, 2.0, mask=(i_p < 100) & (i_f >= 10))
        onl.store(out, kept)
        return out

    expected = X.copy()
    expected[:100, 10:] *= 2
    result = run(kernel, X)
    np.testing.assert_array_equal(result.outputs, expected)
    assert loads(result.program) == {"DMA_DIRECT2D": 2, "TENSOR_SCALAR": 1}
    assert operands(result.program, 1)[0][2:] == (0, 100, 40, [54], [4])


def test_a_mask_that_holds_nowhere_issues_nothing() -> None:
    @old.jit
    def kernel(x):
        i_p, i_f = onl.mgrid[0:128, 0:64]
        tile = onl.load(x[i_p, i_f], mask=i_p < 0)
        onl.store(x[i_p, i_f], tile, mask=i_p < 0)

    assert len(run(kernel, X.copy()).program) == 0
