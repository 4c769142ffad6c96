"""The operations of the Vector, Scalar and GpSimd engines: what a kernel's `op=` arguments mean, and how they compute.

Arithmetic converts its operands to float32, integers too, and yields float32; comparisons and logic yield 1.0 and 0.0. Bitwise
operations and shifts are exact on integers. Source: aws-neuron-sdk nki/api/nki.api.shared.rst ("Supported Math Operators").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule, unsupported
from emulator.nki import activations, dtypes

Array = NDArray[Any]
Axes = tuple[int, ...]
#: (values, axes, keepdims, where): elements where `where` is false do not take part.
Reduction = Callable[..., Array]


@dataclass(frozen=True, slots=True)
class Op:
    """An operation by its name in `nki.language`. `arity` is its number of operands."""

    name: str
    arity: int
    bitwise: bool = False

    def __str__(self) -> str:
        return self.name


def _divide(x: Array, y: Array) -> Array:
    return np.asarray(np.true_divide(x, y))


def _abs_max(x: Array, y: Array) -> Array:
    return np.where(np.abs(x) > np.abs(y), x, y)


def _abs_min(x: Array, y: Array) -> Array:
    return np.where(np.abs(x) < np.abs(y), x, y)


def _shift_right(x: Array, y: Array) -> Array:
    # The hardware's shift is logical: it does not copy the sign.
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    result: Array = np.right_shift(x.view(unsigned), y.astype(unsigned)).view(x.dtype)
    return result


_ARITHMETIC: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": _divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "abs_max": _abs_max,
    "abs_min": _abs_min,
    "power": np.power,
    "mod": np.mod,
    "fmod": np.fmod,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "bypass": lambda x, y: x,
}
_BITWISE: Final[dict[str, Callable[..., Any]]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": _shift_right,
    "invert": np.invert,
}
#: Operations with one operand beside the activation functions.
_UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    "negative": np.negative,
    "logical_not": np.logical_not,
    "cos": np.cos,
    "tan": np.tan,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
}
#: Reductions that have names of their own in `nki.language`, and the operation that they repeat.
_REDUCTION_NAMES: Final = {"max": "maximum", "min": "minimum", "sum": "add", "prod": "multiply", "all": "logical_and"}
_IDENTITY: Final[dict[str, float]] = {
    "add": 0.0,
    "average": 0.0,
    "multiply": 1.0,
    "maximum": -np.inf,
    "minimum": np.inf,
    "logical_and": 1.0,
    "logical_or": 0.0,
    "logical_xor": 0.0,
}
_REDUCIBLE: Final = frozenset(
    ("add", "subtract", "multiply", "maximum", "minimum", "abs_max", "abs_min", "logical_and", "logical_or", "logical_xor")
)

OPS: Final[dict[str, Op]] = {
    **{name: Op(name, 2) for name in (*_ARITHMETIC, "average", "mean", "max", "min", "sum", "prod", "all")},
    **{name: Op(name, 1 if name == "invert" else 2, bitwise=True) for name in _BITWISE},
    **{name: Op(name, 1) for name in (*_UNARY, *activations.FUNCTIONS)},
}

#: numpy's functions that kernels of the first generation pass as operations, by the name of the same in `nki.language`.
_NUMPY: Final[dict[Any, str]] = {
    **{getattr(np, name): name for name in OPS if hasattr(np, name)},
    np.amax: "max",
    np.amin: "min",
    np.true_divide: "divide",
    np.absolute: "abs",
    np.remainder: "mod",
    np.bitwise_not: "invert",
    np.copy: "copy",
}


def find(token: Any) -> Op:
    """The operation meant by an `Op`, a function of `nki.language` (which carries it as `op`), a numpy function or a name.

    Raises `UnsupportedCall` naming anything else.
    """
    if isinstance(token, Op):
        return token
    carried = getattr(token, "op", None)
    if isinstance(carried, Op):
        return carried
    name = token if isinstance(token, str) else _NUMPY.get(token) if callable(token) else None
    if name is None or name not in OPS:
        unsupported(f"the operation {_describe(token)}")
    return OPS[name]


def alu(token: Any) -> Callable[..., Array]:
    """The vectorised function of one or two arrays (or scalars) that computes the operation.

    Float32 in and out for arithmetic, exact integers for bitwise operations. Raises `UnsupportedCall` for an unknown operation;
    the function raises `RuleError` for a bitwise operation on floats.
    """
    op = find(token)
    name = _REDUCTION_NAMES.get(op.name, op.name)
    if op.bitwise:
        return _bitwise(name)
    if name in _ARITHMETIC:
        return _arithmetic(_ARITHMETIC[name])
    if name in _UNARY:
        return _arithmetic(_UNARY[name])
    function = activations.FUNCTIONS.get(name)
    if function is None:
        unsupported(f"the operation nki.language.{op} on elements")
    return lambda x: function(_single(x))


def activation(token: Any) -> Callable[[Array], Array]:
    """The Scalar engine's function for a token; float32 in and out. Raises `UnsupportedCall` if the engine has no such function."""
    op = find(token)
    function = activations.FUNCTIONS.get(op.name)
    if function is None:
        unsupported(f"the activation function nki.language.{op}")
    return lambda x: function(_single(x))


