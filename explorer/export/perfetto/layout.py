"""The trace format's numbers, taken from the `perfetto` package's message classes, and the small messages built with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2

#: The package's message classes.
pb: Any = perfetto_trace_pb2

#: All packets are one sequence: interned strings are known to all of them.
SEQUENCE = 1
_VARINT, _FIXED64, _BYTES = 0, 1, 2


def varint(value: int) -> bytes:
    """The shortest encoding of an unsigned integer."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(message: Any, field: str) -> bytes:
    """The bytes that go before a value of that field of a message class."""
    described = message.DESCRIPTOR.fields_by_name[field]
    kinds = type(described)
    if described.type in (kinds.TYPE_FIXED64, kinds.TYPE_DOUBLE):
        wire = _FIXED64
    elif described.type in (kinds.TYPE_STRING, kinds.TYPE_BYTES, kinds.TYPE_MESSAGE):
        wire = _BYTES
    else:
        wire = _VARINT
    return varint(described.number << 3 | wire)


def framed(packet: Any) -> bytes:
    """A packet as it stands in the file."""
    return _framed(packet.SerializeToString(deterministic=True))


def _framed(body: bytes) -> bytes:
    return tag(pb.Trace, "packet") + varint(len(body)) + body


def head(kind: int, category: int | None) -> tuple[bytes, bytes]:
    """What all events of one kind share: bytes of the packet before its event, bytes of the event before its name."""
    packet = pb.TracePacket(trusted_packet_sequence_id=SEQUENCE, sequence_flags=pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE)
    event = pb.TrackEvent(type=kind)
    if category is not None:
        event.category_iids.append(category)
    return packet.SerializeToString(deterministic=True), event.SerializeToString(deterministic=True)


def state(first: bool, annotations: Sequence[str], categories: Sequence[str], strings: bytes) -> bytes:
    """A framed packet that forgets all interned strings and begins anew with these, numbered from 1.

    `strings` are further entries of its InternedData message, as they stand in the file.
    """
    interned = pb.InternedData()
    for iid, name in enumerate(annotations, 1):
        interned.debug_annotation_names.add(iid=iid, name=name)
    for iid, name in enumerate(categories, 1):
        interned.event_categories.add(iid=iid, name=name)
    packet = pb.TracePacket(trusted_packet_sequence_id=SEQUENCE, sequence_flags=pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED)
    if first:
        packet.first_packet_on_sequence = True
    # One field: the trace processor takes the last of a message field that stands twice, and does not merge.
    entries = interned.SerializeToString(deterministic=True) + strings
    body = packet.SerializeToString(deterministic=True) + tag(pb.TracePacket, "interned_data") + varint(len(entries)) + entries
    return _framed(body)
