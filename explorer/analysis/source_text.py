"""The text of source files that a profile names, read below the source root and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: Where files that a profile names are looked up by default: the current directory.
ROOT = Path()
#: A source file larger than this is none, bytes.
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
