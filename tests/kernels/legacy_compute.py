"""First generation: matmul in PSUM, scans, broadcasts, reductions and the language's own functions."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

P = 128


@nki.jit
def accumulate_in_psum(left_t, right):
    """`left_t.T @ right`: sums over K stay in one PSUM tile that was zeroed, added to with `+=`."""
    k_size, m_size = left_t.shape
    _, n_size = right.shape
    out = nl.ndarray((m_size, n_size), dtype=left_t.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(m_size // P):
        sums = nl.zeros((nl.par_dim(P), n_size), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(k_size // P):
            left_tile = nl.load(left_t[nl.ds(k * P, P), nl.ds(m * P, P)])
            right_tile = nl.load(right[nl.ds(k * P, P), :])
            sums += nl.matmul(left_tile, right_tile, transpose_x=True)
        nl.store(out[nl.ds(m * P, P), :], value=nl.copy(sums, dtype=out.dtype))
    return out


@nki.jit
def accumulate_blocks_in_psum(left_t, right):
    """The same with all sums of M in one PSUM tensor with a block dimension, uninitialised, indexed before `+=`."""
    k_size, m_size = left_t.shape
    _, n_size = right.shape
    out = nl.ndarray((m_size, n_size), dtype=left_t.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((m_size // P, nl.par_dim(P), n_size), dtype=nl.float32, buffer=nl.psum)
    for k in nl.affine_range(k_size // P):
        left_tile = nl.load(left_t[nl.ds(k * P, P), :])
        right_tile = nl.load(right[nl.ds(k * P, P), :])
        for m in nl.affine_range(m_size // P):
            sums[m, :, :] += nisa.nc_matmul(left_tile[:, nl.ds(m * P, P)], right_tile)
    for m in nl.affine_range(m_size // P):
        nl.store(out[nl.ds(m * P, P), :], value=nisa.tensor_copy(sums[m], dtype=out.dtype))
    return out


@nki.jit
def plain_matmul(left, right):
    """`left @ right` with the left matrix as it is: the language transposes it."""
    m_size, _ = left.shape
    _, n_size = right.shape
    out = nl.ndarray((m_size, n_size), dtype=left.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.matmul(nl.load(left), nl.load(right)))
    return out


@nki.jit
def softmax_rows(x):
    """Softmax of each row in the language's own functions."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(x.shape[0] // P):
        tile = nl.load(x[i * P : (i + 1) * P, :])
        largest = nl.max(tile, axis=1, keepdims=True)
        weights = nl.exp(nl.subtract(tile, largest))
        shares = nl.divide(weights, nl.sum(weights, axis=[1], keepdims=True))
        nl.store(out[i * P : (i + 1) * P, :], value=shares)
    return out


@nki.jit
def chunked_scan(decay, x):
    """h[i] = decay[i] * h[i - 1] + x[i] along each row, in chunks that hand their last column on."""
    rows, length = x.shape
    chunk = 128
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    carry = nl.zeros((rows, 1), dtype=nl.float32)
    for i in nl.static_range(length // chunk):
        span = slice(i * chunk, (i + 1) * chunk)
        states = nisa.tensor_tensor_scan(nl.load(decay[:, span]), nl.load(x[:, span]), initial=carry, op0=np.multiply, op1=np.add)
        carry[...] = states[0:rows, chunk - 1]
        nl.store(out[:, span], value=states)
    return out


@nki.jit
def broadcast_row(x, row):
    """`x * row + row`, the row [1, width] given to all partitions."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    all_rows = nl.load(row).broadcast_to((rows, width))
    product = nisa.tensor_tensor(nl.load(x), all_rows, op=np.multiply)
    nl.store(out, value=nisa.tensor_tensor(product, all_rows, op=nl.add))
    return out


@nki.jit
def fused_activation(x, bias):
    """sum over a row of gelu(0.5 * x + bias), negated: [rows, 1]; the bias is one number per row."""
    rows, _ = x.shape
    out = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = nl.ndarray((nl.par_dim(rows), 1), dtype=nl.float32)
    activated = nisa.activation_reduce(
        nl.gelu, nl.load(x), reduce_op=np.add, reduce_res=sums[:, 0], bias=nl.load(bias), scale=0.5, dtype=nl.float32
    )
    again = nisa.tensor_reduce(np.add, activated, axis=[1], negate=True)
    both = nisa.tensor_tensor(nisa.tensor_scalar(sums, np.multiply, -1.0), again, np.add)
    nl.store(out, value=nisa.tensor_scalar(both, np.multiply, 0.5))
    return out


@nki.jit
def transposed(x):
    """x [rows, columns] transposed on the Tensor engine, 128 x 128 at a time."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(rows // P):
        for j in nl.affine_range(columns // P):
            tile = nl.load(x[nl.ds(i * P, P), nl.ds(j * P, P)])
            nl.store(out[nl.ds(j * P, P), nl.ds(i * P, P)], value=nisa.tensor_copy(nisa.nc_transpose(tile)))
    return out
