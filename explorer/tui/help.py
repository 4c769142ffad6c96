"""All keys, made from the key table."""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from explorer.tui.keys import KEYS, spelled
from explorer.tui.lines import Lines

_LEGEND = (
    "A cell of full height belongs to one instruction or transfer and carries its name as far as it fits.",
    "A lower cell (+ in ASCII) is shared by several: the longest gives the colour, the height is the share of time",
    "that is busy. Grey hatching (: in ASCII) is a wait. < marks what the selected row waited for, > what waited for it.",
)


class _Page(Lines):
    def __init__(self, lines: list[Text], *, ascii_only: bool) -> None:
        super().__init__(ascii_only=ascii_only, id="page")
        self.title("Keys")
        self._lines = lines

    @property
    def count(self) -> int:
        return len(self._lines)

    def line(self, number: int) -> Text:
        return self._lines[number]


class Help(ModalScreen[None]):
    """The help page; the usual keys scroll it and close it."""

    CSS = """
    Help { align: center middle; }
    Help.ascii #page { border: ascii $primary; }
    #page { width: 90%; max-width: 118; height: 90%; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter", "app.pop_screen", "close"),
        Binding("j,down", "scroll(1)", "down"),
        Binding("k,up", "scroll(-1)", "up"),
        Binding("J,pagedown,space", "scroll(10)", "page down"),
        Binding("K,pageup", "scroll(-10)", "page up"),
    ]

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self._page = _Page(page(), ascii_only=ascii_only)

    def compose(self) -> ComposeResult:
        self.set_class(self._page.ascii_only, "ascii")
        yield self._page

    def action_scroll(self, lines: int) -> None:
        self._page.down(lines)


def page() -> list[Text]:
    """The help as lines."""
    lines = []
    for group, keys in groupby(KEYS, lambda k: k.group):
        lines.append(Text(group, style="bold"))
        for key in keys:
            spelling = " ".join(spelled(k) for k in key.keys)
            lines.append(Text(f"  {spelling:<16}  {key.help}"))
    lines += [Text("  ctrl+p            palette: every action by name"), Text("Mouse", style="bold")]
    lines += [Text("  click selects, double click goes into, wheel zooms, shift and wheel pan"), Text("Signs", style="bold")]
    return lines + [Text(f"  {line}", style="") for line in _LEGEND]
