"""What all panes share: cells instead of widgets, names that cannot act, and ASCII where it is asked for."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import RenderResult
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from explorer.text import safe

_PLAIN = str.maketrans({"…": "~", "·": "-", "│": "|", "▸": ">", "▾": "v", "–": "-", "→": ">", "←": "<", "▼": "v"})
#: Longest name that is laid out; what is longer is cut, and could not be read anyway.
_LONGEST = 400


def name(text: str | None, limit: int = _LONGEST) -> str:
    """A name from a profile as it is shown: one line, nothing in it that a terminal acts on."""
    return "(none)" if text is None else safe(text[: 4 * limit], limit)


def plain(text: str) -> str:
    """The text in ASCII; what has no likeness there is written as its escape."""
    return text.translate(_PLAIN).encode("ascii", "backslashreplace").decode("ascii")


class Pane(Widget, can_focus=True):
    """A part of the screen that the shared keys act on when it has the focus."""

    def __init__(self, *, ascii_only: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self.ascii_only = ascii_only

    def render(self) -> RenderResult:
        return ""

    def down(self, lines: int) -> None:
        """To the row or line that many below."""

    def side(self, steps: int) -> None:
        """To the next (1) or previous (-1) thing on the row."""

    def end(self, which: int) -> None:
        """To the first (-1) or last (1)."""

    def enter(self) -> None:
        """Into what the cursor is on."""

    def text(self, text: str) -> str:
        """Text in the characters this terminal may be given."""
        return plain(text) if self.ascii_only else text

    def title(self, text: str) -> None:
        """Write on the pane's border; the text is not read as markup."""
        self.border_title = Content(self.text(text))

    def strip(self, line: Text, width: int, base: Style) -> Strip:
        """A line, cut or filled to the width."""
        if not line.spans:
            line.stylize(line.style)  # rich renders a text without spans without its own style
        segments = [Segment(self.text(s.text), s.style) for s in line.render(self.app.console) if s.text != "\n"]
        return Strip(segments).adjust_cell_length(width, base).apply_style(base)


class Lines(Pane):
    """A list of lines with a cursor, drawn only where it is seen: a million lines cost what a screenful does."""

    def __init__(self, *, ascii_only: bool = False, id: str | None = None) -> None:
        super().__init__(ascii_only=ascii_only, id=id)
        self.top = 0
        self.cursor = 0

    @property
    def count(self) -> int:
        """Number of lines."""
        return 0

    def line(self, number: int) -> Text:
        """One line; called for visible ones only."""
        raise NotImplementedError

    @property
    def _first(self) -> int:
        """The line at the top; a pane that was filled while it was hidden did not know its height."""
        return max(min(self.top, self.count - self.content_size.height), 0)

    def move_to(self, line: int) -> None:
        """Put the cursor on a line and bring it into sight."""
        self.cursor = min(max(line, 0), max(self.count - 1, 0))
        self._reveal()
        self.refresh()

    def _reveal(self) -> None:
        height = max(self.content_size.height, 1)
        self.top = min(max(self.top, self.cursor - height + 1), self.cursor)
        self.top = min(self.top, max(self.count - height, 0))

    def down(self, lines: int) -> None:
        self.move_to(self.cursor + lines)

    def end(self, which: int) -> None:
        self.move_to(0 if which < 0 else self.count - 1)

    def on_resize(self, event: events.Resize) -> None:
        self._reveal()
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or not 0 <= self._first + offset.y < self.count:
            return
        self.move_to(self._first + offset.y)
        if event.chain == 2:
            self.enter()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(-3)

    def _wheel(self, lines: int) -> None:
        self.top = min(max(self.top + lines, 0), max(self.count - self.content_size.height, 0))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, number = self.content_size.width, self._first + y
        base = self.rich_style
        if number >= self.count or y >= self.content_size.height:
            return Strip.blank(width, base)
        if number == self.cursor and self.has_focus:
            base = base + Style(reverse=True)
        return self.strip(self.line(number), width, base)
