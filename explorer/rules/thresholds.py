"""Every number that a rule compares with, once, with where it comes from. Paths are those of the aws-neuron-sdk repository."""

from __future__ import annotations

from dataclasses import dataclass

_PERF_GUIDE = "nki/deep-dives/nki_perf_guide.rst"
_DMA_GUIDE = "nki/deep-dives/nki-dma-bandwidth-guide.rst"
_OURS = "our choice"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number, its unit ("" for a ratio), what it separates, and its source."""

    value: float
    unit: str
    meaning: str
    source: str


#: small_dma_transfers
TRANSFER_BYTES = Threshold(32 * 1024, "bytes", "a transfer below this is dominated by its start-up", f"{_PERF_GUIDE}; {_DMA_GUIDE}")
DESCRIPTOR_BYTES = Threshold(
    2 * 1024, "bytes", "contiguous bytes below which DMA bandwidth falls off", f"{_PERF_GUIDE}; {_DMA_GUIDE}"
)
DMA_EFFICIENCY = Threshold(
    0.6, "", "share of the DMA bandwidth from which transfers count as fast enough (bandwidth use called good)", _PERF_GUIDE
)

#: loads_not_overlapped
ENGINE_ACTIVE = Threshold(0.9, "", "active share of the busiest engine from which a kernel counts as bound by it", _PERF_GUIDE)
ALTERNATING = Threshold(
    0.1, "", "share of the whole in which DMA and computation each ran while the other stood (what 90% active leaves)", _PERF_GUIDE
)

#: reloaded_inputs
REPEAT_FACTOR = Threshold(2, "", "bytes loaded over the tensor's size; at 2 every byte came twice on average", _OURS)

#: small_free_dimension
FIXED_COST_ELEMENTS = Threshold(
    64,
    "elements per partition",
    "below this an instruction costs the ~64 cycles that starting one takes, whatever its size",
    "nki/api/nki.api.shared.rst (MIN_II)",
)

#: tensor_engine_transposes
TRANSPOSE_SHARE = Threshold(0.1, "", "FLOPs of transposes over those of other matmuls", _OURS)

#: fp32_matmul
FP32_FACTOR = Threshold(
    4,
    "",
    "adjusted FLOPs over FLOPs of a float32 matmul: it takes four passes",
    "tools/neuron-explorer/profile-schema-reference.rst",
)

#: unused_partitions
PARTITIONS = Threshold(
    128,
    "partitions",
    "lanes of each engine, all working at the price of one",
    "nki/guides/architecture/trainium_inferentia2_arch.rst",
)
PARTITIONS_SHARE = Threshold(0.5, "", "share of the partitions in use up to which two instructions could be one", _OURS)

#: all rules
ENGINE_SHARE = Threshold(0.1, "", "share of an engine's busy time below which a place is not looked at", _OURS)
REPEATED = Threshold(4, "instructions", "fewer of a kind in one place are not merged", _OURS)
WORTH = Threshold(0.01, "", "share of the whole time below which a gain is not reported", _OURS)
SEVERE = Threshold(0.1, "", "gain over the whole time from which a finding is critical", _OURS)
NOTABLE = Threshold(0.01, "", "gain over the whole time from which a finding is a warning; below it is information", _OURS)
