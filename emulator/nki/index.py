"""Index expressions: what `nl.arange`, `nl.mgrid`, `nl.ds` and masks are made of.

An `Affine` is a constant plus a coefficient for each broadcast dimension, so indexing with it gives an exact strided
region without making an array. Arithmetic that is not affine falls back to `Gathered`, which holds the array.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_symbols = count()
#: (size, coefficient, symbol): the symbol tells which `arange` the dimension comes from, for masks; -1: none.
Dim = tuple[int, int, int]
ONE: Final[Dim] = (1, 0, -1)


@dataclass(frozen=True, slots=True)
class Slice:
    """`nl.ds(start, size)`."""

    start: Any
    size: int


class ParDim(int):
    """`nl.par_dim(n)`: the size n, marked as the partition dimension."""


class Affine:
    """`const + sum(coefficient[d] * index[d])` over broadcast dimensions, the last one rightmost as in numpy."""

    __slots__ = ("const", "dims")
    #: Keeps numpy scalars from looping over the expression.
    __array_ufunc__ = None

    def __init__(self, const: int, dims: tuple[Dim, ...]) -> None:
        self.const = const
        self.dims = dims

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the broadcast dimensions."""
        return tuple(size for size, _, _ in self.dims)

    @property
    def ndim(self) -> int:
        """Number of broadcast dimensions."""
        return len(self.dims)

    def array(self) -> NDArray[np.int64]:
        """The values, of shape `shape`."""
        result = np.full((1,) * len(self.dims), self.const, dtype=np.int64)
        for axis, (size, coefficient, _) in enumerate(self.dims):
            form = [1] * len(self.dims)
            form[axis] = size
            result = result + (np.arange(size, dtype=np.int64) * coefficient).reshape(form)
        return np.broadcast_to(result, self.shape)

    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value."""
        reach = [coefficient * (size - 1) for size, coefficient, _ in self.dims]
        return self.const + sum(r for r in reach if r < 0), self.const + sum(r for r in reach if r > 0)

    def __getitem__(self, key: Any) -> Affine:
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            given = sum(item is not None and item is not Ellipsis for item in keys)
            keys[at : at + 1] = [slice(None)] * (len(self.dims) - given)
        const, dims, rest = self.const, [], list(self.dims)
        for item in keys:
            if item is None:
                dims.append(ONE)
                continue
            if not rest:
                raise IndexError("too many indices for an index expression")
            size, coefficient, symbol = rest.pop(0)
            if isinstance(item, slice):
                positions = range(size)[item]
                const += positions.start * coefficient
                dims.append((len(positions), coefficient * positions.step, symbol))
            else:
                const += range(size)[item] * coefficient
        return Affine(const, (*dims, *rest))

    def _combine(self, other: Affine, sign: int) -> Affine:
        width = max(len(self.dims), len(other.dims))
        mine = (ONE,) * (width - len(self.dims)) + self.dims
        theirs = (ONE,) * (width - len(other.dims)) + other.dims
        dims = []
        for (size, coefficient, symbol), (size2, coefficient2, symbol2) in zip(mine, theirs, strict=True):
            if size != size2 and 1 not in (size, size2):
                raise ValueError(f"index expressions of shapes {self.shape} and {other.shape} do not broadcast")
            total = (coefficient if size > 1 else 0) + (sign * coefficient2 if size2 > 1 else 0)
            dims.append((max(size, size2), total, symbol if symbol >= 0 else symbol2))
        return Affine(self.const + sign * other.const, tuple(dims))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Affine):
            return self._combine(other, 1)
        if (number := _integer(other)) is not None:
            return Affine(self.const + number, self.dims)
        return gathered(self) + other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Affine):
            return self._combine(other, -1)
        if (number := _integer(other)) is not None:
            return Affine(self.const - number, self.dims)
        return gathered(self) - other

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __neg__(self) -> Affine:
        return self._scaled(-1)

    def __mul__(self, other: Any) -> Any:
        if (number := _integer(other)) is not None:
            return self._scaled(number)
        return gathered(self) * other

    __rmul__ = __mul__

    def _scaled(self, factor: int) -> Affine:
        return Affine(self.const * factor, tuple((size, c * factor, symbol) for size, c, symbol in self.dims))

    def __floordiv__(self, other: Any) -> Any:
        number = _integer(other)
        if number and self.const % number == 0 and not any(c % number for size, c, _ in self.dims if size > 1):
            return Affine(self.const // number, tuple((size, c // number, symbol) for size, c, symbol in self.dims))
        return gathered(self) // other

    def __mod__(self, other: Any) -> Any:
        return gathered(self) % other

    def __lt__(self, other: Any) -> Any:
        return _compare(self, other, "<")

    def __le__(self, other: Any) -> Any:
        return _compare(self, other, "<=")

    def __gt__(self, other: Any) -> Any:
        return _compare(self, other, ">")

    def __ge__(self, other: Any) -> Any:
        return _compare(self, other, ">=")

    def __eq__(self, other: object) -> Any:
        return _compare(self, other, "==")

    def __ne__(self, other: object) -> Any:
        return _compare(self, other, "!=")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Affine({self.const}, {self.dims})"


class Gathered:
    """An index expression that is not affine, by its values."""

    __slots__ = ("values",)
    __array_ufunc__ = None

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the broadcast dimensions."""
        return self.values.shape

    def array(self) -> NDArray[Any]:
        """The values."""
        return self.values

    def __getitem__(self, key: Any) -> Gathered:
        return Gathered(self.values[key])


