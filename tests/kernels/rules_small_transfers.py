"""Many narrow DMA transfers, and the same data in wide ones. x is [128, width], width a multiple of 2048."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def narrow_loads(x):
    """exp(x): 16 columns to a transfer, so that each of its rows is 64 bytes of float32."""
    return _exponentials(x, 16)


@nki.jit
def wide_loads(x):
    """exp(x): 2048 columns to a transfer, 8 KiB to a row."""
    return _exponentials(x, 2048)


def _exponentials(x, columns):
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, width, 2048):
        tile = nl.ndarray((rows, 2048), dtype=x.dtype, buffer=nl.sbuf)
        for column in range(0, 2048, columns):
            nisa.dma_copy(dst=tile[:, nl.ds(column, columns)], src=x[:, nl.ds(start + column, columns)])
        nisa.activation(dst=tile, op=nl.exp, data=tile)
        nisa.dma_copy(dst=out[:, nl.ds(start, 2048)], src=tile)
    return out
