"""Profiles as native Perfetto traces (`.pftrace`): instructions, DMA, layers, counters and dependency flows."""

from explorer.export.perfetto.export import DMA, Dma, ExportResult, export
from explorer.export.window import Window

__all__ = ["DMA", "Dma", "ExportResult", "Window", "export"]
