"""The summary of a profile: every metric of the schema's Summary, computed from rows, beside what the source itself reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from explorer.analysis import summary_formulas as formulas
from explorer.analysis.summary_definitions import METRICS, TERMS, ByVersion, Definition, Formula, Made, Reported
from explorer.analysis.summary_held import Held
from explorer.analysis.summary_tables import active_time, opcode_summary, throttle_summary
from explorer.analysis.summary_terms import Cell, Number, Rows, Value
from explorer.store import schema
from explorer.store.reader import Profile

__all__ = ["Mismatch", "Origin", "Summary", "active_time", "opcode_summary", "summarize", "throttle_summary"]

Origin = Literal["computed", "reported by the source", "not captured"]

#: Column of ours in Summary: who made the row. A row of our own making is no source to compare with.
MADE_BY = "ts_made_by"
OURS = "trnscope"
#: Whole figures are cut as the source cuts them, but what double arithmetic loses must not cost a unit.
_ROUNDED = 1e-6


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A metric that the source reports otherwise than its rows give; `error` is how far apart rounding alone can put them."""

    metric: str
    computed: Number
    reported: Number
    error: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Metrics by Summary column, in the schema's unit, None where not captured; where each comes from; where the source differs.

    `errors` bounds, in the metric's unit, how far the source's figure may be from ours: it cuts fractions of a nanosecond from each
    time it writes, and ratios inherit that.
    """

    metrics: Mapping[str, Number | None]
    origins: Mapping[str, Origin]
    errors: Mapping[str, float]
    mismatches: tuple[Mismatch, ...]

    def table(self) -> pa.Table:
        """The schema's Summary table with its one row, marked as made by trnscope."""
        spec = schema.tables()["Summary"]
        columns = {c.name: pa.array([self.metrics.get(c.name)], c.arrow) for c in spec.columns}
        return pa.table({**columns, MADE_BY: pa.array([OURS])})


def summarize(profile: Profile, only: Sequence[str] | None = None) -> Summary:
    """The summary of a profile, or of those metrics of it. Raises KeyError on a name that is no column of Summary."""
    evaluation = Evaluation(profile)
    metrics: dict[str, Number | None] = {}
    origins: dict[str, Origin] = {}
    errors: dict[str, float] = {}
    mismatches = []
    for name in METRICS if only is None else only:
        found, source = evaluation.value(name), evaluation.reported(name)
        metrics[name] = None if found is None else found.value
        errors[name] = 0.0 if found is None else evaluation.bound(name)
        origins[name] = evaluation.origin(name)
        if found is not None and source is not None and abs(found.value - source) > errors[name]:
            mismatches.append(Mismatch(name, found.value, source, errors[name]))
    return Summary(metrics, origins, errors, tuple(mismatches))


def definition(name: str) -> Definition:
    """The definition of a metric or of a term that formulas use. Raises KeyError on another name."""
    return METRICS[name] if name in METRICS else TERMS[name]


class Evaluation:
    """Values of metrics and terms in one profile, each computed once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = Held(profile)
        self._known: dict[str, Value | None] = {}
        self._carried: set[str] = set()
        self._source = _source_row(profile)

    def reported(self, name: str) -> Number | None:
        """What the source's own summary says, or None."""
        return self._source.get(name)

    def value(self, name: str) -> Value | None:
        """The metric's value, or None if it was not captured."""
        if name not in self._known:
            self._known[name] = self._evaluate(name)
        return self._known[name]

    def bound(self, name: str) -> float:
        """How far the source's figure may be from ours."""
        found = self.value(name)
        return 0.0 if found is None else found.error + abs(found.value) * definition(name).apart

    def origin(self, name: str) -> Origin:
        """Whether the metric is computed here or carried over from the source."""
        if self.value(name) is None:
            return "not captured"
        return "reported by the source" if self.carried(name) else "computed"

    def carried(self, name: str) -> bool:
        """Whether the source reports it and rows, or those of this profile, do not determine it."""
        self.value(name)
        return name in self._carried

    def how(self, name: str) -> Made | None:
        """How the metric is made in this profile; None if it is carried over, or could only be."""
        return None if self.carried(name) else self._made(name)

    def formula(self, name: str) -> str | None:
        """The formula that counts in this profile, or None if the metric is no formula or not captured."""
        return self._formula(self.how(name))

    def _made(self, name: str) -> Made | None:
        how = definition(name).how
        if isinstance(how, Reported):
            return None if name in self._source else how.otherwise
        return how

    def _formula(self, how: Made | None) -> str | None:
        if isinstance(how, ByVersion):
            return how.then if _version(self.profile) <= how.up_to else how.otherwise
        if not isinstance(how, Formula):
            return None
        return next((f for f in how.alternatives if all(self.value(n) is not None for n in formulas.names(f))), None)

    def sql(self, name: str) -> str | None:
        """A scalar SQL expression over the profile's tables that gives the metric, or None if it was not captured."""
        if self.value(name) is None:
            return None
        if self.carried(name):
            return f"(SELECT {name} FROM Summary)"
        formula = self.formula(name)
        if formula is not None:
            inner = formulas.sql(formula, lambda n: f"({self.sql(n)})" if _nested(definition(n)) else str(self.sql(n)))
            return f"CAST(floor({inner} + {_ROUNDED:g}) AS BIGINT)" if _whole(name) else inner
        how = self.how(name)
        return how.sql(self.profile) if isinstance(how, (Rows, Cell)) else None

    def _evaluate(self, name: str) -> Value | None:
        how = self._made(name)
        formula = self._formula(how)
        if formula is not None:
            found = formulas.evaluate(formula, self.value)
        else:
            found = how.evaluate(self.profile) if isinstance(how, (Rows, Cell)) else None
        if found is None and name in self._source:
            self._carried.add(name)
            return Value(self._source[name])
        if found is None:
            return None
        return Value(_typed(name, found.value), found.error)


def _typed(name: str, value: Number) -> Number:
    if _whole(name):
        return value if isinstance(value, int) else math.floor(value + _ROUNDED)
    return float(value) if _real(name) else value


def _nested(of: Definition) -> bool:
    return isinstance(of.how, (Formula, ByVersion, Reported))


def _whole(name: str) -> bool:
    column = schema.tables()["Summary"].column(name)
    return column is not None and column.type.startswith("integer")


def _real(name: str) -> bool:
    column = schema.tables()["Summary"].column(name)
    return column is not None and column.type.startswith("number")


def _version(profile: Profile) -> tuple[int, int]:
    """Major and minor version of the AWS tool that wrote the profile; later than all if none did or it does not say."""
    text = str(profile.metadata("explorer_version") or "").split(".") if profile.evidence != "emulated" else []
    return (int(text[0]), int(text[1])) if len(text) > 1 and text[0].isdigit() and text[1].isdigit() else (2**31, 0)


def _source_row(profile: Profile) -> dict[str, Number]:
    """The source's own summary where it has one row and is not of our making."""
    table = profile.table("Summary")
    if table is None or table.num_rows != 1:
        return {}
    row = table.to_pylist()[0]
    if row.get(MADE_BY) == OURS:
        return {}
    return {n: v for n, v in row.items() if n in METRICS and isinstance(v, (int, float)) and math.isfinite(v)}
