"""What a rule module offers, and what it hands in before its gain is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from explorer.rules.facts import Facts
from explorer.rules.finding import Where


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding as the rule sees it: `gain_ns` from the evidence alone, before the bound of the whole.

    `removed` says which busy time, in nanoseconds by engine (or "dma"), the remedy takes away; empty where it only moves work.
    """

    title: str
    where: Where
    gain_ns: int
    advice: str
    evidence: Mapping[str, int | float | str]
    removed: Mapping[str, int] = field(default_factory=dict)


class Rule(Protocol):
    """A module of this folder. `NEEDS` names the columns by table without whose values the rule can say nothing."""

    @property
    def NAME(self) -> str:
        """What it is called in reports."""

    @property
    def ENGINES(self) -> tuple[str, ...]:
        """Engines whose instructions it looks at; empty where it looks at transfers."""

    @property
    def NEEDS(self) -> Mapping[str, tuple[str, ...]]:
        """Tables and columns."""

    def find(self, facts: Facts) -> Iterable[Draft]:
        """What it found, in any order."""
