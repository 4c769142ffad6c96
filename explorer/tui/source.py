"""The source of the selected instruction, read below the source root and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message

from explorer.analysis.source_text import Listing, Sources, split_place
from explorer.times import format_time
from explorer.tui.lines import Lines, name


@dataclass(frozen=True, slots=True)
class LineFigures:
    """What the source analysis says of a line: time covered by its instructions and the transfers they started, in nanoseconds."""

    time_ns: int
    instructions: int


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
        self._figures: Mapping[tuple[str, int], LineFigures] = {}
        self.file: str | None = None
        self._line: int | None = None
        self._listing = Listing((), "nothing selected")

    def fill(self, figures: Mapping[tuple[str, int], LineFigures]) -> None:
        """Show these figures beside the lines they are of."""
        self._figures = figures
        self.refresh()

    def show(self, place: str | None, *, selected: bool, captured: bool) -> None:
        """Show a `file:line`; None: no row is selected, or it has none, or the whole profile has none."""
        if place is None:
            self.file = self._line = None
            why = (
                ("this row names no source line" if selected else "nothing selected") if captured else "source lines: not captured"
            )
            self._listing = Listing((), why)
        else:
            file, self._line = split_place(place)
            if file != self.file:
                self.top = self.cursor = 0
            self.file, self._listing = file, self._sources.listing(file)
        self.title("Source" if self.file is None else f"Source {name(self.file, 60)}")
        self._seek(anew=False)
        self.refresh()

    def _seek(self, *, anew: bool) -> None:
        """Bring the selected line into sight, a third down where it was out of it or all is laid out anew."""
        if self._listing.lines and self._line is not None:
            self.cursor = min(max(self._line - 1, 0), self.count - 1)
            if anew or not self.top < self.cursor < self.top + self.content_size.height:
                self.top = max(self.cursor - self.content_size.height // 3, 0)
            self._reveal()

    def on_resize(self, event: events.Resize) -> None:
        self._seek(anew=True)
        self.refresh()

    @property
    def count(self) -> int:
        return len(self._listing.lines) or 2

    def line(self, number: int) -> Text:
        if not self._listing.lines:
            place = "" if self.file is None else f"{name(self.file)}:{self._line if self._line is not None else '?'}"
            lines = [Text(place, style="bold"), Text(self._listing.why_not or "", style="italic dim")]
            return (lines if place else lines[::-1])[number]
        here = number + 1 == self._line
        width = len(str(self.count))
        text = Text().append(f"{'>' if here else ' '}{number + 1:>{width}} ", style="bold" if here else "dim")
        if self._figures:
            found = self._figures.get((self.file or "", number + 1))
            text.append(f"{format_time(found.time_ns) if found else '':>9} ", style="bold" if here else "")
        return text.append(name(self._listing.lines[number].expandtabs(4)), style="bold" if here else "")

    def enter(self) -> None:
        if self.file is not None and self._listing.lines:
            self.post_message(self.Chosen(f"{self.file}:{self.cursor + 1}"))
