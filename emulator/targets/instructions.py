"""What each class of instruction costs, as data: `instructions.toml` beside this file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Final

#: How a class is costed; `costs.py` has the formula of each.
RULES: Final = ("load_stationary", "matmul", "stream", "dma", "control")
#: When a class runs faster for 16-bit floats.
FAST: Final = ("", "copy", "tensor_tensor", "scalar_tensor_tensor", "reduce", "memset")


@dataclass(frozen=True, slots=True)
class CostClass:
    """Cycles per element and partition, and what changes it. `engines` are those that run the class, in lower case."""

    name: str
    rule: str
    engines: tuple[str, ...]
    #: Cycles for each of the N elements per partition.
    per_element: float
    #: Twice as long when two inputs of full size come from the same memory.
    two_inputs: bool
    fast: str
    #: Whether the engine has to hold the table of the instruction's function.
    function_table: bool
    #: "unpublished": `note` says what the class is priced as in want of a published formula. Else as `targets.KINDS`.
    kind: str
    source: tuple[str, ...]
    note: str


def load_classes() -> dict[str, CostClass]:
    """All cost classes by name."""
    text = resources.files(__package__).joinpath("instructions.toml").read_text(encoding="utf-8")
    classes = {}
    for name, row in tomllib.loads(text).items():
        classes[name] = CostClass(
            name=name,
            rule=row["rule"],
            engines=tuple(row["engines"]),
            per_element=float(row.get("per_element", 1.0)),
            two_inputs=row.get("two_inputs", False),
            fast=row.get("fast", ""),
            function_table=row.get("function_table", False),
            kind=row["kind"],
            source=tuple(row["source"]),
            note=row.get("note", ""),
        )
        if classes[name].rule not in RULES or classes[name].fast not in FAST:
            raise ValueError(f"instructions.toml: {name} has an unknown rule or fast mode")
    return classes
