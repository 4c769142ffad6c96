"""Profiles of NKI kernels that ran on the emulator: `capture(program, timeline, target, source_root=...)` gives their tables."""

from collectors.nki.capture import Captured, capture
from collectors.nki.metadata import Origin

__all__ = ["Captured", "Origin", "capture"]