def reduction(token: Any) -> Reduction:
    """The function `(values, axes, keepdims=False, where=None)` that reduces an array with the operation.

    Float32 out for arithmetic, the integers' own type for bitwise operations. Raises `UnsupportedCall` for an operation that
    cannot reduce.
    """
    op = find(token)
    name = _REDUCTION_NAMES.get(op.name, op.name)
    if name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        return _bitwise_reduction(_BITWISE[name])
    if name in ("average", "mean"):
        return _average
    if name not in _REDUCIBLE:
        unsupported(f"a reduction by nki.language.{op}")
    return _arithmetic_reduction(name)


def scan(
    op0: Any, op1: Any, data0: Array, data1: Array, initial: Array, *, reverse0: bool = False, reverse1: bool = False
) -> Array:
    """The recurrence of `nki.isa.tensor_tensor_scan` along the free dimension, in float32, of shape (partitions, elements).

    `result[:, i] = op1(op0(data0[:, i], result[:, i - 1]), data1[:, i])`, starting from `initial` of shape (partitions,) or
    (partitions, 1); `reverse0` and `reverse1` swap the operands of the one or the other operation.
    """
    first, second = alu(op0), alu(op1)
    left = np.ascontiguousarray(_single(data0).T)
    right = np.ascontiguousarray(_single(data1).T)
    result = np.empty_like(left)
    state = np.broadcast_to(_single(initial).reshape(-1), left.shape[1:])
    for index in range(len(left)):
        inner = first(state, left[index]) if reverse0 else first(left[index], state)
        state = second(right[index], inner) if reverse1 else second(inner, right[index])
        result[index] = state
    return result.T


def _single(values: Any) -> Array:
    return dtypes.to_float32(np.asarray(values))


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Array]:
    def run(*operands: Any) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*map(_single, operands)), dtype=np.float32)

    return run


def _bitwise(name: str) -> Callable[..., Array]:
    function = _BITWISE[name]

    def run(*operands: Any) -> Array:
        given = [np.asarray(operand) for operand in operands]
        typed = [array for array, operand in zip(given, operands, strict=True) if hasattr(operand, "dtype")]
        if any(array.dtype.kind not in "iub" for array in given):
            broken_rule(f"nki.language.{name} works on integers only; give it tiles of an integer type")
        if typed:
            own = typed[0].dtype
            # A Python number means the same bit pattern in the tile's type, -1 in an unsigned one included.
            given = [array.astype(own) for array in given]
        return np.asarray(function(*given))

    return run


def _arithmetic_reduction(name: str) -> Reduction:
    function = _ARITHMETIC[name]
    identity = _IDENTITY.get(name)

    def run(values: Array, axes: Axes, keepdims: bool = False, where: Array | None = None) -> Array:
        given = _single(values)
        if where is not None:
            if identity is None:
                unsupported(f"a masked reduction by nki.language.{name}")
            given = np.where(where, given, np.float32(identity))
        with np.errstate(all="ignore"):
            if isinstance(function, np.ufunc) and (identity is not None or len(axes) == 1):
                result = function.reduce(given, axis=axes if identity is not None else axes[0], keepdims=keepdims)
            else:
                result = _fold(function, given, axes, keepdims)
        return np.asarray(result, dtype=np.float32)

    return run


def _bitwise_reduction(function: Any) -> Reduction:
    identity = -1 if function is np.bitwise_and else 0

    def run(values: Array, axes: Axes, keepdims: bool = False, where: Array | None = None) -> Array:
        given = np.asarray(values)
        if where is not None:
            given = np.where(where, given, np.array(identity).astype(given.dtype))
        return np.asarray(function.reduce(given, axis=axes, keepdims=keepdims))

    return run


def _average(values: Array, axes: Axes, keepdims: bool = False, where: Array | None = None) -> Array:
    taking_part = True if where is None else where
    with np.errstate(all="ignore"):
        return np.asarray(np.mean(_single(values), axis=axes, keepdims=keepdims, where=taking_part), dtype=np.float32)


def _fold(function: Callable[..., Any], values: Array, axes: Axes, keepdims: bool) -> Array:
    """Element by element in memory order, for operations whose order matters or that are no ufunc."""
    axes = tuple(axis % values.ndim for axis in axes)
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    last = np.transpose(values, (*kept, *sorted(axes))).reshape(*(values.shape[axis] for axis in kept), -1)
    result = last[..., 0]
    for index in range(1, last.shape[-1]):
        result = function(result, last[..., index])
    return result.reshape([1 if axis in axes else size for axis, size in enumerate(values.shape)]) if keepdims else result


def _describe(token: Any) -> str:
    name = getattr(token, "__name__", None)
    module = getattr(token, "__module__", None)
    if name is None:
        return repr(token)
    return f"{module}.{name}" if module else str(name)
