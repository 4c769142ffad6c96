"""What a kernel asked of the NeuronCore, and when each of it ran: the two seams of the emulator.

`Program` is filled by `emulator.nki` in program order; `memory`, `dependencies`, `costs`, `dma` and `schedule` read it and make a
`Timeline`; collectors turn both into tables. Everything per row is a numpy array, so that later stages stay vectorised.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Small = NDArray[np.int32]

#: Engines by code, in the schema's lower-case spelling.
ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")
#: Access patterns have at most this many dimensions besides the partition dimension (one more in HBM, where rows are a dimension).
PATTERN_DIMS = 5


class Space(IntEnum):
    """The memory a tensor lives in."""

    HBM = 0
    SBUF = 1
    PSUM = 2


class Access(IntFlag):
    """How an instruction uses an operand."""

    READ = 1
    WRITE = 2
    #: The write adds to what is there (PSUM accumulation): it depends on the earlier writes but its engine does not wait for them.
    ACCUMULATE = 4
    #: Addressed by data (gather, scatter, register): the pattern is the box that bounds it.
    INDIRECT = 8


class InstructionFlag(IntFlag):
    """What the cost model needs and the operands do not show."""

    TRANSPOSE = 1
    #: Address or size comes from a register or from memory.
    DYNAMIC = 2
    #: A memset of zero.
    ZERO_FILL = 4
    #: A reduction result is read from the engine's accumulators by a further short instruction.
    READ_ACCUMULATOR = 8
    #: The compiler would choose the engine; the emulator chose.
    ENGINE_CHOSEN = 16


class Dependency(IntEnum):
    """Why an instruction has to wait for an earlier one; names as in the schema's `Flow`."""

    FLOW_DEPENDENCE = 0
    ANTI_DEPENDENCE = 1
    OUTPUT_DEPENDENCE = 2


@dataclass(frozen=True, slots=True)
class Frame:
    """One level of the kernel's call stack: the statement that was executing, innermost last."""

    file: str
    line: int
    end_line: int
    function: str


@dataclass(frozen=True, slots=True)
class Loop:
    """One value of one loop variable. `parent` is the id of the enclosing loop's value, -1 at the top."""

    name: str
    value: int
    parent: int
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A named tensor. `nbytes` is its whole size; `partition_bytes` what it takes in each partition (0 in HBM)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    space: Space
    #: "input", "output", "constant" or "temporary".
    role: str
    nbytes: int
    partitions: int
    partition_bytes: int
    #: Index into `Program.stacks` of the allocation, -1 for kernel arguments.
    stack: int
    #: SPMD instance or core that owns it, -1 when shared.
    core: int = -1


@dataclass(frozen=True, slots=True)
class Operands:
    """All operands of all instructions; those of instruction i are rows `ptr[i]` to `ptr[i + 1]`.

    An operand touches, in each of `partitions` partitions from `partition_start`, the elements at
    `offset + sum(index[d] * stride[d])` bytes, index[d] < size[d]. In HBM there are no partitions
    (`partition_start` 0, `partitions` 0) and the offset counts from the tensor's first byte.
    Unused dimensions have size 1 and stride 0. Innermost dimension last.
    """

    ptr: Int
    tensor: Small
    access: NDArray[np.uint8]
    dtype: NDArray[np.int16]
    itemsize: NDArray[np.int16]
    partition_start: NDArray[np.int16]
    partitions: NDArray[np.int16]
    offset: Int
    size: NDArray[np.int64]
    stride: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel's instructions in program order, one row each, and what their codes mean."""

    kernel: str
    target: str
    #: Row columns, all of length n.
    opcode: NDArray[np.int16]
    engine: NDArray[np.int8]
    cost_class: NDArray[np.int16]
    flags: NDArray[np.uint16]
    core: NDArray[np.int16]
    #: Elements per partition that the engine walks (matmul: moving columns), the N of AWS's cost formulas.
    n: Int
    #: Second size: stationary columns of a matmul, else 0.
    m: Int
    #: Partitions in use (matmul: contraction rows).
    k: Int
    raw_flops: Int
    adjusted_flops: Int
    transpose_flops: Int
    #: Index into `stacks`, `loops` (-1: no loop), `scopes` (-1: none), `details` (-1: none).
    stack: Small
    loop: Small
    scope: Small
    detail: Small
    #: Instructions of one API call share a call number (a matmul's LDWEIGHTS and MATMUL).
    call: Int
    operands: Operands
    opcodes: tuple[str, ...]
    cost_classes: tuple[str, ...]
    dtypes: tuple[str, ...]
    tensors: tuple[TensorSpec, ...]
    #: Call stacks, outermost (the kernel entry) first.
    stacks: tuple[tuple[Frame, ...], ...]
    loops: tuple[Loop, ...]
    #: Named scopes as paths, "a/b".
    scopes: tuple[str, ...]
    #: Attributes of the call for people: activation function, ALU operation, queue hints; key and value as text.
    details: tuple[tuple[tuple[str, str], ...], ...]
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.opcode)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Edges between instructions, sorted by consumer; those of consumer i are rows `ptr[i]` to `ptr[i + 1]`."""

    ptr: Int
    producer: Small
    kind: NDArray[np.int8]
    #: True where the consumer's engine waits for the producer (PSUM accumulation on the Tensor engine does not).
    waits: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Queue:
    """A DMA queue. `type` is one of the schema's DmaQueueType values."""

    name: str
    type: str
    engine: str
    core: int
    index: int


@dataclass(frozen=True, slots=True)
class Transfers:
    """DMA transfers, one row for each DMA instruction, in program order; times in nanoseconds."""

    instruction: Int
    queue: NDArray[np.int16]
    read_bytes: Int
    write_bytes: Int
    #: Descriptors and the contiguous bytes each moves.
    descriptors: Int
    descriptor_bytes: Int
    trigger: Int
    start: Int
    end: Int
    #: When the waiting engine sees the completion.
    completion: Int


@dataclass(frozen=True, slots=True)
class Packets:
    """What each DMA engine moved of a transfer, one row per packet; times in nanoseconds."""

    transfer: Int
    engine: NDArray[np.int16]
    start: Int
    end: Int
    nbytes: Int


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each instruction of a `Program` ran. Times are integer nanoseconds from 0."""

    start: Int
    end: Int
    #: From the moment the engine was free for it until it began, because of dependencies.
    wait: Int
    #: Engine cycles from start to completion, and until the engine can take the next one.
    latency_cycles: Int
    issue_cycles: Int
    #: The dependency that the instruction waited for last, as a row of the program; -1: none.
    blocked_by: Small
    #: Semaphore that the instruction raises when complete (-1: none), its value after that, and its increment.
    semaphore: Small
    semaphore_value: Int
    #: Per instruction: semaphore waited for (-1: none) and the value it has to reach.
    wait_semaphore: Small
    wait_value: Int
    semaphores: tuple[str, ...]
    dependencies: Dependencies
    queues: tuple[Queue, ...]
    transfers: Transfers
    packets: Packets
    #: Address of each tensor in its memory, bytes within a partition; -1: none given.
    address: Int
    #: Rows of the program between which the tensor is live: first and last use, -1 if unused.
    first_use: Int
    last_use: Int
    warnings: tuple[str, ...] = ()
