"""The same trace built with the `perfetto` package's own builder, one packet at a time: what the fast encoder is held against.

It says nothing about lanes: those are taken from the trace that it is compared with, by (table, row).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import numpy as np
import pyarrow as pa
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

UNSIGNED = ("id", "packet_aggregation_id")


class Reference:
    """Writes slices with all their arguments, interning names and repeated texts as a careful user of the builder would."""

    def __init__(self, file: IO[bytes]) -> None:
        self.builder = StreamingTraceProtoBuilder(file)
        self._iids: dict[tuple[str, str], int] = {}
        self._count: dict[str, int] = {}
        self._cleared = False

    def slices(self, table: str, rows: pa.Table, names: list[str], tracks: Any, hidden: tuple[str, ...]) -> None:
        """Write the rows of a table in order; `tracks` gives each row's track."""
        columns = [(c, rows[c].to_pylist(), c in UNSIGNED) for c in rows.column_names if c not in hidden]
        starts, ends = rows["start_ts"].to_pylist(), rows["end_ts"].to_pylist()
        for i, (start, end, name) in enumerate(zip(starts, ends, names, strict=True)):
            packet = self._packet(start)
            event = packet.track_event
            event.type = TrackEvent.TYPE_SLICE_BEGIN
            event.track_uuid = int(tracks[i])
            event.name_iid = self._iid(packet, "event_names", name)
            event.category_iids.append(self._iid(packet, "event_categories", table))
            for column, values, unsigned in columns:
                value = values[i]
                if value is None or value != value:
                    continue
                annotation = event.debug_annotations.add()
                annotation.name_iid = self._iid(packet, "debug_annotation_names", column)
                if isinstance(value, bool):
                    annotation.bool_value = value
                elif isinstance(value, int):
                    if unsigned:
                        annotation.uint_value = value % 2**64
                    else:
                        annotation.int_value = value
                elif isinstance(value, float):
                    annotation.double_value = value
                else:
                    annotation.string_value_iid = self._iid(packet, "debug_annotation_string_values", value)
            self.builder.write_packet(packet)
            packet = self._packet(end)
            packet.track_event.type = TrackEvent.TYPE_SLICE_END
            packet.track_event.track_uuid = int(tracks[i])
            self.builder.write_packet(packet)

    def counter(self, track: int, times: list[int], values: list[float]) -> None:
        """Write samples of a counter track."""
        for time, value in zip(times, values, strict=True):
            packet = self._packet(time)
            packet.track_event.type = TrackEvent.TYPE_COUNTER
            packet.track_event.track_uuid = track
            packet.track_event.double_counter_value = value
            self.builder.write_packet(packet)

    def _packet(self, time: int) -> Any:
        packet = self.builder.create_packet()
        packet.timestamp = time
        packet.trusted_packet_sequence_id = 1
        cleared, needs = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED, TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        packet.sequence_flags = needs if self._cleared else cleared
        self._cleared = True
        return packet

    def _iid(self, packet: Any, field: str, text: str) -> int:
        key = (field, text)
        if key not in self._iids:
            self._count[field] = self._iids[key] = self._count.get(field, 0) + 1
            entry = getattr(packet.interned_data, field).add(iid=self._iids[key])
            if field == "debug_annotation_string_values":
                entry.str = text.encode()
            else:
                entry.name = text
        return self._iids[key]


def events(packets: Any) -> list[tuple[Any, ...]]:
    """The events of a trace in order, arguments by name, interned strings resolved: what they mean, however they are written."""
    interned: dict[str, dict[int, str]] = {}
    out = []
    for packet in packets:
        if packet.sequence_flags & TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            interned = {}
        for field, entries in packet.interned_data.ListFields():
            known = interned.setdefault(field.name, {})
            for entry in entries:
                known[entry.iid] = entry.str.decode() if field.name == "debug_annotation_string_values" else entry.name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        arguments = sorted((interned["debug_annotation_names"][a.name_iid], *_value(a, interned)) for a in event.debug_annotations)
        out.append(
            (
                packet.timestamp,
                event.type,
                event.track_uuid,
                interned["event_names"][event.name_iid] if event.name_iid else None,
                tuple(interned["event_categories"][c] for c in event.category_iids),
                tuple(arguments),
                tuple(event.flow_ids),
                tuple(event.terminating_flow_ids),
                _number(event.double_counter_value) if event.HasField("double_counter_value") else None,
                event.counter_value if event.HasField("counter_value") else None,
            )
        )
    return out


def _value(annotation: Any, interned: Mapping[str, Mapping[int, str]]) -> tuple[str, Any]:
    which = annotation.WhichOneof("value")
    if which is None or which in ("string_value", "string_value_iid"):
        if annotation.HasField("string_value_iid"):
            return "text", interned["debug_annotation_string_values"][annotation.string_value_iid]
        return "text", annotation.string_value
    value = getattr(annotation, which)
    return which, _number(value) if which == "double_value" else value


def _number(value: float) -> int:
    """The bits, so that equal means the same."""
    return int(np.float64(value).view(np.int64))
