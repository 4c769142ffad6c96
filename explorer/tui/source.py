"""The source of the selected instruction, read below the source root and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.text import Text
from textual.message import Message

from explorer.tui.lines import Lines, name

#: A source file larger than this is none.
_LARGEST = 4 << 20


def split_place(place: str) -> tuple[str, int | None]:
    """File and line of a `file:line`; the line is None where there is none."""
    file, colon, line = place.rpartition(":")
    return (file, int(line)) if colon and line.isascii() and line.isdecimal() and len(line) < 9 else (place, None)


@dataclass(frozen=True, slots=True)
class Listing:
    """The lines of a file, or why there are none."""

    lines: tuple[str, ...]
    why_not: str | None


class Sources:
    """Reads the files that a profile names; a stored path that leads out of the root is refused, links included."""

    def __init__(self, root: Path | None) -> None:
        self._root = root.resolve() if root is not None else None
        self._read: dict[str, Listing] = {}

    def listing(self, file: str) -> Listing:
        """The listing of a stored path."""
        if file not in self._read:
            self._read[file] = self._listing(file)
        return self._read[file]

    def _listing(self, file: str) -> Listing:
        if self._root is None:
            return Listing((), "text not shown: no source root; give --source-root")
        try:
            path = (self._root / file).resolve()
            if not path.is_relative_to(self._root):
                return Listing((), "text not shown: the path leads out of the source root")
            if not path.is_file() or path.stat().st_size > _LARGEST:
                return Listing((), "text not found under the source root; give --source-root")
            return Listing(tuple(path.read_text(encoding="utf-8", errors="replace").splitlines()), None)
        except (OSError, ValueError):
            return Listing((), "text cannot be read under the source root")


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
