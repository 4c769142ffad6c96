"""The Vector engine's reduction registers: one for each partition, shared by the instructions that reduce as they go.

Source: aws-neuron-sdk nki/api/nki/isa/__init__.py, `reduce_cmd` and "Accumulator behavior" of `range_select` and its kin.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule
from emulator.nki import dtypes
from emulator.nki.access import PARTITIONS
from emulator.nki.constants import reduce_cmd
from emulator.nki.ops.elementwise import scalar_operand
from emulator.nki.session import current
from emulator.nki.tensor import View
from emulator.program import InstructionFlag

Column = NDArray[Any]

#: What `reset` puts into the registers, by operation.
IDENTITY: Final = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}
#: Reductions that have names of their own, and the operation that they repeat.
PLAIN: Final = {"max": "maximum", "min": "minimum", "sum": "add", "prod": "multiply"}


def begin(call: str, operation: str, command: Any, partitions: int, initial: Any = None) -> Column:
    """The registers of the first `partitions` partitions as an instruction finds them after `command`; a copy, one dimension."""
    registers = current(call).accumulators.get("vector")
    if command is reduce_cmd.load_reduce:
        loaded: Column = dtypes.to_float32(np.broadcast_to(np.asarray(initial), (partitions, 1)))[:, 0].copy()
        return loaded
    if command is reduce_cmd.reduce and registers is not None:
        found: Column = registers[:partitions].copy()
        return found
    return np.full(partitions, IDENTITY[operation], dtype=np.float32)


def check_load(call: str, argument: str, command: Any, initial: Any) -> None:
    """Raise `RuleError` if `command` loads a value and there is none."""
    if command is reduce_cmd.load_reduce and initial is None:
        broken_rule(f"{call}: reduce_cmd.load_reduce needs the value to load, {argument}")


def keep(call: str, values: Column) -> None:
    """The registers hold `values` from now on, one for each of the first partitions."""
    session = current(call)
    before = session.accumulators.get("vector")
    registers = np.zeros(PARTITIONS, dtype=np.float32) if before is None else before.copy()
    registers[: len(values)] = values
    session.accumulators["vector"] = registers


def forget(call: str, partitions: int) -> None:
    """`idle`: what the registers hold afterwards is not defined."""
    keep(call, np.full(partitions, np.nan, dtype=np.float32))


def result_operand(call: str, reduce_res: View | None, command: Any, data: View) -> tuple[tuple[View, ...], int]:
    """(the further operand that is written, flags) of an instruction that may write its registers to `reduce_res`.

    Raises `RuleError` unless that has one element for each partition of `data`, or if `command` does not reduce.
    """
    if reduce_res is None:
        return (), 0
    if command in (reduce_cmd.idle, reduce_cmd.reset):
        broken_rule(f"{call}: reduce_res is given and reduce_cmd is {command.name}; use reduce_cmd.reset_reduce or reduce")
    return scalar_operand(call, "reduce_res", reduce_res, data), int(InstructionFlag.READ_ACCUMULATOR)
