"""First generation: index expressions, masks and block dimensions."""

import math

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc.nki.language import par_dim

P = 128


@nki.jit
def masked_affine(x, scale, offset):
    """`x * scale + offset` for a shape that the tiles do not divide, row and column masks combined."""
    rows, width = x.shape
    tile_width = 64
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:P, 0:tile_width]
    for i in nl.affine_range(math.ceil(rows / P)):
        for j in nl.affine_range(math.ceil(width / tile_width)):
            row, column = i * P + i_p, j * tile_width + i_f
            inside = (row < rows) & (column < width)
            tile = nl.load(x[row, column], mask=inside)
            result = nisa.tensor_scalar(tile, nl.multiply, scale, op1=nl.add, operand1=offset, mask=inside)
            nl.store(out[row, column], value=result, mask=inside)
    return out


@nki.jit
def window_maximum(x, window):
    """The maximum of each `window` x `window` square of [channels, height, width], by a five-dimensional index."""
    channels, height, width = x.shape
    out = nl.ndarray((channels, height // window, width // window), dtype=x.dtype, buffer=nl.shared_hbm)
    i_c, i_y, i_dy, i_x, i_dx = nl.mgrid[0:channels, 0 : height // window, 0:window, 0 : width // window, 0:window]
    tile = nl.load(x)
    result = nl.max(tile[i_c, window * i_y + i_dy, window * i_x + i_dx], axis=[2, 4])
    nl.store(out, value=result)
    return out


@nki.jit
def swap_free_axes(x, outer, inner):
    """Each row, seen as a matrix [outer, inner], transposed: an index expression on each side of a copy."""
    rows, _ = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(rows)[:, None, None]
    i_o = nl.arange(outer)[None, :, None]
    i_i = nl.arange(inner)[None, None, :]
    tile = nl.load(x)
    turned = nl.ndarray((rows, outer * inner), dtype=x.dtype)
    turned[i_p, i_i * outer + i_o] = nl.copy(tile[i_p, i_o * inner + i_i])
    nl.store(out, value=turned)
    return out


@nki.jit
def block_dimensions(x):
    """Rows in blocks before the partition dimension: each block holds exp of its rows, their sum is added to each block."""
    rows, width = x.shape
    blocks = rows // P
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    held = nl.ndarray((blocks, par_dim(P), width), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.zeros((par_dim(P), width), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.affine_range(blocks):
        held[i] = nl.exp(nl.load(x[i * P : (i + 1) * P, :]))
    for i in nl.affine_range(blocks):
        total[...] += held[i]
    for i in nl.affine_range(blocks):
        nl.store(out[nl.ds(i * P, P), :], value=nl.add(held[i], total))
    return out


@nki.jit
def spmd_column_sums(x):
    """Two-dimensional grid: each instance doubles its own 128 x 256 tile."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.program_id(0) * P + nl.arange(P)[:, None]
    i_f = nl.program_id(1) * 256 + nl.arange(256)[None, :]
    tile = nl.load(x[i_p, i_f])
    nl.store(out[i_p, i_f], value=tile + tile)
    return out


def launch_spmd(x):
    """The grid that `spmd_column_sums` needs for x."""
    return spmd_column_sums[x.shape[0] // P, x.shape[1] // 256](x)


def launch_spmd_two_cores(x):
    """The same, instances of even and odd rows on two physical cores."""
    return spmd_column_sums[nl.spmd_dim(x.shape[0] // (2 * P), nl.nc(2)), x.shape[1] // 256](x)


@nki.jit
def column_slices(x):
    """Single columns by integer and by slice, negative steps avoided: out = x[:, 0] * x + x[:, -1]."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    first = nl.load(x[0:rows, 0])
    last = tile[0:rows, width - 1 : width]
    nl.store(out, value=nisa.tensor_scalar(tile, nl.multiply, first, op1=nl.add, operand1=last))
    return out
