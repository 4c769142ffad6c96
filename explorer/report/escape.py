"""Untrusted text in Markdown: names as code, which renders nothing, and sentences with all that means something escaped."""

from __future__ import annotations

import re

from explorer.text import safe

#: Names longer than this are cut in reports.
NAME_LIMIT = 200
#: A pipe in a table ends its cell unless an odd number of backslashes stands before it.
_PIPE = re.compile(r"(\\*)\|")
#: A colon before slashes would make a link of an address.
_SPECIAL = re.compile(r"([\\`*\[\]<>|~&$]|:(?=//))|(?<![A-Za-z0-9])(_)|(_)(?![A-Za-z0-9])")
#: Words that would begin a list, a heading or a rule where they begin a line; other marks are escaped everywhere.
_BLOCK = re.compile(r"[-+]|#{1,6}|=+|-{2,}|\d{1,9}[.)]")


def code(text: str, limit: int = NAME_LIMIT, *, cell: bool = False) -> str:
    """The text as a code span that shows it as it is and renders none of it; for a table's `cell`, pipes are escaped."""
    shown = safe(text, limit)
    if not shown.strip(" "):
        return "(blank)"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    span = f"{fence}{pad}{shown}{pad}{fence}"
    return _PIPE.sub(lambda m: m[1] + ("\\\\|" if len(m[1]) % 2 else "\\|"), span) if cell else span


def prose(text: str, limit: int = 2000) -> str:
    """The text as a sentence: markup, HTML, entities and table pipes are escaped."""
    return _SPECIAL.sub(lambda m: "\\" + m[0], safe(text, limit))


def wrap(words: list[str], first: str, rest: str, width: int = 79) -> list[str]:
    """Lines of at most `width` columns, where words allow. No word is broken, and none that begins a line can begin a block."""
    lines, line = [], first
    for word in words:
        if not word:
            continue
        if len(line) + len(word) + 1 > width and line not in (first, rest):
            lines.append(line.rstrip())
            line = rest
        start = line in (first, rest)
        line += (_harmless(word) if line == rest else word) if start else f" {word}"
    return [*lines, line.rstrip()]


def _harmless(word: str) -> str:
    """The word with a backslash before its last mark if it alone would begin a block."""
    return f"{word[:-1]}\\{word[-1]}" if _BLOCK.fullmatch(word) else word
