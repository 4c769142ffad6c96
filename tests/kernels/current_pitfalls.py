"""Current generation: what an emulator gets wrong first."""

from dataclasses import dataclass

import nki
import nki.isa as nisa
import nki.language as nl

P = 128


@nki.jit
def in_place(x, delta):
    """x += delta where x is the caller's: nothing is returned."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    other = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=other, src=delta)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=other, op=nl.add)
    nisa.dma_copy(dst=x, src=tile)


@nki.jit
def several_results(x):
    """The tile, its square and (as a Python value) its width."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    squares = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    nisa.activation(dst=tile, op=nl.square, data=tile)
    nisa.dma_copy(dst=squares, src=tile)
    return out, squares, x.shape[1]


@nki.jit
def any_shape_of_as_many_elements(x):
    """A DMA between tensors of different shapes: [4, 6] to [2, 12] to [24]."""
    out = nl.ndarray((24,), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((2, 12), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def partition_index_keeps_its_dimension(x):
    """Row 3 of a tile on chip is [1, width]; row 3 of HBM is [width]."""
    out = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    assert tile[3].shape == (1, x.shape[1])
    assert x[3].shape == (x.shape[1],)
    nisa.dma_copy(dst=out, src=tile[3])
    return out


@nki.jit
def psum_of_a_new_tile_starts_afresh(left_t, right):
    """Two products, each into a PSUM tile allocated where the last one may have been: the second must not contain the first."""
    out = nl.ndarray((2, left_t.shape[1], right.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    left_tile = nl.ndarray(left_t.shape, dtype=left_t.dtype, buffer=nl.sbuf)
    right_tile = nl.ndarray(right.shape, dtype=right.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left_tile, src=left_t)
    nisa.dma_copy(dst=right_tile, src=right)
    for i in nl.sequential_range(2):
        sums = nl.ndarray((left_t.shape[1], right.shape[1]), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=left_tile, moving=right_tile)
        result = nl.ndarray(sums.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=sums)
        nisa.dma_copy(dst=out[i], src=result)
    return out


@dataclass
class Block(nl.NKIObject):
    """Fields without annotations are constructor arguments too."""

    start: int = 0
    width = 16


@nki.jit
def objects_with_fields(x):
    """exp of one block of columns, the block described by an object."""
    block = Block(start=4, width=8)
    out = nl.ndarray((x.shape[0], block.width), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((x.shape[0], block.width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[:, nl.ds(block.start, block.width)])
    nisa.activation(dst=tile, op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def kernel_in_kernel(x):
    """A jitted kernel called from a kernel is inlined; dtypes serve as dictionary keys and compare with names."""
    factors = {nl.float32: 2.0, nl.bfloat16: 3.0}
    assert str(x.dtype) == str(nl.float32)
    results = several_results(x)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=results[1])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factors[x.dtype])
    nisa.dma_copy(dst=out, src=tile)
    return out
