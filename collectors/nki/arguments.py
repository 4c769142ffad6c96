"""Kernel arguments as a user writes them: `x=bf16[128,512]`, `n=4`, `x=@weights.npy`."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from explorer.store.errors import ProfileError, UsageError

#: Spellings of element types: the short ones, and those of numpy and nki.language.
DTYPES: Mapping[str, np.dtype[Any]] = {
    **{name: np.dtype(np.float32) for name in ("f32", "fp32", "float32")},
    **{name: np.dtype(np.float16) for name in ("f16", "fp16", "float16")},
    **{name: np.dtype(ml_dtypes.bfloat16) for name in ("bf16", "bfloat16")},
    **{name: np.dtype(ml_dtypes.float8_e4m3) for name in ("f8e4", "fp8e4", "float8_e4m3")},
    **{name: np.dtype(ml_dtypes.float8_e4m3fn) for name in ("f8e4fn", "float8_e4m3fn")},
    **{name: np.dtype(ml_dtypes.float8_e5m2) for name in ("f8e5", "fp8e5", "float8_e5m2")},
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32)},
    **{f"int{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32)},
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32)},
    **{f"uint{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32)},
    "bool": np.dtype(np.bool_),
}
#: Random integers are below this, so that they fit every type and can be small indices.
_INTEGERS_BELOW = 16
#: HBM of a whole chip of the newest generation, in bytes.
_LARGEST = 144 * 2**30
_ARRAY = re.compile(r"(?P<dtype>[A-Za-z_]\w*)\[(?P<shape>[\d\s,]*)\]")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its value, the text a profile stores for it, and whether the seed made it."""

    value: Any
    text: str
    random: bool


def parse(texts: Sequence[str], *, seed: int, values: bool) -> dict[str, Argument]:
    """The arguments by name.

    Arrays get standard normal numbers (floats) or integers from 0 to 15, each from the seed and its own name, so that the order
    does not matter; zeros without `values`. Raises UsageError on a text that is none, ProfileError on a file that cannot be read.
    """
    found: dict[str, Argument] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--arg {text}: not NAME=VALUE; write for example --arg x=bf16[128,512], --arg n=4 or --arg x=@x.npy")
        if name in found:
            raise UsageError(f"--arg {name}: given twice")
        found[name] = _argument(name, value, seed, values)
    return found


def _argument(name: str, value: str, seed: int, values: bool) -> Argument:
    if value.startswith("@"):
        return _from_file(name, Path(value[1:]))
    match = _ARRAY.fullmatch(value)
    if match is None:
        return Argument(_scalar(value), value, False)
    dtype = DTYPES.get(match["dtype"])
    if dtype is None:
        raise UsageError(f"--arg {name}={value}: unknown element type {match['dtype']!r}; use one of {', '.join(DTYPES)}")
    try:
        shape = tuple(int(size) for size in match["shape"].split(",") if size.strip())
    except ValueError:
        raise UsageError(f"--arg {name}={value}: the shape is not integers with commas between") from None
    if 0 in shape:
        raise UsageError(f"--arg {name}={value}: an array without elements; give sizes of 1 or more")
    if (size := prod(shape) * dtype.itemsize) > _LARGEST:
        raise UsageError(f"--arg {name}={value}: {size:,} bytes, more than any device's HBM; use a smaller shape")
    text = f"{match['dtype']}[{','.join(map(str, shape))}]"
    return Argument(random(name, shape, dtype, seed) if values else np.zeros(shape, dtype), text, values)


def random(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Any:
    """The array that `seed` gives an argument of that name."""
    numbers = np.random.default_rng([seed, *name.encode()])
    if dtype == np.bool_:
        return numbers.random(shape) < 0.5
    if dtype.kind in "iu":
        return numbers.integers(0, _INTEGERS_BELOW, shape).astype(dtype)
    return numbers.standard_normal(shape, dtype=np.float32).astype(dtype)


def _from_file(name: str, path: Path) -> Argument:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ProfileError(f"{path}: cannot read the array for --arg {name}: {error.strerror or 'not a .npy file'}") from None
    except (ValueError, EOFError):
        raise ProfileError(f"{path}: not a .npy array of numbers; write one with numpy.save") from None
    if not isinstance(array, np.ndarray):
        raise ProfileError(f"{path}: holds several arrays; --arg {name} takes one .npy array")
    # ml_dtypes arrays come back from .npy as raw bytes.
    if array.dtype.kind == "V":
        raise ProfileError(f"{path}: its element type {array.dtype} is not in .npy's list; save it as float32")
    return Argument(array, f"{array.dtype.name}[{','.join(map(str, array.shape))}]", False)


def _scalar(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def check(function: Callable[..., Any], kernel: str, given: Mapping[str, Argument]) -> None:
    """Raise UsageError, with the parameters and an example, unless `given` are the arguments that the kernel takes."""
    parameters = inspect.signature(function).parameters
    named = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    missing = [p.name for p in named if p.default is p.empty and p.name not in given]
    unknown = [name for name in given if name not in {p.name for p in named} and not takes_any]
    if not missing and not unknown:
        return
    what = f"has no parameter {unknown[0]}" if unknown else f"needs {', '.join(missing)}"
    wanted = missing[0] if missing else next((p.name for p in named), "x")
    shown = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in named)
    raise UsageError(f"{kernel}({shown}) {what}; for example --arg {wanted}=bf16[128,512]")
