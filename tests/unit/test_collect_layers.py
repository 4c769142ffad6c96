"""Layer paths and the tree of them over time."""

from __future__ import annotations

import json

import pytest

from collectors.nki.layers import path
from emulator.program import Frame
from explorer.analysis import intervals
from tests.unit.collect_program import rows


def frames(*functions: str) -> tuple[Frame, ...]:
    return tuple(Frame("k.py", 1, 1, f) for f in functions)


@pytest.mark.parametrize(
    ("functions", "scope", "layer"),
    [
        (("kernel",), "", "/kernel"),
        (("kernel", "helper"), "", "/kernel/helper"),
        (("kernel", "helper"), "block/qk", "/kernel/block/qk/helper"),
        (("kernel", "kernel.<locals>.inner"), "", "/kernel/inner"),
        (("kernel", "kernel.<locals>.<listcomp>", "helper"), "", "/kernel/helper"),
        (("kernel", "kernel.<locals>.<lambda>"), "", "/kernel"),
        (("kernel", "walk", "walk", "walk"), "", "/kernel/walk"),
        ((), "", "/squares"),
    ],
)
def test_a_path_is_entry_then_scopes_then_functions(functions: tuple[str, ...], scope: str, layer: str) -> None:
    assert path("squares", frames(*functions), scope) == layer


def test_instructions_in_a_scope_have_its_layer() -> None:
    found = rows("Instruction", "opcode", "layer")
    assert all(("/act/" in r["layer"]) == (r["opcode"] == "ACTIVATE") for r in found)


def test_a_node_covers_its_instructions_and_their_transfers() -> None:
    instructions, transfers = rows("Instruction"), {r["ts_instruction_id"]: r for r in rows("DmaPacketAggregated")}
    nodes = rows("FrameworkNode")
    assert {n["ts_path"] for n in nodes} >= {r["layer"] for r in instructions}
    for node in nodes:
        mine = [r for r in instructions if r["layer"] == node["ts_path"] or r["layer"].startswith(node["ts_path"] + "/")]
        spans = [(r["start_ts"], r["end_ts"]) for r in mine]
        spans += [(t["start_ts"], t["end_ts"]) for r in mine if (t := transfers.get(r["id"]))]
        start, end = intervals.union([s for s, _ in spans], [e for _, e in spans])
        assert json.loads(node["time_intervals"]) == [[s, e] for s, e in zip(start.tolist(), end.tolist(), strict=True)]
        assert node["ts_active_ns"] == int((end - start).sum())
        assert (node["start_ts"], node["end_ts"]) == (start[0], end[-1])
        for column in ("hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes"):
            assert node[column] == sum(r[column] for r in mine)
        for engine in ("tensor", "vector", "scalar", "gpsimd", "sync"):
            on = [r for r in mine if r["engine"] == engine]
            assert node[f"{engine}_engine_instruction_count"] == len(on)
            ends = [min(r["start_ts"] for r in on), max(r["end_ts"] for r in on)] if on else []
            assert json.loads(node[f"total_time_{engine}"]) == ends
        moved = json.loads(node["hbm_transfer_size_per_interval"])
        assert len(moved) == len(start)
        assert sum(moved) == node["hbm_read_bytes"] + node["hbm_write_bytes"]
        flops = sum(r["raw_flops"] or 0 for r in mine)
        assert 2 * sum(json.loads(node["element_count_per_interval"])) == flops
        assert node["hfu"] == pytest.approx(flops / (2 * 128 * 128 * 2.4 * node["ts_active_ns"]))


def test_the_tree_hangs_together() -> None:
    nodes = {n["ts_id"]: n for n in rows("FrameworkNode")}
    for number, node in nodes.items():
        children = json.loads(node["children_ids"])
        assert children == [n for n, c in nodes.items() if c["ts_parent_id"] == number]
        assert node["children_names"] == f"[{', '.join(nodes[c]['node_name'] for c in children)}]"
        if node["ts_parent_id"] is not None:
            assert node["parent_name"] == nodes[node["ts_parent_id"]]["node_name"]
