"""How every metric of the schema's Summary is made: data only, used to compute, to explain and to reproduce each.

Found on 13 profiles that neuron-profile 2.27 wrote on an inf2.xlarge, whose rows and whose summary stand in one file; the texts of
AWS's definitions are in aws-neuron-sdk, tools/neuron-explorer/profile-schema-reference.rst (schema 7.4.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from explorer.analysis.engines import ENGINES
from explorer.analysis.summary_terms import Cell, Rows, Source, Where

#: Opcodes that wait: time in them is not work.
WAITS = ("EVENT_SEMAPHORE",)
#: Opcodes that set up and tear down; `total_exec_time` leaves them out (profile-schema-reference.rst, Summary.total_exec_time).
SETUP = (
    "NOP",
    "SET_ORDERING_MODE",
    "EVENT_SEMAPHORE",
    "EVENT_SEMAPHORE_RANGE_CLEAR",
    "NOTIFY",
    "COMPARE_BRANCH",
    "DRAIN",
    "WRITE",
    "TENSOR_LOAD",
    "MODIFY_POOL_CONFIG",
)
_NS = 1e9


@dataclass(frozen=True, slots=True)
class Formula:
    """Arithmetic on other definitions; the first alternative whose terms were all captured counts."""

    alternatives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ByVersion:
    """One of two definitions by the version of the tool that wrote the profile (Metadata.explorer_version)."""

    up_to: tuple[int, int]
    then: str
    otherwise: str


Made = Rows | Cell | Formula | ByVersion


@dataclass(frozen=True, slots=True)
class Reported:
    """What the source's own summary says; where there is none, `otherwise`, or else not captured."""

    otherwise: Rows | Formula | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """How a metric is made. `group` is the heading it stands under; `note` says what to know before trusting it.

    `apart` is a relative difference to the source's figure that is known and not explained; it is no error of ours to hide, so it
    stands here with its evidence in the note.
    """

    how: Made | Reported
    group: str
    note: str = ""
    apart: float = 0.0
    unit: str | None = field(default=None)


def _instructions(*where: Where) -> tuple[Source, ...]:
    return (Source("Instruction", where),)


def _packets(*where: Where) -> tuple[Source, ...]:
    return (Source("DmaPacket", where),)


_WORK = Where("opcode", "not in", WAITS)
_OVERALL, _TENSOR, _MEMORY, _DMA, _CC = "overall", "tensor engine", "memory", "dma", "collectives"
_BY_SOFTWARE, _BY_HARDWARE = ("software_dynamic",), ("hardware_dynamic",)
_KINDS = {
    "static": Where("queue_type", "not in", (*_BY_SOFTWARE, *_BY_HARDWARE)),
    "dynamic": Where("queue_type", "in", (*_BY_SOFTWARE, *_BY_HARDWARE)),
    "software_dynamic": Where("queue_type", "in", _BY_SOFTWARE),
    "hardware_dynamic": Where("queue_type", "in", _BY_HARDWARE),
}
_NO_COLLECTIVES = ("DmaPacket", "ts_is_cc_dma")
_NO_COLLECTIVES_NOTE = (
    "Where no table of collectives was captured, it is 0 if every DMA packet says that it serves none (ts_is_cc_dma)."
)


def _engines() -> dict[str, Definition]:
    made: dict[str, Definition] = {}
    for engine in ENGINES:
        group, here = f"{engine} engine", Where("engine", "engine", (engine,))
        made |= {
            f"{engine}_engine_instruction_count": Definition(Rows("count", _instructions(here)), group, "Waits count here."),
            f"{engine}_engine_instruction_time": Definition(
                Rows("sum", _instructions(here, _WORK), "duration_ns", _NS), group, "Overlapping instructions count twice."
            ),
            f"{engine}_engine_active_time": Definition(Rows("union", _instructions(here, _WORK), per=_NS), group),
            f"{engine}_engine_active_time_percent": Definition(Formula((f"{engine}_engine_active_time / total_time",)), group),
        }
    return made


def _dma_kinds() -> dict[str, Definition]:
    made: dict[str, Definition] = {}
    note = "neuron-profile up to 2.27 divides by dma_active_time, later versions by total_time."
    for kind, where in _KINDS.items():
        made |= {
            f"{kind}_dma_active_time": Definition(Rows("union", _packets(where), per=_NS), _DMA),
            f"{kind}_dma_active_time_percent": Definition(Formula((f"{kind}_dma_active_time / dma_kind_whole",)), _DMA, note),
            f"{kind}_dma_packet_count": Definition(Rows("count", _packets(where)), _DMA),
            f"{kind}_dma_packet_percent": Definition(Formula((f"{kind}_dma_packet_count / dma_packet_count",)), _DMA),
            f"{kind}_dma_size": Definition(Rows("sum", _packets(where), "transfer_bytes"), _DMA),
            f"{kind}_dma_size_percent": Definition(Formula((f"{kind}_dma_size / dma_packet_bytes",)), _DMA),
        }
    return made


