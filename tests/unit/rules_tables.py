"""Profiles written by hand for tests of rules: a few instructions and transfers, every column that a rule reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from explorer.store.reader import Profile

Row = Mapping[str, Any]
#: Bytes a second of all DMA engines; 1000 bytes to the nanosecond would hide mistakes in units.
BANDWIDTH = 400e9
_TEXT = {
    "engine",
    "opcode",
    "layer",
    "nki_source_location",
    "tensor_instruction_type",
    "queue_name",
    "variable",
    "dest",
    "operands",
}
_TEXT |= {"variable_name", "instance_type", "ts_target"}
_REAL = {"load_to_sbuf_repeat_factor", "dma_ddr_bandwidth", *(f"{e}_engine_clock_freq" for e in ("vector", "scalar", "gpsimd"))}
_TRUTH = {"is_simulation"}


def instruction(start: int, duration: int, engine: str = "vector", opcode: str = "TENSOR_TENSOR", **more: object) -> Row:
    """An instruction; without more columns one on all partitions, 512 elements each, that is no matmul."""
    base: dict[str, object] = {
        "start_ts": start,
        "end_ts": start + duration,
        "duration_ns": duration,
        "engine": engine,
        "opcode": opcode,
        "pcore_idx": 0,
        "layer": "/net/block",
        "nki_source_location": "kernel.py:7",
        "tensor_instruction_type": "REGULAR" if engine == "tensor" else None,
        "raw_flops": 1000 if engine == "tensor" else None,
        "adjusted_flops": 1000 if engine == "tensor" else None,
        "flops_transpose": 0 if engine == "tensor" else None,
        "ts_free_elements": 512,
        "ts_partitions": 128,
    }
    return {**base, **more}


def transfer(start: int, duration: int, nbytes: int = 1 << 20, **more: object) -> Row:
    """A load into SBUF of 8 KiB descriptors over all partitions, triggered when it starts, started by no known instruction."""
    base: dict[str, object] = {
        "start_ts": start,
        "end_ts": start + duration,
        "trigger": start,
        "transfer_bytes": nbytes,
        "queue_name": "qSyncIO0",
        "variable": "x",
        "dest": "[SB]",
        "pcore_idx": 0,
        "read_num_sbuf_partitions": 0,
        "write_num_sbuf_partitions": 128,
        "ts_descriptor_bytes": 8192,
    }
    return {**base, **more}


def tables(instructions: Sequence[Row], transfers: Sequence[Row] = (), tensors: Sequence[Row] = ()) -> dict[str, pa.Table]:
    """The tables; instructions are numbered from 1."""
    metadata = {"dma_ddr_bandwidth": BANDWIDTH, "is_simulation": True, "instance_type": "trn2"}
    metadata |= {f"{engine}_engine_clock_freq": 1.0 for engine in ("vector", "scalar", "gpsimd")}
    made = {
        "Instruction": table([{"id": i + 1, **row} for i, row in enumerate(instructions)]),
        "DmaPacketAggregated": table(transfers),
        "TensorInfo": table(tensors),
        "Metadata": table([metadata]),
    }
    return {name: rows for name, rows in made.items() if rows.num_rows}


def profile(instructions: Sequence[Row], transfers: Sequence[Row] = (), tensors: Sequence[Row] = ()) -> Profile:
    """The same as a profile in memory."""
    return Profile.from_tables(tables(instructions, transfers, tensors))


def table(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table; columns by name, typed as the schema has them."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: pa.array([row.get(name) for row in rows], _type(name)) for name in names})


def _type(name: str) -> pa.DataType:
    return pa.string() if name in _TEXT else pa.float64() if name in _REAL else pa.bool_() if name in _TRUTH else pa.int64()
