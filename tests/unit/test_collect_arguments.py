"""Kernel arguments as one types them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from collectors.nki import arguments
from collectors.nki.run import split
from explorer.store.errors import ProfileError, UsageError


def value(text: str, **options: Any) -> Any:
    name = text.partition("=")[0]
    return arguments.parse([text], seed=options.get("seed", 0), values=options.get("values", True))[name].value


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("x=f32[128,512]", np.float32, (128, 512)),
        ("x=bf16[128, 512]", ml_dtypes.bfloat16, (128, 512)),
        ("x=f16[3]", np.float16, (3,)),
        ("x=f8e4[2,2]", ml_dtypes.float8_e4m3, (2, 2)),
        ("x=f8e5[2,2]", ml_dtypes.float8_e5m2, (2, 2)),
        ("x=i32[4]", np.int32, (4,)),
        ("x=u8[4]", np.uint8, (4,)),
        ("x=bool[4]", np.bool_, (4,)),
        ("x=f32[]", np.float32, ()),
    ],
)
def test_an_array_is_named_by_type_and_shape(text: str, dtype: Any, shape: tuple[int, ...]) -> None:
    array = value(text)
    assert (array.dtype, array.shape) == (np.dtype(dtype), shape)
    if array.size > 100:
        numbers = array.astype(np.float64)
        assert abs(numbers.mean()) < 0.05 and abs(numbers.std() - 1) < 0.05


def test_arrays_come_from_the_seed_and_the_name_in_any_order() -> None:
    one = arguments.parse(["a=f32[64]", "b=f32[64]"], seed=7, values=True)
    other = arguments.parse(["b=f32[64]", "a=f32[64]"], seed=7, values=True)
    for name in ("a", "b"):
        assert np.array_equal(one[name].value, other[name].value)
    assert not np.array_equal(one["a"].value, one["b"].value)
    assert not np.array_equal(one["a"].value, value("a=f32[64]", seed=8))
    integers = value("i=i32[1000]")
    assert integers.min() == 0 and integers.max() == 15


def test_without_values_arrays_are_zeros() -> None:
    given = arguments.parse(["x=f32[64]"], seed=0, values=False)["x"]
    assert not given.value.any() and not given.random


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n=4", 4),
        ("n=-1.5", -1.5),
        ("n=True", True),
        ("n=None", None),
        ("n=(2, 3)", (2, 3)),
        ("n=gelu", "gelu"),
        ("n='4'", "4"),
        ("n=", ""),
    ],
)
def test_other_values_are_python_literals_or_text(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected and type(found) is type(expected)


def test_an_array_can_come_from_a_file(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    given = arguments.parse([f"x=@{tmp_path}/x.npy"], seed=0, values=True)["x"]
    assert np.array_equal(given.value, array)
    assert given.text == "float32[2,3]" and not given.random


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["x"], "not NAME=VALUE"),
        (["=4"], "not NAME=VALUE"),
        (["a b=4"], "not NAME=VALUE"),
        (["x=1", "x=2"], "given twice"),
        (["x=f12[4]"], "unknown element type 'f12'"),
        (["x=f32[4 4]"], "not integers"),
        (["x=f32[0,4]"], "without elements"),
        (["x=f32[1000000,1000000]"], "more than any device"),
    ],
)
def test_what_is_no_argument_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        arguments.parse(texts, seed=0, values=True)


def test_files_that_hold_no_array_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.savez(tmp_path / "two.npz", a=np.zeros(2), b=np.zeros(2))
    np.save(tmp_path / "object.npy", np.array([{}], object))
    np.save(tmp_path / "bf16.npy", np.zeros(4, ml_dtypes.bfloat16))
    for name in ("none.npy", "text.npy", "empty.npy", "two.npz", "object.npy", "bf16.npy"):
        with pytest.raises(ProfileError, match=name) as caught:
            arguments.parse([f"x=@{tmp_path / name}"], seed=0, values=True)
        assert "\n" not in str(caught.value)


def _kernel(x: Any, y: Any, n: int = 2) -> None:
    """Stands for a kernel."""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["x=f32[2]"], r"kernel\(x, y, n=2\) needs y; for example --arg y=bf16\[128,512\]"),
        ([], r"needs x, y; for example --arg x="),
        (["x=f32[2]", "y=f32[2]", "z=1"], r"kernel\(x, y, n=2\) has no parameter z"),
    ],
)
def test_arguments_that_do_not_fit_name_the_parameters(given: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        arguments.check(_kernel, "kernel", arguments.parse(given, seed=0, values=True))


def test_arguments_that_fit_pass() -> None:
    arguments.check(_kernel, "kernel", arguments.parse(["x=f32[2]", "y=f32[2]"], seed=0, values=True))
    arguments.check(lambda **options: None, "kernel", arguments.parse(["x=1"], seed=0, values=True))


@pytest.mark.parametrize(
    ("text", "file", "function"),
    [("k.py", "k.py", None), ("k.py:f", "k.py", "f"), ("a/k.py:f", "a/k.py", "f"), ("odd:name.py", "odd:name.py", None)],
)
def test_a_kernel_is_a_file_and_maybe_a_function(text: str, file: str, function: str | None) -> None:
    assert split(text) == (Path(file), function)
