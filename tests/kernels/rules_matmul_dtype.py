"""`left_t.T @ right` in float32, and in bfloat16 with float32 sums.

Both take float32 [K, M] and [K, N]; K and M are multiples of 128, N of 512.
"""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128
COLUMNS = 512


@nki.jit
def float32_matmul(left_t, right):
    """The Tensor engine passes float32 operands through in several passes."""
    return _matmul(left_t, right, nl.float32)


@nki.jit
def bfloat16_matmul(left_t, right):
    """The loads convert the operands to bfloat16, which take one pass; sums stay float32."""
    return _matmul(left_t, right, nl.bfloat16)


def _matmul(left_t, right, dtype):
    k_size, m_size = left_t.shape
    n_size = right.shape[1]
    out = nl.ndarray((m_size, n_size), dtype=nl.float32, buffer=nl.shared_hbm)
    left_tiles, right_tiles = _load_rows(left_t, dtype), _load_rows(right, dtype)
    for m in nl.affine_range(m_size // P):
        for n in nl.affine_range(n_size // COLUMNS):
            sums = nl.ndarray((P, COLUMNS), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(k_size // P):
                stationary, moving = left_tiles[k][:, nl.ds(m * P, P)], right_tiles[k][:, nl.ds(n * COLUMNS, COLUMNS)]
                nisa.nc_matmul(dst=sums, stationary=stationary, moving=moving)
            result = nl.ndarray((P, COLUMNS), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=sums)
            nisa.dma_copy(dst=out[nl.ds(m * P, P), nl.ds(n * COLUMNS, COLUMNS)], src=result)
    return out


def _load_rows(matrix, dtype):
    tiles = []
    for k in nl.affine_range(matrix.shape[0] // P):
        tile = nl.ndarray((P, matrix.shape[1]), dtype=dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=matrix[nl.ds(k * P, P), :])
        tiles.append(tile)
    return tiles
