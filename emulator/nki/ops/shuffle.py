"""Movement across partitions by the Vector engine."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from emulator.errors import broken_rule
from emulator.nki import dtypes
from emulator.nki.access import issue, values_on
from emulator.nki.indexing import boxed
from emulator.nki.ops.elementwise import rows
from emulator.nki.tensor import View

#: Partitions of a quadrant, and the mask's entry for a partition that stays (aws-neuron-sdk nki/api/nki/isa/__init__.py,
#: `nc_stream_shuffle`).
QUADRANT: Final = 32
STAYS: Final = 255


def nc_stream_shuffle(dst: View, src: View, shuffle_mask: Any) -> int:
    """The row that gives partition i of each quadrant of `dst` what partition `shuffle_mask[i]` of that quadrant of `src` has.

    Partitions whose entry is 255 stay. Raises `RuleError` where a partition outside `src` is asked for.
    """
    call = "nki.isa.nc_stream_shuffle"
    mask = _mask(call, shuffle_mask)
    if dtypes.name(dst.dtype) != dtypes.name(src.dtype):
        broken_rule(f"{call}: dst is {dtypes.name(dst.dtype)} and src is {dtypes.name(src.dtype)}; a shuffle keeps the type")
    if dst.free != src.free:
        broken_rule(
            f"{call}: {dst.name} {list(dst.shape)} and {src.name} {list(src.shape)} need the same number of elements per partition"
        )
    pairs = [(to, to - to % QUADRANT + mask[to % QUADRANT]) for to in range(dst.partitions) if mask[to % QUADRANT] != STAYS]
    if not pairs:
        broken_rule(f"{call}: shuffle_mask moves nothing into the {dst.partitions} partitions of {dst.name}")
    if outside := [source for _, source in pairs if source >= src.partitions]:
        broken_rule(f"{call}: shuffle_mask asks for partition {outside[0]} of {src.name}, which has {src.partitions}")
    written = _parts(dst, sorted({to for to, _ in pairs}))
    read = _parts(src, sorted({source for _, source in pairs}))
    row = issue(call, "nc_stream_shuffle", None, written, read, src.free, max(dst.partitions, src.partitions))
    if values_on():
        moved = rows(src)[[source for _, source in pairs]].copy()
        target = dst.tile()
        target[[to for to, _ in pairs]] = moved.reshape(len(pairs), *target.shape[1:])
    return row


def _mask(call: str, given: Any) -> list[int]:
    try:
        mask = [operator.index(entry) for entry in given]
    except TypeError:
        broken_rule(f"{call}: shuffle_mask has to be a list of {QUADRANT} integers")
    if len(mask) != QUADRANT:
        broken_rule(f"{call}: shuffle_mask has {len(mask)} entries; it needs {QUADRANT}, one for each partition of a quadrant")
    if wrong := [entry for entry in mask if not (0 <= entry < QUADRANT or entry == STAYS)]:
        broken_rule(
            f"{call}: shuffle_mask has the entry {wrong[0]}; entries are 0 to {QUADRANT - 1}, or {STAYS} for one that stays"
        )
    return mask


def _parts(view: View, partitions: list[int]) -> tuple[View, ...]:
    """The view's parts of neighbouring partitions, so that each is an exact region."""
    if view.paxis is None:
        return (view,)
    runs = np.split(np.array(partitions), np.flatnonzero(np.diff(partitions) > 1) + 1)
    parts = []
    for run in runs:
        box = [(0, size) for size in view.shape]
        box[view.paxis] = (int(run[0]), len(run))
        parts.append(boxed(view, tuple(box)))
    return tuple(parts)
