"""Which kernels of aws-neuron/nki-samples run, with what inputs, against which reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests.bounds import Bounded
from tests.conformance import references

Generator = np.random.Generator
TUTORIALS = "src/nki_samples/tutorials"
BF16, F16, F32, I8 = ml_dtypes.bfloat16, np.float16, np.float32, np.int8


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel (or the function that launches it on its grid) in a file of the checkout, and what to run it with."""

    file: str
    function: str
    inputs: tuple[Callable[[Generator], tuple[Any, ...]], ...]
    reference: Callable[..., Bounded]
    #: The kernel that the function launches, if it is none itself.
    entry: str = ""


def _pair(shape: tuple[int, ...], dtype: Any) -> Callable[[Generator], tuple[Any, ...]]:
    return lambda rng: (rng.random(shape).astype(dtype), rng.random(shape).astype(dtype))


def _matrices(k: int, m: int, n: int, dtype: Any, *rest: Any) -> Callable[[Generator], tuple[Any, ...]]:
    return lambda rng: (rng.standard_normal((k, m)).astype(dtype), rng.standard_normal((k, n)).astype(dtype), *rest)


def _array(shape: tuple[int, ...], dtype: Any, *rest: Any) -> Callable[[Generator], tuple[Any, ...]]:
    if dtype is I8:
        return lambda rng: (rng.integers(-128, 128, shape).astype(dtype), *rest)
    return lambda rng: (rng.standard_normal(shape).astype(dtype), *rest)


def _mamba(batch: int, channels: int, states: int, length: int) -> Callable[[Generator], tuple[Any, ...]]:
    def make(rng: Generator) -> tuple[Any, ...]:
        time = (batch, channels, length)
        delta, u = rng.uniform(0.01, 0.5, time), rng.standard_normal(time)
        a = -rng.uniform(0.1, 2.0, (channels, states))
        b, c = rng.standard_normal((batch, states, length)), rng.standard_normal((batch, states, length))
        return tuple(x.astype(F32) for x in (delta, u, a, b, c))

    return make


def _heads(tokens: int) -> Callable[[Generator], tuple[Any, ...]]:
    return lambda rng: tuple(rng.uniform(-1, 1, (128, tokens)).astype(F32) for _ in range(3))


_MATMUL = f"{TUTORIALS}/matrix_multiplication/matrix_multiplication_nki_kernels.py"
_MAMBA = f"{TUTORIALS}/fused_mamba/mamba_nki_kernels.py"
_ADD = f"{TUTORIALS}/tensor_addition"
_ATTENTION = f"{TUTORIALS}/attention_fwd_performance/attention_kernels.py"

#: The file by which a checkout is known.
LANDMARK = _MATMUL
#: The kernels that have to run, each at two shapes (the basic matmul takes one shape only, so two types).
REQUIRED = (
    Case(
        f"{_ADD}/tensor_addition_nki_kernels.py",
        "nki_tensor_add",
        (_pair((256, 1024), F16), _pair((128, 1536), F32)),
        references.addition,
        "nki_tensor_add_kernel_",
    ),
    Case(
        f"{_ADD}/spmd_tensor_addition_nki_kernels.py",
        "nki_tensor_add",
        (_pair((256, 1024), F16), _pair((384, 512), BF16)),
        references.addition,
        "nki_tensor_add_kernel_",
    ),
    Case(
        f"{_ADD}/spmd_multiple_nc_tensor_addition_nki_kernels.py",
        "nki_tensor_add_nc2",
        (_pair((512, 1024), F16), _pair((256, 1536), F32)),
        references.addition,
        "nki_tensor_add_kernel_",
    ),
    Case(
        f"{TUTORIALS}/transpose2d/transpose2d_nki_kernels.py",
        "tensor_transpose2D_kernel_",
        (_array((5, 12), I8, (3, 4)), _array((128, 480), F32, (20, 24))),
        references.transpose_free,
    ),
    Case(_MATMUL, "nki_matmul_basic_", (_matrices(128, 64, 512, F32), _matrices(128, 64, 512, BF16)), references.product),
    Case(_MATMUL, "nki_matmul_tiled_", (_matrices(256, 256, 512, F32), _matrices(384, 128, 1024, BF16)), references.product),
    Case(_MATMUL, "nki_matmul_hoist_load_", (_matrices(256, 256, 512, F32), _matrices(384, 128, 1024, BF16)), references.product),
    Case(
        _MATMUL,
        "nki_matmul_block_free_dimension_",
        (_matrices(256, 256, 1024, F32), _matrices(128, 512, 2048, BF16)),
        references.product,
    ),
    Case(
        _MATMUL,
        "nki_matmul_fully_optimized_",
        (_matrices(1024, 2048, 1024, F32), _matrices(512, 512, 1024, BF16, 2, 1, 2)),
        references.blocked_product,
    ),
    Case(
        f"{TUTORIALS}/average_pool2d/average_pool2d_nki_kernels.py",
        "tensor_avgpool_kernel",
        (_array((2, 6, 6), F16, 2), _array((128, 24, 36), F32, 3)),
        references.average_pool,
    ),
    *(
        Case(_MAMBA, f"mamba_v{version}", (_mamba(1, 128, 4, 512), _mamba(2, 256, 3, 1024)), references.mamba)
        for version in (1, 2, 3)
    ),
)

#: Kernels that are tried and shown without deciding the result. `contributed/pipelined_attention.py` is left out: importing it runs
#: 16,384 tokens. `mxfp-matmul` needs the packed types of trn3.
BEYOND = (
    *(Case(_ATTENTION, f"attn_fwd_v{version}", (_heads(128),), references.attention) for version in (1, 2)),
    *(Case(_ATTENTION, f"attn_fwd_v{version}", (_heads(1024),), references.attention) for version in (3, 4, 5, 6)),
    *(
        Case(_ATTENTION, f"attn_fwd_v{version}", (_heads(1024),), references.attention_weights_in_bfloat16)
        for version in (7, 8, "8a", 9, 10, 11)
    ),
    Case("contributed/maxpooling.py", "max_pooling_2d_stride_1", (_array((200, 64), F32, 3),), references.largest_in_window),
    Case("contributed/matmul.py", "matmul", (_matrices(1024, 512, 2048, F32),), references.product),
    Case(
        "contributed/interpolate_bilinear_fwd.py",
        "interpolate_bilinear_2x_fwd",
        (_array((2, 64, 20, 32), F32),),
        references.twice_as_large,
    ),
    Case(
        "contributed/interpolate_trilinear_fwd.py",
        "interpolate_trilinear_2x_fwd",
        (_array((2, 64, 8, 9, 10), F32),),
        references.twice_as_large,
    ),
)
