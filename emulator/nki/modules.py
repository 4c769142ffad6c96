"""The import names of the kernel language, there only while a kernel is loaded or run.

`neuronxcc.nki` is the first generation, `nki` the current one. Both trees shadow an installed AWS package while
`installed()` is active, and give way to it afterwards.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from emulator.errors import unsupported
from emulator.nki import constants, dtypes, isa_legacy, isa_legacy_data, isa_new, isa_new_data, namespace
from emulator.nki.index import ParDim
from emulator.nki.launch import Kernel, NeuronCores
from emulator.nki.nkiobject import NKIObject
from emulator.nki.published import missing
from emulator.nki.register import VirtualRegister
from emulator.nki.tensor import View

_ROOTS = ("neuronxcc", "nki")
_depth = 0
_hidden: dict[str, ModuleType] = {}


class Missing:
    """A name that the emulator does not have: importing it is fine, using it is an error that names it and says why."""

    def __init__(self, name: str, why: str) -> None:
        self.__name__ = name
        self._why = why

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        unsupported(self.__name__, self._why)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        unsupported(self.__name__, self._why)

    def __repr__(self) -> str:
        return f"<{self.__name__}: not emulated>"


class LanguageModule(ModuleType):
    """A module of the kernel language; names it does not have are `Missing`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return Missing(f"{self.__name__}.{name}", missing(self.__name__, name, set(vars(self))))


class _TensorType:
    """`nt.tensor` and its kin: subscriptable annotations."""

    def __class_getitem__(cls, key: Any) -> Any:
        return cls


@contextmanager
def installed() -> Iterator[None]:
    """The language can be imported inside; modules of the same names are put aside and come back afterwards."""
    global _depth
    if _depth == 0:
        _hidden.clear()
        for name in [name for name in sys.modules if name.split(".")[0] in _ROOTS]:
            _hidden[name] = sys.modules.pop(name)
        sys.modules.update(modules())
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            for name in [name for name in sys.modules if name.split(".")[0] in _ROOTS]:
                del sys.modules[name]
            sys.modules.update(_hidden)
            _hidden.clear()


@cache
def modules() -> dict[str, ModuleType]:
    """Every module of both trees by its full name."""
    made: dict[str, ModuleType] = {}
    _module(made, "neuronxcc", {"__version__": "2.0.0"})
    _tree(made, "neuronxcc.nki", namespace.language_legacy(), _calls(isa_legacy) | _calls(isa_legacy_data), legacy=True)
    _tree(
        made,
        "nki",
        namespace.language_new(),
        _calls(isa_new) | _calls(isa_new_data) | {"VirtualRegister": VirtualRegister},
        legacy=False,
    )
    for name, module in made.items():
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, module)
    return made


def _tree(made: dict[str, ModuleType], root: str, language: dict[str, Any], isa: dict[str, Any], legacy: bool) -> None:
    tensor_types = dict.fromkeys(("tensor", "mutable_tensor", "shape", "scalar"), _TensorType)
    enums = namespace.isa_enums()
    _module(made, root, _decorators(legacy) | {"tensor": View, "dtype": dtypes.CONSTANTS, "NKIObject": NKIObject})
    _module(made, f"{root}.language", language)
    _module(made, f"{root}.isa", isa | enums)
    _module(made, f"{root}.isa.constants", enums)
    _module(made, f"{root}.typing", tensor_types)
    _module(made, f"{root}.dtype", dict(dtypes.CONSTANTS))
    _module(made, f"{root}.collectives", {})
    _module(
        made,
        f"{root}.compiler",
        {
            "sbuf": namespace.Allocators(constants.MemoryRegion.sbuf),
            "psum": namespace.Allocators(constants.MemoryRegion.psum),
            "no_reorder": namespace.no_reorder,
            "allocation_scope": namespace.no_reorder,
            "multi_buffer": lambda factor=2: namespace.no_reorder(),
            **dict.fromkeys(("enable_stack_allocator", "force_auto_alloc", "skip_middle_end_transformations"), _transparent),
        },
    )
    for name in ("compiler.backends", "compiler.backends.neuron", "compiler.backends.neuron.dimensions"):
        _module(made, f"{root}.{name}", {"ParDim": ParDim, "VNC": NeuronCores} if legacy else {})


def _module(made: dict[str, ModuleType], name: str, contents: dict[str, Any]) -> None:
    module = LanguageModule(name)
    module.__path__ = []
    module.__dict__.update(contents)
    made[name] = module


def _calls(module: ModuleType) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def _decorators(legacy: bool) -> dict[str, Any]:
    def decorator(function: Any = None, *modes: Any, **options: Any) -> Any:
        if function is None:
            return lambda given: decorator(given, **options)
        return Kernel(function, legacy, function.grid if isinstance(function, Kernel) else ())

    def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        return decorator(kernel)(*args, **kwargs)

    return {
        "jit": decorator,
        "trace": decorator,
        "simulate": decorator,
        "cpu_simulate": decorator,
        "simulate_kernel": simulate_kernel,
        "baremetal": decorator,
        "benchmark": decorator,
        "profile": decorator,
    }


def _transparent(function: Any = None, **options: Any) -> Any:
    return function if function is not None else lambda given: given
