"""What our kernels compute, in both API generations, against float64 references at two shapes each with random inputs.

The allowed error of each element follows from the reference's own rounding analysis (tests/bounds.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator.nki import activations, dtypes
from emulator.run import load_kernel, run_kernel
from tests.bounds import Bounded, check, exact, matmul, scan

TESTS = Path(__file__).parents[1] / "kernels"
BUNDLED = Path(__file__).parents[2] / "emulator" / "kernels"
BF16 = ml_dtypes.bfloat16
#: Largest derivative of gelu, near x = 1.41.
GELU_SLOPE = 1.13

Reference = Callable[..., Bounded]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, its arguments by shape (a tuple of int with an optional type) or value, and what it should give."""

    file: str
    function: str
    reference: Reference
    arguments: tuple[tuple[Any, ...], ...]
    #: Element type of random arguments.
    dtype: Any = np.float32
    positive: bool = False
    folder: Path = TESTS


class Shape(tuple[int, ...]):
    """Stands for a random array of this shape among the arguments."""


def S(*sizes: int) -> Shape:
    return Shape(sizes)


def _gelu(x: Any) -> Bounded:
    return exact(x).apply(lambda v: v * activations.normal_distribution(v), GELU_SLOPE)


def _swapped(x: Any, outer: int, inner: int) -> Bounded:
    return exact(x.reshape(-1, outer, inner).transpose(0, 2, 1).reshape(x.shape))


def _softmax(x: Any) -> Bounded:
    weights = (exact(x) - exact(x).max(1)).exp()
    return (weights * weights.sum(1).reciprocal()).stored(x.dtype)


