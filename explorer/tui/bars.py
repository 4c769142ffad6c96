"""The lines above and below the panes: what this is, the same view on the command line, the keys."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from explorer.times import format_time
from explorer.tui.keys import KEYS, spelled
from explorer.tui.lines import Pane, name
from explorer.tui.view import View


class Bar(Pane, can_focus=False):
    """One line of text."""

    def __init__(self, *, ascii_only: bool = False, cut_mark: bool = False, id: str | None = None) -> None:
        super().__init__(ascii_only=ascii_only, id=id)
        #: Whether a line that is too long ends in an ellipsis: half a command must not look like a whole one.
        self.cut_mark = cut_mark
        self._line = Text()

    def say(self, line: Text) -> None:
        self._line = line
        self.refresh()

    def render_line(self, y: int) -> Strip:
        line, width = self._line if y == 0 else Text(), self.content_size.width
        if self.cut_mark and line.cell_len > width:
            line = line.copy()
            line.truncate(width, overflow="ellipsis")
        return self.strip(line, width, self.rich_style)


def header(profile: str, evidence: str, target: str | None, total_ns: int | None, view: View) -> Text:
    """Which profile this is, whether it was emulated or measured, and how much of it is seen."""
    line = Text(no_wrap=True).append(" trnscope ", style="bold reverse").append(" ").append(name(profile, 40), style="bold")
    line.append("  ").append(evidence if evidence != "unknown" else "emulated or measured: not captured", style="italic")
    line.append(f"  {name(target, 16)}" if target else "  target not captured")
    line.append(f"  total {format_time(total_ns)}" if total_ns is not None else "  total time not captured")
    if view.is_whole:
        return line.append("  all shown", style="dim")
    return line.append(f"  {format_time(view.span)} from {format_time(view.first)}", style="dim")


def footer(width: int) -> Text:
    """The keys that the key table puts there: all of them if they fit, else without those that are for wide lines."""
    parts = [(f" {key.shown or spelled(key.keys[0])} ", f"{key.footer} ", key.wide) for key in KEYS if key.footer]
    fits = sum(len(keys) + len(word) for keys, word, _ in parts) <= width
    line = Text(no_wrap=True)
    for keys, word, wide in parts:
        if fits or not wide:
            line.append(keys, Style(bold=True)).append(word, Style(dim=True))
    return line
