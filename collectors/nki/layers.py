"""Layers: where in the kernel an instruction belongs, as a path, and the tree of those paths over time.

The path is "/kernel/scopes/functions": the kernel's entry function, then its named scopes, outermost first, then the functions that
are on the call stack below the entry. Scopes come before functions because the user chose them: all that runs in one is below it.
A function that calls itself directly is one part; lambdas and comprehensions are none.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from collectors.nki.ids import Ids
from collectors.nki.rows import Int, take, unique_rows
from collectors.nki.traffic import Traffic
from emulator.program import ENGINES, Frame, InstructionFlag, Program, Space, Timeline
from explorer.analysis import intervals
from explorer.analysis.summary_definitions import WAITS

DESCRIPTIONS = {
    "FrameworkNode.ts_id": "Number of the node, as children_ids has it.",
    "FrameworkNode.ts_path": "The node's whole path, as Instruction.layer has it.",
    "FrameworkNode.ts_parent_id": "ts_id of the parent; null at the top.",
    "FrameworkNode.ts_active_ns": "Length of time_intervals together, in nanoseconds.",
}


@dataclass(frozen=True, slots=True)
class Layers:
    """Distinct layer paths, sorted, and the path of each instruction as an index into them."""

    paths: tuple[str, ...]
    of: Int

    def column(self) -> pa.Array:
        """`Instruction.layer`."""
        return take(self.paths, self.of)


def layers(program: Program) -> Layers:
    """The layer of each instruction."""
    first, inverse = unique_rows((program.stack, program.scope))
    texts = []
    for row in first.tolist():
        stack, scope = int(program.stack[row]), int(program.scope[row])
        texts.append(path(program.kernel, program.stacks[stack] if stack >= 0 else (), program.scopes[scope] if scope >= 0 else ""))
    paths = sorted(set(texts))
    number = {p: i for i, p in enumerate(paths)}
    return Layers(tuple(paths), np.array([number[t] for t in texts], np.int64)[inverse])


def path(kernel: str, stack: tuple[Frame, ...], scope: str) -> str:
    """The layer path of one call stack inside one named scope."""
    functions = [_part(frame.function) for frame in stack] or [kernel]
    parts = [functions[0], *(p for p in scope.split("/") if p), *(f for f in functions[1:] if not f.startswith("<"))]
    return "/" + "/".join(p for i, p in enumerate(parts) if i == 0 or p != parts[i - 1])


@functools.lru_cache(maxsize=4096)
def _part(function: str) -> str:
    return function.rsplit(".", 1)[-1].replace("/", "∕")


@dataclass(frozen=True, slots=True)
class Peaks:
    """What the shares of `FrameworkNode` are shares of, all physical cores together: FLOPs and HBM bytes a nanosecond.

    None where the target does not say.
    """

    flops: float | None
    hbm_bytes: float | None


def framework_node(program: Program, timeline: Timeline, ids: Ids, layer: Layers, moved: Traffic, peaks: Peaks) -> pa.Table:
    """`FrameworkNode`: a row for each layer path and each path above one, with the time its operations take.

    `time_intervals` is the union of its instructions and of the transfers they start. Of the shares, `hfu` and `mfu` are fractions
    of the union, those per interval are percent.
    """
    below: dict[str, list[int]] = {}
    for code, text in enumerate(layer.paths):
        parts = text.split("/")
        for depth in range(2, len(parts) + 1):
            below.setdefault("/".join(parts[:depth]), []).append(code)
    # Rows are put in groups once: looking through all of them for each node would take a million times a thousand steps.
    order = np.argsort(layer.of, kind="stable")
    ptr = np.searchsorted(layer.of[order], np.arange(len(layer.paths) + 1))
    tree = _Tree.of(sorted(below))
    hbm = moved.read[Space.HBM] + moved.write[Space.HBM]
    rows = []
    for node in tree.number:
        members = np.sort(np.concatenate([order[ptr[code] : ptr[code + 1]] for code in below[node]]))
        rows.append(_Node(program, timeline, ids, moved, hbm, node, members).row(tree, peaks))
    return pa.Table.from_pylist(rows)


@dataclass(frozen=True, slots=True)
class _Tree:
    """The nodes by path in sorted order with their numbers from 1, and each one's children in that order."""

    number: dict[str, int]
    children: dict[str, list[str]]

    @classmethod
    def of(cls, nodes: list[str]) -> _Tree:
        children: dict[str, list[str]] = {node: [] for node in ("", *nodes)}
        for node in nodes:
            children[node.rpartition("/")[0]].append(node)
        return cls({node: i for i, node in enumerate(nodes, 1)}, children)


