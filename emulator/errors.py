"""What can go wrong in a kernel, in words for its author: one line that names the place, the rule and the way out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, Never

from emulator.stacks import is_internal

_RUN: Final = str(Path(__file__).with_name("run.py"))


class EmulatorError(Exception):
    """A kernel cannot be loaded or run; the text is one line for the user."""


class KernelLoadError(EmulatorError):
    """The file holds no kernel that can be run."""


class KernelError(EmulatorError):
    """The kernel raised. `traceback` is its own traceback, the emulator's frames cut away."""

    def __init__(self, message: str, traceback: str) -> None:
        super().__init__(message)
        self.traceback = traceback


class RuleError(EmulatorError):
    """The kernel asks for what the NeuronCore or the language does not allow."""


class OutsideKernel(RuleError):
    """A language call was made while no kernel was running."""


class UnsupportedCall(EmulatorError):
    """The kernel uses a call that the emulator does not have."""


def place() -> str:
    """`file:line` of the kernel's statement that is executing, "" outside any."""
    frame = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code):
        # Who asked for the run is no part of the kernel.
        if frame.f_back is None or frame.f_code.co_filename == _RUN:
            return ""
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def broken_rule(text: str) -> Never:
    """Raise `RuleError` with the kernel's place before `text`."""
    at = place()
    raise RuleError(f"{at}: {text}" if at else text)


def unsupported(name: str, what: str = "is not emulated yet") -> Never:
    """Raise `UnsupportedCall` for the call `name`."""
    at = place()
    raise UnsupportedCall(f"{at}: {name} {what}" if at else f"{name} {what}")
