"""Conversions against exact arithmetic: rounding to nearest even, saturation, and memory that nothing wrote."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import RuleError
from emulator.nki import dtypes

INTEGERS = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.uint8, dtypes.uint16, dtypes.uint32)
FLOATS = (dtypes.float32, dtypes.bfloat16, dtypes.float16, dtypes.float8_e4m3, dtypes.float8_e4m3fn, dtypes.float8_e5m2)
finite_singles = st.floats(width=32, allow_nan=False, allow_infinity=False)


def test_constants_compare_hash_and_print_as_kernels_expect() -> None:
    assert str(dtypes.bfloat16) == "bfloat16"
    assert dtypes.float32 == np.float32
    assert dtypes.bfloat16 == ml_dtypes.bfloat16
    assert dtypes.tfloat32 != dtypes.float32
    assert len({*dtypes.CONSTANTS.values()}) == len(dtypes.CONSTANTS)
    assert {dtypes.tfloat32: 1}[dtypes.as_dtype("tfloat32")] == 1
    assert dtypes.name(dtypes.bool_) == "bool"
    assert [
        dtypes.itemsize(dtypes.CONSTANTS[name]) for name in ("tfloat32", "float8_e5m2_x4", "float4_e2m1fn_x4", "float8_e4m3")
    ] == [4, 4, 2, 1]


@pytest.mark.parametrize(
    ("given_as", "expected"),
    [
        (np.float32, dtypes.float32),
        ("bfloat16", dtypes.bfloat16),
        ("torch.bfloat16", dtypes.bfloat16),
        (float, dtypes.float32),
        (int, dtypes.int32),
        (bool, dtypes.bool_),
        (dtypes.tfloat32, dtypes.tfloat32),
        (ml_dtypes.float8_e5m2, dtypes.float8_e5m2),
        (np.dtype(np.int64), np.dtype(np.int64)),
    ],
)
def test_types_may_be_given_in_many_ways(given_as: Any, expected: dtypes.Dtype) -> None:
    assert dtypes.as_dtype(given_as) == expected


@pytest.mark.parametrize("nonsense", [None, "float31", [1], object()])
def test_what_is_no_type_is_refused_by_name(nonsense: Any) -> None:
    with pytest.raises(RuleError, match="is not an NKI data type"):
        dtypes.as_dtype(nonsense)


@given(values=st.lists(st.floats(width=32, allow_nan=False), min_size=1), dtype=st.sampled_from(INTEGERS))
def test_integers_round_to_even_and_saturate(values: list[float], dtype: np.dtype[Any]) -> None:
    limits = np.iinfo(dtype)
    expected = [
        limits.max if v == np.inf else limits.min if v == -np.inf else max(limits.min, min(limits.max, round(Fraction(v))))
        for v in values
    ]
    assert dtypes.cast(np.array(values, np.float32), dtype).tolist() == expected


@given(values=st.lists(st.integers(-(2**31), 2**32 - 1), min_size=1), dtype=st.sampled_from(INTEGERS))
def test_integers_from_integers_saturate(values: list[int], dtype: np.dtype[Any]) -> None:
    limits = np.iinfo(dtype)
    assert dtypes.cast(np.array(values, np.int64), dtype).tolist() == [max(limits.min, min(limits.max, v)) for v in values]


def test_nan_becomes_zero_in_integers() -> None:
    assert dtypes.cast(np.array([np.nan], np.float32), dtypes.int32).tolist() == [0]


@given(value=finite_singles, dtype=st.sampled_from((dtypes.bfloat16, dtypes.float16, dtypes.float8_e4m3, dtypes.float8_e5m2)))
def test_low_precision_takes_the_nearest_number(value: float, dtype: np.dtype[Any]) -> None:
    with np.errstate(invalid="ignore"):
        every = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype).astype(np.float64)
    numbers = every[np.isfinite(every)]
    result = float(dtypes.cast(np.array([value], np.float32), dtype).astype(np.float64)[0])
    if np.isinf(result):
        largest = numbers.max()
        assert abs(value) >= largest + (largest - np.unique(numbers)[-2]) / 2
    else:
        assert abs(result - value) == np.abs(numbers - value).min()


@given(value=finite_singles)
def test_tfloat32_keeps_ten_bits_and_takes_the_nearest(value: float) -> None:
    result = dtypes.cast(np.array([value], np.float32), dtypes.tfloat32)
    assert result.dtype == np.float32
    assert int(result.view(np.uint32)[0]) & 0x1FFF == 0
    truncated = np.array([value], np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    with np.errstate(over="ignore"):
        neighbours = [
            Fraction(float(n))
            for n in (truncated.view(np.float32)[0], (truncated + np.uint32(0x2000)).view(np.float32)[0])
            if np.isfinite(n)
        ]
    if np.isfinite(result[0]):
        assert abs(Fraction(float(result[0])) - Fraction(value)) == min(abs(n - Fraction(value)) for n in neighbours)


def test_tfloat32_ties_go_to_even_and_nan_stays() -> None:
    given_values = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, np.nan, np.inf, -np.inf], np.float32)
    result = dtypes.cast(given_values, dtypes.tfloat32)
    np.testing.assert_array_equal(result, np.array([1, 1 + 2.0**-9, np.nan, np.inf, -np.inf], np.float32))


def test_packed_types_cannot_be_cast_to() -> None:
    with pytest.raises(RuleError, match="quantize_mx"):
        dtypes.cast(np.ones(4, np.float32), dtypes.float8_e4m3fn_x4)


@pytest.mark.parametrize("dtype", dtypes.CONSTANTS.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 5)])
def test_unwritten_memory_shows(dtype: dtypes.Dtype, shape: tuple[int, ...]) -> None:
    memory = dtypes.unwritten(shape, dtype)
    assert memory.shape == shape
    assert memory.dtype == dtypes.storage(dtype)
    assert memory.flags.writeable
    if dtypes.is_float(dtype):
        assert np.isnan(memory.astype(np.float32)).all()
    elif dtypes.is_integer(dtype):
        assert (memory != 0).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_reading_as_float32_is_exact(dtype: np.dtype[Any]) -> None:
    every = np.arange(2 ** (8 * min(dtype.itemsize, 2)), dtype=f"u{min(dtype.itemsize, 2)}")
    values = every.view(dtype) if dtype.itemsize <= 2 else every.astype(np.float32)
    read = dtypes.to_float32(values)
    assert read.dtype == np.float32
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(read.astype(np.float64), values.astype(np.float64))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("int32", "float16", "float16"),
        ("uint16", "tfloat32", "tfloat32"),
        ("float32", "tfloat32", "float32"),
        ("float32", "bfloat16", "float32"),
        ("float16", "bfloat16", "float32"),
        ("float8_e4m3", "float16", "float16"),
        ("float8_e4m3", "bfloat16", "bfloat16"),
        ("float8_e4m3", "float8_e5m2", "bfloat16"),
        ("int16", "int32", "int32"),
        ("uint8", "uint16", "uint16"),
        ("uint16", "int32", "int32"),
        ("int8", "uint8", "int16"),
        ("int8", "uint16", "int32"),
        ("int32", "uint32", "float32"),
    ],
)
def test_promotion_follows_the_documented_table(left: str, right: str, expected: str) -> None:
    for pair in ((left, right), (right, left)):
        assert str(dtypes.promote(*(dtypes.as_dtype(name) for name in pair))) == expected


def test_scalars_are_as_wide_as_the_device_unless_typed() -> None:
    assert [str(dtypes.scalar_dtype(v)) for v in (True, 2, 1.5, np.int8(2), np.float16(1))] == [
        "uint8",
        "int32",
        "float32",
        "int8",
        "float16",
    ]


@pytest.mark.parametrize("dtype", (*FLOATS, dtypes.tfloat32), ids=str)
def test_epsilon_is_the_step_after_one(dtype: dtypes.Dtype) -> None:
    eps = dtypes.epsilon(dtype)
    after = dtypes.to_float32(dtypes.cast(np.array([1 + eps, 1 + eps / 4], np.float32), dtype))
    assert after.tolist() == [1 + eps, 1]
