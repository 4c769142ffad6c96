"""Load a kernel from a file and run it: `load_kernel` and `run_kernel`."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os.path import dirname
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Final

import numpy as np

from emulator.errors import EmulatorError, KernelError, KernelLoadError, RuleError
from emulator.nki.launch import Capture, Kernel, capturing
from emulator.nki.modules import installed
from emulator.program import Program
from emulator.stacks import is_internal

_NUMPY: Final = dirname(np.__file__)


@dataclass(frozen=True, slots=True)
class Run:
    """What a kernel returned (arrays; None in place of each while values are off), and its instructions."""

    outputs: Any
    program: Program


def load_kernel(file: str | Path, name: str | None = None) -> Any:
    """The kernel `name` of a Python file, or its only one: a `Kernel`, or a function that launches or is one.

    Raises `KernelLoadError` if the file cannot be read or imported, or if the name is missing or needed.
    """
    path = Path(file)
    if not path.is_file():
        raise KernelLoadError(f"{file}: no such file; give the path of a Python file with an NKI kernel")
    module = _load(path)
    kernels = {
        label: value
        for label, value in vars(module).items()
        if isinstance(value, Kernel) and value.function.__module__ == module.__name__
    }
    # A second name of a kernel is no second kernel.
    named = {label: kernel for label, kernel in kernels.items() if label == kernel.function.__name__}
    kernels = named | {label: kernel for label, kernel in kernels.items() if kernel not in named.values()}
    if name is not None:
        found = getattr(module, name, None)
        if found is None or not callable(found):
            known = ", ".join(kernels) or "none"
            raise KernelLoadError(f"{file}: has no kernel {name!r}; kernels there: {known}")
        return found
    if len(kernels) == 1:
        return next(iter(kernels.values()))
    if not kernels:
        raise KernelLoadError(f"{file}: no function is decorated with @nki.jit; name one as {file}:function")
    raise KernelLoadError(f"{file}: several kernels; name one as {file}:NAME with NAME one of {', '.join(kernels)}")


def run_kernel(
    kernel: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str = "trn2",
    grid: Any = None,
    values: bool = True,
    seed: int = 0,
) -> Run:
    """The outputs and the program of one call of a kernel, or of a function that launches kernels.

    `args` are numpy arrays (without values anything with `shape` and `dtype`) and Python values. `grid` launches a kernel that
    was not given one; `seed` begins the random numbers that it draws on the device. Raises `KernelError` with the kernel's own
    traceback if it raises, `RuleError` if it breaks a rule, `UnsupportedCall` if it uses what the emulator does not have.
    """
    chosen = None if grid is None else grid if isinstance(grid, tuple) else (grid,)
    capture = Capture(target, values, grid=chosen, seed=seed)
    given = dict(kwargs or {})
    with installed(), capturing(capture), _folder_of(kernel):
        try:
            try:
                outputs = kernel(*args, **given)
            except EmulatorError:
                if capture.launches or isinstance(kernel, Kernel):
                    raise
                # Not a function that launches a kernel, but an undecorated kernel.
                outputs = Kernel(kernel, _is_legacy(kernel))(*args, **given)
        except (EmulatorError, KeyboardInterrupt):
            raise
        except BaseException as error:  # sys.exit in a kernel must not end the capture as if it were done
            raise KernelError(_summary(error), _own_traceback(error)) from error
    if capture.recorder is None:
        raise RuleError(
            f"{getattr(kernel, '__name__', kernel)} launched no kernel; name a function decorated with @nki.jit, or its caller"
        )
    return Run(outputs, capture.recorder.finish())


def _load(path: Path) -> ModuleType:
    # The file must not stand in for a module of the same name that others import.
    taken = path.stem in sys.modules or path.stem in sys.stdlib_module_names
    name = f"kernel_{path.stem}" if taken else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise KernelLoadError(f"{path}: is no Python file; give one ending in .py")
    module, loader = importlib.util.module_from_spec(spec), spec.loader

    def alone() -> ModuleType:
        sys.modules[name] = module
        loader.exec_module(module)
        return module

    try:
        return _imported(path, path.parent, alone)
    except _NeedsPackage as error:
        root, whole = _package(path)
        if root is None:
            raise KernelLoadError(
                f"{path}: imports relative to its package, but no __init__.py makes its folder one; add it"
            ) from error
    outermost = whole.partition(".")[0]
    if outermost in sys.modules:
        raise KernelLoadError(f"{path}: its package {outermost!r} has the name of a module that is in use; rename the folder")
    return _imported(path, root, lambda: importlib.import_module(whole))


class _NeedsPackage(Exception):
    """The file imports relative to a package, so it has to be loaded as a part of it."""


def _package(path: Path) -> tuple[Path | None, str]:
    """The folder that holds the outermost package of the file (None: it is in none), and the file's name as a module of it."""
    folder, parts = path.resolve().parent, [path.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return (folder if len(parts) > 1 else None), ".".join(parts)


def _imported(path: Path, root: Path, load: Callable[[], ModuleType]) -> ModuleType:
    """The module that `load` gives with the kernel language installed and `root` on the search path."""
    before = dict(sys.modules)
    with installed(), _search_path(root):
        try:
            return load()
        except (EmulatorError, KeyboardInterrupt):
            raise
        except ModuleNotFoundError as error:
            raise KernelLoadError(f"{path}: needs the module {error.name!r}, which is not installed here") from error
        except SyntaxError as error:
            raise KernelLoadError(f"{path}:{error.lineno}: {error.msg}; correct the file") from error
        except BaseException as error:
            if isinstance(error, ImportError) and "no known parent package" in str(error) and root == path.parent:
                raise _NeedsPackage from error
            raise KernelError(f"{path}: importing it raised {_summary(error)}", _own_traceback(error)) from error
        finally:
            _forget(before, root.resolve())


def _forget(before: dict[str, ModuleType], folder: Path) -> None:
    # Modules beside the kernel must not answer for those of the same name beside another kernel. Packages that were imported
    # before, and those installed somewhere below the folder, stay.
    beside = set()
    for name in {name.split(".")[0] for name in sys.modules} - set(before):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and Path(file).resolve().parent in (folder, folder / name):
            beside.add(name)
    for name in [name for name in sys.modules if name.split(".")[0] in beside]:
        del sys.modules[name]
    for name, module in before.items():
        if sys.modules.get(name) is not module and name.split(".")[0] not in ("nki", "neuronxcc"):
            sys.modules[name] = module


@contextmanager
def _search_path(folder: Path) -> Iterator[None]:
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


@contextmanager
def _folder_of(kernel: Any) -> Iterator[None]:
    function = kernel.function if isinstance(kernel, Kernel) else kernel
    code = getattr(function, "__code__", None)
    file = Path(code.co_filename) if code is not None else None
    if file is None or not file.is_file():
        yield
        return
    before = dict(sys.modules)
    with _search_path(file.parent):
        try:
            yield
        finally:
            _forget(before, file.parent.resolve())


def _is_legacy(function: Callable[..., Any]) -> bool:
    return any(
        isinstance(value, ModuleType) and value.__name__.startswith("neuronxcc")
        for value in getattr(function, "__globals__", {}).values()
    )


def _summary(error: BaseException) -> str:
    entries = traceback.extract_tb(_cut(error.__traceback__))
    at = f" at {entries[-1].filename}:{entries[-1].lineno}" if entries else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{at}: {text}" if text else f"{type(error).__name__}{at}"


def _own_traceback(error: BaseException) -> str:
    lines = traceback.format_exception(type(error), error, _cut(error.__traceback__), chain=False)
    return "".join(lines)


def _cut(entry: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of the emulator, and of what it calls: numpy and Python's import machinery."""
    kept: list[TracebackType] = []
    ours = False
    while entry is not None:
        code = entry.tb_frame.f_code
        if is_internal(code):
            ours = True
        elif not code.co_filename.startswith((_NUMPY, "<frozen importlib")) or not ours:
            ours = False
            kept.append(entry)
        entry = entry.tb_next
    result: TracebackType | None = None
    for piece in reversed(kept):
        result = TracebackType(result, piece.tb_frame, piece.tb_lasti, piece.tb_lineno)
    return result
