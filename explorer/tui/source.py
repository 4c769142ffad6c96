"""The source of the selected instruction, read below the source root and nowhere else."""

from __future__ import annotations

from rich.text import Text
from textual.message import Message

from explorer.analysis.source_text import Listing, Sources, split_place
from explorer.tui.lines import Lines, name


class Source(Lines):
    """The listing around the selected instruction's line; enter asks for the instructions of the line the cursor is on."""

    class Chosen(Message):
        """The user wants the instructions that a line issued."""

        def __init__(self, place: str) -> None:
            super().__init__()
            self.place = place

    def __init__(self, sources: Sources, *, ascii_only: bool = False) -> None:
        super().__init__(ascii_only=ascii_only, id="source")
        self.title("Source")
        self._sources = sources
        self._file: str | None = None
        self._line: int | None = None
        self._listing = Listing((), "nothing selected")

    def show(self, place: str | None, captured: bool) -> None:
        """Show a `file:line`; None: the selected row has none, or the profile has none at all."""
        if place is None:
            self._file = self._line = None
            why = "this row names no source line" if captured else "source lines: not captured"
            self._listing = Listing((), why)
        else:
            file, self._line = split_place(place)
            if file != self._file:
                self.top = self.cursor = 0
            self._file, self._listing = file, self._sources.listing(file)
        self.title("Source" if self._file is None else f"Source {name(self._file, 60)}")
        if self._listing.lines and self._line is not None:
            self.cursor = min(max(self._line - 1, 0), self.count - 1)
            if not self.top <= self.cursor < self.top + self.content_size.height:
                self.top = max(self.cursor - self.content_size.height // 3, 0)
            self._reveal()
        self.refresh()

    @property
    def count(self) -> int:
        return len(self._listing.lines) or 2

    def line(self, number: int) -> Text:
        if not self._listing.lines:
            place = "" if self._file is None else f"{name(self._file)}:{self._line if self._line is not None else '?'}"
            lines = [Text(place, style="bold"), Text(self._listing.why_not or "", style="italic dim")]
            return (lines if place else lines[::-1])[number]
        here = number + 1 == self._line
        width = len(str(self.count))
        text = Text().append(f"{'>' if here else ' '}{number + 1:>{width}} ", style="bold" if here else "dim")
        return text.append(name(self._listing.lines[number].expandtabs(4)), style="bold" if here else "")

    def enter(self) -> None:
        if self._file is not None and self._listing.lines:
            self.post_message(self.Chosen(f"{self._file}:{self.cursor + 1}"))
