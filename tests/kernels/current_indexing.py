"""Current generation: slices, access patterns, lists of tiles, grids."""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128


@nki.jit
def swap_free_axes(x, outer, inner):
    """Each row, seen as a matrix [outer, inner], transposed: the source is read by an access pattern."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    turned = nl.ndarray((rows, inner, outer), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=turned, src=tile.ap([[width, rows], [1, inner], [inner, outer]]))
    nisa.dma_copy(dst=out, src=turned.reshape((rows, width)))
    return out


@nki.jit
def every_other(x):
    """Columns 0, 2, 4... of each row: a strided pattern with an offset into a tensor of three dimensions."""
    rows, width = x.shape
    out = nl.ndarray((2, rows, width // 2), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for parity in range(2):
        half = nl.ndarray((rows, width // 2), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=half, src=tile.ap(pattern=[[width, rows], [2, width // 2]], offset=parity))
        nisa.dma_copy(dst=out[parity], src=half)
    return out


@nki.jit
def broadcast_row(x, row):
    """`x * row`: the row [1, width] goes to every partition by a DMA whose source has stride 0 there."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    factors = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=factors, src=row.ap([[0, rows], [1, width]]))
    nisa.tensor_tensor(dst=tile, data1=tile, data2=factors, op=nl.multiply)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def last_rows(x):
    """Row tiles of any height, the last one shorter; every row's sum is subtracted from it."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, P):
        height = min(P, rows - start)
        tile = nl.ndarray((P, width), dtype=nl.float32, buffer=nl.sbuf)
        sums = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:height, :], src=x[start : start + height, :])
        nisa.tensor_reduce(dst=sums[0:height], op=nl.add, data=tile[0:height, :], axis=1)
        nisa.tensor_scalar(dst=tile[:height], data=tile[:height], op0=nl.subtract, operand0=sums[:height])
        nisa.dma_copy(dst=out[start : start + height, :], src=tile[0:height, 0:width])
    return out


@nki.jit
def halves_by_program(x):
    """Each of two programs squares its half of the rows."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    half = rows // nl.num_programs(0)
    here = nl.ds(nl.program_id(0) * half, half)
    tile = nl.ndarray((half, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[here, :])
    nisa.activation(dst=tile, op=nl.square, data=tile)
    nisa.dma_copy(dst=out[here, :], src=tile)
    return out


def launch_halves(x):
    """`halves_by_program` on two programs."""
    return halves_by_program[2](x)
