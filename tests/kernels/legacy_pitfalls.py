"""First generation: what an emulator gets wrong first."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np

P = 128


@nki.jit
def results_are_stored_where_they_are_assigned(x):
    """`tile[...] = nisa.op()` is one instruction; so are a matmul added to PSUM and a function of a returned tile."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    held = nl.ndarray((nl.par_dim(rows), 2, width), dtype=nl.float32, buffer=nl.sbuf)
    tile = nl.load(x)
    held[:, 0, :] = nisa.activation(op=np.exp, data=tile)
    held[:, 1, :] = nisa.tensor_scalar(tile, np.multiply, 2.0)
    total: nt.tensor[rows, width] = nisa.tensor_tensor(held[:, 0, :], held[:, 1, :], np.add)
    nl.store(out, value=total)
    return out


@nki.jit
def result_used_after_it_was_assigned(x):
    """The returned tile is assigned to one tensor, which then changes; the tile itself must not."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    held = nl.ndarray((nl.par_dim(x.shape[0]), x.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
    doubled = nisa.tensor_scalar(nl.load(x), np.multiply, 2.0)
    held[...] = doubled
    held[...] = nisa.tensor_scalar(held, np.add, 100.0)
    nl.store(out, value=nisa.tensor_tensor(held, doubled, np.subtract))
    return out


@nki.jit
def windows_beyond_the_edge(x, size):
    """The maximum over `size` neighbouring rows and columns: indices leave the tensor where the mask excludes them."""
    height, width = x.shape
    out = nl.ndarray((height - size + 1, width - size + 1), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in nl.affine_range((height + P - 1) // P):
        i_p, i_dy, i_x = nl.mgrid[0:P, 0:size, 0:width]
        row = start * P + i_p
        tile = nl.load(x[row + i_dy, i_x], mask=(row < height - size + 1))
        i_p, i_dy, i_x, i_dx = nl.mgrid[0:P, 0:size, 0 : width - size + 1, 0:size]
        largest = nl.max(tile[i_p, i_dy, i_x + i_dx], axis=[1, 3], mask=(start * P + i_p < height - size + 1))
        i_p, i_x = nl.mgrid[0:P, 0 : width - size + 1]
        row = start * P + i_p
        nl.store(out[row, i_x], value=largest, mask=(row < height - size + 1))
    return out


@nki.jit
def one_dimensional_loads(x):
    """A column of a matrix loads as [rows, 1]."""
    out = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.shared_hbm)
    column = nl.load(x[:, 1])
    assert tuple(column.shape) == (x.shape[0], 1)
    nl.store(out, value=column)
    return out


@nki.jit
def slices_after_index_arrays(x):
    """An index array beside an integer and a slice: the array's dimensions come first."""
    _, rows, width = x.shape
    out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(rows)[:, None]
    i_f = nl.arange(width)[None, :]
    tile = nl.load(x[1, i_p, i_f])
    nl.store(out[i_p, 0:width], value=tile)
    return out


@nki.jit
def number_stored(x):
    """A number stored to HBM fills the tensor."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, 7)
    return out


@nki.jit
def transposed_by_identity(x):
    """x transposed by a matmul with the identity matrix, a constant in HBM that is loaded."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    identity = nl.load(nl.shared_identity_matrix(n=rows, dtype=x.dtype))
    nl.store(out, value=nisa.tensor_copy(nisa.nc_matmul(nl.load(x), identity)))
    return out
