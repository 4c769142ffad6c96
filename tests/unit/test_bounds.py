"""The rounding analysis that decides whether a kernel is right: float32 stays within it, a wrong result does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.bounds import Bounded, check, exact, excess, matmul, scan

F32 = np.float32

#: (what float32 computes, its bounded reference) of two positive arrays [64, 96].
PAIRS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Bounded]]] = {
    "sum": (lambda a, b: (a + b) * a - b, lambda a, b: (exact(a) + b) * a - b),
    "total": (lambda a, b: (a * b).sum(axis=1, keepdims=True), lambda a, b: (exact(a) * b).sum(1)),
    "serial total": (lambda a, b: np.cumsum(a, axis=1, dtype=F32)[:, -1:], lambda a, b: exact(a).sum(1)),
    "exp": (lambda a, b: np.exp(a * b), lambda a, b: (exact(a) * b).exp()),
    "reciprocal": (lambda a, b: F32(1) / (a + b), lambda a, b: (exact(a) + b).reciprocal()),
    "rsqrt": (lambda a, b: F32(1) / np.sqrt(a * b), lambda a, b: (exact(a) * b).rsqrt()),
    "matmul": (lambda a, b: a @ b.T, lambda a, b: matmul(a, b.T)),
    "bfloat16": (lambda a, b: (a + b).astype(ml_dtypes.bfloat16), lambda a, b: (exact(a) + b).stored(ml_dtypes.bfloat16)),
    "softmax": (
        lambda a, b: (lambda e: e / e.sum(axis=1, keepdims=True))(np.exp(a - a.max(axis=1, keepdims=True))),
        lambda a, b: (lambda e: e * e.sum(1).reciprocal())((exact(a) - exact(a).max(1)).exp()),
    ),
}


def _inputs(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 2, (64, 96)).astype(F32), rng.uniform(0.1, 2, (64, 96)).astype(F32)


@pytest.mark.parametrize("name", PAIRS)
def test_float32_stays_within_its_bound(name: str) -> None:
    computed, reference = PAIRS[name]
    for seed in range(20):
        check(computed(*_inputs(seed)), reference(*_inputs(seed)))


@pytest.mark.parametrize("name", PAIRS)
def test_a_bound_is_no_wider_than_a_few_roundings_per_term(name: str) -> None:
    expected = PAIRS[name][1](*_inputs(0))
    step = 2.0**-8 if name == "bfloat16" else 2.0**-24
    terms = 96 + 1 if name in ("total", "serial total", "matmul", "softmax") else 1
    assert (expected.error <= 40 * terms * step * np.maximum(np.abs(expected.value), 1)).all()


def test_scan_stays_within_its_bound() -> None:
    a, x = _inputs(3)
    a = (a / 2).astype(F32)
    state, columns = np.zeros(64, F32), []
    for i in range(96):
        state = a[:, i] * state + x[:, i]
        columns.append(state)
    check(np.stack(columns, axis=1), scan(a, x))


@pytest.mark.parametrize("wrong", [lambda v: v * F32(1.0001), lambda v: v[:, ::-1], lambda v: np.where(v == v.max(), np.nan, v)])
def test_a_wrong_result_is_caught(wrong: Callable[[Any], Any]) -> None:
    a, b = _inputs(1)
    with pytest.raises(AssertionError, match="times its bound"):
        check(wrong(a @ b.T), matmul(a, b.T))


def test_a_wrong_shape_is_caught() -> None:
    a, b = _inputs(1)
    with pytest.raises(AssertionError, match="shape"):
        check((a @ b.T)[:-1], matmul(a, b.T))
    assert excess((a @ b.T)[:-1], matmul(a, b.T)) == float("inf")


def test_an_exact_reference_allows_nothing_else() -> None:
    a, _ = _inputs(2)
    check(a, exact(a))
    assert excess(np.nextafter(a, F32(9)), exact(a)) == float("inf")
