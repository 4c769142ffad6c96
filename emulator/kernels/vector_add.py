"""Elementwise sum of two matrices: the smallest kernel that moves data, computes, and moves it back."""

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def vector_add(left: Any, right: Any, columns: int = 2048) -> Any:
    """`left + right`, both [rows, width], `columns` of 128 rows at a time.

    Wide tiles keep each DMA row long (512 bytes and more use a DMA engine well) and each vector instruction busy for many more
    cycles than it takes to issue.
    """
    rows, width = left.shape
    pmax = nl.tile_size.pmax
    total = nl.ndarray(left.shape, dtype=left.dtype, buffer=nl.shared_hbm)
    for row in nl.affine_range((rows + pmax - 1) // pmax):
        height = min(pmax, rows - row * pmax)
        here = nl.ds(row * pmax, height)
        for column in nl.affine_range((width + columns - 1) // columns):
            length = min(columns, width - column * columns)
            span = nl.ds(column * columns, length)
            a = nl.ndarray((height, length), dtype=left.dtype, buffer=nl.sbuf)
            b = nl.ndarray((height, length), dtype=right.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=a, src=left[here, span])
            nisa.dma_copy(dst=b, src=right[here, span])
            nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
            nisa.dma_copy(dst=total[here, span], src=a)
    return total
