"""Writes usage samples as counter tracks: one sample per row that has a value, as it stands in the profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from explorer.export.perfetto import encoder, layout
from explorer.export.perfetto.arguments import numbers
from explorer.export.perfetto.layout import pb
from explorer.export.perfetto.trace import Trace
from explorer.export.window import Window
from explorer.store import schema
from explorer.store.arrays import integers, valid
from explorer.store.scales import scale


@dataclass(frozen=True, slots=True)
class Counter:
    """A column of a table of samples, and the name and parents of its track below "Counters"."""

    table: str
    column: str
    path: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The unit as the schema or the record of scales gives it; the column's name where neither does."""
        known = scale(self.table, self.column)
        if known is not None:
            return known.kind or self.column
        spec = schema.tables()[self.table].column(self.column)
        unit = spec.unit if spec else None
        return {"bytes_per_second": "B/s", None: ""}.get(unit, unit or "")


COUNTERS: tuple[Counter, ...] = (
    Counter("DmaUsage", "current_throughput", ("DMA bandwidth",)),
    Counter("HbmUsage", "current_throughput", ("HBM bandwidth",)),
    Counter("PendingDma", "value", ("Pending DMAs",)),
    Counter("SbufUsage", "avg_util_percent", ("SBUF use",)),
    *(Counter("SbufUsage", f"partition_{p}_util_percent", ("SBUF use", f"partition {p}")) for p in (0, 32, 64, 96)),
    Counter("PsumUsage", "avg_util_percent", ("PSUM use",)),
    *(Counter("PsumUsage", f"bank_{b}_util_percent", ("PSUM use", f"bank {b}")) for b in range(8)),
)


def samples(rows: pa.Table, counter: Counter, window: Window | None) -> dict[int | None, tuple[encoder.Int, encoder.Int, bool]]:
    """By core: times, values, and whether the values are the bits of doubles. Rows without time or finite value are left out."""
    column = rows[counter.column].combine_chunks()
    double = pa.types.is_floating(column.type)
    time, value = integers(rows["timestamp"], -1), numbers(column)
    keep = valid(column) & (time >= 0)
    if window is not None:
        keep &= window.holds(time)
    if double:
        keep &= np.isfinite(value)
    core = rows["pcore_idx"].combine_chunks().dictionary_encode(null_encoding="encode")
    which = integers(core.indices, 0)
    out: dict[int | None, tuple[encoder.Int, encoder.Int, bool]] = {}
    for code, number in enumerate(core.dictionary.to_pylist()):
        mine = keep & (which == code)
        if mine.any():
            out[number] = (time[mine], value[mine].view(np.int64) if double else value[mine].astype(np.int64), double)
    return out


def write(trace: Trace, track: int, time: encoder.Int, value: encoder.Int, double: bool) -> None:
    """Write samples of one counter track."""
    packet, event = layout.head(pb.TrackEvent.TYPE_COUNTER, None)
    head = event + layout.tag(pb.TrackEvent, "double_counter_value" if double else "counter_value")
    packet_head, event_head = np.frombuffer(packet, np.uint8), np.frombuffer(head, np.uint8)
    trace.fill(
        len(time) * encoder.COUNTER_BYTES,
        lambda out: encoder.write_counters(out, time, value, track, packet_head, event_head, double),
    )
