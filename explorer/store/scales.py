"""On what scale each column with the unit percent is: nothing in trnscope guesses it from a value."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Literal

Kind = Literal["fraction", "percent"]


@dataclass(frozen=True, slots=True)
class Scale:
    """`kind` is "fraction" (one is all), "percent" (100 is all) or None where nobody documents it; `evidence` says who does."""

    kind: Kind | None
    evidence: str


_MEASURED = "profiles that neuron-profile 2.27 wrote on an inf2.xlarge: equal to the ratio of the times they rest on"
_REFERENCE = "aws-neuron-sdk tools/neuron-explorer/profile-schema-reference.rst"

#: By "Table.column", shell patterns allowed; the first match counts.
SCALES: tuple[tuple[str, Scale], ...] = (
    ("Summary.*", Scale("fraction", _MEASURED)),
    ("SbufUsage.*", Scale("fraction", "the same profiles: usage_avg never exceeds one")),
    ("PsumUsage.*", Scale("fraction", "the same profiles: a bank in full use reads 1")),
    ("ThrottleSummary.*", Scale("fraction", f"{_REFERENCE}: one means no throttling")),
    ("HostMemUsage.used_percent", Scale("percent", f"{_REFERENCE}: used over capacity, times 100")),
    ("CpuUsage.util_percent", Scale("percent", f"{_REFERENCE}: a percentage of the last second")),
    ("FrameworkNode.*_per_interval", Scale("percent", f"{_REFERENCE}: its examples run above one")),
    ("FrameworkNode.[hm]fu", Scale(None, "called a percentage, with a formula that gives a fraction")),
    ("OpcodeSummary.active_time_percent", Scale(None, "no unit is published; trnscope's own collectors write a fraction")),
)


def scale(table: str, column: str) -> Scale | None:
    """The scale of a column, or None if it is no share of anything."""
    name = f"{table}.{column}"
    if "percent" not in column and not name.startswith("FrameworkNode."):
        return None
    return next((s for pattern, s in SCALES if fnmatch.fnmatchcase(name, pattern)), None)
