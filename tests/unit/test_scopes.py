"""Named scopes in kernels become levels of the layer path; outside kernels they do nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator import targets
from emulator.errors import EmulatorError
from emulator.nki import installed
from emulator.run import run_kernel
from emulator.scopes import scope
from emulator.simulate import simulate

with installed():
    import nki
    import nki.isa as nisa
    import nki.language as nl


def store(out: Any, tile: Any) -> None:
    nisa.dma_copy(dst=out, src=tile)


@nki.jit
def scoped(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    with scope("load"):
        nisa.dma_copy(dst=tile, src=x)
    with scope("outer"):
        with scope("inner"):
            nisa.memset(dst=tile, value=1.0)
        store(out, tile)
    return out


def test_scopes_are_levels_of_the_layer(tmp_path: Any) -> None:
    from collectors.nki import capture

    program = run_kernel(scoped, [np.zeros((128, 4), np.float32)]).program
    target = targets.load("trn2")
    tables = capture(program, simulate(program, target), target, source_root=tmp_path).tables
    assert tables["Instruction"]["layer"].to_pylist() == ["/scoped/load", "/scoped/outer/inner", "/scoped/outer/store"]
    assert set(tables["FrameworkNode"]["node_name"].to_pylist()) >= {"scoped", "load", "outer", "inner", "store"}


def test_a_scope_ends_with_its_block_even_if_that_raises() -> None:
    @nki.jit
    def kernel(x):
        tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        try:
            with scope("gone"):
                raise KeyError
        except KeyError:
            nisa.memset(dst=tile, value=0.0)
        return x

    program = run_kernel(kernel, [np.zeros((128, 4), np.float32)]).program
    assert program.scope.tolist() == [-1]


def test_outside_kernels_and_with_bad_names() -> None:
    with scope("anything"):
        pass
    for name in ("", "a/b"):
        with pytest.raises(ValueError, match="scope"), scope(name):
            pass


def test_a_tile_is_no_condition() -> None:
    @nki.jit
    def kernel(x):
        tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        if tile[0, 0]:
            nisa.memset(dst=tile, value=0.0)
        return x

    with pytest.raises(EmulatorError, match="as a condition"):
        run_kernel(kernel, [np.zeros((128, 4), np.float32)])
