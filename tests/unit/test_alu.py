"""Operations and activation functions against float64 references, and names that are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import RuleError, UnsupportedCall
from emulator.nki import activations, alu, dtypes

EPS = 2.0**-23
erf = np.vectorize(math.erf)
erfc = np.vectorize(math.erfc)


def _sigmoid(x: Any) -> Any:
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def _softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def _normal(x: Any) -> Any:
    return 0.5 * erfc(-x / math.sqrt(2))


def _silu_slope(x: Any) -> Any:
    return _sigmoid(x) * (1 + x * _sigmoid(-x))


REFERENCES: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "abs": np.abs,
    "sign": np.sign,
    "relu": lambda x: np.where(x > 0, x, 0),
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: x**-0.5,
    "reciprocal": lambda x: 1 / x,
    "tanh": np.tanh,
    "sin": np.sin,
    "arctan": np.arctan,
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "silu_dx": _silu_slope,
    "gelu": lambda x: x * _normal(x),
    "gelu_dx": lambda x: _normal(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "gelu_apprx_tanh": lambda x: x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    "gelu_apprx_sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": lambda x: _silu_slope(1.702 * x),
    "softplus": _softplus,
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "erf": erf,
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x),
}
POSITIVE_ONLY = {"log", "sqrt", "rsqrt"}


def test_every_activation_function_has_a_reference() -> None:
    assert REFERENCES.keys() == activations.FUNCTIONS.keys()


@pytest.mark.parametrize("name", REFERENCES)
def test_activation_is_exact_to_a_few_units_in_the_last_place(name: str) -> None:
    low = 2.0**-20 if name in POSITIVE_ONLY else -12.0
    high = 3.0 if name == "sin" else 12.0
    x = np.linspace(-3.0 if name == "sin" else low, high, 40_001, dtype=np.float32)
    x = x[x != 0] if name == "reciprocal" else x
    result = alu.activation(name)(x)
    assert result.dtype == np.float32
    expected = REFERENCES[name](x.astype(np.float64))
    # Four units in the last place; below 2**-48 the formulas end in 1 - 1 in float64.
    np.testing.assert_allclose(result, expected, rtol=4 * EPS, atol=2.0**-48)


def test_activation_at_the_extremes() -> None:
    x = np.array([-np.inf, -200.0, 0.0, 200.0, np.inf, np.nan], np.float32)
    assert alu.activation("sigmoid")(x).tolist()[:5] == [0.0, pytest.approx(math.exp(-200), abs=1e-38), 0.5, 1.0, 1.0]
    assert alu.activation("softplus")(x).tolist()[:5] == [0.0, 0.0, pytest.approx(math.log(2)), 200.0, np.inf]
    assert alu.activation("erf")(x).tolist()[:5] == [-1, -1, 0, 1, 1]
    assert alu.activation("tanh")(x).tolist()[:5] == [-1, -1, 0, 1, 1]
    for name in REFERENCES:
        assert np.isnan(alu.activation(name)(x)[-1]), name


def test_erf_is_good_to_float64() -> None:
    x = np.concatenate([np.linspace(-7, 7, 30_001), np.logspace(-30, 0, 500)])
    np.testing.assert_allclose(activations.erf(x), erf(x), rtol=1e-14, atol=0)


def test_inputs_outside_the_engine_range_are_told() -> None:
    assert activations.outside_valid_range("sin", np.array([0, 4.0], np.float32))
    assert not activations.outside_valid_range("sin", np.array([-3.1, np.nan], np.float32))
    assert not activations.outside_valid_range("reciprocal", np.array([-2.0], np.float32))
    assert activations.outside_valid_range("reciprocal", np.array([0.0], np.float32))
    assert not activations.outside_valid_range("exp", np.array([1e30], np.float32))


@pytest.mark.parametrize(
    ("token", "name"),
    [
        (np.add, "add"),
        (np.amax, "max"),
        (np.max, "max"),
        (np.remainder, "mod"),
        (np.absolute, "abs"),
        (np.copy, "copy"),
        (np.true_divide, "divide"),
    ],
)
def test_numpy_functions_are_operations(token: Any, name: str) -> None:
    assert alu.find(token).name == name


def test_functions_that_carry_their_operation_are_operations() -> None:
    def language_function() -> None: ...

    language_function.op = alu.OPS["exp"]  # type: ignore[attr-defined]
    assert alu.find(language_function) == alu.OPS["exp"]


@pytest.mark.parametrize(("token", "shown"), [(np.hstack, "numpy.hstack"), ("swish", "'swish'"), (None, "None")])
def test_an_unknown_operation_is_named(token: Any, shown: str) -> None:
    with pytest.raises(UnsupportedCall, match=shown):
        alu.alu(token)


def test_an_operation_in_the_wrong_place_is_named() -> None:
    with pytest.raises(UnsupportedCall, match=r"nki\.language\.add"):
        alu.activation("add")
    with pytest.raises(UnsupportedCall, match=r"nki\.language\.power"):
        alu.reduction("power")
    with pytest.raises(RuleError, match="integers only"):
        alu.alu("bitwise_and")(np.ones(2, np.float32), 1)


def test_arithmetic_is_float32_for_integers_too() -> None:
    large = np.array([2**24], np.int32)
    result = alu.alu(np.add)(large, 1)
    assert result.dtype == np.float32
    assert result.tolist() == [2.0**24]


def test_comparisons_and_logic_give_one_and_zero() -> None:
    x, y = np.array([1, 2, 3], np.int8), np.array([2, 2, 2], np.float16)
    assert alu.alu("less_equal")(x, y).tolist() == [1.0, 1.0, 0.0]
    assert alu.alu("logical_xor")(np.array([0.0, 3.0]), np.array([2.0, 2.0])).tolist() == [1.0, 0.0]
    assert alu.alu("less")(x, y).dtype == np.float32


def test_magnitude_comparisons_keep_the_sign_and_prefer_the_second_on_a_tie() -> None:
    assert alu.alu("abs_max")(np.array([-5.0, 1.0]), np.array([3.0, -1.0])).tolist() == [-5.0, -1.0]
    assert alu.alu("abs_min")(np.array([5.0, 1.0]), np.array([-3.0, -1.0])).tolist() == [-3.0, -1.0]


@given(
    values=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20),
    shift=st.integers(0, 31),
    other=st.integers(-(2**31), 2**31 - 1),
)
def test_bitwise_operations_are_exact(values: list[int], shift: int, other: int) -> None:
    x = np.array(values, np.int32)
    unsigned = [v & 0xFFFFFFFF for v in values]
    signed = [v - 2**32 if v >= 2**31 else v for v in (u >> shift for u in unsigned)]
    assert alu.alu("right_shift")(x, shift).tolist() == signed
    assert [v & 0xFFFFFFFF for v in alu.alu("left_shift")(x, shift).tolist()] == [(u << shift) & 0xFFFFFFFF for u in unsigned]
    assert alu.alu("bitwise_and")(x, other).tolist() == [v & other for v in values]
    assert alu.alu("invert")(x).tolist() == [~v for v in values]
    assert alu.reduction("bitwise_xor")(x, (0,)).tolist() == int(np.bitwise_xor.reduce(x))


@given(shape=st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 7)), seed=st.integers(0, 2**16))
def test_reductions_equal_float64(shape: tuple[int, ...], seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    wide = x.astype(np.float64)
    for axes in ((2,), (1, 2)):
        count = math.prod(shape[axis] for axis in axes)
        bound = count * EPS * np.abs(wide).sum(axis=axes)
        assert (np.abs(alu.reduction(np.add)(x, axes) - wide.sum(axis=axes)) <= bound).all()
        assert (np.abs(alu.reduction("mean")(x, axes) - wide.mean(axis=axes)) <= bound).all()
        np.testing.assert_array_equal(alu.reduction(np.amax)(x, axes, keepdims=True), x.max(axis=axes, keepdims=True))
        np.testing.assert_array_equal(alu.reduction("min")(x, axes), x.min(axis=axes))
        largest = np.take_along_axis(
            x.reshape(*x.shape[: 3 - len(axes)], -1), np.abs(x.reshape(*x.shape[: 3 - len(axes)], -1)).argmax(-1)[..., None], -1
        )
        np.testing.assert_array_equal(np.abs(alu.reduction("abs_max")(x, axes)), np.abs(largest[..., 0]))
        flat = wide.reshape(*wide.shape[: 3 - len(axes)], -1)
        difference = flat[..., 0] - flat[..., 1:].sum(-1)
        assert (np.abs(alu.reduction("subtract")(x, axes) - difference) <= bound).all()


def test_elements_that_are_masked_take_no_part() -> None:
    x = np.array([[1, 2, np.nan], [4, np.nan, np.nan]], np.float32)
    mask = ~np.isnan(x)
    assert alu.reduction("add")(x, (1,), where=mask).tolist() == [3, 4]
    assert alu.reduction("max")(x, (1,), where=mask).tolist() == [2, 4]
    assert alu.reduction("mean")(x, (1,), where=mask).tolist() == [1.5, 4]
    bits = np.array([[6, 3, 0]], np.uint8)
    assert alu.reduction("bitwise_and")(bits, (1,), where=np.array([[True, True, False]])).tolist() == [2]


@pytest.mark.parametrize("swapped", [False, True])
def test_scan_follows_its_recurrence(swapped: bool) -> None:
    rng = np.random.default_rng(7)
    a, b, start = rng.uniform(0.5, 1, (4, 33)), rng.standard_normal((4, 33)), rng.standard_normal((4, 1))
    singles = [v.astype(np.float32) for v in (a, b, start)]
    result = alu.scan(np.multiply, np.subtract, *singles, reverse1=swapped)
    state, expected = singles[2][:, 0].astype(np.float64), []
    for index in range(33):
        product = singles[0][:, index] * state
        state = singles[1][:, index] - product if swapped else product - singles[1][:, index]
        expected.append(state)
    # Each step rounds twice, relative to magnitudes below 16; the recurrence does not amplify since |a| <= 1.
    np.testing.assert_allclose(result, np.array(expected).T, rtol=0, atol=33 * 2 * 16 * EPS)


def test_results_do_not_depend_on_low_precision_inputs() -> None:
    x = np.linspace(-4, 4, 100).astype(dtypes.bfloat16)
    np.testing.assert_array_equal(alu.activation("exp")(x), alu.activation("exp")(x.astype(np.float32)))
