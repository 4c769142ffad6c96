"""The compiled loops that write events: one packet after the other into a byte buffer, absent arguments left out.

Lengths of packets and events are four-byte varints, so that they can be filled in afterwards; all else is as short as can be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.export.perfetto import layout
from explorer.export.perfetto.compiled import compiled
from explorer.export.perfetto.layout import pb

Bytes = NDArray[np.uint8]
Int = NDArray[np.int64]

#: How an argument's value is written: integer, eight bytes, or text that stands in `Arguments.text`.
VARINT, FIXED64, TEXT = 0, 1, 2
#: A text argument's value is where its text begins, shifted by this, plus its length.
TEXT_SHIFT = 32
TEXT_MASK = (1 << TEXT_SHIFT) - 1
#: Bytes that a slice's two packets take at most, apart from its arguments and flows.
SLICE_BYTES = 128
#: Bytes that an argument takes at most, apart from the bytes of a text.
ARGUMENT_BYTES = 40
FLOW_BYTES = 10
COUNTER_BYTES = 64
#: Heads of arguments are padded to this.
HEAD_BYTES = 8
INTERNED_BYTES = 24

# Destructured, so that a field number that no longer fits one byte fails here and not in the trace.
(_PACKET,) = layout.tag(pb.Trace, "packet")
(_TIMESTAMP,) = layout.tag(pb.TracePacket, "timestamp")
(_EVENT,) = layout.tag(pb.TracePacket, "track_event")
(_NAME,) = layout.tag(pb.TrackEvent, "name_iid")
(_TRACK,) = layout.tag(pb.TrackEvent, "track_uuid")
(_ANNOTATION,) = layout.tag(pb.TrackEvent, "debug_annotations")
(_IID,) = layout.tag(pb.InternedString, "iid")
(_STRING,) = layout.tag(pb.InternedString, "str")


@compiled
def _put(out: Bytes, at: int, value: int) -> int:
    rest = np.uint64(value)
    while rest >= np.uint64(128):
        out[at] = np.uint8((rest & np.uint64(127)) | np.uint64(128))
        rest >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@compiled
def _put_length(out: Bytes, at: int, value: int) -> None:
    out[at] = (value & 127) | 128
    out[at + 1] = (value >> 7 & 127) | 128
    out[at + 2] = (value >> 14 & 127) | 128
    out[at + 3] = value >> 21 & 127


@compiled
def _put_bytes(out: Bytes, at: int, data: Bytes, first: int, length: int) -> int:
    for i in range(length):
        out[at + i] = data[first + i]
    return at + length


@compiled
def _put_head(out: Bytes, at: int, head: Bytes, length: int) -> int:
    # A fixed number of bytes is one machine word; those after `length` are overwritten by what comes next.
    for i in range(HEAD_BYTES):
        out[at + i] = head[i]
    return at + length


@compiled
def _put_fixed(out: Bytes, at: int, value: int) -> int:
    rest = np.uint64(value)
    for i in range(8):
        out[at + i] = np.uint8(rest & np.uint64(255))
        rest >>= np.uint64(8)
    return at + 8


@compiled
def _size(value: int) -> int:
    rest = np.uint64(value)
    size = 1
    while rest >= np.uint64(128):
        rest >>= np.uint64(7)
        size += 1
    return size


@compiled
def write_slices(
    out: Bytes,
    start: Int,
    end: Int,
    name: Int,
    track: Int,
    packet_head: Bytes,
    begin_head: Bytes,
    end_head: Bytes,
    heads: Bytes,
    head_size: Int,
    kinds: Int,
    values: Int,
    valid: NDArray[np.bool_],
    text: Bytes,
    flow_ptr: Int,
    flow_id: Int,
    flow_tag: Bytes,
) -> int:
    """Writes a BEGIN and an END packet for each row; returns the number of bytes. `out` is large enough.

    Arguments are the rows of `heads`, `kinds`, `values` and `valid`; row i's flows are `flow_ptr[i]` to `flow_ptr[i + 1]`.
    """
    at = 0
    packet_size, begin_size, end_size = len(packet_head), len(begin_head), len(end_head)
    for row in range(len(start)):
        out[at] = _PACKET
        packet = at + 1
        at += 5
        out[at] = _TIMESTAMP
        at = _put(out, at + 1, start[row])
        at = _put_bytes(out, at, packet_head, 0, packet_size)
        out[at] = _EVENT
        event = at + 1
        at = _put_bytes(out, at + 5, begin_head, 0, begin_size)
        out[at] = _NAME
        at = _put(out, at + 1, name[row])
        out[at] = _TRACK
        at = _put(out, at + 1, track[row])
        for column in range(len(kinds)):
            if not valid[column, row]:
                continue
            value = values[column, row]
            size = head_size[column]
            out[at] = _ANNOTATION
            if kinds[column] == VARINT:
                at = _put(out, at + 1, size + _size(value))
                at = _put_head(out, at, heads[column], size)
                at = _put(out, at, value)
            elif kinds[column] == FIXED64:
                at = _put(out, at + 1, size + 8)
                at = _put_head(out, at, heads[column], size)
                at = _put_fixed(out, at, value)
            else:
                length = value & TEXT_MASK
                at = _put(out, at + 1, size + _size(length) + length)
                at = _put_head(out, at, heads[column], size)
                at = _put(out, at, length)
                at = _put_bytes(out, at, text, value >> TEXT_SHIFT, length)
        for flow in range(flow_ptr[row], flow_ptr[row + 1]):
            at = _put_bytes(out, at, flow_tag[flow], 0, flow_tag.shape[1])
            at = _put_fixed(out, at, flow_id[flow])
        _put_length(out, event, at - event - 4)
        _put_length(out, packet, at - packet - 4)

        out[at] = _PACKET
        packet = at + 1
        at += 5
        out[at] = _TIMESTAMP
        at = _put(out, at + 1, end[row])
        at = _put_bytes(out, at, packet_head, 0, packet_size)
        out[at] = _EVENT
        at = _put(out, at + 1, end_size + 1 + _size(track[row]))
        at = _put_bytes(out, at, end_head, 0, end_size)
        out[at] = _TRACK
        at = _put(out, at + 1, track[row])
        _put_length(out, packet, at - packet - 4)
    return at


@compiled
def write_counters(out: Bytes, time: Int, value: Int, track: int, packet_head: Bytes, event_head: Bytes, fixed: bool) -> int:
    """Writes a counter packet for each row; returns the number of bytes. `event_head` ends with the tag of the value.

    `fixed`: the values are the bits of doubles.
    """
    at = 0
    for row in range(len(time)):
        out[at] = _PACKET
        packet = at + 1
        at += 5
        out[at] = _TIMESTAMP
        at = _put(out, at + 1, time[row])
        at = _put_bytes(out, at, packet_head, 0, len(packet_head))
        out[at] = _EVENT
        event = at + 1
        at += 5
        out[at] = _TRACK
        at = _put(out, at + 1, track)
        at = _put_bytes(out, at, event_head, 0, len(event_head))
        at = _put_fixed(out, at, value[row]) if fixed else _put(out, at, value[row])
        _put_length(out, event, at - event - 4)
        _put_length(out, packet, at - packet - 4)
    return at


@compiled
def write_strings(out: Bytes, head: Bytes, offsets: NDArray[np.int32], data: Bytes, first: int) -> int:
    """Writes interned strings, numbered from `first`, as entries of the field whose tag is `head`; returns the number of bytes."""
    at = 0
    for i in range(len(offsets) - 1):
        length = offsets[i + 1] - offsets[i]
        at = _put_bytes(out, at, head, 0, len(head))
        at = _put(out, at, 1 + _size(first + i) + 1 + _size(length) + length)
        out[at] = _IID
        at = _put(out, at + 1, first + i)
        out[at] = _STRING
        at = _put(out, at + 1, length)
        at = _put_bytes(out, at, data, offsets[i], length)
    return at
