"""The NeuronCore generations as data: `load("trn2")` gives a `Target`; every number in it has a unit and a source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from types import MappingProxyType, UnionType
from typing import Any, Final, TypeVar, get_args, get_type_hints

from emulator.errors import EmulatorError
from emulator.targets.instructions import CostClass, load_classes

NAMES: Final = ("trn1", "trn2", "trn3")
KINDS: Final = ("published", "derived", "calibrated", "assumed")


class UnknownTarget(EmulatorError):
    """No such NeuronCore generation is known."""


class TargetDataError(EmulatorError):
    """The data of a target is incomplete or of the wrong form."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a target: where it comes from, and how. `kind` is one of `KINDS`."""

    value: float | int | bool
    unit: str
    kind: str
    source: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class TensorEngine:
    """Clock in GHz, peaks in TFLOPS of one core, the rest in cycles of this engine."""

    clock: float
    rows: int
    columns: int
    moving_columns_max: int
    peak_bf16: float
    peak_fp32: float
    peak_fp8: float | None
    peak_mxfp8: float | None
    issue_min: float
    fp32_passes: int
    transpose_passes: int
    load_columns_per_cycle: float
    matmul_latency: float
    matmul_overhead: float
    load_latency: float
    load_overhead: float


@dataclass(frozen=True, slots=True)
class VectorEngine:
    """Clock in GHz, the rest in cycles of this engine. `fast_modes`: whether 16-bit types run at 2x and 4x."""

    clock: float
    lanes: int
    issue_min: float
    latency: float
    overhead: float
    fast_modes: bool


@dataclass(frozen=True, slots=True)
class ScalarEngine:
    """Clock in GHz, `table_load` in ns, the rest in cycles of this engine."""

    clock: float
    lanes: int
    issue_min: float
    latency: float
    overhead: float
    table_load: float
    accumulator_read: float
    fast_16bit: bool


@dataclass(frozen=True, slots=True)
class GpSimdEngine:
    """Clock in GHz, the rest in cycles of this engine."""

    clock: float
    lanes: int
    start: float
    overhead: float
    latency: float


@dataclass(frozen=True, slots=True)
class SyncEngine:
    """Clock in GHz, cycles of a control instruction."""

    clock: float
    control: float


@dataclass(frozen=True, slots=True)
class Core:
    """What engines share: GHz, cycles, and the nanoseconds from a producer's end to the start of what waited for it."""

    clock: float | None
    dynamic_issue: float
    semaphore: float
    dependent: float


@dataclass(frozen=True, slots=True)
class Sbuf:
    """Bytes of one core; allocations begin at multiples of `alignment`."""

    bytes: int
    partitions: int
    partition_bytes: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Psum:
    """Bytes of one core; `bank_bytes` is of one partition."""

    bytes: int
    partitions: int
    partition_bytes: int
    banks: int
    bank_bytes: int


@dataclass(frozen=True, slots=True)
class Hbm:
    """Bytes and bytes per second of a chip."""

    bytes: int
    stacks: int
    chip_bandwidth: float

    @property
    def stack_bandwidth(self) -> float:
        """Bytes per second of one stack."""
        return self.chip_bandwidth / self.stacks


@dataclass(frozen=True, slots=True)
class Dma:
    """Per core: engines; per engine: rates in bytes/ns; times in ns. Shares are of copy throughput."""

    engines: int
    queues_per_engine: int
    engine_peak: float
    read_rate: float
    write_rate: float
    descriptor_cost: float
    queue_interval: float
    trigger: float
    first_packet: float
    completion: float
    packet_bytes: int
    semaphore_increment: int
    software_generation: float
    hardware_generation: float | None
    transpose_share: float | None
    transpose_share_sbuf: float | None
    compute_share: float

    @property
    def core_bandwidth(self) -> float:
        """Bytes per second that the engines of one core can move at most."""
        return self.engines * self.engine_peak * 1e9


