"""Float64 references that carry a bound of what rounding may have changed, so that no tolerance has to be guessed.

A `Bounded` goes through the same operations as the kernel's values. Each adds what float32 arithmetic rounds away; `stored` adds
the rounding of an element type. Sums may be taken in any order: n terms differ by at most n roundings of the sum of magnitudes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.nki import dtypes

Double = NDArray[np.float64]

#: Half the distance from 1 to the next float32: the largest relative error of one rounding.
UNIT = 2.0**-24
#: The activation functions are exact to so many roundings (tests/unit/test_alu.py holds them to that).
FUNCTION_ROUNDINGS = 8


@dataclass(frozen=True, slots=True)
class Bounded:
    """Exact values, and how far a float32 computation of them may be off."""

    value: Double
    error: Double

    def __add__(self, other: Any) -> Bounded:
        other = exact(other)
        return _rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Any) -> Bounded:
        other = exact(other)
        return _rounded(self.value - other.value, self.error + other.error)

    def __mul__(self, other: Any) -> Bounded:
        other = exact(other)
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error + self.error * other.error
        return _rounded(self.value * other.value, error)

    def __getitem__(self, key: Any) -> Bounded:
        return Bounded(self.value[key], self.error[key])

    def sum(self, axis: int | tuple[int, ...]) -> Bounded:
        """The sum along `axis`, kept as a dimension of size 1."""
        axes = axis if isinstance(axis, tuple) else (axis,)
        terms = int(np.prod([self.value.shape[a] for a in axes]))
        magnitude = (np.abs(self.value) + self.error).sum(axis=axis, keepdims=True)
        own = self.error.sum(axis=axis, keepdims=True)
        return Bounded(self.value.sum(axis=axis, keepdims=True), own + terms * UNIT * magnitude)

    def max(self, axis: int | tuple[int, ...]) -> Bounded:
        """The largest along `axis`, kept as a dimension of size 1."""
        return Bounded(self.value.max(axis=axis, keepdims=True), self.error.max(axis=axis, keepdims=True))

    def exp(self) -> Bounded:
        """The exponential."""
        value = np.exp(self.value)
        return Bounded(value, value * (np.expm1(self.error) + FUNCTION_ROUNDINGS * UNIT * np.exp(self.error)))

    def reciprocal(self) -> Bounded:
        """One over it. Its error has to be smaller than the value."""
        value = 1.0 / self.value
        return _rounded(value, self.error / (np.abs(self.value) * (np.abs(self.value) - self.error)))

    def rsqrt(self) -> Bounded:
        """One over its square root, of positive values."""
        value = self.value**-0.5
        slope = 0.5 * (self.value - self.error) ** -1.5
        return Bounded(value, slope * self.error + FUNCTION_ROUNDINGS * UNIT * value)

    def apply(self, function: Callable[[Double], Double], slope: float) -> Bounded:
        """A function whose derivative is nowhere larger than `slope`."""
        value = function(self.value)
        return Bounded(value, slope * self.error + FUNCTION_ROUNDINGS * UNIT * np.abs(value))

    def stored(self, dtype: dtypes.Dtype | type) -> Bounded:
        """As elements of a float type: one rounding more, and half the smallest number at the bottom of the range."""
        kind = dtypes.as_dtype(dtype)
        magnitude = np.abs(self.value) + self.error
        smallest = float(dtypes.ml_dtypes.finfo(dtypes.storage(kind)).smallest_subnormal)
        return Bounded(self.value, self.error + magnitude * dtypes.epsilon(kind) / 2 + smallest / 2)

    def reshape(self, *shape: int) -> Bounded:
        """The same elements in another shape."""
        return Bounded(self.value.reshape(shape), self.error.reshape(shape))


def exact(values: Any) -> Bounded:
    """Inputs as they are: no error. A `Bounded` stays what it is."""
    if isinstance(values, Bounded):
        return values
    value = np.asarray(values).astype(np.float64)
    return Bounded(value, np.zeros_like(value))


def matmul(left: Any, right: Any) -> Bounded:
    """`left @ right` with float32 products and sums in any order."""
    left, right = exact(left), exact(right)
    a, b = np.abs(left.value) + left.error, np.abs(right.value) + right.error
    inherited = left.error @ b + a @ right.error
    terms = left.value.shape[-1]
    return Bounded(left.value @ right.value, inherited + (terms + 1) * UNIT * (a @ b))


def scan(decay: Any, x: Any) -> Bounded:
    """h[:, i] = decay[:, i] * h[:, i - 1] + x[:, i], from zero."""
    decay, x = exact(decay), exact(x)
    state = exact(np.zeros(x.value.shape[0]))
    values, errors = [], []
    for i in range(x.value.shape[1]):
        state = decay[:, i] * state + x[:, i]
        values.append(state.value)
        errors.append(state.error)
    return Bounded(np.stack(values, axis=1), np.stack(errors, axis=1))


def excess(result: Any, expected: Bounded) -> float:
    """The largest error of `result` as a multiple of its bound: at most 1 passes, infinite for another shape or a NaN."""
    given = np.asarray(result).astype(np.float64)
    if given.shape != expected.value.shape:
        return float("inf")
    error = np.abs(given - expected.value)
    if not np.isfinite(error).all():
        return float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0, 0.0, error / expected.error)
    return float(ratio.max(initial=0.0))


def check(result: Any, expected: Bounded) -> None:
    """Raises AssertionError if any element is further from the reference than its bound."""
    given = np.asarray(result)
    assert given.shape == expected.value.shape, f"shape {given.shape} instead of {expected.value.shape}"
    ratio = excess(given, expected)
    assert ratio <= 1, f"largest error is {ratio:.3g} times its bound; {np.isnan(given.astype(np.float64)).sum()} elements are NaN"


def _rounded(value: Double, error: Double) -> Bounded:
    return Bounded(value, error + UNIT * (np.abs(value) + error))