def _bytes() -> dict[str, Definition]:
    names = [f"{m}_{d}_bytes" for m in ("hbm", "sbuf", "psum") for d in ("read", "write")]
    names += ["psum_read_sbuf_write_bytes", "spill_save_bytes", "spill_reload_bytes"]
    made = {name: Definition(Rows("sum", _instructions(), name), _MEMORY) for name in names}
    for name, types in (
        ("weight", ("WEIGHT",)),
        ("inputs_and_weights", ("IN", "WEIGHT")),
        ("inputs_outputs_weights", ("IN", "OUT", "WEIGHT")),
    ):
        made[f"{name}_size_bytes"] = Definition(
            Rows("sum", (Source("TensorInfo", (Where("type", "in", types),)),), "size"), _MEMORY
        )
    for name, queue in (("input", "input"), ("output", "output"), ("weight", "data")):
        blocks = (Source("DmaPacketAggregated", (Where("queue_type", "in", (queue,)),)),)
        made[f"{name}_queue_bytes"] = Definition(Rows("sum", blocks, "transfer_bytes"), _MEMORY)
    made["psum_read_sbuf_write_count"] = Definition(
        Rows("count", _instructions(Where("psum_read_sbuf_write_bytes", "positive"))), _MEMORY
    )
    return made


def _collectives() -> dict[str, Definition]:
    made: dict[str, Definition] = {}
    for active, total, table in (
        ("cc_op_active_time", "cc_op_time", "CcOp"),
        ("cc_cores_instruction_active_time", "cc_cores_instruction_time", "CcInstruction"),
    ):
        rows, none = (Source(table),), _NO_COLLECTIVES
        made |= {
            total.replace("_time", "_count"): Definition(Rows("count", rows, none_if=none), _CC, _NO_COLLECTIVES_NOTE),
            total: Definition(Rows("sum", rows, "duration_ns", _NS, none), _CC, _NO_COLLECTIVES_NOTE),
            active: Definition(Rows("union", rows, per=_NS, none_if=none), _CC, _NO_COLLECTIVES_NOTE),
            f"{active}_percent": Definition(Formula((f"{active} / total_time",)), _CC),
        }
    return made


def _flops() -> dict[str, Definition]:
    transpose = Where("tensor_instruction_type", "in", ("TRANSPOSE",))
    matmul = Where("opcode", "in", ("MATMUL",))
    hlo = "From the HLO module; not captured where there is none, which is so for NKI kernels (AWS writes 0 there)."
    mfu, best = "{} / (peak_flops * total_time)", "min(1, {} / hbm_bytes / peak_flops_bandwidth_ratio)"
    inst = "(hardware_flops - transpose_flops)"
    made = {
        "hardware_flops": Definition(Rows("sum", _instructions(matmul), "raw_flops"), _TENSOR, "A multiply-add is two FLOPs."),
        "transpose_flops": Definition(Rows("sum", _instructions(matmul, transpose), "raw_flops"), _TENSOR),
        "adjusted_hardware_flops": Definition(Rows("sum", _instructions(matmul), "adjusted_flops"), _TENSOR),
        "adjusted_transpose_flops": Definition(Rows("sum", _instructions(matmul, transpose), "adjusted_flops"), _TENSOR),
        "model_flops": Definition(
            Rows(
                "sum",
                _instructions(matmul, Where("tensor_instruction_type", "not in", ("TRANSPOSE",)), Where("hlo_name", "present")),
                "raw_flops",
                needs_rows=True,
            ),
            _TENSOR,
            f"{hlo} AWS takes it from HLO statistics, which are no rows; the MATMUL rows that come from an HLO operation and are no"
            " transposes give the same figure in the 13 profiles.",
        ),
        "hfu_estimated_percent": Definition(
            Formula((mfu.format("hardware_flops"),)),
            _TENSOR,
            "neuron-profile 2.27 is lower by one part in 81,920,000 in each of 13 profiles, to the last digit, where its MFU by the"
            " same formula is exact; why is not known.",
            apart=1 / 81_920_000,
        ),
        "mm_arithmetic_intensity": Definition(Formula((f"{inst} / hbm_bytes",)), _TENSOR),
        "peak_flops_bandwidth_ratio": Definition(Formula(("peak_flops / hbm_bandwidth",)), _TENSOR),
        "matmul_instruction_count": Definition(Rows("count", _instructions(matmul)), _TENSOR),
    }
    for name, top in (("mfu_", ("model_flops", inst)), ("mfu_hlo_", ("model_flops",)), ("mfu_inst_", (inst,))):
        note = hlo if name == "mfu_hlo_" else "" if name == "mfu_inst_" else "With model_flops if captured, else from instructions."
        made[f"{name}estimated_percent"] = Definition(Formula(tuple(mfu.format(t) for t in top)), _TENSOR, note)
        made[f"{name}max_achievable_estimated_percent"] = Definition(Formula(tuple(best.format(t) for t in top)), _TENSOR, note)
    return made


