"""The tree of layers: what belongs to which, with the figures of `trnscope layers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.message import Message

from explorer.tui.lines import Lines, name


@dataclass(frozen=True, slots=True)
class Node:
    """A layer as it is listed: its path, its own name, its depth, whether layers lie below it, and its figures as text."""

    path: str
    label: str
    depth: int
    parent: bool
    figures: str = ""


class Layers(Lines):
    """Layers that open and close; enter asks to light one in the timeline."""

    class Chosen(Message):
        """The user wants a layer lit."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__(ascii_only=ascii_only, id="layers")
        self.title("Layers: time, instructions")
        self._all: Sequence[Node] = ()
        self._open: set[str] = set()
        self._shown: list[Node] = []
        self._why_not = "computing..."
        self.lit: str | None = None

    def fill(self, nodes: Sequence[Node], why_not: str | None = None) -> None:
        """Show these nodes, parents before children; where there are none, say why."""
        self._all, self._why_not = nodes, why_not or "layers: not captured"
        roots = [n for n in nodes if n.depth == 0 and n.parent]
        self._open = {n.path for n in roots} if len(roots) == 1 else set()
        self._list()

    def light(self, path: str | None) -> None:
        """Mark the layer that is lit in the timeline."""
        self.lit = path
        self.refresh()

    def follow(self, path: str | None) -> None:
        """Put the cursor on a layer, opening those above it."""
        if path is None or all(n.path != path for n in self._all):
            return
        parts = path.split("/")
        self._open |= {"/".join(parts[:i]) for i in range(1, len(parts))}
        self._list()
        at = next((i for i, n in enumerate(self._shown) if n.path == path), None)
        if at is not None:
            self.move_to(at)

    def _list(self) -> None:
        self._shown, closed = [], None
        for node in self._all:
            if closed is not None and node.depth > closed:
                continue
            closed = node.depth if node.parent and node.path not in self._open else None
            self._shown.append(node)
        self.move_to(self.cursor)

    @property
    def count(self) -> int:
        return len(self._shown) or 1

    def line(self, number: int) -> Text:
        if not self._shown:
            return Text(name(self._why_not), style="italic dim")
        node, width = self._shown[number], self.content_size.width
        fold = ("▾ " if node.path in self._open else "▸ ") if node.parent else "  "
        mark = "*" if node.path == self.lit else " "
        room = max(width - len(node.figures) - 1, 8)
        text = Text(f"{mark}{'  ' * min(node.depth, 12)}{fold}", no_wrap=True)
        text.append(name(node.label, room), style="bold" if node.path == self.lit else "")
        text.truncate(room, overflow="ellipsis", pad=True)
        return text.append(node.figures.rjust(max(width - text.cell_len, 0)), style="dim")

    def side(self, steps: int) -> None:
        if not self._shown:
            return
        node = self._shown[self.cursor]
        if steps > 0 and node.parent:
            self._open.add(node.path)
        elif steps < 0 and node.parent and node.path in self._open:
            self._open.discard(node.path)
        elif steps < 0:
            above = (i for i in range(self.cursor - 1, -1, -1) if self._shown[i].depth < node.depth)
            self.cursor = next(above, self.cursor)
        self._list()

    def enter(self) -> None:
        if self._shown:
            self.post_message(self.Chosen(self._shown[self.cursor].path))
