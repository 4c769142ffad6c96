"""Where in the kernel's source an instruction was issued: call stacks and loop variables.

Frames are kept as (code, instruction offset) and looked up when the program is finished: a frame's line number costs
microseconds in a long function, its offset tens of nanoseconds.
"""

from __future__ import annotations

import dis
from bisect import bisect_right
from os.path import dirname
from types import CodeType, FrameType
from typing import Final

from emulator.program import Frame, Loop

_PACKAGE: Final = dirname(__file__) + "/"
#: Kernels that we bring are user code: their lines are what a reader wants to see.
_KERNELS: Final = dirname(__file__) + "/kernels/"


def is_internal(code: CodeType) -> bool:
    """Whether a code object is the emulator's own, which no kernel stack shows."""
    file = code.co_filename
    return file.startswith(_PACKAGE) and not file.startswith(_KERNELS)


class StackTable:
    """Every distinct call stack once, by position in order of first appearance."""

    def __init__(self) -> None:
        self._ids: dict[tuple[int, ...], int] = {}
        # Hashing a code object hashes its constants; ids are cheap, and valid while the code is held here.
        self._codes: dict[int, CodeType | None] = {}
        self._held: list[CodeType] = []
        self._entry: FrameType | None = None

    def enter(self, entry: FrameType | None) -> FrameType | None:
        """Begin stacks below frame `entry` (None: at the outermost frame); the previous entry frame comes back."""
        before, self._entry = self._entry, entry
        return before

    def capture(self, frame: FrameType | None) -> int:
        """The id of the stack at `frame`, without the emulator's own frames and those from the entry frame outwards."""
        key: list[int] = []
        codes, entry = self._codes, self._entry
        while frame is not None and frame is not entry:
            code = frame.f_code
            number = id(code)
            if number not in codes:
                self._held.append(code)
                codes[number] = None if is_internal(code) else code
            if codes[number] is not None:
                key.append(number)
                key.append(frame.f_lasti)
            frame = frame.f_back
        found = tuple(key)
        stack = self._ids.get(found)
        if stack is None:
            stack = self._ids[found] = len(self._ids)
        return stack

    def resolve(self) -> tuple[tuple[Frame, ...], ...]:
        """The stacks by id, outermost frame first."""
        positions: dict[int, list[tuple[int | None, int | None, int | None, int | None]]] = {}
        frames: dict[tuple[int, int], Frame] = {}
        stacks = []
        for key in self._ids:
            stack = []
            for place in zip(key[-2::-2], key[-1::-2], strict=True):
                frame = frames.get(place)
                if frame is None:
                    number, offset = place
                    code = self._codes[number]
                    assert code is not None
                    if number not in positions:
                        positions[number] = list(code.co_positions())
                    # Offset -1: the frame has not begun; that does not happen for callers, but costs nothing to answer.
                    line, end_line = positions[number][max(offset, 0) // 2][:2]
                    line = line or code.co_firstlineno
                    frame = frames[place] = Frame(code.co_filename, line, end_line or line, code.co_qualname)
                stack.append(frame)
            stacks.append(tuple(stack))
        return tuple(stacks)


class _Level:
    """One running loop; `row` is the id of its current value once an instruction needed it, else -1."""

    __slots__ = ("file", "line", "name", "row", "value")

    def __init__(self, name: str, file: str, line: int) -> None:
        self.name = name
        self.file = file
        self.line = line
        self.value = 0
        self.row = -1


class LoopStack:
    """The loops that are running; a value gets a row only if an instruction is issued under it."""

    def __init__(self) -> None:
        self._levels: list[_Level] = []
        self._rows: list[Loop] = []
        self._current = -1
        self._stale = False

    def push(self, name: str, file: str, line: int) -> _Level:
        """Enter a loop whose variable is `name`, written at `file`:`line`."""
        level = _Level(name, file, line)
        self._levels.append(level)
        return level

    def set(self, level: _Level, value: int) -> None:
        """The loop's variable takes its next value."""
        level.value = value
        levels = self._levels
        for inner in reversed(levels):
            inner.row = -1
            if inner is level:
                break
        self._stale = True

    def pop(self, level: _Level) -> None:
        """Leave a loop, wherever it stands: zipped loops end in any order."""
        if level in self._levels:
            self._levels.remove(level)
            self._stale = True

    def current(self) -> int:
        """The id of the innermost loop value, -1 outside all loops."""
        if self._stale:
            parent = -1
            for level in self._levels:
                if level.row < 0:
                    level.row = len(self._rows)
                    self._rows.append(Loop(level.name, level.value, parent, level.file, level.line))
                parent = level.row
            self._current = parent
            self._stale = False
        return self._current

    def rows(self) -> tuple[Loop, ...]:
        """Every value that an instruction was issued under, by id."""
        return tuple(self._rows)


_UNPACK: Final = ("UNPACK_SEQUENCE", "UNPACK_EX")
_names: dict[tuple[CodeType, int], tuple[str, int] | None] = {}


def loop_variable(frame: FrameType) -> tuple[str, int] | None:
    """The name and line of the variable that the `for` executing in `frame` assigns; None if it is not executing one.

    Several targets (`for i, j in zip(...)`) are given together, "i, j".
    """
    code, offset = frame.f_code, frame.f_lasti
    key = (code, offset)
    if key not in _names:
        _names[key] = _find_variable(code, offset)
    return _names[key]


def _find_variable(code: CodeType, offset: int) -> tuple[str, int] | None:
    instructions = list(dis.get_instructions(code))
    at = _executing(instructions, offset)
    if at < 0 or instructions[at].opname != "FOR_ITER":
        return None
    instruction = instructions[at]
    line = (instruction.positions.lineno if instruction.positions else None) or code.co_firstlineno
    wanted, names = 1, []
    for following in instructions[at + 1 :]:
        if following.opname in _UNPACK:
            wanted += (following.arg or 1) - 1
        elif following.opname.startswith("STORE_"):
            stored = following.argval if isinstance(following.argval, tuple) else (following.argval,)
            # Fused instructions of later Pythons store and load, or store twice.
            names += [str(name) for name in (stored if following.opname == "STORE_FAST_STORE_FAST" else stored[:1])]
            if len(names) >= wanted:
                return ", ".join(names[:wanted]), line
        elif following.opname not in ("CACHE", "EXTENDED_ARG", "RESUME", "NOP"):
            break
    return ("_", line)


_assigned: dict[tuple[int, int], tuple[CodeType, str]] = {}


def assigned_name(frame: FrameType) -> str:
    """The variable that the call executing in `frame` is assigned to, "" if it is not assigned to one."""
    key = (id(frame.f_code), frame.f_lasti)
    found = _assigned.get(key)
    if found is None:
        found = _assigned[key] = (frame.f_code, _find_assigned(frame.f_code, frame.f_lasti))
    return found[1]


def _find_assigned(code: CodeType, offset: int) -> str:
    instructions = list(dis.get_instructions(code))
    at = _executing(instructions, offset)
    if at < 0 or at + 1 == len(instructions):
        return ""
    following = instructions[at + 1]
    if not following.opname.startswith("STORE_") or following.opname in ("STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR"):
        return ""
    return str(following.argval[0] if isinstance(following.argval, tuple) else following.argval)


def _executing(instructions: list[dis.Instruction], offset: int) -> int:
    """The position of the instruction at `offset`, which may be within the cache entries that follow it; -1 if there is none."""
    return bisect_right(instructions, offset, key=lambda instruction: instruction.offset) - 1
