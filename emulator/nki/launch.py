"""Kernels: what the decorators make of a function, and how a launch runs it over its grid."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from emulator.errors import RuleError, broken_rule, unsupported
from emulator.nki import dtypes
from emulator.nki.constants import MemoryRegion
from emulator.nki.session import Session, launched, running
from emulator.nki.tensor import Storage, View, contiguous_strides
from emulator.program import Space
from emulator.recorder import Recorder

#: What AWS's own variable may say, by target (aws-neuron-sdk nki/api/nki/__init__.py, `jit`).
_PLATFORMS = {"trn1": "trn1", "inf2": "trn1", "gen2": "trn1", "trn2": "trn2", "gen3": "trn2", "trn3": "trn3", "gen4": "trn3"}


class NeuronCores(int):
    """`nl.nc(n)`: a grid dimension whose indices are physical cores."""

    def __mul__(self, other: Any) -> Any:
        return SpmdDim(self, other)

    def __rmul__(self, other: Any) -> Any:
        return SpmdDim(other, self)


class SpmdDim:
    """`nl.spmd_dim(a, b)`: a grid dimension of a times b instances, the last varying fastest."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    @property
    def size(self) -> int:
        """Instances along the dimension."""
        return prod(int(size) for size in self.sizes)

    def core(self, index: int) -> int | None:
        """The physical core of instance `index`, None if the dimension does not say."""
        for size in reversed(self.sizes):
            index, position = divmod(index, int(size))
            if isinstance(size, NeuronCores):
                return position
        return None


@dataclass
class Capture:
    """Where the launches inside go: one recorder for all of them."""

    target: str
    values: bool
    recorder: Recorder | None = None
    grid: tuple[Any, ...] | None = None
    outputs: list[Any] = field(default_factory=list)
    launches: int = 0
    #: Where the random numbers of the kernels begin.
    seed: int = 0


_captures: list[Capture] = []


@contextmanager
def capturing(capture: Capture) -> Iterator[Capture]:
    """Kernels launched inside are recorded by `capture`."""
    _captures.append(capture)
    try:
        yield capture
    finally:
        _captures.pop()


def default_target() -> str:
    """The target without another choice: trn2, or what NEURON_PLATFORM_TARGET_OVERRIDE says."""
    named = os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2").lower()
    if named not in _PLATFORMS:
        raise RuleError(f"NEURON_PLATFORM_TARGET_OVERRIDE={named}: use one of {', '.join(_PLATFORMS)}")
    return _PLATFORMS[named]


class Kernel:
    """A function decorated with `nki.jit`: call it with arrays, or index it with a grid first."""

    function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], legacy: bool, grid: tuple[Any, ...] = ()) -> None:
        self.function = function.function if isinstance(function, Kernel) else function
        self.legacy = legacy
        self.grid = grid
        functools.update_wrapper(self, self.function)

    def __getitem__(self, grid: Any) -> Kernel:
        return Kernel(self.function, self.legacy, grid if isinstance(grid, tuple) else (grid,))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        session = running()
        if session is not None:
            return self._inline(session, args, kwargs)
        if _captures:
            return launch(self, args, kwargs, _captures[-1])
        from emulator.nki.modules import installed

        # Kernels may import parts of the language while they run.
        with installed():
            return launch(self, args, kwargs, Capture(default_target(), values=True))

    def __repr__(self) -> str:
        return f"<nki kernel {self.__name__}>"  # type: ignore[attr-defined]

    @property
    def benchmark_result(self) -> Any:
        """Latency of the last run: not known here."""
        unsupported("nki.benchmark's benchmark_result", "is not emulated; capture the kernel and read the profile's times")

    def _inline(self, session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.grid:
            broken_rule(f"{self.__name__} is launched with a grid from within a kernel; call it without one")  # type: ignore[attr-defined]
        before, session.legacy = session.legacy, self.legacy
        try:
            return _in_generation(
                self.function(
                    *(_in_generation(arg, self.legacy) for arg in args),
                    **{name: _in_generation(arg, self.legacy) for name, arg in kwargs.items()},
                ),
                before,
            )
        finally:
            session.legacy = before


def _in_generation(value: Any, legacy: bool) -> Any:
    if isinstance(value, View):
        return value if value.legacy == legacy else value.as_generation(legacy)
    if type(value) in (list, tuple):
        return type(value)(_in_generation(item, legacy) for item in value)
    return value


def launch(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any], capture: Capture) -> Any:
    """The kernel's outputs as numpy arrays (None for each while values are off); its instructions are in `capture.recorder`.

    Raises what the kernel raises.
    """
    if capture.recorder is None:
        capture.recorder = Recorder(kernel.__name__, capture.target)  # type: ignore[attr-defined]
    recorder = capture.recorder
    capture.launches += 1
    seed = (capture.seed, capture.launches)
    session = Session(recorder, capture.target, values=capture.values, legacy=kernel.legacy, seed=seed)
    session.grid, cores = _grid(kernel.grid or capture.grid or (), kernel.legacy)
    arguments = Arguments(session, kernel)
    given, named = arguments.wrap(args, kwargs)
    first: Any = None
    for number, program in enumerate(itertools.product(*(range(size) for size in session.grid))):
        session.program = program
        session.shared_used = 0
        recorder.core = cores(program)
        session.accumulators = {key: value for key, value in session.accumulators.items() if key.startswith("ones ")}
        before = recorder.stacks.enter(sys._getframe(0))
        try:
            with launched(session), np.errstate(all="ignore"):
                result = kernel.function(*given, **named)
        finally:
            recorder.stacks.enter(before)
        if number == 0:
            first = result
    capture.outputs.append(first)
    return arguments.unwrap(first)


