"""What a metric can be made of: figures counted from rows, one value of a table, what the source reported, arithmetic on metrics.

Each kind knows its value in a profile and the SQL that gives the same value, so that both come from one definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from explorer.analysis import intervals
from explorer.analysis.engines import spellings
from explorer.store.reader import Profile

Number = int | float


@dataclass(frozen=True, slots=True)
class Value:
    """A figure and how far the source's own may be from it: `error` is absolute, in the figure's unit."""

    value: Number
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on one column. A null is in no set, so "in" and "engine" leave it out and "not in" keeps it."""

    column: str
    test: Literal["in", "not in", "engine", "positive", "present"]
    values: tuple[str, ...] = ()

    def mask(self, table: pa.Table) -> pa.ChunkedArray:
        """True for the rows that meet it."""
        column = table[self.column]
        if self.test == "present":
            return pc.is_valid(column)
        if self.test == "positive":
            return pc.fill_null(pc.greater(column, 0), False)
        if self.test == "engine":
            column, values = pc.utf8_lower(column), [s for v in self.values for s in spellings(v)]
        else:
            values = list(self.values)
        inside = pc.is_in(column, value_set=pa.array(values, pa.string()))
        return pc.invert(inside) if self.test == "not in" else inside

    def sql(self) -> str:
        """The same condition in SQL."""
        if self.test == "present":
            return f"{self.column} IS NOT NULL"
        if self.test == "positive":
            return f"{self.column} > 0"
        if self.test == "engine":
            return f"lower({self.column}) IN ({_quoted(*(s for v in self.values for s in spellings(v)))})"
        if self.test == "in":
            return f"{self.column} IN ({_quoted(*self.values)})"
        return f"coalesce({self.column}, '') NOT IN ({_quoted(*self.values)})"

    def text(self) -> str:
        """The same condition in words."""
        if self.test == "present":
            return f"{self.column} is known"
        if self.test == "positive":
            return f"{self.column} > 0"
        names = ", ".join(self.values)
        return f"{self.column} is {'not ' if self.test == 'not in' else ''}{'one of ' if len(self.values) > 1 else ''}{names}"


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of one table that meet all conditions. An optional table may be missing, if another source is there."""

    table: str
    where: tuple[Where, ...] = ()
    optional: bool = False

    def rows(self, profile: Profile, columns: tuple[str, ...]) -> pa.Table | None:
        """Those columns of those rows, or None if the table or a column was not captured."""
        needed = {*columns, *(w.column for w in self.where)}
        if self.table not in profile.tables or not needed <= set(profile.columns(self.table)):
            return None
        # Rows are counted through a column: a table of no columns has no rows.
        table: Any = profile.table(self.table, sorted(needed) or profile.columns(self.table)[:1])
        for condition in self.where:
            table = table.filter(condition.mask(table))
        return table

    def sql(self, columns: str) -> str:
        """A SELECT of those columns of those rows."""
        tests = [w.sql() for w in self.where]
        return f"SELECT {columns} FROM {self.table}" + (f" WHERE {' AND '.join(tests)}" if tests else "")

    def text(self) -> str:
        """The rows in words."""
        return self.table + (f" where {' and '.join(w.text() for w in self.where)}" if self.where else "")


@dataclass(frozen=True, slots=True)
class Rows:
    """A figure counted from rows: their number, the sum of a column, the time they cover, or from first start to last end.

    Times come in nanoseconds and are divided by `per`. A sum over rows none of which has a value is not captured; a sum over no
    rows is 0. `none_if`: where the table is missing, the metric is 0 if this table has such a yes/no column and it is false
    throughout. `needs_rows`: without any row it is not captured, instead of 0.
    """

    how: Literal["count", "sum", "union", "span"]
    sources: tuple[Source, ...]
    column: str = ""
    per: float = 1
    none_if: tuple[str, str] | None = None
    needs_rows: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("start_ts", "end_ts") if self.how in ("union", "span") else (self.column,) if self.column else ()

    def present(self, profile: Profile) -> list[tuple[Source, pa.Table]] | None:
        """The sources that the profile has, with their rows, or None if it lacks one that is needed."""
        found = [(s, s.rows(profile, self.columns)) for s in self.sources]
        if any(t is None and not s.optional for s, t in found):
            return None
        return [(s, t) for s, t in found if t is not None] or None

    def evaluate(self, profile: Profile) -> Value | None:
        """The figure, or None if it was not captured."""
        parts = self.present(profile)
        if parts is None:
            return Value(0) if self._known_none(profile) else None
        rows = sum(t.num_rows for _, t in parts)
        if self.needs_rows and not rows:
            return None
        if self.how == "count":
            return Value(rows)
        if self.how == "sum":
            values = [pc.sum(t[self.column]).as_py() for _, t in parts if t.num_rows]
            if rows and all(v is None for v in values):
                return None
            return self._scaled(sum(v for v in values if v is not None), rows)
        whole = pa.concat_tables([t.select(["start_ts", "end_ts"]) for _, t in parts]).drop_null()
        start, end = (np.asarray(whole[c].to_numpy(), np.int64) for c in ("start_ts", "end_ts"))
        if self.how == "union":
            merged_start, merged_end = intervals.union(start, end)
            return self._scaled(int((merged_end - merged_start).sum()), len(merged_start))
        return self._scaled(int(end.max() - start.min()), 1) if len(start) else None

    def _scaled(self, total: Number, parts: int) -> Value:
        # The source cuts the fraction of a nanosecond from each time that it writes: up to 1 ns for each of the parts summed.
        return Value(total / self.per, parts / self.per) if self.per != 1 else Value(total)

    def _known_none(self, profile: Profile) -> bool:
        if self.none_if is None or any(s.table in profile.tables for s in self.sources):
            return False
        table, column = self.none_if
        flags = profile.table(table, [column]) if column in profile.columns(table) else None
        return flags is not None and flags[column].null_count == 0 and not pc.any(flags[column]).as_py()

    def sql(self, profile: Profile) -> str | None:
        """A scalar SQL expression for the figure, or None if it was not captured."""
        parts = self.present(profile)
        if parts is None:
            table, column = self.none_if or ("", "")
            return f"(SELECT count(*) FROM {table} WHERE {column})" if self._known_none(profile) else None
        wanted = ", ".join(self.columns) or "1 AS one"
        rows = " UNION ALL ".join(s.sql(wanted) for s, _ in parts)
        if self.how == "count":
            return f"(SELECT count(*) FROM ({rows}))"
        if self.how == "sum":
            inner = f"(SELECT coalesce(sum({self.column}), 0) FROM ({rows}))"
        elif self.how == "union":
            inner = _union_sql(rows)
        else:
            inner = f"(SELECT max(end_ts) - min(start_ts) FROM ({rows}))"
        return f"({inner} / {self.per:g})" if self.per != 1 else inner

    def text(self) -> str:
        """The figure in words."""
        rows = "; ".join(s.text() + (" (if captured)" if s.optional else "") for s in self.sources)
        what = {
            "count": "number of rows",
            "sum": f"sum of {self.column}",
            "union": "time covered by start_ts to end_ts (overlaps once)",
            "span": "last end_ts minus first start_ts",
        }[self.how]
        return f"{what} of {rows}" + (f", divided by {self.per:g}" if self.per != 1 else "")


@dataclass(frozen=True, slots=True)
class Cell:
    """The value of a column in a table of one row."""

    table: str
    column: str

    def evaluate(self, profile: Profile) -> Value | None:
        """The value, or None if it was not captured."""
        table = profile.table(self.table, [self.column]) if self.column in profile.columns(self.table) else None
        value: Any = table[self.column][0].as_py() if table is not None and table.num_rows == 1 else None
        return None if value is None else Value(value)

    def sql(self, profile: Profile) -> str | None:
        """A scalar SQL expression for the value, or None if it was not captured."""
        return None if self.evaluate(profile) is None else f"(SELECT {self.column} FROM {self.table})"

    def text(self) -> str:
        """The value in words."""
        return f"{self.table}.{self.column}"


def _quoted(*values: str) -> str:
    return ", ".join("'" + v.replace("'", "''") + "'" for v in values)


def _union_sql(rows: str) -> str:
    """Time covered by intervals: a row opens a new stretch if it starts after all earlier ones have ended."""
    earlier = "max(end_ts) OVER (ORDER BY start_ts, end_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    opens = (
        f"SELECT start_ts, end_ts, CASE WHEN start_ts <= {earlier} THEN 0 ELSE 1 END AS opens FROM ({rows}) WHERE end_ts > start_ts"
    )
    numbered = (
        f"SELECT start_ts, end_ts, sum(opens) OVER (ORDER BY start_ts, end_ts ROWS UNBOUNDED PRECEDING) AS stretch FROM ({opens})"
    )
    merged = f"SELECT max(end_ts) - min(start_ts) AS covered FROM ({numbered}) GROUP BY stretch"
    return f"(SELECT coalesce(sum(covered), 0) FROM ({merged}))"
