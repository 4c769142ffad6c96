"""Enums and sizes that kernels name: memory regions, engines, modes, tile sizes."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import numpy as np

from emulator.nki.session import running
from emulator.program import Space
from emulator.targets import load

_SPACES: Final = {"sbuf": Space.SBUF, "psum": Space.PSUM}


class MemoryRegion(Enum):
    """Where a tensor lives, by the names of `nki.language`."""

    sbuf = "sbuf"
    psum = "psum"
    hbm = "hbm"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    @property
    def space(self) -> Space:
        """The memory."""
        return _SPACES.get(self.value, Space.HBM)

    def __eq__(self, other: object) -> bool:
        # Kernels compare buffers with names too.
        return self.value == other if isinstance(other, str) else self is other

    __hash__ = Enum.__hash__


class engine(Enum):
    """`nki.isa.engine`."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


class reduce_cmd(Enum):
    """`nki.isa.reduce_cmd`."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(Enum):
    """`nki.isa.dge_mode`."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(Enum):
    """`nki.isa.oob_mode`."""

    error = 0
    skip = 1


class matmul_perf_mode(Enum):
    """`nki.isa.matmul_perf_mode`."""

    none = "none"
    double_row = "double_row"


class dma_engine(Enum):
    """`nki.isa.dma_engine`."""

    dma = 1
    gpsimd_dma = 2


class nc_version(Enum):
    """`nki.isa.nc_version`; kernels compare generations with < and >=."""

    gen1 = 1
    gen2 = 2
    gen3 = 3
    gen4 = 4

    def __lt__(self, other: nc_version) -> bool:
        return bool(self.value < other.value)

    def __le__(self, other: nc_version) -> bool:
        return bool(self.value <= other.value)

    def __gt__(self, other: nc_version) -> bool:
        return bool(self.value > other.value)

    def __ge__(self, other: nc_version) -> bool:
        return bool(self.value >= other.value)


#: NeuronCore generation of each target (aws-neuron-sdk nki/api/nki/__init__.py, `jit`).
GENERATION: Final = {"trn1": nc_version.gen2, "trn2": nc_version.gen3, "trn3": nc_version.gen4}


def target() -> str:
    """The target of the running kernel, trn2 outside kernels."""
    session = running()
    return session.target if session else "trn2"


def get_nc_version() -> nc_version:
    """`nki.isa.get_nc_version`: the running kernel's target."""
    return GENERATION[target()]


class TileSize:
    """`nl.tile_size`. Figures: `_TileSize` in aws-neuron-sdk nki/api/nki/language/__init__.py, and its architecture guides."""

    pmax: Final = 128
    psum_fmax: Final = 512
    psum_bank_fmax: Final = 512
    psum_bank_fmax_bytes: Final = 2048
    gemm_stationary_fmax: Final = 128
    gemm_moving_fmax: Final = 512
    bn_stats_fmax: Final = 512
    psum_min_align: Final = 4
    sbuf_min_align: Final = 1
    psum_num_banks: Final = 8

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Bytes of a partition of SBUF on the running kernel's target."""
        return load(target()).sbuf.partition_bytes

    @property
    def total_available_sbuf_size(self) -> int:
        """As `sbuf_fmax_bytes` (the older name)."""
        return self.sbuf_fmax_bytes

    @property
    def sbuf_fmax(self) -> int:
        """`sbuf_fmax_bytes` in fp32 elements."""
        return self.sbuf_fmax_bytes // 4

    @property
    def sbuf_size_bytes(self) -> int:
        """Bytes of all partitions together."""
        return self.sbuf_fmax_bytes * self.pmax


class fp32:
    """`nl.fp32`: limits of the type."""

    min: Final = float(np.finfo(np.float32).min)
    max: Final = float(np.finfo(np.float32).max)


def engine_name(given: Any) -> str:
    """The engine that a kernel asks for by enum, "" if it leaves the choice."""
    name = given.name if isinstance(given, engine) else str(given or "unknown")
    return "" if name == "unknown" else name
