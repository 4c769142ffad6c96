"""A factor loaded for every row tile, and loaded once. x is [rows, width], factor [128, width]; rows a multiple of 128."""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128


@nki.jit
def reloaded(x, factor):
    """Each 128 rows of x times the factor, which comes from HBM again each time."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for step in nl.affine_range(rows // P):
        factor_tile = nl.ndarray((P, width), dtype=factor.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=factor_tile, src=factor)
        _multiply(out, x, factor_tile, step)
    return out


@nki.jit
def hoisted(x, factor):
    """Each 128 rows of x times the factor, which stays in SBUF."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    factor_tile = nl.ndarray((P, width), dtype=factor.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=factor_tile, src=factor)
    for step in nl.affine_range(rows // P):
        _multiply(out, x, factor_tile, step)
    return out


def _multiply(out, x, factor_tile, step):
    here = nl.ds(step * P, P)
    tile = nl.ndarray((P, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[here, :])
    nisa.tensor_tensor(dst=tile, data1=tile, data2=factor_tile, op=nl.multiply)
    nisa.dma_copy(dst=out[here, :], src=tile)
