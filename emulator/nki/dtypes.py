"""The element types of NKI: constants, names, promotion, and conversion with the NeuronCore's rounding.

Types that numpy or ml_dtypes have are `np.dtype` objects, so kernels may compare, hash and print them as they do. The rest
(`tfloat32`, the packed `_x4` types) are `SpecialDtype`. Source of the list and of the promotion rules: aws-neuron-sdk
nki/api/nki.api.shared.rst ("Supported Data Types"; "NKI Type Promotion" up to release 2.26.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, repr=False)
class SpecialDtype:
    """A type that numpy does not have: kept in memory as `storage`, `lanes` packed values to an element."""

    name: str
    storage: np.dtype[Any]
    lanes: int = 1

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.storage.itemsize

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


Dtype = np.dtype[Any] | SpecialDtype

bool_: Final = np.dtype(np.bool_)
int8: Final = np.dtype(np.int8)
int16: Final = np.dtype(np.int16)
int32: Final = np.dtype(np.int32)
uint8: Final = np.dtype(np.uint8)
uint16: Final = np.dtype(np.uint16)
uint32: Final = np.dtype(np.uint32)
float16: Final = np.dtype(np.float16)
float32: Final = np.dtype(np.float32)
bfloat16: Final[np.dtype[Any]] = np.dtype(ml_dtypes.bfloat16)
float8_e4m3: Final[np.dtype[Any]] = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3fn: Final[np.dtype[Any]] = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e5m2: Final[np.dtype[Any]] = np.dtype(ml_dtypes.float8_e5m2)
float8_e8m0fnu: Final[np.dtype[Any]] = np.dtype(ml_dtypes.float8_e8m0fnu)
#: 8 exponent and 10 mantissa bits in a 32-bit word.
tfloat32: Final = SpecialDtype("tfloat32", np.dtype(np.float32))
float8_e5m2_x4: Final = SpecialDtype("float8_e5m2_x4", np.dtype(np.uint32), lanes=4)
float8_e4m3fn_x4: Final = SpecialDtype("float8_e4m3fn_x4", np.dtype(np.uint32), lanes=4)
float4_e2m1fn_x4: Final = SpecialDtype("float4_e2m1fn_x4", np.dtype(np.uint16), lanes=4)

#: Every constant that `nki.language` has, by its name there.
CONSTANTS: Final[dict[str, Dtype]] = {
    "bool_": bool_,
    "int8": int8,
    "int16": int16,
    "int32": int32,
    "uint8": uint8,
    "uint16": uint16,
    "uint32": uint32,
    "float16": float16,
    "float32": float32,
    "bfloat16": bfloat16,
    "tfloat32": tfloat32,
    "float8_e4m3": float8_e4m3,
    "float8_e4m3fn": float8_e4m3fn,
    "float8_e5m2": float8_e5m2,
    "float8_e8m0fnu": float8_e8m0fnu,
    "float8_e5m2_x4": float8_e5m2_x4,
    "float8_e4m3fn_x4": float8_e4m3fn_x4,
    "float4_e2m1fn_x4": float4_e2m1fn_x4,
}

_NAMES: Final[dict[str, Dtype]] = {
    **CONSTANTS,
    "bool": bool_,
    "float": float32,
    "int": int32,
    "fp32": float32,
    "bfp16": bfloat16,
    "fp16": float16,
    "bf16": bfloat16,
    "float8e4": float8_e4m3,
    "float8e5": float8_e5m2,
}
#: float64 is the host's: an argument may come as it, the device has no 64-bit types.
_FLOATS: Final = frozenset(
    (float32, float16, bfloat16, tfloat32, float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, np.dtype(np.float64))
)
#: Float types from narrow to wide, with exponent and mantissa bits: what promotion compares.
_FLOAT_BITS: Final[tuple[tuple[Dtype, int, int], ...]] = (
    (float8_e4m3, 4, 3),
    (float8_e4m3fn, 4, 3),
    (float8_e5m2, 5, 2),
    (bfloat16, 8, 7),
    (float16, 5, 10),
    (tfloat32, 8, 10),
    (float32, 8, 23),
)
_UNWRITTEN_BYTE: Final = 0xFF


def as_dtype(given: Any) -> Dtype:
    """The NKI type meant by a constant, a numpy, torch or jax type, a Python type or a name. Raises `RuleError` otherwise."""
    if isinstance(given, np.dtype | SpecialDtype):
        return given
    try:
        found = _lookup(given)
    except TypeError:
        found = None
    if found is None:
        broken_rule(f"{given!r} is not an NKI data type; use one of nki.language's, such as nl.bfloat16")
    return found


@lru_cache(maxsize=256)
def _lookup(given: Any) -> Dtype | None:
    text = given if isinstance(given, str) else "" if isinstance(given, type) else str(given)
    named = _NAMES.get(text.rsplit(".", 1)[-1])
    if named is not None or given is None:
        return named
    if given in (float, int):
        return float32 if given is float else int32
    result: np.dtype[Any] = np.dtype(given)
    return result


# numpy spells a dtype's name anew at each call, and every operand of every instruction asks.
@lru_cache(maxsize=64)
def name(dtype: Dtype) -> str:
    """The type's name as profiles show it, such as "bfloat16"; the boolean type is "bool"."""
    return str(dtype)


def itemsize(dtype: Dtype) -> int:
    """Bytes of an element."""
    return dtype.itemsize


def storage(dtype: Dtype) -> np.dtype[Any]:
    """The numpy type that holds the type's elements."""
    return dtype.storage if isinstance(dtype, SpecialDtype) else dtype


