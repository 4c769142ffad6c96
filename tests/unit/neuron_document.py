"""A small made-up export of neuron-profile, with the traps of real ones: the figures are invented and add up by construction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Beyond 2^53: a double would merge the two.
BIG_ID, NEXT_ID = 9223229769545287789, 9223229769545287788
REAL = Path(__file__).parents[2].parent / "shared" / "data" / "neuron_profile"


def _instruction(ident: int, start: int, duration: int, engine: str, opcode: str, **more: Any) -> dict[str, Any]:
    blank = {
        "layer": "",
        "hlo_name": "",
        "bir_id": "",
        "operands": " ",
        "instruction_type": "",
        "pc": ident % 100,
        "evt_wait_time": 0,
    }
    named = {"id": ident, "timestamp": start, "duration": duration, "subgroup": engine, "label": engine, "opcode": opcode}
    return {**blank, **named, "crc_in": 65535, "fully_qualified_subgraph": "/sg00", **more}


def _packet(ident: int, start: int, duration: int, size: int, queue_type: str, **more: Any) -> dict[str, Any]:
    flags = {"aggregated": "no", "is_cc_dma": "no", "duplicate": "no", "semaphore_id": "-1", "op": "", "subgroup": ""}
    where = {"dma_engine": "3", "dma_queue": "1", "queue_type": queue_type, "source": [["unknown"]], "dest": ["unknown"]}
    sizes = {"transfer_size": size, "read_size": size, "write_size": size, "transfer_rate": size * 10**9 // duration}
    named = {"id": ident, "timestamp": start, "duration": duration, "packet_idx": 0, "packet_aggregation_id": 77, "crc": 1}
    return {**flags, **where, **sizes, **named, **more}


def document() -> dict[str, Any]:
    """One execution of 10,000 ns: a transpose, a matmul, an activation, their loads, and a long wait."""
    matmul = {"hlo_name": "%dot.3", "raw_hlo_id": 3, "raw_framework_id": [5], "layer": "_dot.3"}
    return {
        "metadata": [
            {
                "ntff_version": 5,
                "num_subgraphs": 1,
                "num_physical_cores": 1,
                "vnc_enabled": False,
                "is_simulation": False,
                "first_hw_timestamp": 0,
                "last_hw_timestamp": 10_000,
                "first_ts": "1970-01-01T00:00:00Z",
                "last_ts": "1970-01-01T00:00:00.00001Z",
                "ticks_per_nanosec": 1000,
                "pe_num_rows": 128,
                "pe_num_cols": 128,
                "pe_clock_freq": 2.8,
                "pe_clock_others": 1.4,
                "hbm_ddr_bandwidth": 410_000_000_000,
                "dma_ddr_bandwidth": 435_000_000_000,
                "total_point_count": 12,
            }
        ],
        "profile_info": [{"profiler_version": "2.27.33.0%x", "profile_name": "p", "neff_name": "p.neff", "cc_only": False}],
        "neff_header": [{"uuid": "u", "header_size": "1024", "build_version": "", "number_of_logical_neuroncores": "1"}],
        "summary": [
            {
                "total_time": 1e-05,
                "neuroncore_cycle_count": 14_000,
                "trace_count": 20,
                "event_count": 8,
                "dma_queue_count": 34,
                "matmul_instruction_count": 2,
                "instance_type": "inf2.xlarge",
                "nc_idx": 0,
                "nd_idx": 0,
                "throttle_active_nc0_time_ns": 50,
            }
        ],
        "instruction": [
            _instruction(BIG_ID, 1_000, 300, "Tensor", "MATMUL", elements=1000, instruction_type="TRANSPOSE", **matmul),
            _instruction(
                NEXT_ID,
                1_200,
                400,
                "Tensor",
                "MATMUL",
                elements=5000,
                instruction_type="REGULAR",
                hbm_read_bytes=4096,
                predecessors=[{"id": BIG_ID, "type": "FLOW_DEPENDENCE"}],
                **matmul,
            ),
            _instruction(3, 100, 9_000, "Vector", "EVENT_SEMAPHORE"),
            _instruction(
                4,
                1_700,
                250,
                "Scalar",
                "ACTIVATE",
                activation_fn="COPY",
                is_psum_read_sbuf_write=True,
                psum_read_sbuf_write_bytes=64,
                psum_read_bytes=64,
                hbm_write_bytes=2048,
            ),
            _instruction(5, 0, 7, "Sync", "DRAIN"),
        ],
        "dma": [
            _packet(21, 900, 100, 512, "data", block_id=0, op="copy", subgroup="qLoad0-Q1-E3", semaphore_id="S[8] (qLoad0)"),
            _packet(20, 800, 150, 512, "data", block_id=0, op="copy", subgroup="qLoad0-Q1-E3", semaphore_id="S[8] (qLoad0)"),
            _packet(22, 2_000, 300, 2048, "software_dynamic"),
            {
                **_packet(77, 800, 200, 1024, "data", block_id=0, op="copy", subgroup="qLoad0", trigger=100),
                "aggregated": "yes",
                "source_sb_partitions": "",
                "dest_sb_partitions": "0-127",
                "write_shape": [[256, 128]],
            },
        ],
        "semaphore_update": [{"id": "S[8] (qLoad0)", "timestamp": 1_000, "value": 16}],
        "active_time": [{"engine": "tensor", "pcore_idx": 0, "start_ts": 1_000, "end_ts": 1_600, "duration_ns": 599}],
        "dma_throughput": [
            {
                "timestamp": 900,
                "transfer_rate": 10,
                "total_transfer_bytes": 512,
                "uses_hbm": "false",
                "hbm_transfer_rate": 0,
                "hbm_total_transfer_bytes": 0,
            },
            {
                "timestamp": 1_000,
                "transfer_rate": 20,
                "total_transfer_bytes": 1024,
                "uses_hbm": "true",
                "hbm_transfer_rate": 5,
                "hbm_total_transfer_bytes": 256,
            },
        ],
        "pending_dma": [{"timestamp": 800, "value": 1}],
        "instruction_usage": [
            {"type": "sb", "timestamp": 5, "usage_avg": 0, "partition_0_usage": 0.5},
            {"type": "psum", "timestamp": 6, "usage_avg": 0.125, "bank_1_usage": 1},
        ],
        "ham": [
            {"timestamp": 10, "duration": 50, "k": 7, "n": 8, "type": 0},
            {"timestamp": 60, "duration": 30, "k": 1, "n": 1, "type": 99},
        ],
        "dma_queues_info": [
            {
                "q_name": "qLoad0",
                "q_type": "weights",
                "q_idx": 1,
                "q_eng_idx": 15,
                "q_axi_port": 0,
                "q_dram_channel": 0,
                "q_event_id": -1,
                "subgraph": "sg00",
            }
        ],
        "neff_node": [
            {"sg_name": "sg00", "variable_name": "", "type": "", "node": "2"},
            {"sg_name": "", "variable_name": "input0", "type": "IN", "size": "4096"},
            {"sg_name": "", "variable_name": "w", "type": "WEIGHT", "size": "1024"},
            {"sg_name": "", "variable_name": "output0", "type": "OUT", "size": "2048"},
        ],
        "nc_mem_usage": [{"nd": 0, "nc": 0, "usage_type": "Tensors", "amount_bytes": 7168}],
        "warnings": [{"category": "Missing Data", "message": "Missing additional dynamic DMA metadata."}],
        "layer_summary": [{"name": "/sg00", "start": 0, "end": 10_000, "tensor_engine_hfu": 0.01}],
        "model_info": [{"sg_name": "sg00", "trace_count": 20}],
        "terminology": [{"total_time": "help"}],
        "summary_groups": [{"total_time": "overall_stats"}],
        "summary_group_order": [{"overall_stats": 0}],
    }


def write(path: Path, content: object) -> Path:
    """The path, with the content there as JSON."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
