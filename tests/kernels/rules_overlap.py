"""Loads that wait for the computation before them, and loads that run beside it. x is [128, width], width a multiple of 2048."""

import nki
import nki.isa as nisa
import nki.language as nl

COLUMNS = 2048


@nki.jit
def single_buffer(x):
    """gelu(gelu(x)): one buffer for every step, so each load waits until the result before it is stored."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, COLUMNS), dtype=x.dtype, buffer=nl.sbuf)
    for step in nl.sequential_range(width // COLUMNS):
        _step(out, x, tile, step)
    return out


@nki.jit
def pipelined(x):
    """gelu(gelu(x)): three buffers in turn, so that a load, a computation and a store run at the same time."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((rows, COLUMNS), dtype=x.dtype, buffer=nl.sbuf) for _ in range(3)]
    for step in nl.sequential_range(width // COLUMNS):
        _step(out, x, tiles[step % 3], step)
    return out


def _step(out, x, tile, step):
    span = nl.ds(step * COLUMNS, COLUMNS)
    nisa.dma_copy(dst=tile, src=x[:, span])
    nisa.activation(dst=tile, op=nl.gelu, data=tile)
    nisa.activation(dst=tile, op=nl.gelu, data=tile)
    nisa.dma_copy(dst=out[:, span], src=tile)
