"""Kernels whose indexing comes from their arguments, to be tried with any."""

import neuronxcc.nki as old_nki
import neuronxcc.nki.isa as old_nisa
import neuronxcc.nki.language as old_nl
import nki
import nki.isa as nisa
import nki.language as nl


@old_nki.jit
def affine_gather(x, outer, inner, outer_step, inner_step, offset):
    """out[p, i, j] = x[p, offset + outer_step * i + inner_step * j], read from SBUF by an index expression."""
    rows = x.shape[0]
    out = old_nl.ndarray((rows, outer, inner), dtype=x.dtype, buffer=old_nl.shared_hbm)
    i_p, i_o, i_i = old_nl.mgrid[0:rows, 0:outer, 0:inner]
    tile = old_nl.load(x)
    picked = old_nl.copy(tile[i_p, offset + outer_step * i_o + i_i * inner_step])
    old_nl.store(out, value=picked)
    return out


@old_nki.jit
def affine_scatter(x, width, outer, inner, outer_step, inner_step, offset):
    """out[p, offset + outer_step * i + inner_step * j] = x[p, i * inner + j]; what is not hit stays 0."""
    rows = x.shape[0]
    out = old_nl.ndarray((rows, width), dtype=x.dtype, buffer=old_nl.shared_hbm)
    i_p, i_o, i_i = old_nl.mgrid[0:rows, 0:outer, 0:inner]
    tile = old_nl.load(x)
    spread = old_nl.zeros((old_nl.par_dim(rows), width), dtype=x.dtype)
    spread[i_p, offset + outer_step * i_o + inner_step * i_i] = old_nisa.tensor_scalar(
        tile[i_p, inner * i_o + i_i], old_nl.multiply, 1.0
    )
    old_nl.store(out, value=spread)
    return out


@old_nki.jit
def masked_copy(x, tile_rows, tile_columns, first_row, last_row, last_column):
    """Rows `first_row` to `last_row` and columns up to `last_column` of x, in masked tiles; nothing writes the rest."""
    rows, columns = x.shape
    out = old_nl.ndarray(x.shape, dtype=x.dtype, buffer=old_nl.shared_hbm)
    i_p = old_nl.arange(tile_rows)[:, None]
    i_f = old_nl.arange(tile_columns)[None, :]
    for i in old_nl.affine_range(-(-rows // tile_rows)):
        for j in old_nl.affine_range(-(-columns // tile_columns)):
            row, column = i * tile_rows + i_p, j * tile_columns + i_f
            mask = (row >= first_row) & (row < last_row) & (column < last_column)
            tile = old_nl.load(x[row, column], mask=mask)
            negated = old_nl.multiply(tile, -1.0, mask=mask)
            old_nl.store(out[row, column], value=negated, mask=mask)
    return out


@nki.jit
def access_pattern(x, pattern, offset):
    """x walked by an access pattern [[stride, count], ...] in SBUF, the first pair over partitions."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    view = tile.ap(pattern=pattern, offset=offset)
    picked = nl.ndarray(view.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=picked, src=view)
    out = nl.ndarray(view.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=picked)
    return out


@nki.jit
def hbm_pattern(x, pattern, offset):
    """x walked by an access pattern in HBM."""
    view = x.ap(pattern=pattern, offset=offset)
    out = nl.ndarray(view.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=view)
    return out


@nki.jit
def sliced(x, key):
    """x[key] read from a tile in SBUF."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    view = tile[key]
    picked = nl.ndarray(view.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=picked, src=view)
    out = nl.ndarray(view.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=picked)
    return out
