"""Float64 references for the kernels of aws-neuron/nki-samples, with the bound that float32 arithmetic and storage allow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.bounds import Bounded, exact, matmul, scan


def addition(a: Any, b: Any) -> Bounded:
    """a + b."""
    return (exact(a) + exact(b)).stored(a.dtype)


def transpose_free(x: Any, shape: tuple[int, int]) -> Bounded:
    """Each row, as a matrix of `shape`, transposed."""
    return exact(x.reshape(-1, *shape).transpose(0, 2, 1).reshape(x.shape))


def product(left_t: Any, right: Any, *_: Any) -> Bounded:
    """left_t.T @ right; any further arguments are block sizes."""
    return matmul(left_t.T, right).stored(left_t.dtype)


def blocked_product(left_t: Any, right: Any, _m: int = 16, _n: int = 2, tiles_in_block_k: int = 8) -> Bounded:
    """left_t.T @ right summed in blocks of K, each block's sum kept in the result's type between blocks."""
    result, block = exact(np.zeros((left_t.shape[1], right.shape[1]))), 128 * tiles_in_block_k
    for start in range(0, left_t.shape[0], block):
        result = (result + matmul(left_t[start : start + block].T, right[start : start + block])).stored(left_t.dtype)
    return result


def average_pool(x: Any, size: int) -> Bounded:
    """The mean of each size x size square of [channels, height, width]; the sum is kept in x's type before it is divided."""
    c, h, w = x.shape
    squares = exact(x.reshape(c, h // size, size, w // size, size))
    total = squares.sum((2, 4)).reshape(c, h // size, w // size).stored(x.dtype)
    return (total * (1.0 / (size * size))).stored(x.dtype)


def mamba(delta: Any, u: Any, a: Any, b: Any, c: Any) -> Bounded:
    """The selective scan: sum over states of C * h, h[t] = exp(delta * A) * h[t - 1] + delta * u * B; [batch, channels, time]."""
    values, errors = [], []
    for batch in range(delta.shape[0]):
        step, inner = exact(delta[batch]), exact(delta[batch]) * exact(u[batch])
        total = exact(np.zeros_like(delta[batch]))
        for state in range(a.shape[1]):
            decay = (step * exact(a[:, state : state + 1])).exp()
            states = scan(decay, inner * exact(b[batch, state : state + 1]))
            total = total + states * exact(c[batch, state : state + 1])
        values.append(total.value)
        errors.append(total.error)
    return Bounded(np.stack(values), np.stack(errors)).stored(delta.dtype)


def attention(q_t: Any, k_t: Any, v_t: Any) -> Bounded:
    """softmax(q k^T) v without a scale, all three [d, tokens]; weights rounded to float32."""
    scores = matmul(q_t.T, k_t)
    weights = (scores - scores.max(1)).exp()
    shares = weights * weights.sum(1).reciprocal()
    return matmul(shares, v_t.T).stored(q_t.dtype)


def attention_weights_in_bfloat16(q_t: Any, k_t: Any, v_t: Any) -> Bounded:
    """The same with weights and v rounded to bfloat16 before the second product, divided by the row sums after it; bfloat16 out."""
    scores = matmul(q_t.T, k_t)
    weights = (scores - scores.max(1)).exp()
    product = matmul(weights.stored(ml_dtypes.bfloat16), exact(v_t.T).stored(ml_dtypes.bfloat16))
    return (product * weights.sum(1).reciprocal()).stored(ml_dtypes.bfloat16)


def largest_in_window(x: Any, size: int) -> Bounded:
    """The maximum of each size x size window of a matrix, stride 1."""
    return exact(np.lib.stride_tricks.sliding_window_view(x, (size, size)).max(axis=(2, 3)))


def twice_as_large(x: Any, *_: Any) -> Bounded:
    """Linear interpolation to twice the size along every axis after the second, ends kept (torch's `align_corners=False`)."""
    result = exact(x)
    for axis in range(2, x.ndim):
        result = _doubled(result, axis)
    return result.stored(x.dtype)


def _doubled(x: Bounded, axis: int) -> Bounded:
    size = x.value.shape[axis]
    before, after = np.maximum(np.arange(size) - 1, 0), np.minimum(np.arange(size) + 1, size - 1)
    left = x * 0.75 + Bounded(x.value.take(before, axis), x.error.take(before, axis)) * 0.25
    right = x * 0.75 + Bounded(x.value.take(after, axis), x.error.take(after, axis)) * 0.25
    shape = [*x.value.shape]
    shape[axis] *= 2
    return Bounded(
        np.stack([left.value, right.value], axis + 1).reshape(shape), np.stack([left.error, right.error], axis + 1).reshape(shape)
    )
