"""How the rows of an emulated profile are numbered.

Instructions have 1 + their position in program order. Transfers follow, then packets, each in program order, so that an id is used
once in the whole profile and a row is found without knowing its table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collectors.nki.rows import Int
from emulator.program import Program, Timeline


@dataclass(frozen=True, slots=True)
class Ids:
    """`Instruction.id`, `DmaPacketAggregated.id` and `DmaPacket.id`; `transfer_of` is each instruction's transfer row, or -1."""

    instruction: Int
    transfer: Int
    packet: Int
    transfer_of: Int


def ids(program: Program, timeline: Timeline) -> Ids:
    """The ids of all rows."""
    instructions, transfers, packets = len(program), len(timeline.transfers.start), len(timeline.packets.start)
    of = np.full(instructions, -1, np.int64)
    of[timeline.transfers.instruction] = np.arange(transfers)
    return Ids(
        instruction=np.arange(1, instructions + 1),
        transfer=np.arange(instructions + 1, instructions + transfers + 1),
        packet=np.arange(instructions + transfers + 1, instructions + transfers + packets + 1),
        transfer_of=of,
    )
