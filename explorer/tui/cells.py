"""Cells of a timeline row as characters and colours: block characters, or ASCII."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.color import Color

from explorer.tui import palette
from explorer.tui.spans import Cells, Kind

_LEFT = " ▏▎▍▌▋▊▉█"
_HEIGHT = " ▁▂▃▄▅▆▇█"
_WAIT = "░"
_ASCII_WAIT = ":"


@dataclass(frozen=True, slots=True)
class Glyph:
    """A character with its colours; None: the row's own."""

    char: str
    fore: Color | None = None
    back: Color | None = None
    bold: bool = False


BLANK = Glyph(" ")

#: Colour of a span, given its position in the row's spans.
Paint = Callable[[int], Color]
#: Word that stands in a span, at most so many characters long.
Word = Callable[[int], str]


def draw(cells: Cells, paint: Paint, word: Word, ascii_only: bool) -> list[Glyph]:
    """One glyph per cell. Never colour alone: a slice carries its name as far as it fits."""
    kinds, lefts, rights, eighths = cells.kind.tolist(), cells.left.tolist(), cells.right.tolist(), cells.eighths.tolist()
    glyphs = []
    at, width = 0, len(kinds)
    while at < width:
        kind, left = kinds[at], lefts[at]
        if kind == Kind.FULL:
            stop = at + 1
            while stop < width and kinds[stop] == Kind.FULL and lefts[stop] == left:
                stop += 1
            glyphs += _slice(word(left), stop - at, paint(left), ascii_only)
            at = stop
            continue
        if kind == Kind.IDLE:
            glyphs.append(BLANK)
        elif kind == Kind.SHARED:
            color = paint(left)
            glyphs.append(Glyph("+", color) if ascii_only else Glyph(_HEIGHT[eighths[at]], color))
        else:
            glyphs.append(_split(left, rights[at], eighths[at], paint, ascii_only))
        at += 1
    return glyphs


def with_waits(glyphs: list[Glyph], waits: Cells, ascii_only: bool) -> list[Glyph]:
    """The glyphs, with a pattern of its own where the row is idle and a wait is on."""
    glyph = Glyph(_ASCII_WAIT if ascii_only else _WAIT, palette.WAIT)
    for at in np.flatnonzero(waits.kind != Kind.IDLE):
        if glyphs[at] is BLANK:
            glyphs[at] = glyph
    return glyphs


def _slice(word: str, width: int, color: Color, ascii_only: bool) -> list[Glyph]:
    text = word[:width].ljust(width, "=" if ascii_only else " ")
    ink = palette.ink(color)
    return [Glyph(c, ink, color) for c in text]


def _split(left: int, right: int, eighths: int, paint: Paint, ascii_only: bool) -> Glyph:
    if ascii_only:
        if left >= 0 and right >= 0:
            return Glyph("|", palette.ink(paint(right)), paint(right))
        return Glyph("]", paint(left)) if left >= 0 else Glyph("[", paint(right))
    if left < 0:
        return Glyph(_LEFT[eighths], None, paint(right))
    return Glyph(_LEFT[eighths], paint(left), paint(right) if right >= 0 else None)
