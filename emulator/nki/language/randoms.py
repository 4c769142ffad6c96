"""Random tiles: `nl.rand`, `nl.dropout`, `nl.random_seed`."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator.errors import broken_rule
from emulator.nki import dtypes
from emulator.nki.access import allocate
from emulator.nki.assign import fresh
from emulator.nki.constants import MemoryRegion
from emulator.nki.language import memory
from emulator.nki.ops import elementwise, random
from emulator.nki.ops.reduce import tile_shape
from emulator.nki.tensor import View, need_view

#: Random bits of a number (aws-neuron-sdk nki/api/nki/isa/__init__.py, `rng`: "normalization instruction").
BITS = 16


def rand(shape: Any, dtype: Any, buffer: Any = None, name: str = "", *, legacy: bool) -> View:
    """A new tile of numbers spread evenly from 0 to 1, 1 left out: random bits, then their scaling."""
    call = "nki.language.rand"
    result = memory.ndarray(shape, dtype, buffer, name, legacy=legacy)
    if not result.on_chip:
        broken_rule(f"{call}: random numbers are made on chip; make them in nl.sbuf and store them")
    bits = allocate(tile_shape(result), dtypes.uint16, MemoryRegion.sbuf, name=f"{result.name}.bits", legacy=legacy)
    random.rng(bits, call=call)
    elementwise.tensor_scalar(result, bits, "multiply", 2.0**-BITS, call=call)
    return result


def dropout(x: Any, rate: Any, dtype: Any = None, *, legacy: bool) -> View:
    """A tile of `x` with each element set to zero with probability `rate`."""
    data = need_view(x, "nki.language.dropout", "x")
    result = allocate(tile_shape(data), dtype or data.dtype, MemoryRegion.sbuf, legacy=legacy, unnamed="dropout")
    return fresh(result, (random.dropout(result, data, rate),))


def random_seed(seed: Any, *, legacy: bool) -> None:
    """Seed the random numbers: a [1, 1] tile of 32 bits, or in the first generation a number."""
    if legacy and isinstance(seed, (int, np.integer)):
        held = allocate((1, 1), dtypes.int32, MemoryRegion.sbuf, name="random_seed", legacy=legacy)
        elementwise.memset(held, int(seed))
        seed = held
    random.set_rng_seed(need_view(seed, "nki.language.random_seed", "seed"))
