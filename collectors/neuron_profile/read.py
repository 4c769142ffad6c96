"""Reads one JSON file and says what it is, so that a wrong file gets one line and not a traceback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collectors.neuron_profile.mapping import COMBINED, SPLIT, TABLES
from explorer.store.errors import ProfileError

Document = dict[str, list[dict[str, Any]]]

_EXPORT = "`neuron-explorer view -n FILE.neff -s FILE.ntff --output-format json --output-file FILE.json` makes one"
_KNOWN = {*TABLES, *SPLIT, *COMBINED}
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "a gzip file; unpack it first"),
    (b"PK\x03\x04", "a zip file; unpack it first"),
    (b"PAR1", "a Parquet table; a directory of them opens as it is: `trnscope info DIRECTORY`"),
)


def document(path: Path) -> tuple[Document, tuple[str, ...]]:
    """The tables of a neuron-profile or neuron-explorer JSON file, rows by table name, and what had to be mended to read it.

    Raises ProfileError, one line, if the file is missing, empty, binary, cut, or JSON of another kind. The whole file is held in
    memory, at about six times its size.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from error
    if not raw.strip():
        raise ProfileError(f"{path}: empty file; export the profile again")
    what = next((text for start, text in _SIGNATURES if raw.startswith(start)), None)
    if what is None and b"\0" in raw[:4096]:
        what = "a binary file"
    if what:
        raise ProfileError(f"{path}: {what}, not neuron-profile JSON")
    notes: tuple[str, ...] = ()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = raw.decode("utf-8-sig", "replace")
        notes = (f"{path}: bytes that are no UTF-8, the first at {error.start:,}, became the replacement character",)
    del raw
    try:
        parsed = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        raise ProfileError(_broken(path, text, error)) from error
    except ValueError as error:
        # Python reads no integer of thousands of digits.
        raise ProfileError(f"{path}: damaged JSON: it holds a number of thousands of digits; export or copy it again") from error
    except RecursionError as error:
        raise ProfileError(f"{path}: JSON nested too deep to be a profile; {_EXPORT}") from error
    other = _other_kind(parsed)
    if other:
        raise ProfileError(f"{path}: {other}, not a device profile of neuron-profile or neuron-explorer; {_EXPORT}")
    return _tables(path, parsed), notes


def _broken(path: Path, text: str, error: json.JSONDecodeError) -> str:
    if error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string"):
        return f"{path}: cut off: the JSON ends in line {error.lineno} before it is complete; export or copy it again"
    if error.lineno == 1 and error.colno == 1:
        return f"{path}: not JSON; {_EXPORT}"
    return f"{path}: damaged JSON in line {error.lineno}, column {error.colno}: {error.msg}; export or copy it again"


def _other_kind(parsed: object) -> str | None:
    if isinstance(parsed, list):
        events = bool(parsed) and isinstance(parsed[0], dict) and "ph" in parsed[0]
        return "a Chrome trace (a list of events)" if events else "a JSON list"
    if not isinstance(parsed, dict):
        return f"a JSON {type(parsed).__name__}"
    if "traceEvents" in parsed:
        torch = "schemaVersion" in parsed or "deviceProperties" in parsed
        return "a torch.profiler trace (traceEvents)" if torch else "a Chrome trace (traceEvents)"
    if "trace_events" in parsed or "trace_event" in parsed:
        return "a Neuron system profile (trace_events)"
    if parsed and all(isinstance(k, str) and k.startswith(("n_", "s_")) and isinstance(v, dict) for k, v in parsed.items()):
        return "neuron-explorer's summary-json, which has no rows"
    if "instruction" not in parsed and not ("summary" in parsed and "metadata" in parsed):
        return f"JSON with the keys {_some(parsed)}" if parsed else "an empty JSON object"
    return None


def _some(parsed: Mapping[str, object]) -> str:
    names = [json.dumps(k)[:40] for k in list(parsed)[:4]]
    return ", ".join(names) + (", ..." if len(parsed) > 4 else "")


def _tables(path: Path, parsed: Mapping[str, object]) -> Document:
    found: Document = {}
    for name, rows in parsed.items():
        if isinstance(rows, list) and all(isinstance(r, dict) for r in rows):
            found[name] = rows
        elif name in _KNOWN:
            raise ProfileError(f"{path}: its table {name!r} is no list of rows; export the profile again")
        else:
            found[name] = [r if isinstance(r, dict) else {"value": r} for r in (rows if isinstance(rows, list) else [rows])]
    return found
