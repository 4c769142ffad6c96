"""Where a selected instruction comes from: its call stack and the loop values around it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from explorer.store.arrays import rows_equal
from explorer.store.reader import Profile

#: Deeper stacks than Python allows can only be a loop in a damaged table.
_DEEPEST = 1000
_TIE = "kernel_instruction_name"


@dataclass(frozen=True, slots=True)
class Frame:
    """One level of a call stack: the statement that was executing."""

    function: str | None
    file: str | None
    line: int | None

    @property
    def place(self) -> str:
        """`file:line`, as far as it is known."""
        return f"{self.file or '(unknown file)'}{'' if self.line is None else f':{self.line}'}"


class Origins:
    """Looks up stacks and loops in the kernel tables of a profile; empty answers where they were not captured."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def of(self, row: Mapping[str, Any]) -> tuple[list[Frame], list[tuple[str, int]]]:
        """The frames of an `Instruction` row, innermost first, and its loop variables with their values, outermost first."""
        tie = self._tie(row)
        return self._stack(row, tie), self._loops(tie)

    def _stack(self, row: Mapping[str, Any], tie: Mapping[str, Any]) -> list[Frame]:
        inner = tie.get("stack_frame_id")
        ids = [int(i) for i in re.findall(r"\d{1,18}", str(row.get("stack_frame_ids") or ""))]
        if inner is None and ids:
            inner = ids[-1]
        frames: list[Frame] = []
        while inner in self._frames and len(frames) < _DEEPEST:
            held = self._frames[inner]
            line = held["line_number"] if held["ts_line"] is None else held["ts_line"]
            frames.append(Frame(held["fully_qualified_function_name"], held["file_path"], line))
            inner = held["parent_stack_frame_id"]
        return frames

    def _loops(self, tie: Mapping[str, Any]) -> list[tuple[str, int]]:
        inner = tie.get("iteration_variables_id")
        found: list[tuple[str, int]] = []
        while inner in self._iterations and len(found) < _DEEPEST:
            held = self._iterations[inner]
            found.insert(0, (str(held["variable_name"]), held["variable_value"]))
            inner = held["parent_iteration_variable_id"]
        return found

    def _tie(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The `KernelInstructions` row that the instruction names; empty where there is none."""
        name = row.get(_TIE)
        if name is None or self._names is None:
            return {}
        rows = rows_equal(self._names, str(name))
        return self._profile.row("KernelInstructions", int(rows[0])) if len(rows) else {}

    @cached_property
    def _names(self) -> pa.ChunkedArray | None:
        table = self._profile.table("KernelInstructions", [_TIE])
        return None if table is None else table[_TIE]

    @cached_property
    def _frames(self) -> dict[int | None, dict[str, Any]]:
        columns = [
            "stack_frame_id",
            "fully_qualified_function_name",
            "parent_stack_frame_id",
            "file_path",
            "line_number",
            "ts_line",
        ]
        return self._by_id("KernelStackFrames", columns)

    @cached_property
    def _iterations(self) -> dict[int | None, dict[str, Any]]:
        columns = ["iteration_variable_id", "variable_name", "variable_value", "parent_iteration_variable_id"]
        return self._by_id("KernelIterationVariables", columns)

    def _by_id(self, name: str, columns: list[str]) -> dict[int | None, dict[str, Any]]:
        table = self._profile.table(name, columns)
        return {} if table is None else {row[columns[0]]: row for row in table.to_pylist()}
