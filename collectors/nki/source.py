"""Where each instruction comes from: call stacks, loop values and the paths that a profile stores."""

from __future__ import annotations

import ast
import functools
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from collectors.nki.rows import Int, ints, take
from emulator.program import Frame, Program

DESCRIPTIONS = {
    "KernelStackFrames.ts_line": "First line of the statement that was executing in this frame.",
    "KernelStackFrames.ts_end_line": "Its last line.",
}


@dataclass(frozen=True, slots=True)
class Paths:
    """Turns paths of source files into what a profile stores: the same in every folder, without names of people or machines.

    Below `root`: relative to it. Elsewhere: relative to the longest entry of Python's module path that holds the file, or the bare
    name. Names that are no path ("<stdin>") stay.
    """

    root: Path

    def stored(self, file: str) -> str:
        """The path as stored, with forward slashes."""
        if file.startswith("<"):
            return file
        below = self._below(file)
        if below is not None:
            return below.as_posix()
        path = Path(os.path.abspath(file))
        entries = [Path(os.path.abspath(entry)) for entry in sys.path if entry]
        holding = max((e for e in entries if path.is_relative_to(e)), key=lambda e: len(e.parts), default=path.parent)
        return path.relative_to(holding).as_posix()

    def outside(self, file: str) -> bool:
        """Whether the file is not below the root, so that its stored path does not lead back to it."""
        return not file.startswith("<") and self._below(file) is None

    def _below(self, file: str) -> Path | None:
        """The path from the root to the file, or None; a link to a folder and the folder are the same place."""
        path = Path(os.path.abspath(file))
        for one, root in ((path, self.root), (path.resolve(), self.root.resolve())):
            if one.is_relative_to(root):
                return one.relative_to(root)
        return None


@dataclass(frozen=True, slots=True)
class Sources:
    """The stacks of a program in the shape of the tables.

    `frame` holds, for each stack, the ids of its frames, outermost first. Ids count from 1 in order of first use.
    """

    frames: tuple[Frame, ...]
    parents: tuple[int | None, ...]
    stacks: tuple[tuple[int, ...], ...]
    paths: dict[str, str]


def sources(program: Program, paths: Paths) -> Sources:
    """The distinct frames of a program: two stacks share a frame as far as they agree from the kernel entry down."""
    ids: dict[tuple[int | None, Frame], int] = {}
    stacks = []
    for stack in program.stacks:
        parent: int | None = None
        row = []
        for frame in stack:
            parent = ids.setdefault((parent, frame), len(ids) + 1)
            row.append(parent)
        stacks.append(tuple(row))
    files = {f.file for _, f in ids} | {loop.file for loop in program.loops}
    return Sources(
        frames=tuple(f for _, f in ids),
        parents=tuple(p for p, _ in ids),
        stacks=tuple(stacks),
        paths={file: paths.stored(file) for file in sorted(files)},
    )


def kernel_stack_frames(source: Sources) -> pa.Table:
    """`KernelStackFrames`: a row for each distinct frame. `line_number` is where the function is defined, `ts_line` to
    `ts_end_line` the statement in it that was executing."""
    frames = source.frames
    return pa.table(
        {
            "stack_frame_id": pa.array(range(1, len(frames) + 1), pa.int64()),
            "fully_qualified_function_name": pa.array([f.function for f in frames], pa.string()),
            "parent_stack_frame_id": pa.array(source.parents, pa.int64()),
            "file_path": pa.array([source.paths[f.file] for f in frames], pa.string()),
            "line_number": pa.array([_definition(f.file, f.function, f.line) for f in frames], pa.int64()),
            "ts_line": pa.array([f.line for f in frames], pa.int64()),
            "ts_end_line": pa.array([f.end_line for f in frames], pa.int64()),
        }
    )


@functools.lru_cache(maxsize=256)
def _functions(file: str) -> tuple[tuple[str, int, int], ...]:
    """Name, first and last line of each function in a file; nothing where the file cannot be read or parsed."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, ValueError, SyntaxError):
        return ()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return tuple((n.name, n.lineno, n.end_lineno or n.lineno) for n in ast.walk(tree) if isinstance(n, kinds))


def _definition(file: str, function: str, line: int) -> int | None:
    name = function.rsplit(".", 1)[-1]
    around = [first for known, first, last in _functions(file) if known == name and first <= line <= last]
    return max(around, default=None)


def kernel_iteration_variables(program: Program, source: Sources) -> pa.Table:
    """`KernelIterationVariables`: a row for each value of each loop variable; ids are 1 + position in `Program.loops`."""
    loops = program.loops
    parent = np.fromiter((loop.parent for loop in loops), np.int64, len(loops))
    return pa.table(
        {
            "iteration_variable_id": ints(np.arange(1, len(loops) + 1)),
            "variable_name": pa.array([loop.name for loop in loops], pa.string()),
            "variable_value": pa.array([loop.value for loop in loops], pa.int64()),
            "parent_iteration_variable_id": ints(parent + 1, missing=parent < 0),
            "file_path": pa.array([source.paths[loop.file] for loop in loops], pa.string()),
            "line_number": pa.array([loop.line for loop in loops], pa.int64()),
        }
    )


def loop_depths(program: Program) -> Int:
    """How many loops each entry of `Program.loops` is nested in, itself counted."""
    depth = np.ones(len(program.loops), np.int64)
    for i, loop in enumerate(program.loops):
        if loop.parent >= 0:
            depth[i] = depth[loop.parent] + 1
    return depth


def loop_texts(program: Program) -> list[str]:
    """Loop values for people, outermost first: "m=0 n=3"."""
    texts: list[str] = []
    for loop in program.loops:
        own = f"{loop.name}={loop.value}"
        texts.append(f"{texts[loop.parent]} {own}" if loop.parent >= 0 else own)
    return texts


def kernel_instructions(program: Program, source: Sources) -> pa.Table:
    """`KernelInstructions`: a row for each API call of the kernel (a matmul's LDWEIGHTS and MATMUL share one)."""
    _, first = np.unique(program.call, return_index=True)
    rows = np.sort(first)
    stack, loop = program.stack[rows].astype(np.int64), program.loop[rows].astype(np.int64)
    innermost = np.array([s[-1] if s else 0 for s in source.stacks] or [0], np.int64)
    depth = np.array([len(s) for s in source.stacks] or [0], np.int64)
    nesting = np.concatenate((loop_depths(program), [0]))
    has_stack = (stack >= 0) & (depth[stack] > 0) if len(source.stacks) else np.zeros(len(rows), np.bool_)
    place = innermost[stack] - 1
    return pa.table(
        {
            "kernel_instruction_name": call_names(program.call[rows]),
            "stack_frame_id": ints(innermost[stack], missing=~has_stack),
            "stack_frame_depth": ints(np.where(has_stack, depth[stack], 0)),
            "iteration_variables_id": ints(loop + 1, missing=loop < 0),
            "iteration_variable_depth": ints(nesting[loop]),
            "pcore_idx": ints(program.core[rows]),
            "file_path": take([source.paths[f.file] for f in source.frames], place, missing=~has_stack),
            "line_number": ints(
                np.array([f.line for f in source.frames] or [0], np.int64)[np.where(has_stack, place, 0)], missing=~has_stack
            ),
        }
    )


def call_names(call: Int) -> pa.Array:
    """The name of each call, as `Instruction.kernel_instruction_name` has it: "inst.12"."""
    distinct, inverse = np.unique(call, return_inverse=True)
    return take([f"inst.{c}" for c in distinct.tolist()], inverse)
