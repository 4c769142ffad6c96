"""What every verb prints: one JSON envelope, or a plain table of text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import explorer
from explorer.store.reader import Profile
from explorer.text import safe

#: Rises only on a breaking change of any `--json` answer.
FORMAT = 1
#: Integers up to this are exact to every reader of JSON.
EXACT = 2**53
Cell = str | int | float | bool | None


#: What a listing shows unless --limit says otherwise.
LIMIT = 40


def add_profile(parser: argparse.ArgumentParser) -> None:
    """The argument that names the profile."""
    parser.add_argument("profile", metavar="PROFILE", help="profile directory")


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that asks for JSON."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_limit(parser: argparse.ArgumentParser, limit: int = LIMIT) -> None:
    """The option that says how many rows a listing shows."""
    parser.add_argument("--limit", type=count, default=limit, metavar="N", help=f"rows to show, 0 for all (default: {limit})")


def count(text: str) -> int:
    """A whole number from 0, as the type of an option."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0")
    return int(text)


def folder(text: str) -> Path:
    """An option's value as the folder that it has to name."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no folder")
    return path


def listing(rows: Sequence[Mapping[str, Any]], total: int) -> dict[str, Any]:
    """The payload of a listing: its rows, how many there are and how many are shown."""
    return {"rows": list(rows), "rows_total": total, "rows_shown": len(rows)}


def unnamed(profile: Profile, what: str) -> str:
    """Why a profile has no layers or source lines to list: its instructions name none, or there are none."""
    return f"no instruction names its {what}" if "Instruction" in profile.tables else "there is no Instruction table"


def envelope(kind: str, profile: Profile | None, payload: Mapping[str, Any], warnings: Sequence[str] = ()) -> dict[str, Any]:
    """The object that a `--json` answer is: the head that all answers share, then the payload."""
    return {
        "tool": "trnscope",
        "version": explorer.__version__,
        "kind": kind,
        "format": FORMAT,
        "profile": str(profile.path) if profile else None,
        "evidence": profile.evidence if profile else None,
        "warnings": list(warnings),
        "not_captured": list(profile.not_captured) if profile else [],
        **payload,
    }


def error(verb: str | None, message: str, exit_code: int) -> dict[str, Any]:
    """The object that answers instead where a verb failed: the same head, what is wrong, and the exit code."""
    return envelope("error", None, {"verb": verb, "error": message, "exit_code": exit_code})


def print_json(answer: Mapping[str, Any]) -> None:
    """Print an answer as one JSON object. Non-finite numbers become null."""
    sys.stdout.write(json_text(answer))


def json_text(answer: Mapping[str, Any]) -> str:
    """The text of an answer as one JSON object, with a newline at its end. Non-finite numbers become null."""
    return json.dumps(_finite(answer), indent=2, allow_nan=False) + "\n"


def exact(value: object) -> object:
    """A value of a row as JSON readers keep it exact: integers beyond `EXACT` and what JSON does not know become strings."""
    if isinstance(value, bool) or value is None or isinstance(value, (float, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) <= EXACT else str(value)
    return [exact(v) for v in value] if isinstance(value, list) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value


def format_table(header: Sequence[str], rows: Sequence[Sequence[Cell]], *, left: int | Collection[str] = 1) -> str:
    """A table of text: the first `left` columns, or those so named, flush left, the rest right; null as "-"; names made safe."""
    cells = [[_cell(c) for c in row] for row in rows]
    widths = [max(len(h), *(len(r[i]) for r in cells)) if cells else len(h) for i, h in enumerate(header)]
    flush = [i < left if isinstance(left, int) else h in left for i, h in enumerate(header)]
    lines = [header, ["-" * w for w in widths], *cells]
    return "\n".join(
        "  ".join(c.ljust(w) if f else c.rjust(w) for c, w, f in zip(line, widths, flush, strict=True)).rstrip() for line in lines
    )


def _cell(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}"
    return safe(value)


def cut_note(shown: int, total: int) -> str | None:
    """What to say under a listing that was cut, or None if it was not."""
    return f"{shown:,} of {total:,}; --limit 0 for all" if shown < total else None
