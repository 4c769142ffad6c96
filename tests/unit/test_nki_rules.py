"""What the NeuronCore or the language does not allow is one line: file and line, tensor, rule, way out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import EmulatorError, RuleError, UnsupportedCall
from emulator.program import ENGINES, InstructionFlag
from tests.unit.nki_names import nisa, nki, nl, oisa, old, onl, run

X = np.zeros((128, 64), np.float32)


def sbuf(*shape: int, dtype: Any = "float32") -> Any:
    return nl.ndarray(shape, dtype, buffer=nl.sbuf)


def psum(*shape: int, dtype: Any = "float32") -> Any:
    return nl.ndarray(shape, dtype, buffer=nl.psum)


def matmul(**changes: Any) -> None:
    given = {"dst": psum(64, 32), "stationary": sbuf(128, 64), "moving": sbuf(128, 32)} | changes
    nisa.nc_matmul(**given)


CURRENT: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: sbuf(129, 4), r"has 129 partitions in SBUF, which has 128: tile the first dimension"),
    (lambda x: psum(200, 4), r"has 200 partitions in PSUM"),
    (lambda x: sbuf(128, 0), r"is empty"),
    (lambda x: nl.ndarray((128, 4), "float99"), r"'float99' is not an NKI data type"),
    (lambda x: nl.ndarray((128, 4), nl.float32, buffer="l2"), r"'l2' is no memory; use nl.sbuf"),
    (
        lambda x: nisa.dma_copy(dst=psum(128, 64), src=x),
        r"is in PSUM, which DMA cannot reach; copy it to SBUF",
    ),
    (lambda x: nisa.dma_copy(dst=sbuf(128, 32), src=x), r"has 4096 elements and x \[128, 64\] has 8192"),
    (lambda x: nisa.tensor_copy(sbuf(128, 64), x), r"x is in HBM, which the vector engine cannot reach; bring it into SBUF"),
    (
        lambda x: nisa.tensor_copy(sbuf(128, 64), psum(128, 64), engine=nisa.gpsimd_engine),
        r"PSUM, which the gpsimd engine cannot",
    ),
    (lambda x: nisa.tensor_copy(sbuf(128, 64), sbuf(64, 64)), r"need the same partitions and elements per partition"),
    (lambda x: nisa.activation(sbuf(128, 4), nl.add, sbuf(128, 4)), r"add is no activation function"),
    (
        lambda x: nisa.activation(sbuf(128, 4), nl.exp, sbuf(128, 4), bias=sbuf(128, 4)),
        r"has to be a number or \[128, 1\]",
    ),
    (lambda x: nisa.tensor_tensor(sbuf(8, 4), psum(8, 4), psum(8, 4), nl.add), r"are both in PSUM; copy one of them to SBUF first"),
    (
        lambda x: nisa.tensor_tensor(sbuf(8, 4), sbuf(8, 4), sbuf(8, 4), nl.add, engine=nisa.scalar_engine),
        r"run on the scalar",
    ),
    (lambda x: nisa.iota(psum(8, 4), [[1, 4]]), r"in PSUM, which the gpsimd engine cannot reach"),
    (lambda x: nisa.iota(sbuf(8, 4), [[1, 5]]), r"the pattern has 5 elements"),
    (lambda x: nisa.tensor_reduce(sbuf(8, 1), nl.add, sbuf(8, 4), axis=0), r"axis 0 of .* is the partition dimension"),
    (lambda x: nisa.tensor_reduce(sbuf(8, 2), nl.add, sbuf(8, 4), axis=1), r"has to hold \[8, 1\]"),
    (lambda x: nisa.memset(sbuf(8, 4), sbuf(8, 4)), r"it has to be a number"),
    (lambda x: nisa.memset(sbuf(8, 4), "a"), r"value is str; it has to be a number"),
    (lambda x: nisa.bn_stats(sbuf(8, 6), sbuf(8, 513)), r"has 513 elements per partition; at most 512: split it"),
    (lambda x: nisa.tensor_copy(sbuf(8, 4).expand_dim(2).broadcast(2, 3), sbuf(8, 12)), r"is a broadcast and cannot be written"),
    (lambda x: nisa.nc_transpose(psum(64, 64), sbuf(64, 64), engine=nisa.vector_engine), r"larger than the \[32, 32\]"),
    (lambda x: nisa.nc_transpose(psum(64, 8, dtype="bfloat16"), sbuf(8, 64)), r"a transpose keeps float32"),
    (lambda x: nisa.tensor_copy(dst=sbuf(8, 4), src=3.0), r"src is float, not a tensor"),
    (
        lambda x: nisa.tensor_copy(sbuf(8, 4), sbuf(8, 4), mask=True),
        r"tensor_copy has no argument 'mask' in this generation",
    ),
    (lambda x: matmul(dst=sbuf(64, 32)), r"dst sbuf.* is in SBUF; the Tensor engine writes PSUM only"),
    (lambda x: matmul(moving=psum(128, 32)), r"moving psum.* is in PSUM; the Tensor engine reads SBUF only"),
    (lambda x: matmul(stationary=sbuf(128, 200)), r"has 200 columns; at most 128"),
    (lambda x: matmul(moving=sbuf(128, 600), dst=psum(64, 600)), r"has 600 columns; at most 512 on trn2"),
    (lambda x: matmul(moving=sbuf(64, 32)), r"has 128 partitions and moving .* has 64; both hold the contraction"),
    (lambda x: matmul(dst=psum(64, 31)), r"has to be \[64, 32\]"),
    (lambda x: matmul(dst=psum(64, 32, dtype="bfloat16")), r"matmuls accumulate in float32"),
    (lambda x: matmul(moving=sbuf(128, 32, dtype="bfloat16")), r"float32 goes with float32 or tfloat32 only"),
    (lambda x: matmul(moving=sbuf(128, 32, dtype="int32"), stationary=sbuf(128, 64, dtype="int32")), r"is int32; it can be"),
    (lambda x: nl.program_id(1), r"the kernel is launched with 0 grid dimensions"),
    (lambda x: nl.load(sbuf(8, 4)), r"load reads HBM"),
    (lambda x: nl.store(sbuf(8, 4), sbuf(8, 4)), r"store writes HBM"),
    (lambda x: nl.load(x.reshape((8192, 1))), r"8192 rows for 128 partitions"),
    (lambda x: nl.add(1.0, 2.0), r"works on tiles"),
    (lambda x: nl.add(sbuf(8, 4), sbuf(16, 4)), r"nki.language.add"),
    (lambda x: nl.average(sbuf(8, 4)), r"is an operation for op="),
]


@pytest.mark.parametrize(("body", "message"), CURRENT, ids=[str(i) for i in range(len(CURRENT))])
def test_current_generation(body: Callable[[Any], Any], message: str) -> None:
    @nki.jit
    def kernel(x):
        body(x)

    with pytest.raises(EmulatorError, match=message) as caught:
        run(kernel, X)
    text = str(caught.value)
    assert text.startswith(f"{Path(__file__)}:") and "\n" not in text


LEGACY: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x.__setitem__(Ellipsis, onl.load(x)), r"x is in HBM and cannot be assigned; use nl.store"),
    (lambda x: onl.load(x).__setitem__(Ellipsis, "a"), r"a tile can be assigned a tile or a number, not str"),
    (lambda x: oisa.nc_matmul(onl.load(x), x), r"moving x is in HBM; the Tensor engine reads SBUF only"),
    (lambda x: oisa.iota(3, onl.int32), r"nki.isa.iota of an expression that is not affine is not emulated"),
    (lambda x: onl.load(x[onl.arange(128)[:, None] * 2, onl.arange(64)[None, :]]), r"index 254 is outside a dimension of 128"),
    (lambda x: onl.load(x)[onl.arange(128)[:, None] % 7, 0], r"an expression that is not affine is not emulated"),
    (lambda x: onl.max(onl.load(x), axis=0), r"axis 0 of .* is the partition dimension"),
]


@pytest.mark.parametrize(("body", "message"), LEGACY, ids=[str(i) for i in range(len(LEGACY))])
def test_first_generation(body: Callable[[Any], Any], message: str) -> None:
    @old.jit
    def kernel(x):
        body(x)

    with pytest.raises(EmulatorError, match=message) as caught:
        run(kernel, X)
    assert str(caught.value).startswith(f"{Path(__file__)}:")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (lambda x: nisa.quantize_mx(dst=x, src=x, dst_scale=x), "nki.isa.quantize_mx"),
        (lambda x: nisa.sendrecv(x, x, 0, 1, 0), "nki.isa.sendrecv"),
        (lambda x: oisa.tensor_copy_dynamic_dst(dst=x, src=x), "neuronxcc.nki.isa.tensor_copy_dynamic_dst"),
        (lambda x: nisa.rand_get_state(x), "nki.isa.rand_get_state"),
        (lambda x: nki.collectives.all_reduce([x], [x]), "nki.collectives.all_reduce"),
        (lambda x: nisa.some_enum.value, "nki.isa.some_enum"),
        (lambda x: nisa.nc_matmul(psum(4, 4), sbuf(8, 4), sbuf(8, 4), perf_mode=nisa.matmul_perf_mode.double_row), "perf_mode"),
        (lambda x: nisa.tensor_tensor(sbuf(8, 4), sbuf(8, 4), sbuf(8, 4), op=nl.topsy), "nki.language.topsy"),
    ],
)
def test_a_call_that_we_do_not_have_is_named(body: Callable[[Any], Any], name: str) -> None:
    @nki.jit
    def kernel(x):
        body(x)

    with pytest.raises(UnsupportedCall, match=rf"{name}.* (is not emulated yet|does not exist in NKI)") as caught:
        run(kernel, X)
    assert str(caught.value).startswith(f"{Path(__file__)}:")


def test_targets_differ_in_what_they_allow() -> None:
    @nki.jit
    def wide():
        nisa.nc_matmul(psum(64, 1024), sbuf(128, 64, dtype="bfloat16"), sbuf(128, 1024, dtype="bfloat16"))

    @nki.jit
    def copy_on_scalar():
        nisa.tensor_copy(sbuf(8, 4), sbuf(8, 4), engine=nisa.scalar_engine)

    run(wide, target="trn3")
    run(copy_on_scalar, target="trn2")
    with pytest.raises(RuleError, match="1024 columns; at most 512 on trn1"):
        run(wide, target="trn1")
    with pytest.raises(RuleError, match="trn1 has no tensor_copy"):
        run(copy_on_scalar, target="trn1")


@pytest.mark.parametrize(("target", "generation"), [("trn1", "gen2"), ("trn2", "gen3"), ("trn3", "gen4")])
def test_kernels_see_the_target(target: str, generation: str) -> None:
    seen = []

    @nki.jit
    def kernel():
        seen.append(nisa.get_nc_version())
        assert (nisa.get_nc_version() >= nisa.nc_version.gen3) == (target != "trn1")

    run(kernel, target=target)
    assert seen == [nisa.nc_version[generation]]


def test_sizes_that_kernels_ask_for_are_the_targets() -> None:
    assert (nl.tile_size.pmax, nl.tile_size.gemm_stationary_fmax, nl.tile_size.gemm_moving_fmax) == (128, 128, 512)
    assert all(
        isinstance(value, int) for value in (nl.tile_size.psum_fmax, nl.tile_size.sbuf_fmax_bytes, nl.tile_size.sbuf_size_bytes)
    )


def test_arguments_that_the_device_cannot_hold_are_refused() -> None:
    @nki.jit
    def kernel(x):
        pass

    with pytest.raises(RuleError, match="argument x is float64; the device has no 64-bit types, pass it as 32-bit"):
        run(kernel, np.zeros(3))
    with pytest.raises(RuleError, match="has no elements"):
        run(kernel, np.zeros((3, 0), np.float32))
    with pytest.raises(RuleError, match="missing a required argument: 'x'"):
        run(kernel)


def test_tiles_that_begin_where_engines_cannot_are_a_warning() -> None:
    @nki.jit
    def kernel():
        tile = sbuf(128, 4)
        nisa.memset(tile[32:64], 0.0)
        nisa.memset(tile[5:10], 0.0)
        nisa.memset(tile[32:96], 0.0)

    assert run(kernel).program.warnings == (
        "nki.isa.memset accesses 5 partitions from 5; engines begin at multiples of 32 for so many partitions",
        "nki.isa.memset accesses 64 partitions from 32; engines begin at multiples of 64 for so many partitions",
    )


def test_engines_are_the_kernels_choice_or_marked_as_ours() -> None:
    @nki.jit
    def kernel():
        tile = sbuf(8, 4)
        nisa.memset(tile, 0.0)
        nisa.memset(tile, 0.0, engine=nisa.gpsimd_engine)
        nisa.tensor_copy(tile, tile, engine=nisa.engine.scalar)
        nisa.activation(tile, nl.exp, tile)
        whole = sbuf(8, 4, dtype="int32")
        nisa.tensor_tensor(whole, whole, whole, nl.add)
        nisa.tensor_tensor(tile, tile, tile, nl.power)

    program = run(kernel).program
    assert [ENGINES[code] for code in program.engine] == ["vector", "gpsimd", "scalar", "scalar", "gpsimd", "gpsimd"]
    assert [bool(flags & InstructionFlag.ENGINE_CHOSEN) for flags in program.flags] == [True, False, False, False, False, False]
