"""Prices of single instructions against the formulas and measurements that they come from."""

from __future__ import annotations

import pytest

from emulator import targets
from emulator.costs import UnknownCostClass, price
from emulator.program import InstructionFlag, Space
from tests.programs import Builder

TRN1, TRN2, TRN3 = (targets.load(name) for name in targets.NAMES)


def vector_issue(
    cost_class: str, target: targets.Target, *dtypes: str, n: int = 1000, psum: str = "", flags: int = 0, **detail: str
) -> float:
    """Cycles of the engine without its fixed overhead; `psum` has a p for each operand that lies there (result first)."""
    b = Builder(target.name)
    spaces = [Space.PSUM if letter == "p" else Space.SBUF for letter in psum.ljust(len(dtypes), "-")]
    tiles = [b.tile(128, n, dtype, space) for dtype, space in zip(dtypes, spaces, strict=True)]
    b.op("vector", cost_class, *tiles, flags=flags, **detail)
    return float(price(b.program(), target).issue[0]) - target.vector.overhead


F, H = "float32", "bfloat16"


@pytest.mark.parametrize(
    ("cost_class", "dtypes", "psum", "cycles"),
    [
        # (trn1, trn2) cycles for N = 1000
        ("tensor_tensor", (F, F, F), "", (2000, 2000)),
        ("tensor_tensor", (F, F, F), "-p-", (1000, 1000)),
        ("tensor_tensor", (H, H, H), "", (1000, 1000)),
        ("tensor_tensor", (F, H, H), "", (2000, 2000)),
        ("tensor_copy", (H, H), "", (1000, 250)),
        ("tensor_copy", (F, F), "", (1000, 1000)),
        ("tensor_copy", (H, H), "-p", (1000, 500)),
        ("tensor_copy", (H, F), "-p", (1000, 1000)),
        ("tensor_scalar", (H, H), "", (1000, 250)),
        ("scalar_tensor_tensor", (F, F, F), "", (2000, 2000)),
        ("tensor_tensor_scan", (F, F, F), "", (2000, 2000)),
        ("tensor_reduce", (F, F), "", (1000, 1000)),
        ("tensor_copy_predicated", (F, F, F), "", (2000, 2000)),
        ("reciprocal", (F, F), "", (8000, 8000)),
        ("bn_stats", (F, F), "", (1000, 1000)),
        ("memset", (F,), "", (1000, 1000)),
    ],
)
def test_vector_formulas(cost_class: str, dtypes: tuple[str, ...], psum: str, cycles: tuple[float, float]) -> None:
    found = tuple(vector_issue(cost_class, target, *dtypes, psum=psum, op="add") for target in (TRN1, TRN2))
    assert found == pytest.approx(cycles)


def test_operations_decide_where_the_formula_names_them() -> None:
    assert vector_issue("tensor_tensor", TRN1, H, H, H, op="maximum") == 2000
    assert vector_issue("tensor_tensor", TRN2, H, H, H, op="maximum") == 1000
    assert vector_issue("scalar_tensor_tensor", TRN1, H, H, H, op0="subtract", op1="multiply") == 1000
    assert vector_issue("scalar_tensor_tensor", TRN1, H, H, H, op0="add", op1="multiply") == 2000
    assert vector_issue("tensor_reduce", TRN1, H, H, op="add") == 500
    assert vector_issue("tensor_reduce", TRN1, H, H, op="multiply") == 1000
    assert vector_issue("memset", TRN1, H, flags=int(InstructionFlag.ZERO_FILL)) == 500


def test_strides_take_the_fast_modes_away() -> None:
    b = Builder("trn2")
    to, source = b.tile(128, 1000), b.tile(128, 2000)
    tensor, access, dtype, first, partitions, offset, _, _ = source(1)
    b.recorder.emit("C", "vector", "tensor_copy", [to(2), (tensor, access, dtype, first, partitions, offset, (1000,), (4,))], 1000)
    assert price(b.program(), TRN2).issue[0] - TRN2.vector.overhead == 500


def test_short_instructions_cost_the_least_interval_and_dynamic_ones_theirs() -> None:
    assert vector_issue("tensor_copy", TRN1, F, F, n=4) == 64
    assert vector_issue("tensor_copy", TRN1, F, F, n=4, flags=int(InstructionFlag.DYNAMIC)) == 600
    assert vector_issue("tensor_scalar_reduce", TRN1, F, F, flags=int(InstructionFlag.READ_ACCUMULATOR)) == 1064


def test_gpsimd_starts_slowly() -> None:
    b = Builder("trn1")
    b.op("gpsimd", "iota", b.tile(128, 300, F))
    assert price(b.program(), TRN1).issue[0] == 450


@pytest.mark.parametrize("n", [40, 128, 136, 512])
def test_tensor_engine_streams_the_moving_columns(n: int) -> None:
    b = Builder("trn1")
    b.matmul(b.psum(columns=n), b.tile(128, 128), b.tile(128, n))
    costs = price(b.program(), TRN1)
    assert costs.issue[1] - TRN1.tensor.matmul_overhead == max(n, 64)
    assert costs.latency[1] - TRN1.tensor.matmul_latency == n
    # 128 columns at four a cycle
    assert costs.issue[0] - TRN1.tensor.load_overhead == 32
    assert costs.latency[0] == TRN1.tensor.load_latency


def test_fp32_takes_four_passes_in_two_instructions() -> None:
    b = Builder("trn2")
    b.matmul(b.psum(), b.tile(128, 128, F), b.tile(128, 512, F))
    costs = price(b.program(), TRN2)
    assert (costs.issue[[1, 3]] - TRN2.tensor.matmul_overhead).tolist() == [1024, 1024]


@pytest.mark.parametrize(("target", "cycles"), [(TRN1, 256), (TRN2, 128)])
def test_fp32_transposes_are_twice_as_fast_from_trn2_on(target: targets.Target, cycles: int) -> None:
    b = Builder(target.name)
    flags = int(InstructionFlag.TRANSPOSE)
    b.op("tensor", "transpose", b.tile(128, 128, F, Space.PSUM), b.tile(128, 128, F), flags=flags)
    assert price(b.program(), target).issue[0] - target.tensor.matmul_overhead == cycles


def test_a_function_pays_for_its_table_once() -> None:
    b = Builder("trn1")
    for function in ("exp", "exp", "copy", "exp", "tanh", "exp"):
        b.op("scalar", "activation", b.tile(128, 512, F), b.tile(128, 512, F), function=function)
    plain = 512 + TRN1.scalar.overhead
    load = TRN1.scalar.table_load * TRN1.scalar.clock
    assert price(b.program(), TRN1).issue.tolist() == pytest.approx([plain + load, plain, plain, plain, plain + load, plain + load])


def test_the_scalar_engine_doubles_for_16_bit_copies_on_trn3_only() -> None:
    found = []
    for target in (TRN2, TRN3):
        b = Builder(target.name)
        b.op("scalar", "tensor_copy", b.tile(128, 1000), b.tile(128, 1000))
        found.append(price(b.program(), target).issue[0] - target.scalar.overhead)
    assert found == [1000, 500]


def test_an_instruction_without_a_price_is_an_error() -> None:
    b = Builder("trn2")
    b.op("vector", "telepathy", b.tile(128, 8), b.tile(128, 8))
    with pytest.raises(UnknownCostClass, match=r"cost class 'telepathy' is not in instructions.toml"):
        price(b.program(), TRN2)
