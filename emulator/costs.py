"""How long each instruction of a program keeps its engine, and how long it takes: cycles, vectorised by cost class.

Issue is what passes until the engine can begin the next instruction (the N formulas that AWS published), latency what passes
until the result is there. `docs/clock.md` has the rules and what each was checked against. Throttling and contention between
engines for ports are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from emulator.errors import EmulatorError
from emulator.program import ENGINES, Access, InstructionFlag, Int, Program, Space
from emulator.targets import Target
from emulator.targets.instructions import CostClass

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Parts of the Tensor engine: LDWEIGHTS fill the weights that the next MATMUL uses while the current one runs.
UNIT_PLAIN: Final = 0
UNIT_LOAD: Final = 1
UNIT_MATMUL: Final = 2

#: Functions taken to be in every table (which functions share one is not published; each other one has its own).
COMMON_FUNCTIONS: Final = ("copy", "identity", "square", "relu", "abs", "sign")

_TENSOR, _VECTOR, _SCALAR, _GPSIMD, _SYNC = range(len(ENGINES))


class UnknownCostClass(EmulatorError):
    """An instruction belongs to a cost class that the target's data does not price."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Per instruction: cycles of its engine until the next can begin, and until its result is there; the unit it occupies."""

    issue: Float
    latency: Float
    unit: NDArray[np.int8]
    is_dma: Mask


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the operands of each instruction look like, for the rules that depend on type, memory and stride."""

    #: All operands of full size are bf16 or fp16.
    all_16bit: Mask
    #: Any input is fp32.
    fp32_input: Mask
    #: Full-size operands in PSUM, and full-size inputs in PSUM and in SBUF.
    in_psum: Int
    psum_inputs: Int
    sbuf_inputs: Int
    #: Innermost dimensions of all full-size operands have neighbouring elements.
    contiguous: Mask


def _per_row(values: Mask, row: Int, n: int) -> Int:
    return np.bincount(row[values], minlength=n)


def _shapes(program: Program) -> _Shape:
    n = len(program)
    operands = program.operands
    row = np.repeat(np.arange(n), np.diff(operands.ptr))
    space = np.array([int(tensor.space) for tensor in program.tensors] or [0])[operands.tensor]
    elements = np.prod(operands.size, axis=1)
    # A [P, 1] scalar operand streams nothing, whatever its type.
    full = (elements > 1) | (program.n[row] <= 1)
    names = program.dtypes
    half = np.array([name in ("bfloat16", "float16") for name in names] or [False])[operands.dtype]
    single = np.array([name == "float32" for name in names] or [False])[operands.dtype]
    last = operands.size.shape[1] - 1 - np.argmax(operands.size[:, ::-1] > 1, axis=1)
    step = np.abs(np.take_along_axis(operands.stride, last[:, None], axis=1)[:, 0])
    strided = (elements > 1) & (step != operands.itemsize)
    reads = (operands.access & Access.READ) != 0
    return _Shape(
        all_16bit=_per_row(full & ~half, row, n) == 0,
        fp32_input=_per_row(reads & single, row, n) > 0,
        in_psum=_per_row(full & (space == Space.PSUM), row, n),
        psum_inputs=_per_row(full & reads & (space == Space.PSUM), row, n),
        sbuf_inputs=_per_row(full & reads & (space == Space.SBUF), row, n),
        contiguous=_per_row(full & strided, row, n) == 0,
    )


def _operations(program: Program, allowed: frozenset[str]) -> Mask:
    """Whether the operations that the detail names are all among `allowed`."""
    known = [all(value in allowed for key, value in detail if key in ("op", "op0", "op1")) for detail in program.details]
    return np.array([*known, False])[program.detail]


def _speed(cost: CostClass, program: Program, shape: _Shape, target: Target) -> Float:
    """How many times faster than one element per cycle each row of class `cost` runs."""
    speed = np.ones(len(program))
    vector = program.engine == _VECTOR
    half, even = shape.all_16bit, shape.contiguous
    match cost.fast:
        case "copy":
            if target.vector.fast_modes:
                speed[vector & half & (even | (shape.in_psum == 0))] = 2.0
                speed[vector & half & even & (shape.in_psum == 0)] = 4.0
                speed[vector & half & (shape.in_psum > 1)] = 1.0
            if target.scalar.fast_16bit:
                speed[(program.engine == _SCALAR) & half] = 2.0
        case "tensor_tensor":
            fast = vector & half & (shape.in_psum == 0)
            if not target.vector.fast_modes:
                fast &= even & _operations(program, frozenset(("add", "multiply", "subtract")))
            speed[fast] = 2.0
        case "scalar_tensor_tensor":
            speed[vector & half & (program.n % 2 == 0) & _operations(program, frozenset(("subtract", "multiply")))] = 2.0
        case "reduce":
            speed[vector & half & _operations(program, frozenset(("add", "max", "maximum")))] = 2.0
        case "memset":
            speed[vector & half & ((program.flags & InstructionFlag.ZERO_FILL) != 0)] = 2.0
    return speed


def _table_loads(program: Program, target: Target) -> Mask:
    """The activations whose function is not in the table that the Scalar engine of their core holds: they load one first."""
    common = frozenset(COMMON_FUNCTIONS)
    names = [dict(detail).get("function", "") for detail in program.details] + [""]
    of_class = np.array([target.cost_classes[name].function_table for name in program.cost_classes])[program.cost_class]
    loads = np.zeros(len(program), dtype=np.bool_)
    held: dict[int, str] = {}
    for row in np.flatnonzero(of_class):
        name, core = names[program.detail[row]], int(program.core[row])
        if core not in held or (name not in common and name != held[core]):
            loads[row] = True
            held[core] = name
    return loads


def _stream(cost: CostClass, program: Program, shape: _Shape, target: Target) -> tuple[Float, Float]:
    elements = program.n * cost.per_element
    if cost.two_inputs:
        elements = np.where((shape.sbuf_inputs > 1) | (shape.psum_inputs > 1), 2.0 * elements, elements)
    elements = elements / _speed(cost, program, shape, target)
    least = np.array([0.0, target.vector.issue_min, target.scalar.issue_min, 0.0, 0.0])[program.engine]
    start = np.array([0.0, 0.0, 0.0, target.gpsimd.start, 0.0])[program.engine]
    overhead = np.array([0.0, target.vector.overhead, target.scalar.overhead, target.gpsimd.overhead, 0.0])[program.engine]
    fixed = np.array([0.0, target.vector.latency, target.scalar.latency, target.gpsimd.latency, 0.0])[program.engine]
    dynamic = np.where((program.flags & InstructionFlag.DYNAMIC) != 0, target.core.dynamic_issue, 0.0)
    issue = np.maximum(np.maximum(elements + start, least), dynamic)
    read = np.array([0.0, target.vector.issue_min, target.scalar.accumulator_read, 0.0, 0.0])[program.engine]
    further = np.where((program.flags & InstructionFlag.READ_ACCUMULATOR) != 0, read, 0.0)
    if cost.function_table:
        further += _table_loads(program, target) * target.scalar.table_load * target.scalar.clock
    return issue + overhead + further, np.maximum(elements + start, dynamic) + fixed + further


def _tensor(cost: CostClass, program: Program, shape: _Shape, target: Target) -> tuple[Float, Float]:
    engine = target.tensor
    # A whole fp32 matmul is two instructions, each of half the passes.
    turning = (program.flags & InstructionFlag.TRANSPOSE) != 0
    passes = np.where(shape.fp32_input, np.where(turning, engine.transpose_passes, engine.fp32_passes) / 2, 1.0)
    if cost.rule == "load_stationary":
        streaming = passes * program.n / engine.load_columns_per_cycle
        settled = engine.load_latency - engine.columns / engine.load_columns_per_cycle
        return streaming + engine.load_overhead, streaming + settled
    streaming = passes * program.n
    return np.maximum(streaming, engine.issue_min) + engine.matmul_overhead, streaming + engine.matmul_latency


def price(program: Program, target: Target) -> Costs:
    """Issue and latency in cycles of each instruction. Raises `UnknownCostClass` for one that the target's data lacks."""
    if missing := [name for name in program.cost_classes if name not in target.cost_classes]:
        raise UnknownCostClass(f"cost class {missing[0]!r} is not in instructions.toml; it has {', '.join(target.cost_classes)}")
    n = len(program)
    issue, latency = np.zeros(n), np.zeros(n)
    unit = np.zeros(n, dtype=np.int8)
    is_dma = np.zeros(n, dtype=np.bool_)
    shape = _shapes(program)
    clock = np.array(target.clocks)[program.engine]
    for code, name in enumerate(program.cost_classes):
        cost = target.cost_classes[name]
        mask = program.cost_class == code
        match cost.rule:
            case "load_stationary" | "matmul":
                own = _tensor(cost, program, shape, target)
                unit[mask] = UNIT_LOAD if cost.rule == "load_stationary" else UNIT_MATMUL
            case "stream":
                own = _stream(cost, program, shape, target)
            case "dma":
                is_dma |= mask
                cycles = target.dma.trigger * clock
                own = cycles, cycles
            case _:
                cycles = target.sync.control * clock / target.sync.clock
                own = cycles, cycles
        issue[mask], latency[mask] = own[0][mask], own[1][mask]
    return Costs(issue, latency, unit, is_dma)
