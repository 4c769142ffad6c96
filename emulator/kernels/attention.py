"""Forward pass of attention for one head: softmax(q k^T / sqrt(d)) v, each row's maximum subtracted before the exponential."""

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl

QUERIES = 128
KEYS = 512
KEYS_PER_MATMUL = 128


@nki.jit
def attention_forward(q_t: Any, k_t: Any, v: Any) -> Any:
    """The attended values [queries, d] of `q_t` [d, queries], `k_t` [d, keys] and `v` [keys, d].

    d is at most 128, queries a multiple of 128, keys of 512. Queries and keys come transposed because the first matmul contracts
    over d. The second contracts over keys, so the weights are transposed on the Tensor engine, 128 x 128 at a time. Weights are
    kept in v's type, sums in float32; the division by the row's sum is done last, on d columns instead of all keys.

    Each engine runs its instructions in order, so the second matmul of a tile of queries is issued after the first one of the
    next tile: the Tensor engine works on while the other engines compute the softmax.
    """
    depth, queries = q_t.shape
    _, keys = k_t.shape
    scale = depth**-0.5
    attended = nl.ndarray((queries, depth), dtype=v.dtype, buffer=nl.shared_hbm)

    k_tile = nl.ndarray((depth, keys), dtype=k_t.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=k_tile, src=k_t)
    v_tiles = []
    for key in nl.affine_range(keys // KEYS_PER_MATMUL):
        v_tile = nl.ndarray((KEYS_PER_MATMUL, depth), dtype=v.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=v_tile, src=v[nl.ds(key * KEYS_PER_MATMUL, KEYS_PER_MATMUL), :])
        v_tiles.append(v_tile)

    pending: tuple[int, Any, Any] | None = None
    for query in nl.sequential_range(queries // QUERIES):
        q_tile = nl.ndarray((depth, QUERIES), dtype=q_t.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=q_tile, src=q_t[:, nl.ds(query * QUERIES, QUERIES)])
        scores, largest = score(q_tile, k_tile)
        weights, sums = exponentiate(scores, largest, scale, v.dtype)
        if pending is not None:
            finish(attended, *pending, v_tiles)
        pending = query, weights, sums
    assert pending is not None, "there have to be at least 128 queries"
    finish(attended, *pending, v_tiles)
    return attended


def finish(attended: Any, query: int, weights: Any, sums: Any, v_tiles: list[Any]) -> None:
    """Weigh v for one tile of queries and store it."""
    result = weigh(weights, sums, v_tiles)
    nisa.dma_copy(dst=attended[nl.ds(query * QUERIES, QUERIES), :], src=result)


def score(q_tile: Any, k_tile: Any) -> tuple[Any, Any]:
    """The products [queries, keys] of all keys with a tile of queries, in SBUF, and the largest of each row."""
    keys = k_tile.shape[1]
    chunks = keys // KEYS
    scores = nl.ndarray((QUERIES, keys), dtype=nl.float32, buffer=nl.sbuf)
    largest_of_chunk = nl.ndarray((QUERIES, chunks), dtype=nl.float32, buffer=nl.sbuf)
    for chunk in nl.affine_range(chunks):
        span = nl.ds(chunk * KEYS, KEYS)
        products = nl.ndarray((QUERIES, KEYS), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=products, stationary=q_tile, moving=k_tile[:, span])
        nisa.tensor_reduce(dst=largest_of_chunk[:, chunk : chunk + 1], op=nl.maximum, data=products, axis=1)
        # The Scalar engine reads the bank while the Vector engine searches the next one.
        nisa.activation(dst=scores[:, span], op=nl.copy, data=products)
    largest = nl.ndarray((QUERIES, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=largest_of_chunk, axis=1)
    return scores, largest


def exponentiate(scores: Any, largest: Any, scale: float, dtype: Any) -> tuple[Any, Any]:
    """exp(scale * (scores - largest)), [queries, keys] in `dtype`, and the sum of each row."""
    bias = nl.ndarray((QUERIES, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=bias, data=largest, op0=nl.multiply, operand0=-scale)
    weights = nl.ndarray(scores.shape, dtype=dtype, buffer=nl.sbuf)
    sums = nl.ndarray((QUERIES, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation_reduce(dst=weights, op=nl.exp, data=scores, reduce_op=nl.add, reduce_res=sums, bias=bias, scale=scale)
    return weights, sums


def weigh(weights: Any, sums: Any, v_tiles: list[Any]) -> Any:
    """The mean of v's rows [queries, d] with the given weights, which add up to `sums`."""
    depth, dtype = v_tiles[0].shape[1], v_tiles[0].dtype
    turned = [transpose(weights, start) for start in range(0, weights.shape[1], KEYS)]
    total = nl.ndarray((QUERIES, depth), dtype=nl.float32, buffer=nl.psum)
    for key, v_tile in enumerate(v_tiles):
        group, position = divmod(key, KEYS // KEYS_PER_MATMUL)
        nisa.nc_matmul(dst=total, stationary=turned[group][:, nl.ds(position * QUERIES, QUERIES)], moving=v_tile)
    inverse = nl.ndarray((QUERIES, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=sums)
    result = nl.ndarray((QUERIES, depth), dtype=dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=total, op0=nl.multiply, operand0=inverse)
    return result


def transpose(weights: Any, start: int) -> Any:
    """Columns `start` to `start + 512` of the weights as four transposed squares side by side, [128 keys, 4 x 128 queries].

    They share a PSUM bank, so that one copy empties it: a copy of 512 columns costs less than four of 128.
    """
    width = KEYS // KEYS_PER_MATMUL * QUERIES
    squares = nl.ndarray((KEYS_PER_MATMUL, width), dtype=weights.dtype, buffer=nl.psum)
    for part in nl.affine_range(KEYS // KEYS_PER_MATMUL):
        source = weights[:, nl.ds(start + part * KEYS_PER_MATMUL, KEYS_PER_MATMUL)]
        nisa.nc_transpose(dst=squares[:, nl.ds(part * QUERIES, QUERIES)], data=source)
    turned = nl.ndarray((KEYS_PER_MATMUL, width), dtype=weights.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=turned, src=squares)
    return turned