def _window(x: Any, window: int) -> Bounded:
    c, h, w = x.shape
    return exact(x.reshape(c, h // window, window, w // window, window).max(axis=(2, 4)))


def _blocks(x: Any) -> Bounded:
    held = exact(x).exp()
    blocks = held.reshape(-1, 128, x.shape[1])
    total = blocks.sum(0)
    return (blocks + total).reshape(*x.shape).stored(x.dtype)


def _fused_sum(x: Any, bias: Any) -> Bounded:
    return exact(np.zeros((x.shape[0], 1))) - _gelu(exact(x) * 0.5 + exact(bias)).sum(1)


def _every_other(x: Any) -> Bounded:
    return exact(np.stack([x[:, 0::2], x[:, 1::2]]))


def _fused_scalars(x: Any, scale: Any) -> Bounded:
    scaled = (exact(1.0) - exact(x)) * exact(scale)
    return Bounded(np.maximum(scaled.value, 0), scaled.error) - exact(x)


def _rmsnorm(x: Any, gain: Any) -> Bounded:
    squares = exact(x) * exact(x)
    means = squares.sum(1) * (1 / x.shape[1]) + 1e-6
    # The first product is kept in x's type, as every tile that an operation returns.
    return ((exact(x) * means.rsqrt()).stored(np.float32) * exact(gain)).stored(x.dtype)


def _attention(q_t: Any, k_t: Any, v: Any) -> Bounded:
    scale = q_t.shape[0] ** -0.5
    scores = matmul(q_t.T.astype(np.float64), k_t)
    weights = (scores * scale - scores.max(1) * scale).exp()
    return (matmul(weights.stored(v.dtype), v) * weights.sum(1).reciprocal()).stored(v.dtype)


def _product(left_t: Any, right: Any) -> Bounded:
    return matmul(left_t.T, right).stored(left_t.dtype)


def _rounded_product(left_t: Any, right: Any) -> Bounded:
    return matmul(left_t.astype(BF16).astype(np.float64).T, right.astype(BF16)).stored(np.float32)


CASES = [
    Case("legacy_indexing", "masked_affine", lambda x, a, b: exact(x) * a + b, ((S(200, 70), 1.5, -0.25), (S(128, 64), 0.5, 2.0))),
    Case("legacy_indexing", "window_maximum", _window, ((S(32, 12, 18), 3), (S(128, 16, 8), 2))),
    Case("legacy_indexing", "swap_free_axes", _swapped, ((S(5, 12), 3, 4), (S(128, 96), 8, 12))),
    Case("legacy_indexing", "block_dimensions", _blocks, ((S(256, 64),), (S(512, 200),))),
    Case("legacy_indexing", "launch_spmd", lambda x: exact(x) * 2, ((S(256, 512),), (S(128, 768),))),
    Case("legacy_indexing", "launch_spmd_two_cores", lambda x: exact(x) * 2, ((S(256, 512),), (S(512, 256),))),
    Case("legacy_indexing", "column_slices", lambda x: exact(x) * x[:, :1] + x[:, -1:], ((S(64, 33),), (S(128, 512),))),
    Case("legacy_compute", "accumulate_in_psum", _product, ((S(256, 128), S(256, 512)), (S(384, 256), S(384, 192)))),
    Case("legacy_compute", "accumulate_in_psum", _product, ((S(256, 128), S(256, 512)), (S(512, 256), S(512, 256))), BF16),
    Case("legacy_compute", "accumulate_blocks_in_psum", _product, ((S(256, 128), S(256, 512)), (S(384, 256), S(384, 192)))),
    Case(
        "legacy_compute",
        "plain_matmul",
        lambda a, b: matmul(a, b).stored(a.dtype),
        ((S(128, 128), S(128, 512)), (S(64, 96), S(96, 200))),
    ),
    Case("legacy_compute", "softmax_rows", _softmax, ((S(128, 64),), (S(256, 1000),))),
    Case(
        "legacy_compute",
        "chunked_scan",
        lambda a, x: scan(a, x).stored(np.float32),
        ((S(128, 256), S(128, 256)), (S(32, 384), S(32, 384))),
        positive=True,
    ),
    Case("legacy_compute", "broadcast_row", lambda x, r: exact(x) * r + r, ((S(128, 64), S(1, 64)), (S(96, 300), S(1, 300)))),
    Case("legacy_compute", "fused_activation", _fused_sum, ((S(128, 64), S(128, 1)), (S(64, 500), S(64, 1)))),
    Case("legacy_compute", "transposed", lambda x: exact(x.T), ((S(128, 256),), (S(256, 384),))),
    Case("current_indexing", "swap_free_axes", _swapped, ((S(5, 12), 3, 4), (S(128, 96), 8, 12))),
    Case("current_indexing", "every_other", _every_other, ((S(64, 32),), (S(128, 500),))),
    Case("current_indexing", "broadcast_row", lambda x, r: exact(x) * r, ((S(128, 64), S(1, 64)), (S(96, 300), S(1, 300)))),
    Case("current_indexing", "last_rows", lambda x: exact(x) - exact(x).sum(1), ((S(200, 70),), (S(300, 256),))),
    Case("current_indexing", "launch_halves", lambda x: exact(x) * x, ((S(256, 128),), (S(64, 300),))),
    Case("current_compute", "tiles_in_lists", _product, ((S(256, 128), S(256, 512)), (S(384, 256), S(384, 192)))),
    Case("current_compute", "tiles_in_lists", _product, ((S(256, 128), S(256, 512)), (S(512, 256), S(512, 256))), BF16),
    Case(
        "current_compute",
        "accumulate_on_request",
        lambda a, b: (matmul(a.T, b) + matmul(a.T, b)).stored(a.dtype),
        ((S(256, 128), S(256, 512)), (S(384, 64), S(384, 192))),
    ),
    Case("current_compute", "fused_scalars", _fused_scalars, ((S(128, 64), S(128, 1)), (S(64, 500), S(64, 1)))),
    Case(
        "current_compute", "narrow_integers", lambda x: exact(np.clip(np.rint(x * 1.0), -128, 127)), ((S(128, 64),), (S(64, 500),))
    ),
    Case(
        "current_compute",
        "scan_with_carry",
        lambda a, x: scan(a, x),
        ((S(128, 256), S(128, 256)), (S(32, 400), S(32, 400))),
        positive=True,
    ),
    Case(
        "current_compute",
        "convenience_layer",
        lambda x, y: exact(x).exp() * y + exact(np.maximum(x, y)),
        ((S(128, 64), S(128, 64)), (S(64, 500), S(64, 500))),
    ),
    Case("current_compute", "reduce_registers", lambda x: exact(x).exp().sum(1), ((S(128, 64),), (S(64, 500),))),
    Case("current_compute", "transposed", lambda x: exact(x.T), ((S(128, 256),), (S(256, 384),)), BF16),
    Case(
        "vector_add",
        "vector_add",
        lambda a, b: (exact(a) + b).stored(a.dtype),
        ((S(128, 4096), S(128, 4096)), (S(300, 700), S(300, 700))),
        folder=BUNDLED,
    ),
    Case(
        "vector_add",
        "vector_add",
        lambda a, b: (exact(a) + b).stored(a.dtype),
        ((S(128, 4096), S(128, 4096)), (S(300, 700), S(300, 700))),
        BF16,
        folder=BUNDLED,
    ),
    Case("matmul", "matmul_unblocked", _product, ((S(256, 128), S(256, 1024)), (S(384, 256), S(384, 512))), BF16, folder=BUNDLED),
    Case("matmul", "matmul_blocked", _product, ((S(256, 128), S(256, 1024)), (S(384, 1024), S(384, 2048))), BF16, folder=BUNDLED),
    Case("matmul", "matmul_blocked", _product, ((S(256, 128), S(256, 1024)), (S(384, 512), S(384, 1024))), folder=BUNDLED),
    Case(
        "attention",
        "attention_forward",
        _attention,
        ((S(128, 128), S(128, 512), S(512, 128)), (S(64, 256), S(64, 1024), S(1024, 64))),
        folder=BUNDLED,
    ),
    Case(
        "attention",
        "attention_forward",
        _attention,
        ((S(128, 128), S(128, 512), S(512, 128)), (S(64, 256), S(64, 1024), S(1024, 64))),
        BF16,
        folder=BUNDLED,
    ),
    Case("rmsnorm", "rmsnorm", _rmsnorm, ((S(128, 512), S(1, 512)), (S(300, 96), S(1, 96))), folder=BUNDLED),
    Case("rules_small_transfers", "narrow_loads", lambda x: exact(x).exp(), ((S(128, 2048),), (S(128, 4096),))),
    Case("rules_small_transfers", "wide_loads", lambda x: exact(x).exp(), ((S(128, 2048),), (S(128, 4096),))),
    Case("rules_overlap", "single_buffer", lambda x: _gelu(_gelu(x)), ((S(128, 4096),), (S(64, 8192),))),
    Case("rules_overlap", "pipelined", lambda x: _gelu(_gelu(x)), ((S(128, 4096),), (S(64, 8192),))),
    Case(
        "rules_reload",
        "reloaded",
        lambda x, f: (exact(x).reshape(-1, 128, x.shape[1]) * f).reshape(*x.shape),
        ((S(256, 64), S(128, 64)), (S(512, 300), S(128, 300))),
    ),
    Case(
        "rules_reload",
        "hoisted",
        lambda x, f: (exact(x).reshape(-1, 128, x.shape[1]) * f).reshape(*x.shape),
        ((S(256, 64), S(128, 64)), (S(512, 300), S(128, 300))),
    ),
    Case("rules_small_free", "few_elements", lambda x: exact(x) * 2.0 + 1.0, ((S(128, 64),), (S(128, 256),))),
    Case("rules_small_free", "many_elements", lambda x: exact(x) * 2.0 + 1.0, ((S(128, 64),), (S(128, 256),))),
    Case(
        "rules_transposes",
        "transposes_on_tensor_engine",
        lambda a, b: matmul(a, b).stored(a.dtype),
        ((S(128, 256), S(256, 512)), (S(256, 384), S(384, 512))),
        BF16,
    ),
    Case("rules_transposes", "layout_without_transposes", _product, ((S(256, 128), S(256, 512)), (S(384, 256), S(384, 512))), BF16),
    Case("rules_matmul_dtype", "float32_matmul", _product, ((S(256, 128), S(256, 512)), (S(384, 256), S(384, 1024)))),
    Case("rules_matmul_dtype", "bfloat16_matmul", _rounded_product, ((S(256, 128), S(256, 512)), (S(384, 256), S(384, 1024)))),
    Case("rules_partitions", "quarter_of_the_partitions", lambda x: (_gelu(x) * 0.5).reshape(-1, 512), ((S(65536),), (S(131072),))),
    Case("rules_partitions", "all_partitions", lambda x: (_gelu(x) * 0.5).reshape(-1, 512), ((S(65536),), (S(131072),))),
]


def _ids() -> list[str]:
    return [f"{case.file}:{case.function}-{np.dtype(case.dtype)}" for case in CASES]


@pytest.mark.parametrize("shape", [0, 1])
@pytest.mark.parametrize("case", CASES, ids=_ids())
def test_kernel_equals_float64(case: Case, shape: int) -> None:
    rng = np.random.default_rng([shape, *case.function.encode()])
    given = [_random(rng, argument, case) for argument in case.arguments[shape]]
    expected = case.reference(*given)
    check(run_kernel(load_kernel(case.folder / f"{case.file}.py", case.function), given).outputs, expected)


def _random(rng: np.random.Generator, argument: Any, case: Case) -> Any:
    if not isinstance(argument, Shape):
        return argument
    values = rng.uniform(0.1, 1.0, argument) if case.positive else rng.standard_normal(argument)
    if case.function == "narrow_integers":
        values = values * 100
    return values.astype(case.dtype)


@pytest.mark.parametrize("name", [name for name, dtype in dtypes.CONSTANTS.items() if not dtypes.is_packed(dtype)])
def test_tiles_of_every_type_round_as_their_type_does(name: str) -> None:
    dtype = dtypes.CONSTANTS[name]
    x = (np.random.default_rng(5).standard_normal((128, 96)) * 50).astype(np.float32)
    x = np.abs(x) if name == "float8_e8m0fnu" else x
    result = run_kernel(load_kernel(TESTS / "current_compute.py", "round_trip"), (x, dtype)).outputs
    np.testing.assert_array_equal(result, dtypes.to_float32(dtypes.cast(x, dtype)))
    assert (result != x).any() == (name != "float32")


def test_what_nothing_wrote_is_nan() -> None:
    x = np.ones((16, 8), np.float32)
    result = run_kernel(load_kernel(TESTS / "current_compute.py", "half_written"), (x,)).outputs
    np.testing.assert_array_equal(result[:, :4], 2)
    assert np.isnan(result[:, 4:]).all()


@pytest.mark.parametrize(
    ("file", "function", "shapes"),
    [
        ("matmul.py", "matmul_blocked", ((512, 1024), (512, 1024))),
        ("matmul.py", "matmul_unblocked", ((256, 128), (256, 512))),
        ("attention.py", "attention_forward", ((128, 256), (128, 512), (512, 128))),
        ("rmsnorm.py", "rmsnorm", ((200, 96), (1, 96))),
        ("vector_add.py", "vector_add", ((128, 4096), (128, 4096))),
    ],
)
def test_a_kernel_asks_for_the_same_without_values(file: str, function: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    given = [np.zeros(shape, BF16) for shape in shapes]
    kernel = load_kernel(BUNDLED / file, function)
    with_values, without = run_kernel(kernel, given).program, run_kernel(kernel, given, values=False).program
    assert len(with_values) == len(without) > 0
    for column in ("opcode", "engine", "n", "m", "k", "stack"):
        np.testing.assert_array_equal(getattr(with_values, column), getattr(without, column))
    np.testing.assert_array_equal(with_values.operands.offset, without.operands.offset)
