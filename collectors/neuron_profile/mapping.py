"""Where each field of neuron-profile's JSON goes: data only.

Names on the left are what neuron-profile 2.27 writes (`--output-format json`); names on the right are columns of schema 7.4.0, or
`ts_` columns of ours where the schema has none. A field that is not named here is kept too: under its own name where the schema has
that column, else as `ts_<field>`; a table that is not named here becomes `Ts<Table>`.
"""

from __future__ import annotations

from collections.abc import Mapping

#: JSON tables with one destination table.
TABLES: Mapping[str, str] = {
    "instruction": "Instruction",
    "semaphore_update": "SemaphoreUpdate",
    "active_time": "ActiveTime",
    "pending_dma": "PendingDma",
    "ham": "Throttle",
    "dma_queues_info": "DmaQueuesInfo",
    "neff_node": "TensorInfo",
    "nc_mem_usage": "HbmUsageSummaryByType",
    "neff_header": "NeffHeader",
    "warnings": "Warning",
    "layer_summary": "TsLayerSummary",
    "model_info": "TsModelInfo",
}

#: JSON tables whose rows are shared out by what a field says: field, then its value to the table.
SPLIT: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "dma": ("aggregated", {"no": "DmaPacket", "yes": "DmaPacketAggregated"}),
    "instruction_usage": ("type", {"sb": "SbufUsage", "psum": "PsumUsage"}),
}

#: JSON tables that several destination tables are made from (`tables.py` says how).
COMBINED = ("metadata", "profile_info", "summary", "dma_throughput")

_TIMES = {"timestamp": "start_ts", "duration": "duration_ns"}

#: Field to column, by destination table. Fields that keep their name are not listed.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "Instruction": {
        **_TIMES,
        "subgroup": "engine",
        "label": "timeline_track",
        "evt_wait_time": "evt_wait_time_ns",
        "instruction_type": "tensor_instruction_type",
        "activation_fn": "scalar_activation_fn",
        "elements": "tensor_elements",
        # Its value is the start of the transfer that the instruction set off.
        "trigger": "dma_trigger_start_ts",
    },
    "DmaPacket": {
        **_TIMES,
        "dma_engine": "engine_idx",
        "dma_queue": "queue_idx",
        "subgroup": "queue_name",
        "read_size": "read_bytes",
        "write_size": "write_bytes",
        "transfer_size": "transfer_bytes",
        "transfer_rate": "throughput",
    },
    "DmaPacketAggregated": {
        **_TIMES,
        "dma_engine": "ts_engine_idx",
        "dma_queue": "queue_idx",
        "subgroup": "queue_name",
        "read_size": "read_bytes",
        "write_size": "write_bytes",
        "transfer_size": "transfer_bytes",
        "transfer_rate": "throughput",
        "source_sb_partitions": "read_sbuf_partitions",
        "source_num_sb_partitions": "read_num_sbuf_partitions",
        "source_offset": "read_offset",
        "source_steps": "read_steps",
        "dest_sb_partitions": "write_sbuf_partitions",
        "dest_num_sb_partitions": "write_num_sbuf_partitions",
        "dest_offset": "write_offset",
        "dest_steps": "write_steps",
    },
    "DmaUsage": {"transfer_rate": "current_throughput"},
    "HbmUsage": {"hbm_transfer_rate": "current_throughput", "hbm_total_transfer_bytes": "total_transfer_bytes"},
    "SbufUsage": {
        "usage_avg": "avg_util_percent",
        **{f"partition_{p}_usage": f"partition_{p}_util_percent" for p in (0, 32, 64, 96)},
    },
    "PsumUsage": {"usage_avg": "avg_util_percent", **{f"bank_{b}_usage": f"bank_{b}_util_percent" for b in range(8)}},
    "Throttle": {"type": "ts_type_code"},
    "DmaQueuesInfo": {
        "q_name": "name",
        "q_type": "type",
        "q_idx": "idx",
        "q_eng_idx": "engine_idx",
        "q_axi_port": "axi_port",
        "q_dram_channel": "dram_channel",
        "q_event_id": "ts_event_id",
    },
    "HbmUsageSummaryByType": {"nd": "neuron_device_idx", "nc": "neuroncore_idx", "amount_bytes": "usage_bytes"},
    "NeffHeader": {
        "number_of_logical_neuroncores": "logical_neuroncore_count",
        "number_of_neuroncores_per_lnc": "pcore_count_per_lnc",
    },
    "Metadata": {
        "pe_num_rows": "tensor_engine_num_rows",
        "pe_num_cols": "tensor_engine_num_cols",
        "pe_clock_freq": "tensor_engine_clock_freq",
        "pe_clock_others": "neuroncore_clock_freq",
        "profiler_version": "explorer_version",
        "profiler_build_time": "explorer_build_time",
        "nc_idx": "neuroncore_idx",
        "nd_idx": "neuron_device_idx",
    },
}

#: Fields of the JSON's summary that describe the capture: columns of Metadata in the schema, not of Summary.
SUMMARY_TO_METADATA = (
    "instance_type",
    "runtime_version",
    "collectives_version",
    "driver_version",
    "compiler_version",
    "profiler_version",
    "nc_idx",
    "nd_idx",
    "ultraserver_id",
    "ultraserver_type",
    "ultraserver_size",
    "ultraserver_instance_index",
    "s3_bucket_path",
)

#: Fields of `instruction` that become rows of Flow.
TO_FLOW = ("predecessors",)

#: Arrow type names of our own columns and tables, where the JSON's own types are not the ones to keep: "Table.column" to type.
TYPES: Mapping[str, str] = {
    "DmaPacket.ts_is_cc_dma": "boolean",
    "DmaPacket.ts_duplicate": "boolean",
    "DmaPacketAggregated.ts_is_cc_dma": "boolean",
    "DmaPacketAggregated.ts_duplicate": "boolean",
    "DmaPacketAggregated.ts_engine_idx": "integer (int64)",
    "DmaUsage.ts_uses_hbm": "boolean",
}

#: A value that stands for "absent", by "json_table.field". The empty string is absent in every field.
SENTINELS: Mapping[str, object] = {"dma_queues_info.q_event_id": -1, "dma.semaphore_id": "-1"}

#: What is not imported, with the reason: JSON tables and "json_table.field".
DROPPED: Mapping[str, str] = {
    "terminology": "the viewer's help text, the same in every file; `trnscope explain` has its own",
    "summary_groups": "where the viewer shows each metric; no measurement",
    "summary_group_order": "the order of the viewer's panels; no measurement",
    "dma.aggregated": "says which table a row belongs to: DmaPacket or DmaPacketAggregated",
    "instruction_usage.type": "says which table a row belongs to: SbufUsage or PsumUsage",
}

#: HAM codes of `Throttle.type`. Evidence: in 13 profiles of neuron-profile 2.27 the durations of the rows with code 0 and 99 add up
#: to the summary's throttle_activity_0_* and throttle_unknown_* metrics; no other code occurs in them.
THROTTLE_TYPES: Mapping[int, str] = {0: "activity_0", 99: "unknown"}
