"""What a summary metric means: its definition, its formula with this profile's numbers, its tables, the SQL that gives it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from explorer.analysis import summary_formulas as formulas
from explorer.analysis.summary import Evaluation, Origin, definition
from explorer.analysis.summary_definitions import METRICS, ByVersion, Formula
from explorer.analysis.summary_terms import Cell, Number, Rows
from explorer.store import schema
from explorer.store.errors import UsageError
from explorer.store.reader import Profile


@dataclass(frozen=True, slots=True)
class Term:
    """One figure that a formula uses: its name, value in this profile (None: not captured), unit, and what it is."""

    name: str
    value: Number | None
    unit: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A metric explained.

    `value` is None where the metric was not captured, and `missing` then says what is lacking. `formula` is how the metric is made,
    `with_numbers` the same with this profile's figures; `sql` gives `value` when run over the profile's tables. `reported` is the
    source's own figure, which may be up to `error` away from `value` by rounding.
    """

    metric: str
    unit: str | None
    description: str
    note: str
    value: Number | None
    origin: Origin
    reported: Number | None
    error: float
    formula: str
    with_numbers: str | None
    terms: tuple[Term, ...]
    tables: tuple[str, ...]
    missing: tuple[str, ...]
    sql: str | None


def explain(metric: str, profile: Profile) -> Explanation:
    """The explanation of a Summary metric in this profile. Raises UsageError, with the nearest names, if it is none."""
    if metric not in METRICS:
        near = [m for m in METRICS if metric.lower() in m][:3] or difflib.get_close_matches(
            metric.lower(), METRICS, n=3, cutoff=0.6
        )
        hint = f"did you mean {' or '.join(near)}?" if near else "`trnscope summary PROFILE` lists them"
        raise UsageError(f"{metric!r} is no metric of the summary; {hint}")
    evaluation = Evaluation(profile)
    column = schema.tables()["Summary"].column(metric)
    found = evaluation.value(metric)
    chosen = evaluation.formula(metric)
    terms = tuple(_term(n, evaluation) for n in _all_terms(chosen or "", evaluation)) if chosen else ()
    sql = evaluation.sql(metric)
    return Explanation(
        metric=metric,
        unit=column.unit if column else None,
        description=column.description if column else "",
        note=METRICS[metric].note,
        value=None if found is None else found.value,
        origin=evaluation.origin(metric),
        reported=evaluation.reported(metric),
        error=evaluation.bound(metric),
        formula=chosen or how(metric, evaluation),
        with_numbers=formulas.with_numbers(chosen, lambda n: _plain(evaluation, n)) if chosen else None,
        terms=terms,
        tables=tables(metric, evaluation),
        missing=tuple(dict.fromkeys(_missing(metric, evaluation))) if found is None else (),
        sql=f"SELECT {sql} AS {metric}" if sql else None,
    )


def how(name: str, evaluation: Evaluation) -> str:
    """How a metric or term is made in this profile, in words."""
    of = evaluation.how(name)
    if of is None:
        return "carried over from the source's summary: rows do not determine it"
    if isinstance(of, (Rows, Cell)):
        return of.text()
    return evaluation.formula(name) or (" or ".join(of.alternatives) if isinstance(of, Formula) else f"{of.then} or {of.otherwise}")


def tables(name: str, evaluation: Evaluation) -> tuple[str, ...]:
    """The tables that a metric is made from in this profile, in order of use."""
    of = evaluation.how(name)
    if of is None:
        return ("Summary",)
    if isinstance(of, Rows):
        present = of.present(evaluation.profile)
        if present is None and of.none_if:
            return (*(s.table for s in of.sources), of.none_if[0])
        return tuple(dict.fromkeys(s.table for s, _ in present or ()) or (s.table for s in of.sources))
    if isinstance(of, Cell):
        return (of.table,)
    return tuple(dict.fromkeys(t for n in _parts(name, evaluation) for t in tables(n, evaluation)))


def _parts(name: str, evaluation: Evaluation) -> tuple[str, ...]:
    """The metrics and terms that a formula uses directly; if none of its alternatives could be computed, those of all."""
    chosen = evaluation.formula(name)
    if chosen is not None:
        return formulas.names(chosen)
    of = evaluation.how(name)
    return tuple(dict.fromkeys(n for f in of.alternatives for n in formulas.names(f))) if isinstance(of, Formula) else ()


def _all_terms(formula: str, evaluation: Evaluation) -> tuple[str, ...]:
    """The names in a formula and in the formulas of these, outermost first."""
    found: dict[str, None] = {}
    waiting = list(formulas.names(formula))
    while waiting:
        name = waiting.pop(0)
        found.setdefault(name)
        if not evaluation.carried(name):
            waiting += [n for n in _parts(name, evaluation) if n not in found]
    return tuple(found)


def _term(name: str, evaluation: Evaluation) -> Term:
    of = definition(name)
    column = schema.tables()["Summary"].column(name)
    value = evaluation.value(name)
    return Term(name, None if value is None else value.value, column.unit if column else of.unit, how(name, evaluation))


def _missing(name: str, evaluation: Evaluation) -> list[str]:
    """Tables and columns that a metric needs and this profile does not have."""
    of = evaluation.how(name)
    if of is None:
        return [f"Summary.{name}"]
    if isinstance(of, Cell):
        return [f"{of.table}.{of.column}"] if evaluation.value(name) is None else []
    if isinstance(of, Rows):
        needed = [(s.table, c) for s in of.sources if not s.optional for c in (*of.columns, *(w.column for w in s.where))]
        lacking = [
            t if t not in evaluation.profile.tables else f"{t}.{c}" for t, c in needed or [(s.table, "") for s in of.sources]
        ]
        known = [f"{t}.{c}" for t, c in needed if c in evaluation.profile.columns(t)]
        return [m for m in lacking if m not in known] or [f"a value in {of.text()}"]
    if isinstance(of, ByVersion):
        return _missing(evaluation.formula(name) or of.otherwise, evaluation)
    return [m for n in _parts(name, evaluation) if evaluation.value(n) is None for m in _missing(n, evaluation)]


def _plain(evaluation: Evaluation, name: str) -> str:
    found = evaluation.value(name)
    return "?" if found is None else f"{found.value:,}" if isinstance(found.value, int) else f"{found.value:.12g}"
