"""The Scalar engine's activation functions on float32 arrays.

The engine approximates them with piecewise polynomials whose coefficients are not published; here they are exact to float32's
rounding. Source of the list and of the input ranges: aws-neuron-sdk nki/api/nki.api.shared.rst ("Supported Activation Functions").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import erf as erf_of_one
from math import pi, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Single = NDArray[np.float32]
Double = NDArray[np.float64]

#: Inputs for which the engine's result is defined, where that is not every number: between the two, signs included (reciprocal:
#: of the magnitude).
VALID_RANGE: Final[dict[str, tuple[float, float]]] = {
    "log": (2.0**-64, 2.0**64),
    "sin": (-pi, pi),
    "arctan": (-pi / 2, pi / 2),
    "sqrt": (2.0**-116, 2.0**118),
    "rsqrt": (2.0**-87, 2.0**97),
    "reciprocal": (2.0**-42, 2.0**42),
}

_CELLS_PER_UNIT: Final = 2048
_ERF_END: Final = 6
#: Slope of the logistic approximation of the normal distribution function in `gelu_apprx_sigmoid`.
_LOGISTIC: Final = 1.702


def outside_valid_range(function: str, values: NDArray[Any]) -> bool:
    """Whether any of `values` is outside the range for which the engine defines `function`; NaN is not."""
    limits = VALID_RANGE.get(function)
    if limits is None or values.size == 0:
        return False
    given = np.abs(values) if function == "reciprocal" else values
    return bool(np.any((given < limits[0]) | (given > limits[1])))


def erf(x: NDArray[Any]) -> Double:
    """The error function in float64, to about 1e-15: cubic Hermite interpolation of a table of `math.erf` with its exact slope."""
    values, slopes = _erf_table()
    given = np.asarray(x, dtype=np.float64)
    magnitude = np.minimum(np.abs(given), _ERF_END) * _CELLS_PER_UNIT
    # NaN has no cell; any will do, since the fraction stays NaN.
    cell = np.minimum(np.nan_to_num(magnitude), _ERF_END * _CELLS_PER_UNIT - 1).astype(np.int64)
    t = magnitude - cell
    left, right = values[cell], values[cell + 1]
    left_slope, right_slope = slopes[cell], slopes[cell + 1]
    rise = right - left
    cubic = left + t * (left_slope + t * (3 * rise - 2 * left_slope - right_slope + t * (left_slope + right_slope - 2 * rise)))
    result: Double = np.copysign(cubic, given)
    return result


def normal_distribution(x: Double) -> Double:
    """The standard normal distribution function."""
    result: Double = 0.5 * (1.0 + erf(x / sqrt(2.0)))
    return result


def logistic(x: Double) -> Double:
    """1 / (1 + exp(-x))."""
    result: Double = 1.0 / (1.0 + np.exp(-x))
    return result


def softplus(x: Double) -> Double:
    """log(1 + exp(x)) without overflow."""
    result: Double = np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
    return result


@lru_cache(maxsize=1)
def _erf_table() -> tuple[Double, Double]:
    at = np.arange(_ERF_END * _CELLS_PER_UNIT + 1) / _CELLS_PER_UNIT
    values = np.array([erf_of_one(x) for x in at])
    return values, _erf_slope(at) / _CELLS_PER_UNIT


def _erf_slope(x: Double) -> Double:
    result: Double = 2.0 / sqrt(pi) * np.exp(-x * x)
    return result


def _gelu_tanh(x: Double) -> Double:
    result: Double = 0.5 * x * (1.0 + np.tanh(sqrt(2.0 / pi) * (x + 0.044715 * x**3)))
    return result


def _gelu_slope(x: Double) -> Double:
    result: Double = normal_distribution(x) + x * np.exp(-0.5 * x * x) / sqrt(2.0 * pi)
    return result


def _silu_slope(x: Double) -> Double:
    share = logistic(x)
    result: Double = share * (1.0 + x * (1.0 - share))
    return result


def _direct(function: Callable[[Single], Any]) -> Callable[[Single], Single]:
    """`function` in float32."""

    def run(x: Single) -> Single:
        with np.errstate(all="ignore"):
            return np.asarray(function(x), dtype=np.float32)

    return run


def _precise(function: Callable[[Double], Double]) -> Callable[[Single], Single]:
    """`function` in float64, rounded once: formulas that cancel would lose float32's last bits."""

    def run(x: Single) -> Single:
        with np.errstate(all="ignore"):
            return function(x.astype(np.float64)).astype(np.float32)

    return run


#: Activation functions by their name in `nki.language`; each takes and returns float32.
FUNCTIONS: Final[dict[str, Callable[[Single], Single]]] = {
    "copy": _direct(lambda x: x),
    "square": _direct(np.square),
    "abs": _direct(np.abs),
    "sign": _direct(np.sign),
    "relu": _direct(lambda x: np.maximum(x, np.float32(0))),
    "exp": _direct(np.exp),
    "log": _direct(np.log),
    "sqrt": _direct(np.sqrt),
    "rsqrt": _direct(lambda x: np.float32(1) / np.sqrt(x)),
    "reciprocal": _direct(lambda x: np.float32(1) / x),
    "tanh": _direct(np.tanh),
    "sin": _direct(np.sin),
    "arctan": _direct(np.arctan),
    "sigmoid": _precise(logistic),
    "silu": _precise(lambda x: x * logistic(x)),
    "silu_dx": _precise(_silu_slope),
    "gelu": _precise(lambda x: x * normal_distribution(x)),
    "gelu_dx": _precise(_gelu_slope),
    "gelu_apprx_tanh": _precise(_gelu_tanh),
    "gelu_apprx_sigmoid": _precise(lambda x: x * logistic(_LOGISTIC * x)),
    "gelu_apprx_sigmoid_dx": _precise(lambda x: _silu_slope(_LOGISTIC * x)),
    "softplus": _precise(softplus),
    "mish": _precise(lambda x: x * np.tanh(softplus(x))),
    "erf": _precise(erf),
    "erf_dx": _precise(_erf_slope),
}
