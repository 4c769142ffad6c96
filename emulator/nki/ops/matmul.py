"""The Tensor engine: matrix multiplication and transposes through the systolic array."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from emulator.errors import broken_rule, unsupported
from emulator.nki import dtypes
from emulator.nki.access import ACCUMULATE, READ, WRITE, need_memset, operand, values_on
from emulator.nki.ops import psum
from emulator.nki.session import current
from emulator.nki.tensor import View
from emulator.opcodes import opcodes
from emulator.program import InstructionFlag, Space

#: Stationary columns, and moving columns by target (aws-neuron-sdk nki/api/nki/isa/__init__.py, `nc_matmul`).
STATIONARY_COLUMNS: Final = 128
MOVING_COLUMNS: Final = {"trn1": 512, "trn2": 512, "trn3": 4096}
_TYPES: Final = ("float8_e4m3", "float8_e4m3fn", "float8_e5m2", "bfloat16", "float16", "tfloat32", "float32")
_WIDE: Final = ("float32", "tfloat32")


def flop_weight(dtype: str, target: str) -> float:
    """How many bf16 operations one operation of this type counts for (aws-neuron-sdk
    tools/neuron-explorer/profile-schema-reference.rst, `adjusted_flops`)."""
    if dtype == "float32":
        return 4.0
    if dtype.startswith("float8"):
        return 1.0 if target == "trn1" else 0.5
    return 0.5 if dtype == "uint8" else 1.0


def nc_matmul(
    dst: View,
    stationary: View,
    moving: View,
    *,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: Any = (),
    tile_size: Any = (),
    perf_mode: Any = None,
) -> tuple[int, ...]:
    """The rows of the MATMULs of `dst (+)= stationary.T @ moving`: two for fp32, half of the bits each."""
    call = "nki.isa.nc_matmul"
    mode = getattr(perf_mode, "name", perf_mode)
    if mode not in (None, "none"):
        unsupported(f"{call} with perf_mode={mode}")
    target = current(call).target
    for name, view in (("stationary", stationary), ("moving", moving)):
        if view.space is not Space.SBUF:
            broken_rule(
                f"{call}: {name} {view.name} is in {view.space.name}; the Tensor engine reads SBUF only, copy it there first"
            )
        if dtypes.name(view.dtype) not in _TYPES and not is_transpose:
            broken_rule(f"{call}: {name} {view.name} is {dtypes.name(view.dtype)}; it can be {', '.join(_TYPES)}")
    _destination(call, dst, stationary, target, is_transpose)
    k, m, n = stationary.partitions, stationary.free, moving.free
    if moving.partitions != k:
        broken_rule(
            f"{call}: stationary {stationary.name} has {k} partitions and moving {moving.name} has {moving.partitions}; "
            "both hold the contraction dimension"
        )
    if m > STATIONARY_COLUMNS:
        broken_rule(f"{call}: stationary {stationary.name} has {m} columns; at most {STATIONARY_COLUMNS}: tile its free dimension")
    if n > MOVING_COLUMNS[target]:
        broken_rule(
            f"{call}: moving {moving.name} has {n} columns; at most {MOVING_COLUMNS[target]} on {target}: tile its free dimension"
        )
    if dst.partitions != m or dst.free != n:
        broken_rule(f"{call}: dst {dst.name} {list(dst.shape)} has to be [{m}, {n}]: stationary columns by moving columns")
    types = {dtypes.name(stationary.dtype), dtypes.name(moving.dtype)}
    if len(types.intersection(_WIDE)) and not types.issubset(_WIDE) and not is_transpose:
        broken_rule(f"{call}: {stationary.name} is {dtypes.name(stationary.dtype)} and {moving.name} {dtypes.name(moving.dtype)}; "
                    "float32 goes with float32 or tfloat32 only")  # fmt: skip
    detail: tuple[tuple[str, str], ...] = ()
    if tile_position or tile_size:
        detail = (("tile_position", str(tuple(tile_position or (0, 0)))), ("tile_size", str(tuple(tile_size or (128, 128)))))
    product = None
    if values_on():
        product = dtypes.to_float32(stationary.tile()).reshape(k, m).T @ dtypes.to_float32(moving.tile()).reshape(k, n)
        if is_transpose:
            product = _exact_transpose(stationary, moving, product, k, m)
    return _multiply(call, dst, stationary, moving, product, (k, m, n), accumulate, is_transpose, detail)


def transpose_by_tensor(dst: View, data: View) -> tuple[int, ...]:
    """The rows of the MATMULs that transpose `data` into PSUM: `data` stationary, an identity moving."""
    call = "nki.isa.nc_transpose"
    if data.space is not Space.SBUF:
        broken_rule(f"{call}: {data.name} is in {data.space.name}; the Tensor engine reads SBUF only, copy it there first")
    _destination(call, dst, data, current(call).target, True)
    k, m = data.partitions, data.free
    if m > STATIONARY_COLUMNS:
        broken_rule(
            f"{call}: {data.name} {list(data.shape)} is larger than the [128, 128] that the Tensor engine transposes: tile it"
        )
    if dst.partitions != m or dst.free != k:
        broken_rule(f"{call}: dst {dst.name} {list(dst.shape)} has to be [{m}, {k}]")
    product = data.tile().reshape(k, m).T if values_on() else None
    return _multiply(call, dst, data, None, product, (k, m, k), False, True, ())


def _destination(call: str, dst: View, source: View, target: str, is_transpose: bool) -> None:
    if dst.space is not Space.PSUM:
        broken_rule(
            f"{call}: dst {dst.name} is in {dst.space.name}; the Tensor engine writes PSUM only: allocate it with buffer=nl.psum"
        )
    name = dtypes.name(dst.dtype)
    if is_transpose:
        if dst.dtype != source.dtype and name != "float32":
            broken_rule(f"{call}: dst {dst.name} is {name}; a transpose keeps {dtypes.name(source.dtype)}")
    elif name != "float32" and not (target == "trn3" and name == "bfloat16"):
        broken_rule(f"{call}: dst {dst.name} is {name}; matmuls accumulate in float32{' or bfloat16' if target == 'trn3' else ''}")


def _exact_transpose(stationary: View, moving: View, product: NDArray[Any], k: int, m: int) -> NDArray[Any]:
    # Against an identity the data passes through, NaN and infinity included, which arithmetic would spread.
    if moving.free == k and np.array_equal(dtypes.to_float32(moving.tile()).reshape(k, k), np.eye(k, dtype=np.float32)):
        return stationary.tile().reshape(k, m).T
    if m == k and np.array_equal(dtypes.to_float32(stationary.tile()).reshape(k, k), np.eye(k, dtype=np.float32)):
        return moving.tile().reshape(k, moving.free)
    return product


def _multiply(
    call: str,
    dst: View,
    stationary: View,
    moving: View | None,
    product: NDArray[Any] | None,
    sizes: tuple[int, int, int],
    accumulate: bool | None,
    is_transpose: bool,
    detail: tuple[tuple[str, str], ...],
) -> tuple[int, ...]:
    recorder = current(call).recorder
    k, m, n = sizes
    written = psum.written_by_matmul(dst) if accumulate is None else accumulate
    if accumulate and dst.storage.tentative is not None:
        need_memset(dst)
    if product is not None:
        _store(dst, product, written)
    psum.mark(dst)
    load, multiply = opcodes()["nc_matmul_load"], opcodes()["nc_matmul"]
    kinds = [dtypes.name(view.dtype) for view in (stationary, moving) if view is not None]
    passes = 2 if "float32" in kinds else 1
    flops = 2 * k * m * n // passes
    adjusted = int(flops * max(flop_weight(kind, recorder.target) for kind in kinds))
    flags = int(InstructionFlag.TRANSPOSE) if is_transpose else 0
    columns = "transpose" if is_transpose else multiply.cost_class
    read = operand(stationary, READ)
    moved = (operand(moving, READ),) if moving is not None else ()
    number = recorder.begin_call()
    rows = []
    for step in range(passes):
        adds = ACCUMULATE if step or written is not False else WRITE
        recorder.emit(load.opcode, "tensor", load.cost_class, (read,), m, 0, k, flags, call=number)
        rows.append(
            recorder.emit(
                multiply.opcode,
                "tensor",
                columns,
                (operand(dst, adds), *moved),
                n,
                m,
                k,
                flags,
                flops,
                adjusted,
                flops if is_transpose else 0,
                detail,
                number,
            )
        )
    return tuple(rows)


def _store(dst: View, product: NDArray[Any], written: NDArray[np.bool_] | bool) -> None:
    if written is False:
        dst.write(product)
        return
    target = dst.tile()
    product = product.reshape(target.shape)
    if written is True:
        dst.write(dtypes.to_float32(target) + product)
    else:
        dst.write(np.where(written, dtypes.to_float32(target) + product, product))
