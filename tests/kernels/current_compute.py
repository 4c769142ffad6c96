"""Current generation: accumulation in PSUM, tiles in lists, conversions, fused operations, the convenience layer."""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128


@nki.jit
def tiles_in_lists(left_t, right):
    """`left_t.T @ right` with every tile held in lists and the sums accumulated by default."""
    k_size, m_size = left_t.shape
    _, n_size = right.shape
    out = nl.ndarray((m_size, n_size), dtype=left_t.dtype, buffer=nl.shared_hbm)

    def load(matrix):
        tiles = [nl.ndarray((P, matrix.shape[1]), dtype=matrix.dtype, buffer=nl.sbuf) for _ in range(k_size // P)]
        for k, tile in enumerate(tiles):
            nisa.dma_copy(dst=tile, src=matrix[k * P : (k + 1) * P, :])
        return tiles

    left_tiles, right_tiles = load(left_t), load(right)
    for m in nl.affine_range(m_size // P):
        sums = nl.ndarray((P, n_size), dtype=nl.float32, buffer=nl.psum)
        for left_tile, right_tile in zip(left_tiles, right_tiles, strict=True):
            nisa.nc_matmul(sums, left_tile[:, nl.ds(m * P, P)], right_tile)
        result = nl.ndarray((P, n_size), dtype=out.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(result, sums)
        nisa.dma_copy(dst=out[nl.ds(m * P, P), :], src=result)
    return out


@nki.jit
def accumulate_on_request(left_t, right):
    """The same with `accumulate` given, the PSUM tile used twice: the second use must start afresh. Out = product + product."""
    k_size, m_size = left_t.shape
    _, n_size = right.shape
    out = nl.ndarray((m_size, n_size), dtype=left_t.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((m_size, n_size), dtype=nl.float32, buffer=nl.psum)
    results = []
    for _ in range(2):
        for k in nl.sequential_range(k_size // P):
            left_tile = nl.ndarray((P, m_size), dtype=left_t.dtype, buffer=nl.sbuf)
            right_tile = nl.ndarray((P, n_size), dtype=right.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=left_tile, src=left_t[nl.ds(k * P, P), :])
            nisa.dma_copy(dst=right_tile, src=right[nl.ds(k * P, P), :])
            nisa.nc_matmul(dst=sums, stationary=left_tile, moving=right_tile, accumulate=k > 0)
        result = nl.ndarray((m_size, n_size), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=sums)
        results.append(result)
    total = nl.ndarray((m_size, n_size), dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=results[0], data2=results[1], op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def fused_scalars(x, scale):
    """(1 - x) * scale per row, then maximum with 0 and minus the tile itself: reversed operands and two-operation forms."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    factor = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    result = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=factor, src=scale)
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.subtract, operand0=1.0, reverse0=True, op1=nl.multiply, operand1=factor)
    nisa.scalar_tensor_tensor(dst=result, data=result, op0=nl.maximum, operand0=0.0, op1=nl.subtract, operand1=tile)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def narrow_integers(x):
    """x rounded into int8, saturating, and back to float32."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
    narrow = nl.ndarray((rows, width), dtype=nl.int8, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_copy(dst=narrow, src=tile)
    nisa.tensor_copy(dst=tile, src=narrow)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def scan_with_carry(decay, x):
    """h[i] = decay[i] * h[i - 1] + x[i] along each row in two chunks; the first starts from a number, the second from a tile."""
    rows, length = x.shape
    chunk = length // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    carry = None
    for i in range(2):
        span = nl.ds(i * chunk, chunk)
        a = nl.ndarray((rows, chunk), dtype=nl.float32, buffer=nl.sbuf)
        b = nl.ndarray((rows, chunk), dtype=nl.float32, buffer=nl.sbuf)
        states = nl.ndarray((rows, chunk), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=decay[:, span])
        nisa.dma_copy(dst=b, src=x[:, span])
        initial = 0.0 if carry is None else carry
        nisa.tensor_tensor_scan(dst=states, data0=a, data1=b, initial=initial, op0=nl.multiply, op1=nl.add)
        carry = states[:, chunk - 1 : chunk]
        nisa.dma_copy(dst=out[:, span], src=states)
    return out


@nki.jit
def convenience_layer(x, y):
    """exp(x) * y + maximum(x, y) with the language's own load, functions and store."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x), nl.load(y)
    nl.store(out, nl.add(nl.multiply(nl.exp(a), b), nl.maximum(a, b)))
    return out


@nki.jit
def reduce_registers(x):
    """Row sums of exp(x), the row in two pieces: the second adds to the accumulator that the first reset."""
    rows, width = x.shape
    half = width // 2
    out = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    sums = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    result = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    pieces = ((slice(0, half), nisa.reduce_cmd.reset_reduce), (slice(half, width), nisa.reduce_cmd.reduce))
    for piece, command in pieces:
        nisa.activation(dst=result[:, piece], op=nl.exp, data=tile[:, piece], reduce_op=nl.add, reduce_res=sums, reduce_cmd=command)
    nisa.dma_copy(dst=out, src=sums)
    return out


@nki.jit
def transposed(x):
    """x [rows, columns] transposed on the Tensor engine, 128 x 128 at a time."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(rows // P):
        for j in nl.affine_range(columns // P):
            tile = nl.ndarray((P, P), dtype=x.dtype, buffer=nl.sbuf)
            turned = nl.ndarray((P, P), dtype=x.dtype, buffer=nl.psum)
            result = nl.ndarray((P, P), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[nl.ds(i * P, P), nl.ds(j * P, P)])
            nisa.nc_transpose(dst=turned, data=tile)
            nisa.tensor_copy(dst=result, src=turned)
            nisa.dma_copy(dst=out[nl.ds(j * P, P), nl.ds(i * P, P)], src=result)
    return out


@nki.jit
def round_trip(x, dtype):
    """x as `dtype` and back: what the type's rounding leaves of it."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
    kept = nl.ndarray((rows, width), dtype=dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_copy(dst=kept, src=tile)
    nisa.tensor_copy(dst=tile, src=kept)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def half_written(x):
    """A tile of which only the first half of each row was written."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[:, 0 : width // 2], src=x[:, 0 : width // 2])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out
