"""The calls of nki.isa as a profile shows them; the data is `opcodes.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Opcode:
    """One call: its opcode, the engines that can run it (first choice first), its track, and what prices it."""

    call: str
    opcode: str
    engines: tuple[str, ...]
    #: The timeline track where it is not the engine's own, else "".
    track: str
    cost_class: str
    #: Where the spelling comes from: "profile", "glossary" or "nki.isa".
    source: str


@cache
def opcodes() -> dict[str, Opcode]:
    """Every call by name."""
    text = files("emulator").joinpath("opcodes.toml").read_text(encoding="utf-8")
    return {
        call: Opcode(call, row["opcode"], tuple(row["engines"]), row.get("track", ""), row["cost"], row["source"])
        for call, row in tomllib.loads(text).items()
    }


@cache
def track(opcode: str, engine: str) -> str:
    """The timeline track of an instruction: the engine's capitalised name unless the opcode has its own."""
    own = next((entry.track for entry in opcodes().values() if entry.opcode == opcode and entry.track), "")
    return own or {"gpsimd": "GpSimd"}.get(engine, engine.capitalize())
