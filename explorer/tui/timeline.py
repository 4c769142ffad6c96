"""The timeline: one row per engine track and DMA queue, a ruler above, the key of the colours below."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.content import Content
from textual.message import Message
from textual.strip import Strip

from explorer.analysis.summary_definitions import WAITS
from explorer.tui import palette
from explorer.tui.cells import Glyph, draw, with_waits
from explorer.tui.events import INSTRUCTIONS, PACKETS, TRANSFERS, Names, Ref, Track
from explorer.tui.lines import Pane, name
from explorer.tui.model import Model
from explorer.tui.ruler import ticks
from explorer.tui.view import View

ColourBy = Literal["opcode", "layer", "track"]
COLOUR_BY: tuple[ColourBy, ...] = ("opcode", "layer", "track")
_LONGEST_WORD = 40
_LABELS = (8, 22)
#: Names of a table in the key of the colours, at most.
_KEY_WORDS = 24


class Timeline(Pane):
    """Draws `view` of a model; says when the user points at something, and leaves deciding to the screen."""

    class Pointed(Message):
        """The user clicked: at a time on a track, and perhaps on a row of its table; twice to go into it."""

        def __init__(self, track: int, time: int, ref: Ref | None, into: bool = False) -> None:
            super().__init__()
            self.track, self.at, self.ref, self.into = track, time, ref, into

    class Zoomed(Message):
        """The user turned the wheel: time shown is to shrink by `factor` about `time`, or to move by `screens`."""

        def __init__(self, factor: float, time: int, screens: float = 0) -> None:
            super().__init__()
            self.factor, self.at, self.screens = factor, time, screens

    def __init__(self, model: Model, *, ascii_only: bool = False) -> None:
        super().__init__(ascii_only=ascii_only, id="timeline")
        self.title("Timeline")
        self.model = model
        self.view = View.whole(model.extent)
        self.track = 0
        self.selected: Ref | None = None
        self.colour_by: ColourBy = "opcode"
        self._top = 0
        self._longest_label = max((cell_len(name(t.label)) for t in model.tracks), default=0)
        self._lit: dict[str, NDArray[np.bool_]] = {}
        self._words = {t: [*(self._word(n) for n in e.name.names), "?"] for t, e in model.events.items()}
        self._marks: dict[int, dict[int, str]] = {}
        self._marks_of: tuple[View, int] | None = None
        self.neighbours: list[tuple[Ref, str]] = []
        self._keys: dict[tuple[str, ColourBy], dict[str, int]] = {}
        self._hues: dict[tuple[str, ColourBy], list[int]] = {}

    # State

    def show(self, view: View, track: int, selected: Ref | None, neighbours: list[tuple[Ref, str]]) -> None:
        """Draw that window, with that track and row marked; `neighbours` are rows to be marked with a character."""
        self.view, self.track, self.selected, self.neighbours = view, track, selected, neighbours
        self._marks_of = None
        self._reveal_track()
        self.refresh()

    def light(self, lit: Mapping[str, NDArray[np.bool_]]) -> None:
        """Draw only the marked rows of each table in full colour; with no masks, all of them."""
        self._lit = dict(lit)
        for track in self.model.tracks:
            mask = self._lit.get(track.table)
            track.work.light(None if mask is None else mask[track.work_rows])
        self.refresh()

    def colour(self, by: ColourBy) -> None:
        self.colour_by = by
        self.refresh()

    # Geometry

    @property
    def label_width(self) -> int:
        return min(max(self._longest_label + 2, _LABELS[0]), _LABELS[1], max(self.content_size.width // 4, 2))

    @property
    def width(self) -> int:
        """Cells that time is drawn on."""
        return max(self.content_size.width - self.label_width, 0)

    @property
    def _rows(self) -> int:
        """Lines between the ruler and the key."""
        return max(self.content_size.height - (2 if self.content_size.height >= 6 else 1), 0)

    def time_at(self, cell: int) -> int:
        """The time at the middle of a cell."""
        return self.view.first + self.view.span * (2 * cell + 1) // (2 * max(self.width, 1))

    def cell_of(self, time: int) -> int:
        return (time - self.view.first) * self.width // self.view.span

    def _reveal_track(self) -> None:
        rows = max(self._rows, 1)
        self._top = min(max(self._top, self.track - rows + 1), self.track)
        self._top = max(min(self._top, len(self.model.tracks) - rows), 0)
        last, count = min(self._top + rows, len(self.model.tracks)), len(self.model.tracks)
        self.border_subtitle = Content(f"rows {self._top + 1}-{last} of {count}") if last - self._top < count else None

    def _marks_on(self, number: int) -> dict[int, str]:
        """Cells of a track that hold a neighbour of the selected row, and its mark."""
        seen = (self.view, self.width)
        if self._marks_of != seen:
            self._marks_of, self._marks = seen, {}
            for ref, mark in self.neighbours:
                start, end = self.model.span(ref)
                if start < self.view.last and max(end, start + 1) > self.view.first:
                    cell = max(self.cell_of(start), 0)
                    self._marks.setdefault(self.model.track_of(ref), {})[cell] = mark
        return self._marks.get(number, {})

    def on_resize(self, event: events.Resize) -> None:
        self._top = 0
        self._reveal_track()
        self.refresh()

    # Mouse

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or not 1 <= offset.y <= self._rows or self._top + offset.y - 1 >= len(self.model.tracks):
            return
        number, cell = self._top + int(offset.y) - 1, int(offset.x) - self.label_width
        track = self.model.tracks[number]
        if cell < 0:
            self.post_message(self.Pointed(number, self.view.cursor, None))
            return
        first = self.view.first + self.view.span * cell // self.width
        last = max(self.view.first + self.view.span * (cell + 1) // self.width, first + 1)
        work, wait = track.work.at(first, last), track.waits.at(first, last)
        row = track.work_rows[work] if work >= 0 else track.wait_rows[wait] if wait >= 0 else None
        ref = None if row is None else Ref(track.table, int(row))
        self.post_message(self.Pointed(number, self.time_at(cell), ref, into=event.chain == 2))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 2, -0.25)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 0.5, 0.25)

    def _wheel(self, event: events.MouseEvent, factor: float, screens: float) -> None:
        event.stop()
        cell = min(max(int(event.x) - self.gutter.left - self.label_width, 0), max(self.width - 1, 0))
        self.post_message(self.Zoomed(1 if event.shift else factor, self.time_at(cell), screens if event.shift else 0))

    # Drawing

    def render_line(self, y: int) -> Strip:
        width, base = self.content_size.width, self.rich_style
        if y == 0:
            return self._ruler(base)
        if y > self._rows:
            return self.strip(self._key(), width, base) if y == self._rows + 1 else Strip.blank(width, base)
        number = self._top + y - 1
        if number < len(self.model.tracks):
            return self._row(number, base)
        if number == len(self.model.tracks) and (missing := self.missing):
            return self.strip(Text(missing, style="italic dim"), width, base)
        return Strip.blank(width, base)

    @property
    def missing(self) -> str:
        """What to say in place of rows that were not captured; empty if all were."""
        absent = [] if INSTRUCTIONS in self.model.events else ["instructions"]
        absent += [] if {TRANSFERS, PACKETS} & set(self.model.events) else ["DMA transfers"]
        return f"  {' and '.join(absent)}: not captured" if absent else ""

    def _ruler(self, base: Style) -> Strip:
        line = [" "] * self.width
        for at, label in ticks(self.view.first, self.view.last, self.width):
            text = ("|" if self.ascii_only else "▏") + label
            if at + len(text) <= self.width:
                line[at : at + len(text)] = text
        cursor = self.cell_of(self.view.cursor)
        label = "time".ljust(self.label_width)[: self.label_width]
        dim, strong = base + Style(dim=True), base + Style(bold=True, reverse=True)
        marked = "V" if self.ascii_only else "▼"
        segments = [Segment(label, dim)]
        for at, char in enumerate(line):
            segments.append(Segment(marked if char == " " else char, strong) if at == cursor else Segment(char, dim))
        return Strip(segments, self.label_width + self.width).simplify()

    def _row(self, number: int, base: Style) -> Strip:
        track, here = self.model.tracks[number], number == self.track
        label = Text(name(track.label, self.label_width - 1) if self.label_width > 1 else "", no_wrap=True)
        style = base + Style(bold=here, reverse=here and self.has_focus)
        head = self.strip(label, self.label_width, style)
        if not self.width:
            return head
        glyphs = self._glyphs(number, track)
        back = base.bgcolor or Color.parse("default")
        cursor = self.cell_of(self.view.cursor)
        if 0 <= cursor < self.width and glyphs[cursor].char == " " and glyphs[cursor].back is None:
            glyphs[cursor] = Glyph("|" if self.ascii_only else "│", palette.WAIT)
        segments: list[Segment] = []
        run: list[Glyph] = []
        last = None
        for glyph in glyphs:
            style_of = (glyph.fore, glyph.back, glyph.bold)
            if style_of != last and run:
                segments.append(self._segment(run, back))
                run = []
            run.append(glyph)
            last = style_of
        segments.append(self._segment(run, back))
        return Strip.join([head, Strip(segments, self.width)])

    @staticmethod
    def _segment(run: list[Glyph], back: Color) -> Segment:
        style = Style.from_color(run[0].fore or back, run[0].back or back)
        return Segment("".join(g.char for g in run), style + Style(bold=True) if run[0].bold else style)

    def _glyphs(self, number: int, track: Track) -> list[Glyph]:
        first, last = self.view.first, self.view.last
        rows, names, words = track.work_rows, track.events.name, self._words[track.table]
        hues, column = self._hue_table(track)
        lit = self._lit.get(track.table)

        def paint(span: int) -> Color:
            row = rows[span]
            hue = hues[column.codes[row]] if column is not None else hues[0]
            return palette.shade(hue, bool(span & 1), lit is None or bool(lit[row]))

        def word(span: int) -> str:
            return words[int(names.codes[rows[span]])]

        glyphs = draw(track.work.sample(first, last, self.width), paint, word, self.ascii_only)
        if len(track.waits):
            glyphs = with_waits(glyphs, track.waits.sample(first, last, self.width), self.ascii_only)
        if self.selected is not None and number == self.track:
            self._over_selected(glyphs, self.selected)
        for cell, mark in self._marks_on(number).items():
            glyphs[cell] = Glyph(mark, palette.SELECTED, glyphs[cell].back, bold=True)
        return glyphs

    def _over_selected(self, glyphs: list[Glyph], ref: Ref) -> None:
        start, end = self.model.span(ref)
        if (end <= self.view.first and start < self.view.first) or start >= self.view.last:
            return
        first = max(self.cell_of(start), 0)
        last = min(max(round((end - self.view.first) * self.width / self.view.span), first + 1), self.width)
        word = self._word(self.model.events[ref.table].name[ref.row] or "?")[: last - first].ljust(last - first)
        for at, char in enumerate(word, first):
            glyphs[at] = Glyph(
                char if not self.ascii_only or char != " " else "#", palette.ink(palette.SELECTED), palette.SELECTED, True
            )

    # Colours

    def _column(self, track: Track) -> Names | None:
        if self.colour_by == "track":
            return None
        return track.events.layer if self.colour_by == "layer" else track.events.name

    def _hue_table(self, track: Track) -> tuple[list[int], Names | None]:
        """Hues by name code, the last for what has no name, and the column of the codes; one hue and None in colours by track."""
        column = self._column(track)
        if column is None:
            return [self._usual(track.table)[track.label]], None
        key = (track.table, self.colour_by)
        if key not in self._hues:
            usual = self._usual(track.table)
            self._hues[key] = [usual.get(n, palette.NAMELESS) for n in column.names] + [palette.NAMELESS]
        return self._hues[key], column

    def _key(self) -> Text:
        """Names and colours of what is drawn most often, as far as the line goes."""
        line = Text(no_wrap=True).append(f"{self.colour_by}: ", style="dim")
        for table in self.model.events:
            shown = ((n, h) for n, h in self._usual(table).items() if n not in WAITS)
            for word, hue in islice(shown, _KEY_WORDS):
                line.append("#" if self.ascii_only else "■", Style.from_color(palette.shade(hue, False)))
                line.append(f"{name(word, 24)}  ", style="dim")
        return line

    def _usual(self, table: str) -> dict[str, int]:
        """Every name of a table with its hue, the most frequent first."""
        key = (table, self.colour_by)
        if key not in self._keys:
            if self.colour_by == "track":
                order = [t.label for t in self.model.tracks if t.table == table]
            else:
                held = self.model.events[table]
                column = held.layer if self.colour_by == "layer" else held.name
                often = np.bincount(column.codes[column.codes >= 0], minlength=len(column.names))
                order = [column.names[i] for i in np.argsort(-often, kind="stable") if often[i]]
            self._keys[key] = dict(zip(order, palette.hues(order), strict=True))
        return self._keys[key]

    def _word(self, text: str) -> str:
        """A name as it stands in a slice: characters of one cell each, none that turns the line around."""
        shown = name(text, _LONGEST_WORD)
        return "".join(c if _is_plain(c) and (c.isascii() or not self.ascii_only) else "?" for c in shown)


def _is_plain(char: str) -> bool:
    return cell_len(char) == 1 and unicodedata.bidirectional(char) not in ("R", "AL", "AN")
