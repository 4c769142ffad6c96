"""When two access patterns touch a common byte, and when one covers the other: exact, compiled, on normalised patterns.

A normalised pattern is a row of integers: the bytes it spans (`LO` to `HI`), the contiguous bytes of its innermost run (`WIDTH`),
the number of its dimensions (`COUNT`), their sizes (from `SIZE` on) and their strides (from `STRIDE` on, falling and positive).
Dimensions that are contiguous with what is inside them, or broadcast, are not among them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit

from emulator.program import PATTERN_DIMS

LO: Final = 0
HI: Final = 1
WIDTH: Final = 2
COUNT: Final = 3
SIZE: Final = 4
STRIDE: Final = SIZE + PATTERN_DIMS
COLUMNS: Final = STRIDE + PATTERN_DIMS
#: Steps of the search for a common byte after which two patterns count as overlapping.
SEARCH_LIMIT: Final = 4096


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def normalise(offset: Any, itemsize: Any, size: Any, stride: Any) -> Any:
    """The normalised patterns of all operands, one row each."""
    n, dims = size.shape
    result = np.zeros((n, COLUMNS), dtype=np.int64)
    s, k = np.empty(dims, dtype=np.int64), np.empty(dims, dtype=np.int64)
    for p in range(n):
        low = offset[p]
        used = 0
        empty = False
        for d in range(dims):
            empty |= size[p, d] <= 0
            step = stride[p, d]
            if size[p, d] <= 1 or step == 0:
                continue
            if step < 0:
                low += step * (size[p, d] - 1)
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
            elif kept > 0 and s[d] % s[kept - 1] == 0 and s[d] <= s[kept - 1] * k[kept - 1]:
                # Together they are one evenly spaced row.
                k[kept - 1] += s[d] // s[kept - 1] * (k[d] - 1)
            else:
                s[kept], k[kept] = s[d], k[d]
                kept += 1
        span = w
        for d in range(kept):
            result[p, SIZE + d], result[p, STRIDE + d] = k[kept - 1 - d], s[kept - 1 - d]
            span += s[d] * (k[d] - 1)
        result[p, LO], result[p, HI] = low, low if empty else low + span
        result[p, WIDTH], result[p, COUNT] = w, kept
    return result


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def overlap(a: Any, b: Any, shift: Any) -> Any:
    """1 where patterns a and b (moved up by `shift`) share a byte, 0 where not, 2 where the search was given up."""
    if b[LO] + shift >= a[HI] or b[HI] + shift <= a[LO]:
        return 0
    if a[COUNT] == 0 and b[COUNT] == 0:
        return 1
    # Find x with  -width_b < delta + sum(x * step) < width_a,  a's dimensions counting down, b's up, equal steps together.
    step, least, most = np.empty(10, dtype=np.int64), np.empty(10, dtype=np.int64), np.empty(10, dtype=np.int64)
    i, j, dims = 0, 0, 0
    while i < a[COUNT] or j < b[COUNT]:
        of_a = a[STRIDE + i] if i < a[COUNT] else 0
        of_b = b[STRIDE + j] if j < b[COUNT] else 0
        step[dims], least[dims], most[dims] = max(of_a, of_b), 0, 0
        if of_a == step[dims]:
            least[dims] = 1 - a[SIZE + i]
            i += 1
        if of_b == step[dims]:
            most[dims] = b[SIZE + j] - 1
            j += 1
        dims += 1
    below, above, common = np.zeros(11, dtype=np.int64), np.zeros(11, dtype=np.int64), np.zeros(11, dtype=np.int64)
    for d in range(dims - 1, -1, -1):
        divisor, rest = step[d], common[d + 1]
        while rest:
            divisor, rest = rest, divisor % rest
        common[d] = divisor
        below[d] = below[d + 1] + least[d] * step[d]
        above[d] = above[d + 1] + most[d] * step[d]
    value, x, end = np.empty(11, dtype=np.int64), np.empty(10, dtype=np.int64), np.empty(10, dtype=np.int64)
    value[0] = b[LO] + shift - a[LO]
    level, fresh = 0, True
    for _ in range(SEARCH_LIMIT):
        if fresh:
            # Only those x from which the inner dimensions can still reach the window.
            x[level] = max(least[level], (-b[WIDTH] - above[level + 1] - value[level]) // step[level] + 1)
            end[level] = min(most[level], -((below[level + 1] + value[level] - a[WIDTH]) // step[level]) - 1)
            # And only if the window has a value at a distance that the steps left can make up.
            if value[level] + (a[WIDTH] - 1 - value[level]) // common[level] * common[level] <= -b[WIDTH]:
                end[level] = x[level] - 1
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
def covers(a: Any, b: Any, shift: Any) -> Any:
    """True only if pattern a touches every byte of pattern b (moved up by `shift`); False where that is not plain."""
    rest = b[LO] + shift - a[LO]
    if rest < 0 or b[HI] + shift > a[HI]:
        return False
    if a[COUNT] == 0:
        return True
    need = b[WIDTH]
    inner = a[WIDTH]
    for d in range(a[COUNT] - 1, -1, -1):  # a's elements must not interleave for the division below to be the only one
        if a[STRIDE + d] < inner:
            return False
        inner += a[STRIDE + d] * (a[SIZE + d] - 1)
    j = 0
    for d in range(a[COUNT]):
        while j < b[COUNT] and b[STRIDE + j] > a[STRIDE + d]:
            need += b[STRIDE + j] * (b[SIZE + j] - 1)
            j += 1
        repeats = 1
        if j < b[COUNT] and b[STRIDE + j] == a[STRIDE + d]:
            repeats = b[SIZE + j]
            j += 1
        index = rest // a[STRIDE + d]
        rest -= index * a[STRIDE + d]
        if index + repeats > a[SIZE + d]:
            return False
    while j < b[COUNT]:
        need += b[STRIDE + j] * (b[SIZE + j] - 1)
        j += 1
    return rest + need <= a[WIDTH]
