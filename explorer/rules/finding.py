"""What a rule reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["info", "warning", "critical"]


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a finding; None or empty where it has none. Times in nanoseconds, ids are `Instruction.id`."""

    file: str | None = None
    line: int | None = None
    layer: str | None = None
    engine: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    instructions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A bottleneck with its evidence and a bound on what mending it can gain.

    `gain_ns` never exceeds the whole time minus the lower bound of the busiest engine; None: it cannot be said.
    """

    rule: str
    severity: Severity
    title: str
    where: Where
    gain_ns: int | None
    gain_percent: float | None
    advice: str
    #: Named figures the rule saw, each with its unit in the name.
    evidence: Mapping[str, int | float | str] = field(default_factory=dict)
