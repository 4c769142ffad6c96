"""Compiles a function with numba, keeping the machine code between runs where a cache can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Any:
    """`function` as machine code for the types it is called with.

    A compiled function may call only those of its own file: the cache does not see when another file changes. Without a writable
    cache folder numba refuses to cache at all, so then each process compiles anew.
    """
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        return numba.njit(error_model="numpy")(function)
