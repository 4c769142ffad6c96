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
