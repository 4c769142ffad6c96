"""The import names are there while a kernel is loaded or run, and an installed package of that name is itself again afterwards."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from emulator.errors import UnsupportedCall
from emulator.nki import installed
from emulator.run import load_kernel, run_kernel
from tests.unit.nki_names import nisa, nki, nl, oisa, old, onl, run

IMPORTS = """
import neuronxcc.nki as nki1
from neuronxcc import nki as nki2
import nki as nki3
import nki.isa as nisa
import nki.language as nl
import nki.typing as nt
import neuronxcc.nki.typing as ont
from nki.isa.constants import dge_mode, oob_mode
from neuronxcc.nki.language import par_dim, bfloat16
from neuronxcc.nki.compiler.backends.neuron.dimensions import VNC
import neuronxcc.nki.compiler as ncc
import nki.collectives as ncl
from nki.isa import quantize_mx
buffer = ncc.sbuf.mod_alloc(base_addr=0)
accumulators = nki1.compiler.psum.mod_alloc(base_bank=0, num_bank_tiles=(1,))
"""


SLIP = "@nki3.jit\ndef entry(x):\n    "


def test_every_way_of_importing(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(
        IMPORTS + "@nki3.jit(mode='auto', debug_kernel=True)\n"
        "def entry(x: nt.tensor[128, 64], y: ont.mutable_tensor = None) -> nt.tensor:\n"
        "    t: nt.tensor[128, 64] = nl.load(x)\n    nl.store(x, nl.exp(t))\n    return x\n"
    )
    kernel = load_kernel(tmp_path / "kernel.py")
    x = np.zeros((128, 64), np.float32)
    np.testing.assert_array_equal(run_kernel(kernel, (x,)).outputs, np.ones((128, 64)))


def test_an_installed_package_is_shadowed_only_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = ModuleType("nki")
    monkeypatch.setitem(sys.modules, "nki", theirs)
    monkeypatch.setitem(sys.modules, "nki.own", ModuleType("nki.own"))
    with installed():
        assert importlib.import_module("nki") is not theirs and "nki.own" not in sys.modules
        with installed():
            pass
        assert importlib.import_module("nki").jit
    assert sys.modules["nki"] is theirs and "nki.own" in sys.modules and "nki.isa" not in sys.modules


def test_nothing_stays_installed() -> None:
    with installed():
        importlib.import_module("neuronxcc.nki.language")
    assert not [name for name in sys.modules if name.split(".")[0] in ("nki", "neuronxcc")]


def test_both_generations_in_one_file_keep_their_own_argument_order() -> None:
    @old.jit
    def first(x):
        out = onl.ndarray(x.shape, x.dtype, buffer=onl.shared_hbm)
        tile = onl.load(x)
        onl.store(out, oisa.tensor_copy(oisa.nc_matmul(tile, tile)))
        return out

    @nki.jit
    def second(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile, product, copied = (nl.ndarray((64, 64), nl.float32, buffer=b) for b in (nl.sbuf, nl.psum, nl.sbuf))
        nisa.dma_copy(tile, x)
        nisa.nc_matmul(product, tile, tile)
        nisa.tensor_copy(copied, product)
        nisa.dma_copy(out, copied)
        return out

    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    np.testing.assert_array_equal(run(first, x).outputs, run(second, x).outputs)


def test_a_kernel_of_one_generation_calls_one_of_the_other() -> None:
    @old.jit
    def double(tile):
        return tile[0:64, 3] + tile[0:64, 3]

    @nki.jit
    def entry(x):
        out = nl.ndarray((64, 1), x.dtype, buffer=nl.shared_hbm)
        result = double(nl.load(x))
        assert not result.legacy
        nl.store(out, result)
        return out

    x = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    np.testing.assert_array_equal(run(entry, x).outputs, 2 * x[:, 3:4])


def test_dtypes_compare_hash_and_print() -> None:
    assert nl.bfloat16 == onl.bfloat16 and str(nl.bfloat16) == "bfloat16"
    assert {nl.float32: 1}[np.dtype(np.float32)] == 1
    assert nl.sbuf == onl.sbuf and nl.sbuf != nl.psum and nl.sbuf == "sbuf"


@pytest.mark.parametrize("op", [nl.add, onl.add, np.add, "add"])
def test_operations_have_many_spellings(op) -> None:
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        nisa.tensor_tensor(tile, tile, tile, op)
        nl.store(x, tile)
        return x

    np.testing.assert_array_equal(run(kernel, np.ones((4, 4), np.float32)).outputs, 2)


def test_decorators_wrap_functions_and_kernels() -> None:
    def plain(x):
        nl.store(x, nl.exp(nl.load(x)))
        return x

    for decorated in (nki.simulate(plain), nki.simulate(nki.jit(plain)), old.baremetal()(plain), old.baremetal(old.jit(plain))):
        np.testing.assert_array_equal(decorated(np.zeros((4, 4), np.float32)), 1)
        assert decorated.__name__ == "plain"
    np.testing.assert_array_equal(old.simulate_kernel(plain, np.zeros((4, 4), np.float32)), 1)
    timed = old.benchmark(warmup=1, iters=2)(plain)
    np.testing.assert_array_equal(timed(np.zeros((4, 4), np.float32)), 1)
    with pytest.raises(Exception, match="benchmark_result is not emulated; capture the kernel"):
        _ = timed.benchmark_result


class Plain(nl.NKIObject):
    size: int
    unannotated = 4
    tiles = []  # noqa: RUF012 - kernels write this


@dataclass(frozen=True)
class Frozen(nl.NKIObject):
    first = 1
    second: int = 2


@dataclass
class Decorated(nl.NKIObject):
    only = None


class Custom(nl.NKIObject):
    limit = 3

    def __init__(self, size):
        self.size = size * 2


def test_kernel_classes_take_every_attribute_as_a_field() -> None:
    one, two = Plain(size=3), Plain(1, unannotated=9)
    one.tiles.append(1)
    assert (one.unannotated, two.unannotated, two.tiles) == (4, 9, [])
    assert replace(Frozen(first=5), second=6) == Frozen(5, 6)
    with pytest.raises(AttributeError):
        Frozen().first = 3
    assert Decorated(only=[1]).only == [1]
    assert (Custom(2).size, Custom.limit) == (4, 3)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("nisa.tensor_cpy(x, x)", "nki.isa.tensor_cpy does not exist in NKI; did you mean nki.isa.tensor_copy?"),
        ("nisa.engine_.vector", "nki.isa.engine_ does not exist in NKI; did you mean nki.isa.engine?"),
        ("nl.nd_array((1, 1), x.dtype)", "nki.language.nd_array does not exist in NKI; did you mean nki.language.ndarray?"),
        ("onl.lod(x)", "neuronxcc.nki.language.lod does not exist in NKI; did you mean neuronxcc.nki.language.load?"),
        ("nl.arange(4)", "nki.language.arange does not exist in NKI; only neuronxcc.nki.language has it"),
        ("oisa.topk(x)", "neuronxcc.nki.isa.topk does not exist in NKI; only nki.isa has it"),
        ("nisa.xyzzy(x)", "nki.isa.xyzzy does not exist in NKI; look its name up in the API"),
        ("old.kernels.flash_fwd(x)", "neuronxcc.nki.kernels is not emulated yet"),
        ("nisa.topk(x)", "nki.isa.topk is not emulated yet"),
        ("onl.atomic_rmw(x, x, onl.add)", "neuronxcc.nki.language.atomic_rmw is not emulated yet"),
        ("ncl.all_gather([x], [x], 0, 0)", "nki.collectives.all_gather is not emulated yet"),
        (
            "ncl.al_gather([x], [x], 0, 0)",
            "nki.collectives.al_gather does not exist in NKI; did you mean nki.collectives.all_gather?",
        ),
    ],
)
def test_a_slip_is_told_from_what_is_not_emulated(use: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(
        IMPORTS + "import neuronxcc.nki.isa as oisa\nfrom neuronxcc import nki as old\nonl = old.language\n" + SLIP + use
    )
    with pytest.raises(UnsupportedCall) as raised:
        run_kernel(load_kernel(tmp_path / "kernel.py"), (np.zeros((4, 4), np.float32),))
    line = (tmp_path / "kernel.py").read_text().count("\n") + 1
    assert str(raised.value) == f"{tmp_path / 'kernel.py'}:{line}: {said}"
