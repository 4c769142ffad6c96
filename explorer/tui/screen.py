"""The one screen: timeline above, layers, details and source below, all following the selection."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input

from explorer.analysis.source_text import ROOT, Sources
from explorer.store.errors import ProfileError
from explorer.tui import bars
from explorer.tui.details import Details
from explorer.tui.events import INSTRUCTIONS, Ref
from explorer.tui.help import Help
from explorer.tui.keys import KEYS
from explorer.tui.layers import Layers, Node
from explorer.tui.lines import Pane, name
from explorer.tui.model import Dependency, Hits, Model
from explorer.tui.source import LineFigures, Source
from explorer.tui.timeline import COLOUR_BY, Timeline
from explorer.tui.view import View

#: Terminals at least this large show all panes at once.
_WIDE, _HIGH = 120, 30
#: Below this, one pane has the screen.
_LOW, _NARROW = 16, 40
#: Neighbours marked in the timeline at most; the details list all.
_MARKED = 100
#: A command is shown whole, up to this: one that is cut cannot be pasted.
_COMMAND = 4000


@dataclass(frozen=True, slots=True)
class Start:
    """What the command line asks for."""

    profile: str
    at: tuple[int | None, int | None] | None = None
    select: Ref | None = None
    source_root: Path = ROOT
    #: The root as the user wrote it; None where it is the default.
    root_given: str | None = None
    ascii_only: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    view: View
    track: int
    selected: Ref | None


class Main(Screen[None]):
    """Keeps what is selected and seen; panes draw it, keys change it here and nowhere else."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(k.keys), k.action, k.help, show=False, priority=k.action.startswith("pane"), id=k.action) for k in KEYS
    ]

    def __init__(self, model: Model, start: Start) -> None:
        super().__init__()
        self.model, self.start = model, start
        self.view = View.whole(model.extent)
        self.track = 0
        self.selected: Ref | None = None
        self.lit: str | None = None
        self._history: list[_Place] = []
        self._hits: Hits | None = None
        self._said = ""
        self._maximised = False
        plain = start.ascii_only
        self.timeline = Timeline(model, ascii_only=plain)
        self.layer_tree = Layers(ascii_only=plain)
        self.details = Details(model, ascii_only=plain)
        self.source = Source(Sources(start.source_root), ascii_only=plain)
        self.panes: tuple[Pane, ...] = (self.timeline, self.layer_tree, self.details, self.source)
        self._lower: Pane = self.details
        self.header = bars.Bar(ascii_only=plain, id="header")
        self.status = bars.Bar(ascii_only=plain, cut_mark=True, id="status")
        self.footer = bars.Bar(ascii_only=plain, id="footer")
        self.find = Input(id="find", placeholder="name, layer, source line, track or id", compact=True, select_on_focus=False)
        self._total = model.total_ns()

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.timeline
        yield Horizontal(self.layer_tree, self.details, self.source, id="lower")
        yield self.find
        yield self.status
        yield self.footer

    def on_mount(self) -> None:
        self.find.display = False
        if self.start.ascii_only:
            self.add_class("ascii")
        self.run_worker(self._compute, thread=True)
        self.timeline.focus()
        if self.start.at is not None:
            first, last = self.start.at
            self.view = self.view.show(self.view.first if first is None else first, self.view.last if last is None else last)
            self.view = self.view.at(self.view.first)
        if self.start.select is not None:
            self._select(self.start.select)
        self._update()

    def _compute(self) -> None:
        try:
            nodes, lines = self.model.figures()
        except ProfileError as error:
            self.app.call_from_thread(self.layer_tree.fill, [], str(error))
        else:
            self.app.call_from_thread(self._computed, nodes, lines)

    def _computed(self, nodes: list[Node], lines: dict[tuple[str, int], LineFigures]) -> None:
        self.layer_tree.fill(nodes)
        self.source.fill(lines)
        if self.selected is not None:
            self.layer_tree.follow(self.model.layer_of(self.selected))

    # Size

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()
        self.footer.say(bars.footer(event.size.width))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(self.focused, Pane) and self.focused is not self.timeline:
            self._lower = self.focused
        self._arrange()
        self._tell()

    def _arrange(self) -> None:
        """All panes where there is room, else the timeline and one more, else one."""
        width, height = self.size
        at = self.focused if isinstance(self.focused, Pane) else self._lower
        alone = self._maximised or height < _LOW or width < _NARROW
        wide = width >= _WIDE and height >= _HIGH
        for pane in self.panes[1:]:
            pane.display = (pane is at) if alone else (wide or pane is self._lower)
            pane.border_subtitle = None if wide and not alone else "1 timeline  2 layers  3 details  4 source"
        self.timeline.display = not alone or at is self.timeline
        self.query_one("#lower").display = not alone or at is not self.timeline
        bars_high = 3
        self.header.display, self.status.display, self.footer.display = height >= 8, height >= 10, height >= 6
        rows = len(self.model.tracks) + bool(self.timeline.missing)
        free = height - bars_high
        self.timeline.styles.height = "1fr" if alone else min(rows + 4, max(free * 6 // 10, 6))

    # What is seen

    def _update(self) -> None:
        """Bring every pane to the present state."""
        self._said = ""
        before, after = [], []
        if self.selected is not None:
            before, after = self._edges(self.selected, -1), self._edges(self.selected, 1)
        marks = [(d.ref, "<") for d in before[:_MARKED] if d.ref] + [(d.ref, ">") for d in after[:_MARKED] if d.ref]
        self.timeline.show(self.view, self.track, self.selected, marks)
        self.details.show(self.selected, before, after)
        place = layer = None
        if self.selected is not None:
            held = self.model.events[self.selected.table]
            place, layer = held.place[self.selected.row], self.model.layer_of(self.selected)
        self.source.show(place, selected=self.selected is not None, captured=self.model.has_places)
        self.layer_tree.follow(layer)
        self._tell()

    def _edges(self, ref: Ref, which: int) -> list[Dependency]:
        try:
            return self.model.predecessors(ref) if which < 0 else self.model.successors(ref)
        except ProfileError as error:
            self.say(name(str(error)))
            return []

    def _look(self) -> None:
        """Only the window changed."""
        self._said = ""
        self.timeline.show(self.view, self.track, self.selected, self.timeline.neighbours)
        self._tell()

    def _tell(self) -> None:
        profile = self.model.profile
        self.header.say(bars.header(Path(self.start.profile).name, profile.evidence, self.model.target(), self._total, self.view))
        line = Text(no_wrap=True)
        if self._said:
            line.append(f" {self._said} ", style="bold reverse").append(" ")
        self.status.say(line.append(name(self.command(), _COMMAND), style="dim"))

    def say(self, message: str) -> None:
        """A word to the user beside the command line, until the next key."""
        self._said = message
        self._tell()

    def command(self) -> str:
        """The command that prints or reopens what the focused pane shows."""
        path = shlex.quote(self.start.profile)
        root = "" if self.start.root_given is None else f" --source-root {shlex.quote(self.start.root_given)}"
        at = self.focused
        if at is self.layer_tree:
            return f"trnscope layers {path}"
        if at is self.source:
            file = f" --file {shlex.quote(self.source.file)}" if self.source.file else ""
            return f"trnscope source {path}{file}{root}"
        chosen = (
            None
            if self.selected is None
            else (self.selected.table, int(self.model.events[self.selected.table].ids[self.selected.row]))
        )
        if at is self.details and chosen is not None:
            return f'trnscope query {path} "SELECT * FROM {chosen[0]} WHERE id = {chosen[1]}"'
        window = "" if self.view.is_whole else f" --at {self.view.first}ns..{self.view.last}ns"
        select = "" if chosen is None else f" --select {'' if chosen[0] == INSTRUCTIONS else chosen[0] + ':'}{chosen[1]}"
        return f"trnscope tui {path}{window}{select}{root}"

    def _remember(self) -> None:
        self._history.append(_Place(self.view, self.track, self.selected))
        del self._history[:-100]

    def _select(self, ref: Ref, *, keep_cursor: bool = False) -> None:
        self.selected, self.track = ref, self.model.track_of(ref)
        start, end = self.model.span(ref)
        self.view = self.view.reveal(start, end)
        if not keep_cursor:
            self.view = self.view.at(start)

    def _go(self, ref: Ref) -> None:
        """Jump to a row, so that `back` returns."""
        self._remember()
        self._select(ref)
        self._update()

    # Keys

    @property
    def _pane(self) -> Pane:
        return self.focused if isinstance(self.focused, Pane) else self.timeline

    def action_zoom(self, factor: float) -> None:
        self.view = self.view.zoom(factor)
        self._look()

    def action_pan(self, screens: float) -> None:
        self.view = self.view.pan(screens)
        self._look()

    def action_fit(self) -> None:
        whole = self.view.show(*self.model.extent)
        fitted = whole if self.selected is None else self.view.fit(*self.model.span(self.selected))
        self._remember()
        self.view = whole if self.view == fitted else fitted
        self._look()

    def action_down(self, lines: int) -> None:
        if self._pane is not self.timeline:
            self._pane.down(lines)
        elif self.model.tracks:
            number = min(max(self.track + lines, 0), len(self.model.tracks) - 1)
            track = self.model.tracks[number]
            self._select(Ref(track.table, track.nearest(self.view.cursor)), keep_cursor=True)
            self._update()

    def action_side(self, steps: int) -> None:
        if self._pane is not self.timeline:
            self._pane.side(steps)
        elif self.model.tracks:
            track = self.model.tracks[self.track]
            here = -1
            if self.selected is not None and self.selected.table == track.table:
                here = track.position(self.selected.row)
            row = track.nearest(self.view.cursor) if here < 0 else track.rows[min(max(here + steps, 0), len(track.rows) - 1)]
            self._select(Ref(track.table, int(row)))
            self._update()

    def action_end(self, which: int) -> None:
        if self._pane is not self.timeline:
            self._pane.end(which)
        elif self.model.tracks:
            track = self.model.tracks[self.track]
            self._go(Ref(track.table, int(track.rows[0 if which < 0 else -1])))

    def action_enter(self) -> None:
        if self._pane is not self.timeline:
            self._pane.enter()
        elif self.selected is not None:
            self._remember()
            self.view = self.view.fit(*self.model.span(self.selected))
            self._look()

    def action_back(self) -> None:
        if self.find.display:
            self._close_search()
        elif self._history:
            place = self._history.pop()
            self.view, self.track, self.selected = place.view, place.track, place.selected
            self._update()
        elif self.lit is not None:
            self._light(None)
        else:
            self.selected = None
            self._update()

    def action_follow(self, which: int) -> None:
        if self.selected is None:
            self.say("nothing selected")
            return
        if not self.model.has_flow:
            self.say("dependencies: not captured")
            return
        ref = next((e.ref for e in self._edges(self.selected, which) if e.ref), None)
        if ref is None:
            self.say("no predecessor" if which < 0 else "no successor")
        else:
            self._go(ref)

    def action_colour(self) -> None:
        by = COLOUR_BY[(COLOUR_BY.index(self.timeline.colour_by) + 1) % len(COLOUR_BY)]
        self.timeline.colour(by)

    def action_pane(self, step: int) -> None:
        at = self.panes.index(self._pane)
        self.action_show(str(self.panes[(at + step) % len(self.panes)].id))

    def action_show(self, which: str) -> None:
        pane = next(p for p in self.panes if p.id == which)
        if pane is not self.timeline:
            self._lower = pane
        self.query_one("#lower").display = pane.display = True
        pane.focus()
        self._arrange()
        self._tell()

    def action_maximise(self) -> None:
        self._maximised = not self._maximised
        self._arrange()

    def action_help(self) -> None:
        self.app.push_screen(Help(ascii_only=self.start.ascii_only))

    # Search

    def action_search(self) -> None:
        self.find.display = True
        self.find.value = ""
        self.find.focus()
        self.say("find: enter goes to the first hit, esc leaves")

    def _close_search(self) -> None:
        self.find.display = False
        self.timeline.focus()

    @on(Input.Submitted)
    def _searched(self, message: Input.Submitted) -> None:
        self._close_search()
        if message.value.strip():
            self._hits = self.model.search(message.value)
            self.action_hit(1)

    def action_hit(self, step: int) -> None:
        if not self._hits:
            self.say("nothing found" if self._hits is not None else "nothing searched: / searches")
            return
        at = self._hits.beside(self.view.cursor, self.selected, step)
        self._go(self._hits[at])
        self.say(f"hit {at + 1:,} of {len(self._hits):,}")

    # What panes ask for

    @on(Timeline.Pointed)
    def _pointed(self, message: Timeline.Pointed) -> None:
        self.track, self.view = message.track, self.view.at(message.at)
        self.selected = message.ref
        if message.into and message.ref is not None:
            self._remember()
            self.view = self.view.fit(*self.model.span(message.ref))
        self._update()

    @on(Timeline.Zoomed)
    def _zoomed(self, message: Timeline.Zoomed) -> None:
        self.view = self.view.pan(message.screens) if message.screens else self.view.zoom(message.factor, message.at)
        self._look()

    @on(Details.Follow)
    def _followed(self, message: Details.Follow) -> None:
        self._go(message.ref)

    @on(Source.Chosen)
    def _line_chosen(self, message: Source.Chosen) -> None:
        self._hits = self.model.hits({t: self.model.at_place(t, message.place) for t in self.model.events})
        if len(self._hits):
            self.action_hit(1)
        else:
            self.say("no instruction from that line")

    @on(Layers.Chosen)
    def _layer_chosen(self, message: Layers.Chosen) -> None:
        self._remember()
        self._light(None if self.lit == message.path else message.path)

    def _light(self, path: str | None) -> None:
        self.lit = path
        self.layer_tree.light(path)
        if path is None:
            self.timeline.light({})
            return
        masks = {t: self.model.in_layer(t, path) for t in self.model.events}
        self.timeline.light(masks)
        hits = self.model.hits(masks)
        if len(hits):
            ends = [self.model.span(hits[i])[1] for i in (len(hits) - 1,)]
            self.view = self.view.fit(int(hits.start[0]), max(ends))
            self.view = self.view.at(int(hits.start[0]))
        self._look()