def _grid(grid: tuple[Any, ...], legacy: bool) -> tuple[tuple[int, ...], Callable[[tuple[int, ...]], int]]:
    sizes = tuple(dim.size if isinstance(dim, SpmdDim) else int(dim) for dim in grid)
    for size in sizes:
        if size < 1:
            broken_rule(f"the launch grid {list(sizes)} has no instances")
    if not legacy and (len(sizes) > 1 or (sizes and sizes[0] > 2)):
        broken_rule(f"the launch grid {list(sizes)} is not possible: this generation launches on 1 or 2 cores, kernel[2](...)")

    def core(program: tuple[int, ...]) -> int:
        if not legacy:
            return program[0] if program else 0
        for dim, index in zip(grid, program, strict=True):
            place = index if isinstance(dim, NeuronCores) else dim.core(index) if isinstance(dim, SpmdDim) else None
            if place is not None:
                return place
        return 0

    return sizes, core


class Arguments:
    """The arrays that a kernel is given as tensors in HBM, and its results as arrays again."""

    def __init__(self, session: Session, kernel: Kernel) -> None:
        self.session = session
        self.kernel = kernel
        self._seen: dict[int, View] = {}

    def wrap(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for the kernel. Raises `RuleError` if they do not fit its signature."""
        try:
            bound = inspect.signature(self.kernel.function).bind(*args, **kwargs)
        except TypeError as error:
            raise RuleError(f"{self.kernel.__name__}: {error}") from None  # type: ignore[attr-defined]
        variadic = {p.name for p in bound.signature.parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        names = [name for name in bound.arguments if name not in variadic]
        given = [
            self._value(names[position] if position < len(names) else f"arg{position}", value)
            for position, value in enumerate(bound.args)
        ]
        return given, {name: self._value(name, value) for name, value in bound.kwargs.items()}

    def _value(self, name: str, value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(self._value(f"{name}[{index}]", item) for index, item in enumerate(value))
        if type(value) is dict:
            return {key: self._value(f"{name}[{key!r}]", item) for key, item in value.items()}
        if isinstance(value, (np.generic, type)) or not (hasattr(value, "shape") and hasattr(value, "dtype")):
            return value
        if id(value) not in self._seen:
            self._seen[id(value)] = self._tensor(name, value)
        return self._seen[id(value)]

    def _tensor(self, name: str, value: Any) -> View:
        shape = tuple(int(size) for size in value.shape)
        dtype = dtypes.as_dtype(value.dtype)
        if dtypes.name(dtype) in ("float64", "int64", "uint64"):
            raise RuleError(f"argument {name} is {dtypes.name(dtype)}; the device has no 64-bit types, pass it as 32-bit")
        if not shape or min(shape) < 1:
            raise RuleError(f"argument {name} of shape {list(shape)} has no elements")
        session = self.session
        itemsize = dtypes.itemsize(dtype)
        ident = session.recorder.tensor(session.unique(name), shape, dtypes.name(dtype), Space.HBM, "input")
        storage = Storage(ident, name, Space.HBM, prod(shape) * itemsize, 0, 0, MemoryRegion.shared_hbm.value)
        if session.values:
            storage.buffer = _bytes(value)
        return View(storage, dtype, 0, shape, contiguous_strides(shape, itemsize), None, session.legacy)

    def unwrap(self, result: Any) -> Any:
        """A kernel's result with arrays in place of tensors; the tensors become outputs."""
        if isinstance(result, View):
            self.session.recorder.set_role(result.storage.ident, "output")
            return np.array(result.array()) if result.storage.buffer is not None else None
        if isinstance(result, (list, tuple)):
            return type(result)(self.unwrap(item) for item in result)
        return result


def _bytes(value: Any) -> Any:
    array = value if isinstance(value, np.ndarray) else _to_numpy(value)
    # Kernels may write their arguments: contiguous arrays are used in place, others are copied.
    if not array.flags.c_contiguous or not array.flags.writeable:
        array = np.array(array, order="C")
    return array.reshape(-1).view(np.uint8)


def _to_numpy(value: Any) -> Any:
    if hasattr(value, "detach"):
        value = value.detach().cpu().contiguous()
        if str(value.dtype) == "torch.bfloat16":
            return np.asarray(value.view(dtype=sys.modules["torch"].int16)).view(dtypes.bfloat16)
        return value.numpy()
    return np.asarray(value)
