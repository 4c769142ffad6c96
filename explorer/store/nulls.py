"""Required columns that a collector leaves null, and why: unknown is null, never 0, "" or a sentinel.

A test holds every profile that a collector makes against its list, in both directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Null:
    """A required column without a value in every row (`always`) or in some, and the reason."""

    table: str
    column: str
    reason: str
    always: bool = True


_NO_COMPILER = "the emulator runs the kernel itself: there is no compiler that would number its instructions"
_NO_CLOCK = "no clock is stored, so that the same input gives the same bytes"

_NOT_IN_JSON = "neuron-profile 2.27 does not write it into its JSON"

#: By collector: "nki" is `trnscope capture`, "neuron_profile" `trnscope import` of JSON that neuron-profile 2.27 wrote.
NULLS: Mapping[str, tuple[Null, ...]] = MappingProxyType(
    {
        "nki": (
            Null("DmaPacket", "crc", "the emulator computes no checksums"),
            Null("DmaPacket", "throughput", "a packet shorter than half a nanosecond has no rate", always=False),
            Null("DmaPacketAggregated", "throughput", "a transfer shorter than half a nanosecond has no rate", always=False),
            Null("DmaQueuesInfo", "axi_port", "which AXI port serves a queue is not published"),
            Null("DmaQueuesInfo", "dram_channel", "which DRAM channel serves a queue is not published"),
            Null("Instruction", "bir_id", _NO_COMPILER),
            Null("Metadata", "ntff_version", "no NTFF file was read"),
            Null("Metadata", "first_ts", _NO_CLOCK),
            Null("Metadata", "last_ts", _NO_CLOCK),
            Null("Metadata", "neuroncore_clock_freq", "no clock of the whole core is known but trn1's", always=False),
            Null("Metadata", "ticks_per_nanosec", "times are nanoseconds from the start; there are no raw ticks"),
        ),
        "neuron_profile": (
            Null("DmaPacketAggregated", "read_sbuf_partitions", "the one transfer that the JSON aggregates reads from HBM"),
            Null("DmaQueuesInfo", "pcore_idx", _NOT_IN_JSON),
            Null("Instruction", "bir_id", "instructions that the runtime adds have none", always=False),
            Null("Metadata", "gpsimd_engine_num_channels", _NOT_IN_JSON),
            Null("Metadata", "num_dma_engines_per_neuroncore", _NOT_IN_JSON),
            Null("Metadata", "scalar_engine_num_channels", _NOT_IN_JSON),
            Null("Metadata", "vector_engine_num_channels", _NOT_IN_JSON),
        ),
    }
)
