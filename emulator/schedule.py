"""When each instruction and each DMA packet runs: an event-driven simulation of the engines and the DMA queues.

Engines issue in order; an instruction begins when its engine is free for it and what it waits for is complete and seen. DMA
queues work in order, their packets share the DMA engines, the earliest first, so that queues take turns at packet boundaries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.compiled import compiled
from emulator.costs import UNIT_LOAD, UNIT_MATMUL, Costs
from emulator.dma import Plan
from emulator.program import ENGINES, Dependencies, Int, Program
from emulator.targets import Target

Float = NDArray[np.float64]

_LOAD, _MATMUL = UNIT_LOAD, UNIT_MATMUL


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times in nanoseconds, not yet rounded, per instruction, per transfer and per packet."""

    start: Float
    end: Float
    wait: Float
    #: Row of the dependency that arrived last, and of the last one that came from another engine or a queue; -1: none.
    blocked_by: Int
    awaited: Int
    transfer_start: Float
    transfer_end: Float
    transfer_completion: Float
    packet_transfer: Int
    packet_engine: Int
    packet_start: Float
    packet_end: Float
    packet_bytes: Int


@compiled
def _run(  # type: ignore[no-untyped-def]
    stream, stream_ptr, stream_rows, ptr, producer, waits, issue, latency, unit, transfer_of, semaphore, dependent,
    queue_core, queue_ptr, queue_transfers, row_of, nbytes, part_start, parts, work, packets, generation,
    engines, per_engine, queue_interval, first_packet, completion, packet_count,
) -> Any:  # fmt: skip
    rows, transfers, queues, streams = len(issue), len(row_of), len(queue_core), len(stream_ptr) - 1
    never = np.inf
    start, end, wait = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    done = np.full(rows, -1.0)
    blocked_by, awaited = np.full(rows, -1, dtype=np.int64), np.full(rows, -1, dtype=np.int64)
    # Engines: when the next instruction may issue, weights are loaded, the array is free; how far the head has looked.
    free, loaded, array_free = np.zeros(streams), np.zeros(streams), np.zeros(streams)
    ready, seen = np.zeros(streams), np.zeros(streams)
    position, edge = stream_ptr[:-1].copy(), np.zeros(streams, dtype=np.int64)
    last, last_other = np.full(streams, -1, dtype=np.int64), np.full(streams, -1, dtype=np.int64)
    for s in range(streams):
        if position[s] < stream_ptr[s + 1]:
            edge[s] = ptr[stream_rows[position[s]]]
    # Queues: the current transfer, its next packet, when each DMA engine can take it.
    arrival = np.full(transfers, never)
    at, packet = queue_ptr[:-1].copy(), np.zeros(queues, dtype=np.int64)
    open_at, engine_ready, queue_done = np.zeros(queues), np.zeros((queues, engines)), np.zeros(queues)
    cores = 0
    for q in range(queues):
        cores = max(cores, queue_core[q] + 1)
    engine_free = np.zeros((cores, engines))
    t_start, t_end, t_done = np.full(transfers, never), np.zeros(transfers), np.zeros(transfers)
    p_transfer, p_engine = np.empty(packet_count, dtype=np.int64), np.empty(packet_count, dtype=np.int64)
    p_start, p_end, p_bytes = np.empty(packet_count), np.empty(packet_count), np.empty(packet_count, dtype=np.int64)
    n_packets = 0
    while True:
        best, who, best_able = never, -1, 0.0
        for s in range(streams):
            if position[s] == stream_ptr[s + 1]:
                continue
            row = stream_rows[position[s]]
            while edge[s] < ptr[row + 1]:
                if waits[edge[s]]:
                    source = producer[edge[s]]
                    if done[source] < 0:
                        break
                    time = done[source]
                    other = transfer_of[source] >= 0 or stream[source] != s
                    if transfer_of[source] < 0:
                        time += semaphore if other else dependent
                    if time > ready[s]:
                        ready[s], last[s] = time, source
                    if other and time > seen[s]:
                        seen[s], last_other[s] = time, source
                edge[s] += 1
            if edge[s] < ptr[row + 1]:
                continue
            able = free[s]
            if unit[row] == _LOAD:
                able = max(able, loaded[s])
            elif unit[row] == _MATMUL:
                able = max(able, max(loaded[s], array_free[s]))
            time = max(able, ready[s])
            if time < best:
                best, who, best_able = time, s, able
        for q in range(queues):
            if at[q] == queue_ptr[q + 1]:
                continue
            t = queue_transfers[at[q]]
            if packet[q] == 0:
                time = max(arrival[t], open_at[q])
            else:
                time = never
                for e in range(part_start[t] // per_engine, (part_start[t] + parts[t] - 1) // per_engine + 1):
                    time = min(time, engine_ready[q, e])
            if time < best:
                best, who = time, streams + q
        if who < 0:
            break
        if who < streams:
            s = who
            row = stream_rows[position[s]]
            start[row], end[row] = best, best + latency[row]
            if best > best_able:
                wait[row], blocked_by[row] = best - best_able, last[s]
            awaited[row] = last_other[s]
            free[s] = best
            if unit[row] == _LOAD:
                loaded[s] = best + issue[row]
            elif unit[row] == _MATMUL:
                array_free[s] = best + issue[row]
            else:
                free[s] = best + issue[row]
            t = transfer_of[row]
            if t >= 0:
                arrival[t] = end[row] + generation[t] + first_packet
            else:
                done[row] = end[row]
            position[s] += 1
            ready[s], seen[s], last[s], last_other[s] = 0.0, 0.0, -1, -1
            if position[s] < stream_ptr[s + 1]:
                edge[s] = ptr[stream_rows[position[s]]]
            continue
        q = who - streams
        t = queue_transfers[at[q]]
        core = queue_core[q]
        first, last_part = part_start[t], part_start[t] + parts[t]
        for e in range(first // per_engine, (last_part - 1) // per_engine + 1):
            low = max(first, e * per_engine) - first
            high = min(last_part, (e + 1) * per_engine) - first
            begin = max(best if packet[q] == 0 else engine_ready[q, e], engine_free[core, e])
            finish = begin + work[t] * (high - low) / parts[t] / packets[t]
            engine_free[core, e] = finish
            engine_ready[q, e] = finish
            part = nbytes[t] * high // parts[t] - nbytes[t] * low // parts[t]
            p_transfer[n_packets], p_engine[n_packets] = t, e
            p_start[n_packets], p_end[n_packets] = begin, finish
            p_bytes[n_packets] = part * (packet[q] + 1) // packets[t] - part * packet[q] // packets[t]
            n_packets += 1
            t_start[t], t_end[t] = min(t_start[t], begin), max(t_end[t], finish)
        if packet[q] == 0:
            open_at[q] = t_start[t] + queue_interval
        packet[q] += 1
        if packet[q] == packets[t]:
            # A queue's semaphore counts: that it reached 16 k says that the first k transfers are complete.
            t_done[t] = max(t_end[t] + completion, queue_done[q])
            queue_done[q] = t_done[t]
            done[row_of[t]] = t_done[t]
            packet[q] = 0
            at[q] += 1
    return start, end, wait, blocked_by, awaited, t_start, t_end, t_done, p_transfer, p_engine, p_start, p_end, p_bytes


def _groups(key: Int, count: int) -> tuple[Int, Int]:
    """(ptr, members in order) of the values 0 to count - 1 of `key`."""
    ptr = np.concatenate(([0], np.cumsum(np.bincount(key, minlength=count)))).astype(np.int64)
    return ptr, np.argsort(key, kind="stable")


def run(program: Program, costs: Costs, dependencies: Dependencies, plan: Plan, target: Target) -> Schedule:
    """The time of everything. Dependencies always point backwards in program order, so every instruction runs."""
    stream = program.core.astype(np.int64) * len(ENGINES) + program.engine
    streams = int(stream.max()) + 1 if len(stream) else 0
    stream_ptr, stream_rows = _groups(stream, streams)
    period = 1.0 / np.array(target.clocks)[program.engine]
    issue, latency = costs.issue * period, costs.latency * period
    transfer_of = np.full(len(program), -1, dtype=np.int64)
    transfer_of[plan.instruction] = np.arange(len(plan.instruction))
    queue_ptr, queue_transfers = _groups(plan.queue, len(plan.queues))
    per_engine = target.sbuf.partitions // target.dma.engines
    touched = (plan.partition_start + plan.partitions - 1) // per_engine - plan.partition_start // per_engine + 1
    dma = target.dma
    queue_core = np.array([queue.core for queue in plan.queues], dtype=np.int64)
    nbytes = np.maximum(plan.read_bytes, plan.write_bytes)
    packet_count = int((touched * plan.packets).sum())
    return Schedule(
        *_run(
            stream, stream_ptr, stream_rows, dependencies.ptr, dependencies.producer, dependencies.waits,
            issue, latency, costs.unit, transfer_of, float(target.core.semaphore), float(target.core.dependent),
            queue_core, queue_ptr, queue_transfers, plan.instruction, nbytes, plan.partition_start, plan.partitions,
            plan.work, plan.packets, plan.generation, dma.engines, per_engine,
            float(dma.queue_interval), float(dma.first_packet), float(dma.completion), packet_count,
        )
    )  # fmt: skip
