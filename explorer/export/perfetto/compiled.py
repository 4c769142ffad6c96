"""Compiles a function with numba, keeping the machine code between runs where a cache can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`function` as machine code for the types it is called with; it releases the interpreter lock.

    Without a writable cache folder numba refuses to cache at all, so then each process compiles anew.
    """
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(F, numba.njit(nogil=True)(function))
