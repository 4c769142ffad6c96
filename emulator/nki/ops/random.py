"""Random numbers of the Vector and GpSimd engines: dropout, random bits, uniform numbers.

The device's own sequences are not published. Ours are the same in every run of a kernel with the same seed: numpy's Philox
generator, begun from the capture's seed and the number of the launch, or from what `set_rng_seed` gives, read in the order of
the instructions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule
from emulator.nki import dtypes
from emulator.nki.access import issue, same_tile, values_on
from emulator.nki.constants import engine_name, nc_version
from emulator.nki.ops.elementwise import rows, scalar_operand, scalar_value
from emulator.nki.ops.limits import needs_dtype, needs_generation
from emulator.nki.session import current
from emulator.nki.tensor import View

#: Opcodes of the instructions that draw numbers.
DRAWS: Final = frozenset(("DROPOUT", "RNG", "RAND2"))


def dropout(dst: View, data: View, prob: Any) -> int:
    """The row that writes `data` with each element set to zero with probability `prob`, a number or one per partition."""
    call = "nki.isa.dropout"
    same_tile(call, dst, data)
    if isinstance(prob, View) and not dtypes.is_float(prob.dtype):
        broken_rule(f"{call}: prob {prob.name} is {dtypes.name(prob.dtype)}; it has to be a float type")
    reads = (data, *scalar_operand(call, "prob", prob, data))
    row = issue(call, "dropout", None, (dst,), reads, data.free, data.partitions)
    if values_on():
        chance = dtypes.to_float32(np.asarray(scalar_value(prob)))
        kept = _uniform((data.partitions, data.free)) >= chance
        values = rows(data)
        dst.write(np.where(kept, values, np.zeros((), dtype=values.dtype)))
    return row


def rng(dst: View, engine: Any = None, *, call: str = "nki.isa.rng") -> int:
    """The row that writes random bits, as many as the integer type of `dst` has."""
    needs_dtype(call, "dst", dst, "uint32", "int32", "uint16", "int16", "uint8", "int8")
    if engine_name(engine) == "gpsimd":
        needs_generation(f"{call} on the gpsimd engine", nc_version.gen3)
    row = issue(call, "rng", engine, (dst,), (), dst.free, dst.partitions)
    if values_on():
        bits = _generator().integers(0, 2**32, (dst.partitions, dst.free), dtype=np.uint32)
        kind = dtypes.storage(dst.dtype)
        dst.write(bits.astype(f"u{kind.itemsize}").view(kind))
    return row


def rand2(dst: View, low: Any, high: Any) -> int:
    """The row that writes numbers spread evenly from `low` to `high`, numbers or one per partition."""
    call = "nki.isa.rand2"
    needs_generation(call, nc_version.gen4)
    reads = (*scalar_operand(call, "min", low, dst), *scalar_operand(call, "max", high, dst))
    row = issue(call, "rand2", None, (dst,), reads, dst.free, dst.partitions)
    if values_on():
        first, last = (dtypes.to_float32(np.asarray(scalar_value(bound))) for bound in (low, high))
        dst.write(first + _uniform((dst.partitions, dst.free)) * (last - first))
    return row


def set_rng_seed(seed: View) -> int:
    """The row that seeds the Vector engine's generator from a [1, 1] tile of 32 bits."""
    call = "nki.isa.set_rng_seed"
    if seed.size != 1 or seed.itemsize != 4:
        broken_rule(f"{call}: {seed.name} {list(seed.shape)} {dtypes.name(seed.dtype)} has to be [1, 1] of a 32-bit type")
    row = issue(call, "set_rng_seed", None, (), (seed,), 1, 1)
    if values_on():
        current(call).seed_random(int(np.ascontiguousarray(rows(seed)).view(np.uint32)[0, 0]))
    return row


def _generator() -> np.random.Generator:
    return current().random()


def _uniform(shape: tuple[int, int]) -> NDArray[np.float32]:
    return _generator().random(shape, dtype=np.float32)
