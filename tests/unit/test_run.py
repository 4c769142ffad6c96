"""Loading kernels from files: which one, what it may import, and one line for what is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from emulator.errors import EmulatorError, KernelError, KernelLoadError
from emulator.opcodes import opcodes, track
from emulator.program import ENGINES
from emulator.run import load_kernel, run_kernel
from emulator.targets.instructions import load_classes

HEAD = "import nki\nimport nki.language as nl\n"
ONE = "@nki.jit\ndef one(x):\n    nl.store(x, nl.exp(nl.load(x)))\n    return x\n"
TWO = "@nki.jit\ndef two(x):\n    return one(x)\n\ndef helper(x):\n    return two(x)\n"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(text)
    return path


def test_the_only_kernel_needs_no_name(tmp_path: Path) -> None:
    kernel = load_kernel(write(tmp_path, HEAD + ONE))
    assert kernel.__name__ == "one"
    np.testing.assert_array_equal(run_kernel(kernel, (np.zeros((2, 2), np.float32),)).outputs, 1)


def test_a_name_chooses_kernels_and_functions(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + ONE + TWO)
    for name in ("one", "two", "helper"):
        np.testing.assert_array_equal(run_kernel(load_kernel(path, name), (np.zeros((2, 2), np.float32),)).outputs, 1)


def test_files_beside_the_kernel_can_be_imported_and_do_not_stay(tmp_path: Path) -> None:
    for folder, value in (("a", 1.0), ("b", 2.0)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sibling.py").write_text(f"VALUE = {value}\n")
        text = HEAD + "import sibling\n@nki.jit\ndef k(x):\n    import sibling as late\n    assert late.VALUE == sibling.VALUE\n"
        (tmp_path / folder / "kernel.py").write_text(text + "    nl.store(x, nl.load(x) + sibling.VALUE)\n    return x\n")
    path_before = list(sys.path)
    for folder, value in (("a", 1.0), ("b", 2.0)):
        kernel = load_kernel(tmp_path / folder / "kernel.py")
        np.testing.assert_array_equal(run_kernel(kernel, (np.zeros((2, 2), np.float32),)).outputs, value)
    assert sys.path == path_before and "sibling" not in sys.modules and "kernel" not in sys.modules


PACKAGE = (
    HEAD
    + "from .. import scale\nfrom .near import exponentiate\n\n"
    + ("@nki.jit\ndef one(x):\n    nl.store(x, exponentiate(nl.load(x)))\n    return x, scale.FACTOR\n")
)
NEAR = "import nki.language as nl\n\n\ndef exponentiate(tile):\n    return nl.exp(tile)\n"


def test_a_kernel_may_import_relative_to_its_package(tmp_path: Path) -> None:
    folder = tmp_path / "outer_kernels" / "inner"
    folder.mkdir(parents=True)
    path = write(folder, PACKAGE)
    (folder / "near.py").write_text(NEAR)
    (folder.parent / "scale.py").write_text("FACTOR = 3\n")
    with pytest.raises(KernelLoadError, match=r"no __init__\.py"):
        load_kernel(path)
    for package in (folder, folder.parent):
        (package / "__init__.py").write_text("")
    before = set(sys.modules)
    run = run_kernel(load_kernel(path), (np.zeros((2, 2), np.float32),))
    np.testing.assert_array_equal(run.outputs[0], 1)
    assert run.outputs[1] == 3
    assert {frame.file for stack in run.program.stacks for frame in stack} == {str(path), str(folder / "near.py")}
    assert not {n for n in set(sys.modules) - before if n.startswith("outer_kernels")}, "a next kernel finds its own package"


def test_a_package_named_like_a_module_in_use_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "numpy"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    with pytest.raises(KernelLoadError, match="rename the folder"):
        load_kernel(write(folder, "from . import other\n" + HEAD + ONE))


def test_packages_below_the_folder_that_were_installed_there_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / ".venv" / "site-packages"
    (packages / "library").mkdir(parents=True)
    (packages / "library" / "__init__.py").write_text("")
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "__init__.py").write_text("from beside import part\n")
    (tmp_path / "beside" / "part.py").write_text("")
    monkeypatch.syspath_prepend(str(packages))
    load_kernel(write(tmp_path, HEAD + "import library, beside.part\n" + ONE))
    assert "library" in sys.modules and not [name for name in sys.modules if name.split(".")[0] == "beside"]
    del sys.modules["library"]


def test_a_kernel_file_does_not_stand_in_for_a_module_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "random.py"
    path.write_text(HEAD + "import random\nassert hasattr(random, 'Random')\n" + ONE)
    assert load_kernel(path).__name__ == "one"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (HEAD, None, r"kernel.py: no function is decorated with @nki.jit; name one as .*kernel.py:function"),
        (HEAD + ONE + TWO, None, r"several kernels; name one as .*kernel.py:NAME with NAME one of one, two"),
        (HEAD + ONE, "three", r"has no kernel 'three'; kernels there: one"),
        (HEAD + "x = 3\n", "x", r"has no kernel 'x'; kernels there: none"),
        ("import not_there_at_all\n", None, r"needs the module 'not_there_at_all', which is not installed here"),
        ("import nki.unheard_of\n", None, r"needs the module 'nki.unheard_of'"),
        ("def broken(:\n", None, r"kernel.py:1: invalid syntax; correct the file"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path: Path, text: str, name: str | None, message: str) -> None:
    with pytest.raises(KernelLoadError, match=message) as caught:
        load_kernel(write(tmp_path, text), name)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelLoadError, match=r"nothing.py: no such file; give the path of a Python file with an NKI kernel"):
        load_kernel(tmp_path / "nothing.py")


def test_a_file_that_raises_when_imported_shows_its_own_traceback(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"importing it raised ZeroDivisionError at .*kernel.py:2") as caught:
        load_kernel(write(tmp_path, "import nki\n1 / 0\n"))
    assert caught.value.traceback.count("File ") == 1 and "importlib" not in caught.value.traceback


@pytest.mark.parametrize("leave", ["import sys; sys.exit(0)", "raise SystemExit('done')", "raise BaseException('odd')"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_kernel_that_leaves_the_program_has_raised(leave: str, inside: bool, tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + ONE + f"@nki.jit\ndef leaves(x):\n    {leave}\n" + ("" if inside else f"{leave}\n"))
    with pytest.raises(KernelError, match=r"kernel\.py:\d+"):
        run_kernel(load_kernel(path, "leaves"), (np.zeros((2, 2), np.float32),))


@pytest.mark.parametrize("inside", [True, False])
def test_an_interrupt_stays_one(inside: bool, tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + "@nki.jit\ndef k(x):\n" + ("    " if inside else "    return x\n") + "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        run_kernel(load_kernel(path), (np.zeros((2, 2), np.float32),))


def test_a_second_name_of_a_kernel_is_no_second_kernel(tmp_path: Path) -> None:
    assert load_kernel(write(tmp_path, HEAD + ONE + "also = one\n")).__name__ == "one"
    with pytest.raises(KernelLoadError, match="several kernels"):
        load_kernel(write(tmp_path, HEAD + ONE + "gridded = one[2]\n"))


def test_a_launch_that_the_caller_got_wrong_names_no_file_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match=r"^the launch grid \[4\] is not possible"):
        run_kernel(load_kernel(write(tmp_path, HEAD + ONE)), (np.zeros((2, 2), np.float32),), grid=4)
    launches = "def go(x):\n    return one[4](x)\n"
    with pytest.raises(EmulatorError, match=r"kernel\.py:\d+: the launch grid \[4\] is not possible"):
        run_kernel(load_kernel(write(tmp_path, HEAD + ONE + launches), "go"), (np.zeros((2, 2), np.float32),))


def test_language_calls_outside_a_kernel_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match=r"kernel.py:3: nl.ndarray works only inside a kernel that is being run"):
        load_kernel(write(tmp_path, HEAD + "t = nl.ndarray((2, 2), nl.float32)\n"))


def test_every_call_of_the_opcode_table_is_complete() -> None:
    classes = load_classes()
    for entry in opcodes().values():
        assert entry.opcode == entry.opcode.upper() and entry.engines and set(entry.engines) <= set(ENGINES)
        assert entry.source in ("profile", "glossary", "nki.isa")
        assert entry.cost_class in classes, entry.call
    assert track("MATMUL", "tensor") == "TensorMatrix" and track("LDWEIGHTS", "tensor") == "Tensor"
    assert track("IOTA", "gpsimd") == "GpSimd" and track("ACTIVATE", "scalar") == "Scalar"