def _overall() -> dict[str, Definition]:
    everything = (Source("Instruction"), Source("DmaPacket", optional=True), Source("CcOp", optional=True))
    work = (Source("Instruction", (_WORK,)), Source("DmaPacket"), Source("CcOp", optional=True))
    setup = (Source("Instruction", (Where("opcode", "not in", SETUP),)), Source("DmaPacket"))
    return {
        "total_time": Definition(
            Reported(Rows("span", everything, per=_NS)),
            _OVERALL,
            "The runtime's own start and stop, which are no rows. Where the source reports none: last end minus first start.",
        ),
        "neuroncore_cycle_count": Definition(Reported(Formula(("total_time * clock",))), _OVERALL),
        "trace_count": Definition(Reported(), _OVERALL, "Counts events of the raw trace, not all of which become rows."),
        "event_count": Definition(Reported(), _OVERALL, "Counts notifications of the raw trace, not all of which become rows."),
        "total_row_count": Definition(Reported(), _OVERALL),
        "dma_queue_count": Definition(Reported(), _DMA, "Counts queues of the NEFF; DmaQueuesInfo has only some of them."),
        "total_exec_time": Definition(
            Rows("span", setup, per=_NS),
            _OVERALL,
            "After the schema's text: no profile with a figure of AWS's has been seen to check it against.",
        ),
        "total_active_time": Definition(Rows("union", work, per=_NS), _OVERALL),
        "total_active_time_percent": Definition(Formula(("total_active_time / total_time",)), _OVERALL),
    }


def _dma() -> dict[str, Definition]:
    transfers = (Source("DmaPacketAggregated"),)
    return {
        "dma_active_time": Definition(Rows("union", _packets(), per=_NS), _DMA),
        "dma_active_time_percent": Definition(Formula(("dma_active_time / total_time",)), _DMA),
        "dma_active_cycles": Definition(Formula(("dma_active_time * clock",)), _DMA),
        "dma_packet_time": Definition(Rows("sum", _packets(), "duration_ns", _NS), _DMA),
        "dma_transfer_time": Definition(Rows("sum", transfers, "duration_ns", _NS), _DMA),
        "dma_transfer_count": Definition(Rows("count", transfers), _DMA),
        "dma_transfer_total_bytes": Definition(Rows("sum", transfers, "transfer_bytes"), _DMA),
        "dma_transfer_average_bytes": Definition(Formula(("dma_transfer_total_bytes / dma_transfer_count",)), _DMA),
        "mbu_estimated_percent": Definition(Formula(("hbm_bytes / total_time / hbm_bandwidth",)), _MEMORY),
        "mbu_min_read_util_percent": Definition(Formula(("inputs_and_weights_size_bytes / total_time / hbm_bandwidth",)), _MEMORY),
    }


def _activate() -> dict[str, Definition]:
    rows = _instructions(Where("opcode", "in", ("ACTIVATE", "ACTIVATE_QUANTIZE")))
    return {
        "activate_instruction_count": Definition(Rows("count", rows), "scalar engine"),
        "activate_instruction_time": Definition(Rows("sum", rows, "duration_ns", _NS), "scalar engine"),
    }


#: What the formulas use beside metrics: no columns of Summary.
TERMS: Mapping[str, Definition] = {
    "clock": Definition(Formula(("clock_gigahertz * 1000000000",)), "terms", unit="hertz"),
    "clock_gigahertz": Definition(Cell("Metadata", "neuroncore_clock_freq"), "terms", unit="gigahertz"),
    "array_rows": Definition(Cell("Metadata", "tensor_engine_num_rows"), "terms"),
    "array_columns": Definition(Cell("Metadata", "tensor_engine_num_cols"), "terms"),
    "array_gigahertz": Definition(Cell("Metadata", "tensor_engine_clock_freq"), "terms", unit="gigahertz"),
    "physical_cores": Definition(Cell("Metadata", "num_physical_cores"), "terms"),
    # FLOPs are added up over the physical cores of the logical one, so the peak is that of all their arrays.
    "peak_flops": Definition(
        Formula(
            (
                "2 * array_rows * array_columns * array_gigahertz * 1000000000 * physical_cores",
                "2 * array_rows * array_columns * array_gigahertz * 1000000000",
            )
        ),
        "terms",
        unit="flops_per_second",
    ),
    "hbm_bandwidth": Definition(Cell("Metadata", "hbm_ddr_bandwidth"), "terms", unit="bytes_per_second"),
    "hbm_bytes": Definition(Formula(("hbm_read_bytes + hbm_write_bytes",)), "terms", unit="bytes"),
    "dma_packet_count": Definition(Rows("count", _packets()), "terms"),
    "dma_packet_bytes": Definition(Rows("sum", _packets(), "transfer_bytes"), "terms", unit="bytes"),
    "dma_kind_whole": Definition(ByVersion((2, 27), "dma_active_time", "total_time"), "terms", unit="seconds"),
    **{n: d for n, d in _dma_kinds().items() if n in ("dynamic_dma_active_time", "dynamic_dma_packet_count", "dynamic_dma_size")},
}

#: Every column of the schema's Summary.
METRICS: Mapping[str, Definition] = {
    **_overall(),
    **_flops(),
    **_engines(),
    **_activate(),
    **_dma(),
    **{n: d for n, d in _dma_kinds().items() if n not in TERMS},
    **_bytes(),
    **_collectives(),
}
