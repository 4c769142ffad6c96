"""Plausible profiles of any size, made without the emulator: for tests and benchmarks of everything that reads profiles."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from explorer.analysis import intervals
from explorer.store.reader import Profile
from explorer.store.writer import conform

Int = NDArray[np.int64]

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")
#: Opcode, engine, track, whether it moves data by DMA.
_OPCODES: tuple[tuple[str, int, str], ...] = (
    ("LDWEIGHTS", 0, "Tensor"),
    ("MATMUL", 0, "TensorMatrix"),
    ("TENSOR_TENSOR", 1, "Vector"),
    ("TENSOR_REDUCE", 1, "Vector"),
    ("ACTIVATE", 2, "Scalar"),
    ("ACT_TABLE_LOAD", 2, "Scalar"),
    ("IOTA", 3, "GpSimd"),
    ("DMA_DIRECT2D", 4, "Sync"),
    ("EVENT_SEMAPHORE", 4, "Sync"),
)
_SHARE = (0.22, 0.22, 0.14, 0.05, 0.14, 0.01, 0.04, 0.15, 0.03)
_QUEUES = (("qSyncIO0", "input"), ("qScalarIO0", "output"), ("qSyncSpillReload0", "data"), ("qGpSimdDynamic0", "software_dynamic"))
_PARTS = ("load", "matmul", "softmax", "store")
_FILE = "kernels/attention.py"
#: Names as a hostile or careless author could choose them.
HOSTILE = (
    "[bold red]markup[/] <b>&amp;</b> `code` | cell |",
    "\x1b[31mescape\x1b[0m\x07\x00\r\n\ttabs",
    "x" * 5000,
    "\U0001f525\U0001f680 emoji \u00e9\u0301",
    "\u202eright-to-left \u05e9\u05dc\u05d5\u05dd",
    "=1+1;@SUM(A1) -2 +3",
    "../../etc/passwd",
    " ",
)


def profile(instructions: int, seed: int = 0, overlap: bool = True, *, hostile: bool = False, cores: int = 1) -> Profile:
    """The same as `tables`, opened as a profile in memory."""
    return Profile.from_tables(tables(instructions, seed, overlap, hostile=hostile, cores=cores), "synthetic")


def tables(instructions: int, seed: int = 0, overlap: bool = True, *, hostile: bool = False, cores: int = 1) -> dict[str, pa.Table]:
    """Tables of an emulated profile with that many instructions; the same arguments give the same tables.

    With `overlap`, neighbours on an engine overlap as they do in hardware (latency is longer than issue). With `hostile`, names and
    texts hold markup, escapes, 5,000 characters, emoji and right-to-left marks. Instructions are spread over `cores`.
    """
    if instructions < 1:
        raise ValueError("a profile has at least one instruction")
    rng = np.random.default_rng(seed)
    layers = _layers(instructions, hostile)
    rows = _instructions(rng, instructions, overlap, layers, cores, hostile)
    dma = _transfers(rng, rows, hostile)
    last = int(max(pc.max(rows["end_ts"]).as_py(), pc.max(dma["end_ts"]).as_py()))
    made = {
        "Instruction": rows,
        "DmaPacketAggregated": dma,
        "DmaPacket": _packets(dma),
        "Flow": _flows(rng, rows, dma),
        "ActiveTime": _active(rows, cores),
        "FrameworkNode": _nodes(rows, layers),
        "OpcodeSummary": _opcodes(rows),
        "SemaphoreUpdate": _semaphores(rng, rows),
        **_usage(rng, dma, last, cores),
        **_sources(instructions),
        "DmaQueuesInfo": _table(
            name=[q for q, _ in _QUEUES],
            type=[t for _, t in _QUEUES],
            pcore_idx=[0] * 4,
            idx=list(range(4)),
            engine_idx=list(range(4)),
            axi_port=pa.nulls(4, pa.int64()),
            dram_channel=pa.nulls(4, pa.int64()),
        ),
        "Metadata": _metadata(last, cores),
        "Summary": _summary(rows, dma, last),
        "ExecutionInfo": _table(
            execution_index=[0], execution_start_ts=[0], execution_end_ts=[last], num_subgraphs=[1], row_count=[instructions]
        ),
    }
    return {name: conform(name, table) for name, table in made.items() if table.num_rows}


def _table(**columns: object) -> pa.Table:
    return pa.table(columns)


def _pick(words: list[str] | tuple[str, ...], index: NDArray[np.generic]) -> pa.Array:
    return pa.array(words, pa.string()).take(pa.array(index))


def _number(prefix: str, values: NDArray[np.generic], suffix: str = "") -> pa.Array:
    text = pa.array(values).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(prefix), text, pa.scalar(suffix), "")


def _known(values: Int, where: NDArray[np.bool_]) -> pa.Array:
    """Values where they are known, null elsewhere."""
    return pa.array(values, mask=~where)


def _layers(n: int, hostile: bool) -> list[str]:
    blocks = max(1, min(32, n // 50))
    names = [f"block_{b}" for b in range(blocks)]
    if hostile:
        names = [h.replace("/", "_") for h in HOSTILE[: min(blocks, len(HOSTILE))]] + names[len(HOSTILE) :]
    return [f"/attention/{name}/{part}" for name in names for part in _PARTS]


def _instructions(rng: np.random.Generator, n: int, overlap: bool, layers: list[str], cores: int, hostile: bool) -> pa.Table:
    kind = rng.choice(len(_OPCODES), n, p=np.array(_SHARE) / sum(_SHARE))
    engine = np.array([e for _, e, _ in _OPCODES])[kind]
    core = np.arange(n) % cores
    row = np.arange(n)
    issue = rng.integers(20, 400, n)
    wait: Int = np.where(rng.random(n) < 0.3, rng.integers(1, 500, n), 0)
    start = np.zeros(n, np.int64)
    for e in range(len(ENGINES)):
        for c in range(cores):
            mine = np.flatnonzero((engine == e) & (core == c))
            # Each engine's rows are spread over the whole run, in program order, none before the one ahead of it was issued.
            ahead = np.cumsum(issue[mine]) - issue[mine]
            start[mine] = ahead + np.maximum.accumulate(np.maximum(np.cumsum(wait[mine]), mine * 130 - ahead))
    duration = issue + (rng.integers(0, 200, n) if overlap else 0)
    duration[rng.random(n) < 0.001] = 0
    opcode = np.array([o for o, _, _ in _OPCODES])[kind]
    is_matmul, is_dma = opcode == "MATMUL", opcode == "DMA_DIRECT2D"
    is_act, on_chip = opcode == "ACTIVATE", ~np.isin(opcode, ("DMA_DIRECT2D", "EVENT_SEMAPHORE"))
    line = 10 + (row * 7) % 40
    layer = np.minimum(row * len(layers) // n, len(layers) - 1)
    flops = 2 * 128 * 128 * 512 * np.ones(n, np.int64)
    size = 4 * 128 * rng.integers(1, 512, n)
    operands = pc.binary_join_element_wise(
        _number("out=sbuf[0:128,", row % 64 * 8, ""),
        _number("] in=sbuf[0:128,", row % 48 * 16, ""),
        _number("] n=", size // 512),
        "",
    )
    if hostile:
        operands = _pick(HOSTILE, row % len(HOSTILE))
    return _table(
        start_ts=start,
        end_ts=start + duration,
        duration_ns=duration,
        engine=_pick(ENGINES, engine),
        timeline_track=_pick([t for _, _, t in _OPCODES], kind),
        pcore_idx=core,
        opcode=_pick([o for o, _, _ in _OPCODES], kind),
        operands=operands,
        id=row + 1,
        pc=row * 64,
        bir_id=pa.nulls(n, pa.string()),
        kernel_instruction_name=_number("I-", row + 1),
        evt_wait_time_ns=wait,
        layer=_pick(layers, layer),
        stack_frame_ids=pc.binary_join_element_wise(pa.scalar("0,"), pa.array(1 + line % 3).cast(pa.string()), ""),
        nki_source_location=_number(f"{_FILE}:", line),
        sbuf_read_bytes=_known(size, on_chip),
        sbuf_write_bytes=_known(size // 2, on_chip & ~is_matmul),
        psum_write_bytes=_known(size, is_matmul),
        hbm_read_bytes=_known(size, is_dma & (row % 3 > 0)),
        hbm_write_bytes=_known(size, is_dma & (row % 3 == 0)),
        tensor_elements=_known(size // 4, is_matmul),
        raw_flops=_known(flops, is_matmul),
        adjusted_flops=_known(flops, is_matmul),
        scalar_activation_fn=pa.array(np.where(is_act, "exp", None), pa.string()),
        ts_latency_cycles=pa.array(duration * 14 // 10),
        ts_issue_cycles=pa.array(issue * 14 // 10),
    )


def _transfers(rng: np.random.Generator, rows: pa.Table, hostile: bool) -> pa.Table:
    issuers = np.flatnonzero(pc.equal(rows["opcode"], "DMA_DIRECT2D").to_numpy(zero_copy_only=False))
    if len(issuers) == 0:
        issuers = np.array([0])
    n = len(issuers)
    trigger = rows["end_ts"].to_numpy()[issuers]
    start = trigger + 1_300 + rng.integers(0, 200, n)
    size = 512 * rng.integers(1, 4096, n)
    duration = 100 + size // 180
    queue, tensor = rng.integers(0, len(_QUEUES), n), rng.integers(0, 12, n)
    reads = queue != 1
    variables = HOSTILE if hostile else [f"tensor_{i}" for i in range(12)]
    empty = pa.nulls(n, pa.string())
    return _table(
        start_ts=start,
        end_ts=start + duration,
        duration_ns=duration,
        id=rows.num_rows + 1 + np.arange(n),
        pcore_idx=rows["pcore_idx"].to_numpy()[issuers],
        block_id=pa.nulls(n, pa.int32()),
        queue_idx=queue,
        queue_name=_pick([q for q, _ in _QUEUES], queue),
        queue_type=_pick([t for _, t in _QUEUES], queue),
        op=_pick(["copy"], np.zeros(n, np.int64)),
        variable=_pick(variables, tensor % len(variables)),
        read_bytes=size,
        write_bytes=size,
        transfer_bytes=size,
        throughput=size * 1e9 / duration,
        source=_pick(["SB", "DRAM"], reads.astype(np.int64)),
        dest=_pick(["DRAM", "SB"], reads.astype(np.int64)),
        semaphore_id=_number("S[", queue, "]"),
        read_sbuf_partitions=empty,
        read_num_sbuf_partitions=pa.nulls(n, pa.int32()),
        read_shape=_number("[128,", size // 512, "]"),
        read_offset=empty,
        read_steps=empty,
        write_sbuf_partitions=empty,
        write_num_sbuf_partitions=pa.nulls(n, pa.int32()),
        write_shape=_number("[128,", size // 512, "]"),
        write_offset=empty,
        write_steps=empty,
        trigger=trigger,
        completion=start + duration + 200,
    )


def _packets(dma: pa.Table, each: int = 4) -> pa.Table:
    whole = np.repeat(np.arange(dma.num_rows), each)
    part = np.tile(np.arange(each), dma.num_rows)
    start = dma["start_ts"].to_numpy()[whole] + part * 7
    end = np.maximum(start, dma["end_ts"].to_numpy()[whole] - (each - 1 - part) * 3)
    size = dma["transfer_bytes"].to_numpy()[whole] // each
    return _table(
        start_ts=start,
        end_ts=end,
        duration_ns=end - start,
        pcore_idx=dma["pcore_idx"].to_numpy()[whole],
        id=int(pc.max(dma["id"]).as_py()) + 1 + np.arange(len(whole)),
        packet_idx=part.astype(np.int32),
        packet_aggregation_id=dma["id"].to_numpy()[whole],
        engine_idx=(whole * each + part) % 16,
        read_bytes=size,
        write_bytes=size,
        transfer_bytes=size,
        throughput=size * 1e9 / np.maximum(end - start, 1),
        queue_type=dma["queue_type"].take(pa.array(whole)),
        variable=dma["variable"].take(pa.array(whole)),
        queue_name=dma["queue_name"].take(pa.array(whole)),
        queue_idx=dma["queue_idx"].to_numpy()[whole],
        crc=pa.nulls(len(whole), pa.int64()),
    )


def _flows(rng: np.random.Generator, rows: pa.Table, dma: pa.Table) -> pa.Table:
    """Edges from rows that ended to rows that began later, instructions and transfers mixed."""
    start = np.concatenate((rows["start_ts"].to_numpy(), dma["start_ts"].to_numpy()))
    end = np.concatenate((rows["end_ts"].to_numpy(), dma["end_ts"].to_numpy()))
    ids = np.concatenate((rows["id"].to_numpy(), dma["id"].to_numpy()))
    table = np.concatenate((np.zeros(rows.num_rows, np.int64), np.ones(dma.num_rows, np.int64)))
    by_end = np.argsort(end, kind="stable")
    consumer = np.flatnonzero(rng.random(len(ids)) < 0.7)
    place = np.searchsorted(end[by_end], start[consumer], side="right") - 1 - rng.integers(0, 8, len(consumer))
    consumer, place = consumer[place >= 0], place[place >= 0]
    producer = by_end[place]
    consumer, producer = consumer[start[producer] < start[consumer]], producer[start[producer] < start[consumer]]
    kinds = ("FLOW_DEPENDENCE", "ANTI_DEPENDENCE", "OUTPUT_DEPENDENCE")
    names = ("Instruction", "DmaPacketAggregated")
    return _table(
        in_id=ids[producer],
        out_id=ids[consumer],
        in_table=_pick(names, table[producer]),
        out_table=_pick(names, table[consumer]),
        dependency_type=_pick(kinds, rng.choice(3, len(consumer), p=(0.8, 0.15, 0.05))),
        gap_time=start[consumer] - end[producer],
    )


def _active(rows: pa.Table, cores: int) -> pa.Table:
    parts: list[tuple[Int, Int, int, int]] = []
    engines, opcodes = (np.array(rows[c].to_pylist()) for c in ("engine", "opcode"))
    start, end, core = (rows[c].to_numpy() for c in ("start_ts", "end_ts", "pcore_idx"))
    for e, name in enumerate(ENGINES):
        for c in range(cores):
            mine = (engines == name) & (core == c) & (opcodes != "EVENT_SEMAPHORE")
            parts.append((*intervals.union(start[mine], end[mine]), e, c))
    starts, ends = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    return _table(
        start_ts=starts,
        end_ts=ends,
        engine=_pick(ENGINES, np.concatenate([np.full(len(p[0]), p[2]) for p in parts])),
        pcore_idx=np.concatenate([np.full(len(p[0]), p[3]) for p in parts]),
        duration_ns=ends - starts,
    )


def _nodes(rows: pa.Table, layers: list[str]) -> pa.Table:
    start, end = rows["start_ts"].to_numpy(), rows["end_ts"].to_numpy()
    layer = rows["layer"].combine_chunks().dictionary_encode()
    used = layer.dictionary.to_pylist()
    codes = layer.indices.to_numpy()
    names = list(dict.fromkeys("/".join(path.split("/")[:depth]) for path in layers for depth in range(2, path.count("/") + 2)))
    out = []
    order = np.argsort(codes, kind="stable")
    cuts = np.searchsorted(codes[order], np.arange(len(used) + 1))
    leaf = {u: order[cuts[i] : cuts[i + 1]] for i, u in enumerate(used)}
    for name in names:
        inside = [leaf[u] for u in used if u == name or u.startswith(name + "/")]
        if not inside:
            continue
        mine = np.concatenate(inside)
        s, e = intervals.union(start[mine], end[mine])
        if len(s) == 0:
            continue
        children = [c for c in names if c.rpartition("/")[0] == name]
        out.append(
            {
                "node_name": name,
                "children_names": ",".join(children),
                "parent_name": name.rpartition("/")[0],
                "children_ids": "",
                "start_ts": int(s[0]),
                "end_ts": int(e[-1]),
                "time_intervals": json.dumps([[int(a), int(b)] for a, b in zip(s, e, strict=True)]),
            }
        )
    return pa.Table.from_pylist(out) if out else pa.table({"node_name": pa.array([], pa.string())})


def _opcodes(rows: pa.Table) -> pa.Table:
    grouped = rows.group_by(["engine", "opcode"], use_threads=False).aggregate([("duration_ns", "count"), ("duration_ns", "sum")])
    return _table(
        engine=grouped["engine"],
        opcode=grouped["opcode"],
        instruction_count=grouped["duration_ns_count"],
        instruction_time_ns=grouped["duration_ns_sum"],
        active_time_ns=pa.nulls(grouped.num_rows, pa.int64()),
        active_time_percent=pa.nulls(grouped.num_rows, pa.float64()),
    )


def _semaphores(rng: np.random.Generator, rows: pa.Table) -> pa.Table:
    some = np.flatnonzero(rng.random(rows.num_rows) < 0.5)
    name = some % 6
    value = np.zeros(len(some), np.int32)
    for s in range(6):
        value[name == s] = 1 + np.arange((name == s).sum())
    return _table(
        timestamp=rows["end_ts"].to_numpy()[some],
        id=_number("S[", name, "]"),
        value=value,
        pcore_idx=rows["pcore_idx"].to_numpy()[some],
    )


def _usage(rng: np.random.Generator, dma: pa.Table, last: int, cores: int) -> dict[str, pa.Table]:
    n = max(2, min(20_000, last // 2_000))
    time = np.linspace(0, last, n).astype(np.int64)
    core = np.arange(n) % cores
    sbuf, psum = np.clip(rng.normal(0.6, 0.2, n), 0, 1), np.clip(rng.normal(0.4, 0.3, n), 0, 1)
    edges = np.concatenate((dma["start_ts"].to_numpy(), dma["end_ts"].to_numpy()))
    step = np.concatenate((np.ones(dma.num_rows, np.int32), -np.ones(dma.num_rows, np.int32)))
    order = np.argsort(edges, kind="stable")
    rate = np.concatenate((dma["throughput"].to_numpy(), -dma["throughput"].to_numpy()))[order]
    rate = np.maximum(np.cumsum(rate).round(3), 0)
    total = np.cumsum(np.concatenate((np.zeros(dma.num_rows, np.int64), dma["transfer_bytes"].to_numpy()))[order])
    bandwidth = _table(timestamp=edges[order], current_throughput=rate, total_transfer_bytes=total)
    return {
        "SbufUsage": _table(
            timestamp=time,
            avg_util_percent=sbuf,
            **{f"partition_{p}_util_percent": sbuf for p in (0, 32, 64, 96)},
            pcore_idx=core,
        ),
        "PsumUsage": _table(
            timestamp=time,
            avg_util_percent=psum,
            **{f"bank_{b}_util_percent": np.clip(psum * 2 - b / 8, 0, 1) for b in range(8)},
            pcore_idx=core,
        ),
        "DmaUsage": bandwidth,
        "HbmUsage": bandwidth,
        "PendingDma": _table(timestamp=edges[order], value=np.cumsum(step[order]).astype(np.int32)),
    }


def _sources(n: int) -> dict[str, pa.Table]:
    line = 10 + (np.arange(n) * 7) % 40
    return {
        "KernelInstructions": _table(
            kernel_instruction_name=_number("I-", np.arange(n) + 1),
            stack_frame_id=1 + line % 3,
            stack_frame_depth=np.ones(n, np.int64),
            iteration_variables_id=np.arange(n) % 8,
            iteration_variable_depth=np.zeros(n, np.int64),
            file_path=_pick([_FILE], np.zeros(n, np.int64)),
            line_number=line,
        ),
        "KernelStackFrames": _table(
            stack_frame_id=[0, 1, 2, 3],
            fully_qualified_function_name=["attention", "load_tile", "matmul_block", "softmax"],
            parent_stack_frame_id=[None, 0, 0, 0],
            file_path=[_FILE] * 4,
            line_number=[8, 20, 30, 40],
        ),
        "KernelIterationVariables": _table(
            iteration_variable_id=list(range(8)),
            variable_name=["i"] * 8,
            variable_value=list(range(8)),
            parent_iteration_variable_id=pa.nulls(8, pa.int64()),
            file_path=[_FILE] * 8,
            line_number=[9] * 8,
        ),
        "TensorInfo": _table(
            variable_name=[f"tensor_{i}" for i in range(12)],
            type=["IN"] * 6 + ["OUT"] * 6,
            format=["bfloat16"] * 12,
            shape=["[128,512]"] * 12,
            size=[128 * 512 * 2] * 12,
        ),
    }


def _metadata(last: int, cores: int) -> pa.Table:
    return _table(
        profile_schema_version=["7.4.0"],
        num_physical_cores=pa.array([cores], pa.int32()),
        vnc_enabled=[False],
        first_hw_timestamp=[0],
        last_hw_timestamp=[last],
        dma_ddr_bandwidth=[435e9],
        num_dma_engines_per_neuroncore=pa.array([16], pa.int32()),
        hbm_ddr_bandwidth=[410e9],
        tensor_engine_num_rows=[128],
        tensor_engine_num_cols=[128],
        tensor_engine_clock_freq=[2.8],
        neuroncore_clock_freq=[1.4],
        instance_type=["trn2"],
        profile_name=["synthetic"],
        is_simulation=[True],
    )


def _summary(rows: pa.Table, dma: pa.Table, last: int) -> pa.Table:
    return _table(
        total_time=[last / 1e9],
        hardware_flops=[pc.sum(rows["raw_flops"]).as_py()],
        event_count=[rows.num_rows],
        dma_transfer_count=[dma.num_rows],
        dma_transfer_total_bytes=[pc.sum(dma["transfer_bytes"]).as_py()],
        matmul_instruction_count=[pc.sum(pc.equal(rows["opcode"], "MATMUL")).as_py()],
    )
