"""The selected row: what it is, what it waited for, what waited for it, where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text
from textual.message import Message

from explorer.store.errors import ProfileError
from explorer.times import format_time
from explorer.tui.events import Ref
from explorer.tui.lines import Lines, name
from explorer.tui.model import Dependency, Model

_TIMES = ("start_ts", "end_ts", "duration_ns", "evt_wait_time_ns", "dma_wait_time_ns", "trigger", "completion")
_FIRST = {"layer": "layer", "nki_source_location": "line", "operands": "operands", "queue_name": "queue"}
#: Column names longer than this push their value aside.
_WIDEST = 24
_KINDS = {"FLOW_DEPENDENCE": "reads it", "ANTI_DEPENDENCE": "overwrites", "OUTPUT_DEPENDENCE": "rewrites"}


class Details(Lines):
    """Fields and dependencies of one row; enter on a dependency asks to go there."""

    class Follow(Message):
        """The user wants to see that row."""

        def __init__(self, ref: Ref) -> None:
            super().__init__()
            self.ref = ref

    def __init__(self, model: Model, *, ascii_only: bool = False) -> None:
        super().__init__(ascii_only=ascii_only, id="details")
        self.title("Details")
        self.model = model
        self._lines: list[tuple[Text, Ref | None]] = []
        self.show(None, [], [])

    @property
    def count(self) -> int:
        return len(self._lines)

    def line(self, number: int) -> Text:
        return self._lines[number][0]

    def show(self, ref: Ref | None, before: list[Dependency], after: list[Dependency]) -> None:
        """Show that row with what it waited for and what waited for it."""
        self.top = self.cursor = 0
        self._lines = [(Text("nothing selected: h and l go from event to event", style="dim"), None)]
        if ref is not None:
            try:
                self._lines = self._build(ref, before, after)
            except ProfileError as error:
                self._lines = [(Text(name(str(error)), style="bold"), None)]
        self.refresh()

    def enter(self) -> None:
        if self._lines and (ref := self._lines[self.cursor][1]) is not None:
            self.post_message(self.Follow(ref))

    def _build(self, ref: Ref, before: list[Dependency], after: list[Dependency]) -> list[tuple[Text, Ref | None]]:
        fields = self.model.fields(ref)
        title = Text().append(name(self.model.name(ref)), style="bold").append(f"  {ref.table} {fields.get('id', '')}", style="dim")
        lines: list[tuple[Text, Ref | None]] = [(title, None), (self._times(fields), None)]
        for column, word in (
            ("layer", "layer"),
            ("nki_source_location", "line"),
            ("operands", "operands"),
            ("queue_name", "queue"),
        ):
            if column in fields:
                lines.append((Text().append(f"{word} ", style="dim").append(name(str(fields[column]))), None))
        lines += self._edges("waited for", before, done=True) + self._edges("waited for it", after, done=False)
        frames, loops = self.model.origins.of(fields)
        if frames:
            lines.append((Text("called from, innermost first", style="bold"), None))
            lines += [(Text(f"  {name(f.place)}  {name(f.function or '')}"), None) for f in frames]
        if loops:
            lines.append((Text("loops: " + ", ".join(f"{name(n)}={v}" for n, v in loops)), None))
        width = min(max(len(c) for c in fields), _WIDEST)
        lines.append((Text("all columns", style="bold"), None))
        return lines + [(self._field(ref.table, c, v, width), None) for c, v in fields.items()]

    def _times(self, fields: Mapping[str, Any]) -> Text:
        def shown(column: str) -> str:
            value = fields.get(column)
            return format_time(value) if isinstance(value, int) else "?"

        text = Text().append("lasts ", style="dim").append(shown("duration_ns"))
        text.append("  from ", style="dim").append(shown("start_ts")).append(" to ", style="dim").append(shown("end_ts"))
        if "evt_wait_time_ns" in fields:
            text.append("  waited ", style="dim").append(shown("evt_wait_time_ns"))
        return text

    def _field(self, table: str, column: str, value: object, width: int) -> Text:
        if column in _TIMES and isinstance(value, int):
            shown = f"{value:,} ns" + (f"  {format_time(value)}" if abs(value) >= 1000 else "")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            unit = self.model.unit(table, column)
            # Ids and program counters are names made of digits, not amounts.
            shown = str(value) if unit is None else f"{value:,} {unit}"
        else:
            shown = name(str(value))
        return Text().append(column.ljust(width), style="dim").append(f"  {shown}")

    def _edges(self, title: str, edges: list[Dependency], *, done: bool) -> list[tuple[Text, Ref | None]]:
        if not self.model.has_flow:
            return [(Text(f"{title}: not captured (no Flow table)", style="italic dim"), None)] if done else []
        head = Text(f"{title} ({len(edges)})", style="bold")
        return [(head, None), *((self._edge(edge, done), edge.ref) for edge in edges)]

    def _edge(self, edge: Dependency, done: bool) -> Text:
        text = Text("  ").append("← " if done else "→ ")
        text.append(name(self.model.name(edge.ref), 24) if edge.ref else name(edge.table, 24), style="bold")
        text.append(f" {edge.id}", style="dim")
        if edge.gap_ns is not None:
            text.append(f"  gap {format_time(edge.gap_ns)}")
        kind = _KINDS.get(edge.type or "", name(edge.type) if edge.type else "")
        return text.append(f"  {kind}", style="dim")
