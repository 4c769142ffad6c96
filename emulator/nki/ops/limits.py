"""Limits of a call that depend on the target or on an operand's type."""

from __future__ import annotations

from emulator.errors import broken_rule
from emulator.nki import dtypes
from emulator.nki.constants import GENERATION, nc_version
from emulator.nki.session import current
from emulator.nki.tensor import View


def needs_generation(call: str, first: nc_version) -> None:
    """Raise `RuleError` if the running kernel's target is older than NeuronCore generation `first`."""
    target = current(call).target
    if GENERATION[target] < first:
        able = " or ".join(name for name, version in GENERATION.items() if version >= first)
        broken_rule(f"{call} does not exist on {target}; it needs NeuronCore-v{first.value} or newer: capture with --target {able}")


def needs_dtype(call: str, argument: str, view: View, *allowed: str) -> None:
    """Raise `RuleError` unless the operand is of one of the types."""
    if dtypes.name(view.dtype) not in allowed:
        broken_rule(f"{call}: {argument} {view.name} is {dtypes.name(view.dtype)}; it has to be {' or '.join(allowed)}")


def not_both_in_psum(call: str, first: View, second: View) -> None:
    """Raise `RuleError` if both operands are in PSUM, of which the Vector engine reads one at a time."""
    if first.space.name == second.space.name == "PSUM":
        broken_rule(f"{call}: {first.name} and {second.name} are both in PSUM; copy one of them to SBUF first")
