"""Root mean square normalisation, in the first API generation: operations return tiles, masks cut the last rows off."""

import math
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def rmsnorm(x: Any, gain: Any, epsilon: float = 1e-6) -> Any:
    """`x / sqrt(mean(x**2) + epsilon) * gain`, [rows, width] like `x`; the mean is over a row, `gain` is [1, width].

    The Scalar engine squares and adds up a row in one pass; `gain` is loaded once.
    """
    rows, width = x.shape
    pmax = nl.tile_size.pmax
    normalised = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(pmax)[:, None]
    i_f = nl.arange(width)[None, :]
    gain_tile = nl.load(gain).broadcast_to((pmax, width))
    for tile in nl.affine_range(math.ceil(rows / pmax)):
        row = tile * pmax + i_p
        inside = row < rows
        x_tile = nl.load(x[row, i_f], mask=inside)
        sums = nl.ndarray((nl.par_dim(pmax), 1), dtype=nl.float32)
        nisa.activation_reduce(nl.square, x_tile, reduce_op=nl.add, reduce_res=sums, mask=inside)
        means = nisa.tensor_scalar(sums, nl.multiply, 1 / width, op1=nl.add, operand1=epsilon, mask=inside)
        factors = nisa.activation(nl.rsqrt, means, mask=inside)
        scaled = nisa.tensor_scalar(x_tile, nl.multiply, factors, mask=inside)
        result = nisa.tensor_tensor(scaled, gain_tile, nl.multiply, dtype=x.dtype, mask=inside)
        nl.store(normalised[row, i_f], value=result, mask=inside)
    return normalised