def is_float(dtype: Dtype) -> bool:
    """True for floating-point types; false for integers, booleans and packed types."""
    return dtype in _FLOATS


def is_integer(dtype: Dtype) -> bool:
    """True for integers and booleans."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iub"


def is_packed(dtype: Dtype) -> bool:
    """True for the types that pack four values into an element."""
    return isinstance(dtype, SpecialDtype) and dtype.lanes > 1


def unwritten(shape: tuple[int, ...], dtype: Dtype) -> Array:
    """A new array as memory is before anything writes it: every bit set, which is NaN in each float type, -1 or the largest
    value in integers and True in booleans."""
    kept = storage(dtype)
    if kept.kind == "b":
        return np.ones(shape, kept)
    return np.full(prod(shape) * kept.itemsize, _UNWRITTEN_BYTE, np.uint8).view(kept).reshape(shape)


def cast(values: Array, dtype: Dtype) -> Array:
    """`values` as the type's elements (`values` itself if it has the type already).

    Floats round to nearest, ties to even, and overflow as their format does (infinity, or NaN in formats without one).
    Integers round to nearest even and saturate; NaN becomes 0. Booleans are "not zero". Raises `RuleError` for packed types,
    which only `quantize_mx` makes.
    """
    if isinstance(dtype, SpecialDtype):
        if dtype.lanes > 1:
            if values.dtype == dtype.storage:
                return values
            broken_rule(f"values cannot be converted to {dtype}; nki.isa.quantize_mx makes it")
        return _round_tfloat32(values)
    if values.dtype == dtype:
        return values
    if dtype.kind == "b":
        truth: Array = values != 0
        return truth
    if dtype.kind in "iu":
        return _to_integer(values, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype)


def to_float32(values: Array) -> Array:
    """`values` as the engines read them for arithmetic: float32. Integers beyond 2**24 round."""
    if values.dtype == float32:
        return values
    if values.dtype.itemsize == 1 and values.dtype.kind not in "iub":
        single: Array = _float8_table(values.dtype)[values.view(np.uint8)]
        return single
    return values.astype(np.float32)


def promote(*given: Dtype) -> Dtype:
    """The type of the result of arithmetic on operands of these types.

    A float beats integers; of two floats the wider one, or the narrowest that holds both ranges; of two integers the wider
    one, or the next that holds both, float32 where that would need 64 bits.
    """
    result = given[0]
    for dtype in given[1:]:
        if dtype != result:
            result = _promote(result, dtype)
    return result


def scalar_dtype(value: bool | int | float) -> Dtype:
    """The type of a scalar in arithmetic: a numpy scalar keeps its own, a Python one gets the device's widest of its kind."""
    if isinstance(value, np.generic):
        return as_dtype(value.dtype)
    if isinstance(value, bool):
        return uint8
    return int32 if isinstance(value, int) else float32


def epsilon(dtype: Dtype) -> float:
    """The distance from 1 to the next larger number of a float type; twice the largest relative rounding error."""
    if dtype == tfloat32:
        return 2.0**-10
    return float(ml_dtypes.finfo(storage(dtype)).eps)


@lru_cache(maxsize=1024)
def _promote(left: Dtype, right: Dtype) -> Dtype:
    if is_packed(left) or is_packed(right):
        broken_rule(f"arithmetic on {left} and {right}: packed types are for nc_matmul_mx only")
    if is_float(left) and is_float(right):
        return _promote_floats(left, right)
    if is_float(left) or is_float(right):
        return left if is_float(left) else right
    wider = np.promote_types(*(uint8 if dtype == bool_ else dtype for dtype in (storage(left), storage(right))))
    return float32 if wider.itemsize > 4 or wider.kind == "f" else wider


def _promote_floats(left: Dtype, right: Dtype) -> Dtype:
    bits = {dtype: (exponent, mantissa) for dtype, exponent, mantissa in _FLOAT_BITS}
    if left not in bits or right not in bits:
        return float32
    exponent = max(bits[left][0], bits[right][0])
    mantissa = max(bits[left][1], bits[right][1])
    for dtype in (left, right):
        if bits[dtype] == (exponent, mantissa):
            return dtype
    if float16 in (left, right) and bfloat16 in (left, right):
        return float32
    return next(dtype for dtype, e, m in _FLOAT_BITS if e >= exponent and m >= mantissa)


def _to_integer(values: Array, dtype: np.dtype[Any]) -> Array:
    if values.dtype.kind == "b":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    if values.dtype.kind in "iu":
        if np.can_cast(values.dtype, dtype):
            return values.astype(dtype)
        own = np.iinfo(values.dtype)
        return np.clip(values, max(limits.min, own.min), min(limits.max, own.max)).astype(dtype)
    # float64 holds every 32-bit limit exactly; float32 does not.
    wide = np.rint(values.astype(np.float64))
    np.nan_to_num(wide, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.clip(wide, limits.min, limits.max).astype(dtype)


def _round_tfloat32(values: Array) -> Array:
    single = np.ascontiguousarray(to_float32(values))
    bits = single.view(np.uint32)
    # Half of the dropped 13 bits less one, plus the last kept bit: ties go to even. Infinity and NaN must not carry.
    rounded = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
    result: Array = np.where(np.isfinite(single), rounded.view(np.float32), single).reshape(values.shape)
    return result


@lru_cache(maxsize=16)
def _float8_table(dtype: np.dtype[Any]) -> Array:
    return np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
