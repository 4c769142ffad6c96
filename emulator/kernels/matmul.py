"""Matrix multiplication twice: as one writes it first, and blocked so that the Tensor engine and not the DMA sets the pace.

Both take the left matrix transposed, [K, M]: the Tensor engine contracts over partitions, so K has to lie there in both operands.
A tile is 128 rows of K by 128 columns of the left matrix (stationary) or 512 of the right one (moving), and gives one PSUM bank of
128 x 512 float32 sums. K and M are multiples of 128, N of 512.
"""

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl

TILE_K = 128
TILE_M = 128
TILE_N = 512


@nki.jit
def matmul_unblocked(left_t: Any, right: Any) -> Any:
    """`left_t.T @ right`, [M, N], loading both tiles for every multiplication.

    Each multiplication of 128 x 128 x 512 waits for 128 x 640 elements from HBM: every tile of the left matrix is loaded N / 512
    times, every tile of the right one M / 128 times.
    """
    k_size, m_size = left_t.shape
    _, n_size = right.shape
    product = nl.ndarray((m_size, n_size), dtype=left_t.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(m_size // TILE_M):
        for n in nl.affine_range(n_size // TILE_N):
            sums = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for k in nl.sequential_range(k_size // TILE_K):
                rows = nl.ds(k * TILE_K, TILE_K)
                left_tile = nl.ndarray((TILE_K, TILE_M), dtype=left_t.dtype, buffer=nl.sbuf)
                right_tile = nl.ndarray((TILE_K, TILE_N), dtype=right.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=left_tile, src=left_t[rows, nl.ds(m * TILE_M, TILE_M)])
                nisa.dma_copy(dst=right_tile, src=right[rows, nl.ds(n * TILE_N, TILE_N)])
                nisa.nc_matmul(dst=sums, stationary=left_tile, moving=right_tile)
            result = nl.ndarray((TILE_M, TILE_N), dtype=product.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=sums)
            nisa.dma_copy(dst=product[nl.ds(m * TILE_M, TILE_M), nl.ds(n * TILE_N, TILE_N)], src=result)
    return product


@nki.jit
def matmul_blocked(left_t: Any, right: Any, block_m: int = 512, block_n: int = 1024) -> Any:
    """`left_t.T @ right`, [M, N], in blocks of `block_m` x `block_n` of the result.

    A block of the right matrix stays in SBUF while all of the left one passes, so the right matrix is loaded once and the left one
    N / block_n times, in rows of `block_m` and `block_n` elements. Both panels span all of K: SBUF has to hold
    K / 128 x (block_n + 2 x block_m) elements per partition, the left panel twice so that the next loads meanwhile.
    """
    m_size, n_size = left_t.shape[1], right.shape[1]
    block_m, block_n = min(block_m, m_size), min(block_n, n_size)
    assert m_size % block_m == 0 and n_size % block_n == 0, "M and N have to be multiples of their blocks"
    product = nl.ndarray((m_size, n_size), dtype=left_t.dtype, buffer=nl.shared_hbm)
    for n in nl.affine_range(n_size // block_n):
        right_panel = load_panel(right, n * block_n, block_n)
        for m in nl.affine_range(m_size // block_m):
            left_panel = load_panel(left_t, m * block_m, block_m)
            for row in nl.affine_range(block_m // TILE_M):
                result = nl.ndarray((TILE_M, block_n), dtype=product.dtype, buffer=nl.sbuf)
                for column in nl.affine_range(block_n // TILE_N):
                    columns = nl.ds(column * TILE_N, TILE_N)
                    sums = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
                    for left_tile, right_tile in zip(left_panel, right_panel, strict=True):
                        stationary = left_tile[:, nl.ds(row * TILE_M, TILE_M)]
                        nisa.nc_matmul(dst=sums, stationary=stationary, moving=right_tile[:, columns])
                    nisa.tensor_copy(dst=result[:, columns], src=sums)
                nisa.dma_copy(dst=product[nl.ds(m * block_m + row * TILE_M, TILE_M), nl.ds(n * block_n, block_n)], src=result)
    return product


def load_panel(matrix: Any, start: int, width: int) -> list[Any]:
    """The columns from `start` of a [K, columns] matrix as one SBUF tile of [128, width] for each 128 rows."""
    panel = []
    for k in nl.affine_range(matrix.shape[0] // TILE_K):
        tile = nl.ndarray((TILE_K, width), dtype=matrix.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=matrix[nl.ds(k * TILE_K, TILE_K), nl.ds(start, width)])
        panel.append(tile)
    return panel
