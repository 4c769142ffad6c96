"""When two access patterns touch a common byte, and when one covers the other: exact, compiled, on normalised patterns.

A normalised pattern is `lo`, `hi` (the bytes it spans), `width` (contiguous bytes of its innermost run) and up to five dimensions
of falling positive stride that are neither contiguous with what is inside them nor broadcast.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit

#: Steps of the search for a common byte after which two patterns count as overlapping.
SEARCH_LIMIT: Final = 4096


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def normalise(offset: Any, itemsize: Any, size: Any, stride: Any) -> Any:
    """(lo, hi, width, dimensions, sizes, strides) of all patterns; sizes and strides beyond `dimensions` are 0."""
    n, dims = size.shape
    lo, hi, width = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    count = np.zeros(n, dtype=np.int64)
    sizes, strides = np.zeros((n, dims), dtype=np.int64), np.zeros((n, dims), dtype=np.int64)
    s, k = np.empty(dims, dtype=np.int64), np.empty(dims, dtype=np.int64)
    for p in range(n):
        lo[p] = offset[p]
        used = 0
        empty = False
        for d in range(dims):
            empty |= size[p, d] <= 0
            step = stride[p, d]
            if size[p, d] <= 1 or step == 0:
                continue
            if step < 0:
                lo[p] += step * (size[p, d] - 1)
                step = -step
            at = used
            while at > 0 and s[at - 1] > step:  # ascending: innermost first
                s[at], k[at] = s[at - 1], k[at - 1]
                at -= 1
            s[at], k[at] = step, size[p, d]
            used += 1
        w = itemsize[p]
        kept = 0
        for d in range(used):
            if kept == 0 and s[d] <= w:
                w += s[d] * (k[d] - 1)
            elif kept > 0 and s[kept - 1] * k[kept - 1] == s[d]:
                k[kept - 1] *= k[d]
            else:
                s[kept], k[kept] = s[d], k[d]
                kept += 1
        width[p], count[p] = w, kept
        span = w
        for d in range(kept):
            sizes[p, d], strides[p, d] = k[kept - 1 - d], s[kept - 1 - d]
            span += s[d] * (k[d] - 1)
        hi[p] = lo[p] if empty else lo[p] + span
    return lo, hi, width, count, sizes, strides


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def overlap(a: Any, b: Any, shift: Any, lo: Any, hi: Any, width: Any, count: Any, sizes: Any, strides: Any) -> Any:
    """1 where patterns a and b (moved up by `shift`) share a byte, 0 where not, 2 where the search was given up."""
    if lo[b] + shift >= hi[a] or hi[b] + shift <= lo[a]:
        return 0
    if count[a] == 0 and count[b] == 0:
        return 1
    # Find x with  -width_b < delta + sum(x * step) < width_a,  a's dimensions counting down, b's up, equal steps together.
    step, least, most = np.empty(10, dtype=np.int64), np.empty(10, dtype=np.int64), np.empty(10, dtype=np.int64)
    i, j, dims = 0, 0, 0
    while i < count[a] or j < count[b]:
        of_a = strides[a, i] if i < count[a] else 0
        of_b = strides[b, j] if j < count[b] else 0
        step[dims], least[dims], most[dims] = max(of_a, of_b), 0, 0
        if of_a == step[dims]:
            least[dims] = 1 - sizes[a, i]
            i += 1
        if of_b == step[dims]:
            most[dims] = sizes[b, j] - 1
            j += 1
        dims += 1
    below, above = np.zeros(11, dtype=np.int64), np.zeros(11, dtype=np.int64)
    for d in range(dims - 1, -1, -1):
        below[d] = below[d + 1] + least[d] * step[d]
        above[d] = above[d + 1] + most[d] * step[d]
    value, x, end = np.empty(11, dtype=np.int64), np.empty(10, dtype=np.int64), np.empty(10, dtype=np.int64)
    value[0] = lo[b] + shift - lo[a]
    level, fresh = 0, True
    for _ in range(SEARCH_LIMIT):
        if fresh:
            # Only those x from which the inner dimensions can still reach the window.
            x[level] = max(least[level], (-width[b] - above[level + 1] - value[level]) // step[level] + 1)
            end[level] = min(most[level], -((below[level + 1] + value[level] - width[a]) // step[level]) - 1)
        if x[level] > end[level]:
            if level == 0:
                return 0
            level -= 1
            x[level] += 1
            fresh = False
            continue
        if level == dims - 1:
            return 1
        value[level + 1] = value[level] + x[level] * step[level]
        level += 1
        fresh = True
    return 2


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def covers(a: Any, b: Any, shift: Any, lo: Any, hi: Any, width: Any, count: Any, sizes: Any, strides: Any) -> Any:
    """True only if pattern a touches every byte of pattern b (moved up by `shift`); False where that is not plain."""
    rest = lo[b] + shift - lo[a]
    if rest < 0 or hi[b] + shift > hi[a]:
        return False
    if count[a] == 0:
        return True
    need = width[b]
    inner = width[a]
    for d in range(count[a] - 1, -1, -1):  # a's elements must not interleave for the division below to be the only one
        if strides[a, d] < inner:
            return False
        inner += strides[a, d] * (sizes[a, d] - 1)
    j = 0
    for d in range(count[a]):
        while j < count[b] and strides[b, j] > strides[a, d]:
            need += strides[b, j] * (sizes[b, j] - 1)
            j += 1
        repeats = 1
        if j < count[b] and strides[b, j] == strides[a, d]:
            repeats = sizes[b, j]
            j += 1
        index = rest // strides[a, d]
        rest -= index * strides[a, d]
        if index + repeats > sizes[a, d]:
            return False
    while j < count[b]:
        need += strides[b, j] * (sizes[b, j] - 1)
        j += 1
    return rest + need <= width[a]
