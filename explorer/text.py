"""Names from profiles and kernels are untrusted: how they become text that is safe to show."""

from __future__ import annotations

import unicodedata


def safe(text: str, limit: int | None = None) -> str:
    """`text` on one line without control characters, escapes, bidirectional or other invisible format characters.

    Each such character becomes its escaped form (`\\x1b`), so nothing is lost silently. With `limit`, longer text is cut to that
    many characters, the last being an ellipsis. Markup of a renderer (rich, Markdown) is not this function's business: renderers
    take text as text.
    """
    shown = "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else c
        for c in text
    )
    return shown if limit is None or len(shown) <= limit else shown[: max(limit - 1, 0)] + "…"
