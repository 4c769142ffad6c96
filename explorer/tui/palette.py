"""Colours that colour-blind people can tell apart, the same for the same name in every profile."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from rich.color import Color

# Okabe and Ito, "Color Universal Design" (2008), without black; each in two shades so that neighbours of one colour part.
_HUES = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#D55E00", "#0072B2", "#BBBBBB")
_SECOND_SHADE = 0.84
#: Hue of what has no name, such as a transfer in colours by layer.
NAMELESS = 7

#: Opcodes that most profiles hold get a hue each; every other name gets one by its hash.
_USUAL = {
    "MATMUL": 0,
    "LDWEIGHTS": 6,
    "ACTIVATE": 1,
    "TENSOR_TENSOR": 2,
    "TENSOR_SCALAR": 3,
    "TENSOR_REDUCE": 4,
    "COPY": 5,
    "DMA_DIRECT2D": 7,
}

WAIT = Color.parse("#6a6f78")
SELECTED = Color.parse("#ffffff")
DIM = 0.35


def hue(name: str) -> int:
    """Number of the hue that a name asks for: the same between runs, machines and profiles. Grey is for the nameless."""
    return _USUAL.get(name, zlib.crc32(name.encode("utf-8", "surrogatepass")) % NAMELESS)


def hues(names: Sequence[str]) -> list[int]:
    """A hue for each of the names; one that an earlier name has already gives way to the next free one, while there is one."""
    given: list[int] = []
    free = set(range(NAMELESS))
    for name in names:
        wanted = hue(name)
        if name not in _USUAL and free and wanted not in free:
            wanted = next(h % NAMELESS for h in range(wanted, wanted + NAMELESS) if h % NAMELESS in free)
        free.discard(wanted)
        given.append(wanted)
    return given


def _scaled(color: Color, factor: float) -> Color:
    r, g, b = color.get_truecolor()
    return Color.from_rgb(r * factor, g * factor, b * factor)


_BRIGHT = tuple((Color.parse(h), _scaled(Color.parse(h), _SECOND_SHADE)) for h in _HUES)
_DARK = tuple((_scaled(a, DIM), _scaled(b, DIM)) for a, b in _BRIGHT)
_UNLIT = frozenset(c for pair in _DARK for c in pair)


def shade(number: int, second: bool, lit: bool = True) -> Color:
    """The hue in its first or second shade, dark where it is not lit."""
    return (_BRIGHT if lit else _DARK)[number][int(second)]


def ink(on: Color) -> Color:
    """What is read well on that colour: black or white by relative luminance (as WCAG 2 defines it), grey on what is not lit."""
    if on in _UNLIT:
        return WAIT
    parts = [c / 255 for c in on.get_truecolor()]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return Color.from_rgb(0, 0, 0) if 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 else Color.from_rgb(255, 255, 255)
