"""`left @ right` whose left matrix is turned on the Tensor engine, and one that comes turned.

The two kernels take the left matrix as [M, K] and as [K, M]; K and M are multiples of 128, the right matrix is [K, 512].
"""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128


@nki.jit
def transposes_on_tensor_engine(left, right):
    """[M, K] @ [K, 512]: for every multiplication of 512 columns there is a transpose of 128."""
    m_size, k_size = left.shape
    out = nl.ndarray((m_size, right.shape[1]), dtype=left.dtype, buffer=nl.shared_hbm)
    right_tiles = _load_rows(right)
    for m in nl.affine_range(m_size // P):
        row = nl.ndarray((P, k_size), dtype=left.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=left[nl.ds(m * P, P), :])
        left_tiles = []
        for k in nl.affine_range(k_size // P):
            turned = nl.ndarray((P, P), dtype=left.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=row[:, nl.ds(k * P, P)])
            tile = nl.ndarray((P, P), dtype=left.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=turned)
            left_tiles.append(tile)
        _multiply(out, left_tiles, right_tiles, m)
    return out


@nki.jit
def layout_without_transposes(left_t, right):
    """[K, M].T @ [K, 512]: K lies on the partitions of both operands already."""
    out = nl.ndarray((left_t.shape[1], right.shape[1]), dtype=left_t.dtype, buffer=nl.shared_hbm)
    right_tiles = _load_rows(right)
    columns = _load_rows(left_t)
    for m in nl.affine_range(left_t.shape[1] // P):
        _multiply(out, [tile[:, nl.ds(m * P, P)] for tile in columns], right_tiles, m)
    return out


def _load_rows(matrix):
    tiles = []
    for k in nl.affine_range(matrix.shape[0] // P):
        tile = nl.ndarray((P, matrix.shape[1]), dtype=matrix.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=matrix[nl.ds(k * P, P), :])
        tiles.append(tile)
    return tiles


def _multiply(out, left_tiles, right_tiles, m):
    sums = nl.ndarray((P, out.shape[1]), dtype=nl.float32, buffer=nl.psum)
    for left_tile, right_tile in zip(left_tiles, right_tiles, strict=True):
        nisa.nc_matmul(dst=sums, stationary=left_tile, moving=right_tile)
    result = nl.ndarray((P, out.shape[1]), dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=sums)
    nisa.dma_copy(dst=out[nl.ds(m * P, P), :], src=result)