class _Node:
    """One node of the tree while its row is built."""

    def __init__(self, program: Program, timeline: Timeline, ids: Ids, moved: Traffic, hbm: Int, path: str, rows: Int) -> None:
        self.program, self.timeline, self.moved, self.path = program, timeline, moved, path
        waits = np.array([name in WAITS for name in program.opcodes])
        self.rows = rows[~waits[program.opcode[rows]]]
        transfer = ids.transfer_of[self.rows]
        self.transfer = transfer[transfer >= 0]
        moves = timeline.transfers
        start = np.concatenate((timeline.start[self.rows], moves.start[self.transfer]))
        end = np.concatenate((timeline.end[self.rows], moves.end[self.transfer]))
        self.start, self.end = intervals.union(start, end)
        self.hbm = self._per_interval(moves.start[self.transfer], hbm[moves.instruction[self.transfer]])
        transposes = (program.flags[self.rows] & InstructionFlag.TRANSPOSE) != 0
        self.flops = self._work(program.adjusted_flops, np.ones(len(self.rows), np.bool_))
        self.transpose_flops = self._work(program.adjusted_flops, transposes)
        self.raw = self._work(program.raw_flops, ~transposes)
        self.raw_transposes = self._work(program.raw_flops, transposes)

    def _per_interval(self, start: Int, amount: Int) -> Int:
        total = np.zeros(len(self.start), np.int64)
        if len(total):
            np.add.at(total, np.clip(np.searchsorted(self.start, start, "right") - 1, 0, None), amount)
        return total

    def _work(self, amount: Int, wanted: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Int:
        rows = self.rows[wanted & (amount[self.rows] > 0)]
        return self._per_interval(self.timeline.start[rows], amount[rows])

    def row(self, tree: _Tree, peaks: Peaks) -> dict[str, object]:
        children, number = tree.children[self.path], tree.number
        parent, _, name = self.path.rpartition("/")
        length = self.end - self.start
        program = self.program
        row: dict[str, object] = {
            "node_name": name,
            "children_names": _listed([c.rpartition("/")[2] for c in children]),
            "parent_name": parent.rpartition("/")[2],
            "children_ids": _listed([number[c] for c in children]),
            "start_ts": int(self.start[0]) if len(self.start) else None,
            "end_ts": int(self.end[-1]) if len(self.end) else None,
            "time_intervals": _listed([f"[{s}, {e}]" for s, e in zip(self.start.tolist(), self.end.tolist(), strict=True)]),
            "element_count_per_interval": _listed((self.raw // 2).tolist()),
            "transpose_element_count_per_interval": _listed((self.raw_transposes // 2).tolist()),
            "hbm_transfer_size_per_interval": _listed(self.hbm.tolist()),
            "hfu": _share(self.flops.sum(), peaks.flops, length.sum()),
            "mfu": _share((self.flops - self.transpose_flops).sum(), peaks.flops, length.sum()),
            "hfu_per_interval": _shares(self.flops, peaks.flops, length),
            "mfu_per_interval": _shares(self.flops - self.transpose_flops, peaks.flops, length),
            "mbu_per_interval": _shares(self.hbm, peaks.hbm_bytes, length),
        }
        for kind, space in (("hbm", Space.HBM), ("sbuf", Space.SBUF)):
            row[f"{kind}_read_bytes"] = int(self.moved.read[space][self.rows].sum())
            row[f"{kind}_write_bytes"] = int(self.moved.write[space][self.rows].sum())
        for code, engine in enumerate(ENGINES):
            on = self.rows[program.engine[self.rows] == code]
            row[f"{engine}_engine_instruction_count"] = len(on)
            ends = [int(self.timeline.start[on].min()), int(self.timeline.end[on].max())] if len(on) else []
            row[f"total_time_{engine}"] = _listed(ends)
        loads = np.array([name == "LDWEIGHTS" for name in program.opcodes])[program.opcode[self.rows]]
        row["load_weight_bytes"] = int(self.moved.read[Space.SBUF][self.rows[loads]].sum())
        row["ts_id"], row["ts_path"] = number[self.path], self.path
        row["ts_parent_id"], row["ts_active_ns"] = number.get(parent), int(length.sum())
        return row


def _listed(items: list[object] | list[int] | list[str]) -> str:
    return f"[{', '.join(map(str, items))}]"


def _share(amount: int, peak: float | None, length: int) -> float | None:
    return float(amount / (peak * length)) if peak and length else None


def _shares(amount: Int, peak: float | None, length: Int) -> str | None:
    return _listed([f"{100 * a / (peak * n):.4g}" for a, n in zip(amount.tolist(), length.tolist(), strict=True)]) if peak else None