@dataclass(frozen=True, slots=True)
class Chip:
    """Physical cores of a chip."""

    cores: int


@dataclass(frozen=True, slots=True)
class Target:
    """A NeuronCore generation. `figures` has each number with unit, kind and source under "section.name"."""

    name: str
    neuroncore: str
    instances: tuple[str, ...]
    tensor: TensorEngine
    vector: VectorEngine
    scalar: ScalarEngine
    gpsimd: GpSimdEngine
    sync: SyncEngine
    core: Core
    sbuf: Sbuf
    psum: Psum
    hbm: Hbm
    dma: Dma
    chip: Chip
    figures: Mapping[str, Figure]
    #: What each class of instruction costs, by name.
    cost_classes: Mapping[str, CostClass]

    @property
    def clocks(self) -> tuple[float, float, float, float, float]:
        """GHz by engine code, in the order of `program.ENGINES`."""
        return self.tensor.clock, self.vector.clock, self.scalar.clock, self.gpsimd.clock, self.sync.clock

    @property
    def peak_flops(self) -> float:
        """FLOPs per second of one core in bf16: two per element of the array and cycle."""
        return 2.0 * self.tensor.rows * self.tensor.columns * self.tensor.clock * 1e9


_META: Final = {"name", "neuroncore", "instances"}
_Section = TypeVar("_Section")


def _figures(data: Mapping[str, Any], name: str) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for section, entries in data.items():
        if section in _META:
            continue
        for key, entry in entries.items():
            path = f"{section}.{key}"
            if entry.keys() - {"note"} != {"value", "unit", "kind", "source"} or entry["kind"] not in KINDS or not entry["source"]:
                raise TargetDataError(f"{name}.toml: {path} needs value, unit, kind ({', '.join(KINDS)}) and source")
            found[path] = Figure(entry["value"], entry["unit"], entry["kind"], tuple(entry["source"]), entry.get("note", ""))
    return found


def _section(kind: type[_Section], section: str, figures: Mapping[str, Figure], name: str) -> _Section:
    values: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for field in fields(kind):  # type: ignore[arg-type]
        hint = hints[field.name]
        optional = isinstance(hint, UnionType)
        wanted = next(part for part in get_args(hint) if part is not type(None)) if optional else hint
        figure = figures.get(f"{section}.{field.name}")
        if figure is None and not optional:
            raise TargetDataError(f"{name}.toml: {section}.{field.name} is missing")
        values[field.name] = None if figure is None else wanted(figure.value)
    return kind(**values)


def parse(data: Mapping[str, Any], name: str) -> Target:
    """The target that the parsed TOML `data` describes. Raises `TargetDataError` for a figure that is missing or has no source."""
    figures = _figures(data, name)
    hints = get_type_hints(Target)
    sections = {field.name: hints[field.name] for field in fields(Target) if field.name in data and field.name not in _META}
    if unknown := data.keys() - sections.keys() - _META:
        raise TargetDataError(f"{name}.toml: unknown section {', '.join(sorted(unknown))}")
    known = {f"{section}.{field.name}" for section, kind in sections.items() for field in fields(kind)}
    if unknown := figures.keys() - known:
        raise TargetDataError(f"{name}.toml: unknown figure {', '.join(sorted(unknown))}")
    return Target(
        name=data["name"],
        neuroncore=data["neuroncore"],
        instances=tuple(data["instances"]),
        **{section: _section(kind, section, figures, name) for section, kind in sections.items()},
        figures=MappingProxyType(figures),
        cost_classes=MappingProxyType(load_classes()),
    )


@cache
def load(name: str) -> Target:
    """The target `name`. Raises `UnknownTarget` with the names there are."""
    if name not in NAMES:
        raise UnknownTarget(f"unknown target {name!r}; use one of {', '.join(NAMES)}")
    text = resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return parse(tomllib.loads(text), name)
