"""Engine names: one table from every spelling that profiles use to the canonical one."""

from __future__ import annotations

#: In the order of AWS's summary.
ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")

#: Old names are those of NTFF queue names and the ISA (qPoolIO0, qSPSpillReload0, DVE, PE, ACT).
_ALIASES: dict[str, tuple[str, ...]] = {
    "tensor": ("tensor", "pe", "tensormatrix"),
    "vector": ("vector", "dve"),
    "scalar": ("scalar", "activation", "act"),
    "gpsimd": ("gpsimd", "pool"),
    "sync": ("sync", "sp"),
}
_CANONICAL = {alias: engine for engine, aliases in _ALIASES.items() for alias in aliases}


def canonical(name: str) -> str:
    """The engine's name in lower case (tensor, vector, scalar, gpsimd, sync) for any spelling; an unknown name in lower case."""
    return _CANONICAL.get(name.strip().lower(), name.strip().lower())


def spellings(engine: str) -> tuple[str, ...]:
    """All lower-case spellings of an engine, the canonical one first."""
    return _ALIASES.get(canonical(engine), (canonical(engine),))