def gathered(value: Any) -> Gathered:
    """Any index expression by its values."""
    return value if isinstance(value, Gathered) else Gathered(value.array() if isinstance(value, Affine) else np.asarray(value))


def _arithmetic(name: str) -> Any:
    def method(self: Gathered, other: Any) -> Gathered:
        operation = getattr(self.values, name)
        return Gathered(operation(gathered(other).values))

    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne", "and", "or"):
    setattr(Gathered, f"__{_name}__", _arithmetic(f"__{_name}__"))


@dataclass(frozen=True, slots=True)
class Condition:
    """`expression operator 0`."""

    expression: Affine
    operator: str

    def array(self) -> NDArray[np.bool_]:
        """Where it holds."""
        return np.asarray(_OPERATORS[self.operator](self.expression.array(), 0), dtype=np.bool_)


_OPERATORS: Final = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True, slots=True)
class Mask:
    """All of `conditions` hold."""

    conditions: tuple[Condition, ...]

    def __and__(self, other: Any) -> Any:
        if isinstance(other, Mask):
            return Mask(self.conditions + other.conditions)
        if isinstance(other, (bool, np.bool_)):
            return self if other else Mask((*self.conditions, Condition(Affine(0, ()), "!=")))
        return Gathered(self.array()) & gathered(other)  # type: ignore[operator]

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return Gathered(self.array()) | gathered(other.array() if isinstance(other, Mask) else other)  # type: ignore[operator]

    def __invert__(self) -> Gathered:
        return Gathered(~self.array())

    def array(self) -> NDArray[np.bool_]:
        """Where it holds, broadcast over the dimensions of all conditions."""
        result: NDArray[np.bool_] = np.ones((), dtype=np.bool_)
        for condition in self.conditions:
            result = result & condition.array()
        return result


def _compare(left: Affine, right: Any, operator: str) -> Any:
    difference = left - right
    if isinstance(difference, Affine):
        return Mask((Condition(difference, operator),))
    return Gathered(np.asarray(_OPERATORS[operator](difference.array(), 0)))


def _integer(value: Any) -> int | None:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    return None


def arange(*limits: int) -> Affine:
    """`nl.arange`: one dimension of indices, to be shaped with `[:, None]`."""
    values = range(*(int(limit) for limit in limits))
    return Affine(values.start, ((len(values), values.step, next(_symbols)),))


class Grid(tuple[Affine, ...]):
    """The axes of an `nl.mgrid[...]`, also by name: `p` the first; of the rest `x` the last, `y`, `z`, `w` before it."""

    def __getattr__(self, name: str) -> Affine:
        if name == "p":
            return self[0]
        if name in ("x", "y", "z", "w") and len(self) > 1 + "xyzw".index(name):
            return self[len(self) - 1 - "xyzw".index(name)]
        raise AttributeError(f"an index grid of {len(self)} dimensions has no axis {name!r}")


class MGrid:
    """`nl.mgrid`."""

    def __getitem__(self, key: Any) -> Grid:
        slices = key if isinstance(key, tuple) else (key,)
        axes = []
        for axis, item in enumerate(slices):
            line = arange(item.start or 0, item.stop, item.step or 1)
            dims = [ONE] * len(slices)
            dims[axis] = line.dims[0]
            axes.append(Affine(line.const, tuple(dims)))
        return Grid(axes)
