"""From a program to when it runs: `simulate(program)` gives the `Timeline`."""

from __future__ import annotations

from typing import Final

import numpy as np

from emulator import costs, dependencies, dma, memory, schedule
from emulator.program import ENGINES, Dependencies, Int, Packets, Program, Small, Timeline, Transfers
from emulator.targets import Target, load

_LABEL: Final = ("Tensor", "Vector", "Scalar", "GpSimd", "Sync")
NOT_MODELLED: Final = "throttling of the Tensor engine and contention for shared memory ports are not modelled"


def _nanoseconds(times: costs.Float) -> Int:
    """Rounded so that two equal times stay equal: neighbours that touch keep touching."""
    return np.floor(times + 0.5).astype(np.int64)


def _unpublished(program: Program, target: Target) -> tuple[str, ...]:
    """What to say of opcodes in use whose cost nobody published."""
    said: dict[str, None] = {}
    for code, name in enumerate(program.cost_classes):
        cost = target.cost_classes[name]
        if cost.kind == "unpublished":
            for opcode in np.unique(program.opcode[program.cost_class == code]):
                said[f"the cost of {program.opcodes[opcode]} is not published: priced as {cost.note}"] = None
    return tuple(said)


def _semaphores(program: Program, edges: Dependencies, plan: dma.Plan, increment: int) -> tuple[tuple[str, ...], Small, Int]:
    """(names, semaphore raised by each row, its value then): one per engine and core, then one per queue."""
    n = len(program)
    cores = int(program.core.max()) + 1 if n else 1
    stream = program.core.astype(np.int64) * len(ENGINES) + program.engine
    consumer = np.repeat(np.arange(n), np.diff(edges.ptr))
    awaited = edges.waits & (stream[edges.producer] != stream[consumer])
    raised = np.full(n, -1, dtype=np.int64)
    signals = np.unique(edges.producer[awaited])
    raised[signals] = stream[signals]
    raised[plan.instruction] = cores * len(ENGINES) + plan.queue
    value = np.zeros(n, dtype=np.int64)
    for semaphore in np.unique(raised[raised >= 0]):
        own = np.flatnonzero(raised == semaphore)
        value[own] = np.arange(1, len(own) + 1) * (increment if semaphore >= cores * len(ENGINES) else 1)
    names = [label if cores == 1 else f"{label} (core {core})" for core in range(cores) for label in _LABEL]
    names += [queue.name if cores == 1 else f"{queue.name} (core {queue.core})" for queue in plan.queues]
    return tuple(names), raised.astype(np.int32), value


def simulate(program: Program, target: Target | None = None) -> Timeline:
    """When each instruction of `program` runs on its target (or on `target`).

    Raises `MemoryExhausted` where tensors do not fit, `UnknownCostClass` for an instruction that the target's data does not price,
    `UnknownTarget` for a target that there is not.
    """
    target = target or load(program.target)
    layout = memory.lay_out(program, target)
    price = costs.price(program, target)
    edges, doubts = dependencies.find_dependencies(program, layout, price.is_dma)
    plan = dma.plan(program, price, target)
    price = dma.with_generation(plan, price, program, target)
    times = schedule.run(program, price, edges, plan, target)
    names, raised, value = _semaphores(program, edges, plan, target.dma.semaphore_increment)
    awaited = times.awaited
    waits = (awaited >= 0) & (raised[awaited] >= 0)
    start = _nanoseconds(times.start)
    return Timeline(
        start=start,
        end=_nanoseconds(times.end),
        wait=start - _nanoseconds(times.start - times.wait),
        latency_cycles=_nanoseconds(price.latency),
        issue_cycles=_nanoseconds(price.issue),
        blocked_by=times.blocked_by.astype(np.int32),
        semaphore=raised,
        semaphore_value=value,
        wait_semaphore=np.where(waits, raised[awaited], -1).astype(np.int32),
        wait_value=np.where(waits, value[awaited], 0),
        semaphores=names,
        dependencies=edges,
        queues=plan.queues,
        transfers=Transfers(
            instruction=plan.instruction,
            queue=plan.queue.astype(np.int16),
            read_bytes=plan.read_bytes,
            write_bytes=plan.write_bytes,
            descriptors=plan.descriptors,
            descriptor_bytes=plan.descriptor_bytes,
            trigger=start[plan.instruction],
            start=_nanoseconds(times.transfer_start),
            end=_nanoseconds(times.transfer_end),
            completion=_nanoseconds(times.transfer_completion),
        ),
        packets=Packets(
            transfer=times.packet_transfer,
            engine=times.packet_engine.astype(np.int16),
            start=_nanoseconds(times.packet_start),
            end=_nanoseconds(times.packet_end),
            nbytes=times.packet_bytes,
        ),
        address=layout.address,
        first_use=layout.first_use,
        last_use=layout.last_use,
        warnings=(NOT_MODELLED, *_unpublished(program, target), *doubts),
    )
