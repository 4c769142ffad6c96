"""Vector instructions on few elements of each partition, and on many. x is [128, width], width a multiple of 8."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def few_elements(x):
    """2 * x + 1, eight elements per partition to an instruction: starting it takes longer than its work."""
    return _affine(x, 8)


@nki.jit
def many_elements(x):
    """2 * x + 1, the whole row in one instruction."""
    return _affine(x, x.shape[1])


def _affine(x, columns):
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for start in range(0, width, columns):
        part = tile[:, nl.ds(start, columns)]
        nisa.tensor_scalar(dst=part, data=part, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out
