"""The track tree: descriptors of what exists, written once, before the first event that needs them."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from explorer.export.perfetto.lanes import Lanes
from explorer.export.perfetto.layout import framed, pb
from explorer.text import safe

Int = NDArray[np.int64]
_NAME_LIMIT = 120
_LAST_RANK = 2**31 - 1
#: Identities of tracks have 35 bits with the highest set: five bytes each in every event.
_IDENTITY = 1 << 34


class Tracks:
    """All tracks of a trace, by path. Identities follow from the paths alone."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], int] = {}
        self._taken: set[int] = set()
        self._pending: list[bytes] = []

    @property
    def count(self) -> int:
        return len(self._known)

    def get(
        self,
        path: tuple[str, ...],
        *,
        rank: int = 0,
        name: str | None = None,
        description: str | None = None,
        by_name: bool = False,
        merge: bool = False,
        unit: str | None = None,
    ) -> int:
        """The identity of the track of that path; its parent exists already. A new one gets a descriptor with what is given.

        `by_name`: its children are ordered by name, not by rank. `merge`: shown in one row with the siblings of the same name.
        `unit`: it holds a counter of that unit.
        """
        if path in self._known:
            return self._known[path]
        identity = self._identity(path)
        shown = safe(path[-1] if name is None else name, _NAME_LIMIT)
        packet = pb.TracePacket()
        track = packet.track_descriptor
        track.uuid, track.name = identity, shown
        track.child_ordering = pb.TrackDescriptor.LEXICOGRAPHIC if by_name else pb.TrackDescriptor.EXPLICIT
        track.sibling_order_rank = max(min(rank, _LAST_RANK), -_LAST_RANK)
        if len(path) > 1:
            track.parent_uuid = self._known[path[:-1]]
        if merge:
            track.sibling_merge_behavior = pb.TrackDescriptor.SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY
            track.sibling_merge_key = shown
        else:
            track.sibling_merge_behavior = pb.TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE
        if description is not None:
            track.description = description
        if unit is not None:
            track.counter.unit_name = unit
        self._pending.append(framed(packet))
        self._known[path] = identity
        return identity

    def take_new(self) -> bytes:
        """The descriptors of the tracks that are new since the last call."""
        new, self._pending = b"".join(self._pending), []
        return new

    def _identity(self, path: tuple[str, ...]) -> int:
        digest = hashlib.blake2b("\0".join(path).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        identity = int.from_bytes(digest, "little") % _IDENTITY | _IDENTITY
        while identity in self._taken:
            identity = identity + 1 if identity + 1 < 2 * _IDENTITY else _IDENTITY
        self._taken.add(identity)
        return identity


class LanedTracks:
    """Tracks that are split into lanes: siblings of one name, shown as one row, each a track of its own to the engine."""

    def __init__(self, tracks: Tracks, *, apart: bool = False) -> None:
        self._tracks = tracks
        self._lanes = Lanes(apart=apart)
        self._paths: list[tuple[tuple[str, ...], int, str | None]] = []
        self._index: dict[tuple[str, ...], int] = {}
        self._identity = np.zeros((0, 0), np.int64)

    def number(self, path: tuple[str, ...], rank: int, description: str | None = None) -> int:
        """The number of the track of that path, for `place`."""
        if path not in self._index:
            self._index[path] = len(self._paths)
            self._paths.append((path, rank, description))
        return self._index[path]

    def lanes(self, start: Int, end: Int, track: Int) -> Int:
        """The lane of each row within its track; rows are sorted by start."""
        return self._lanes.pack(start, end, track, len(self._paths))

    def identities(self, track: Int, lane: Int) -> Int:
        """The identity of each row's lane."""
        used = self._lanes.used
        before = self._identity
        if before.shape[0] < len(used) or before.shape[1] < used.max(initial=0):
            self._identity = np.zeros((len(used), int(used.max(initial=0))), np.int64)
            self._identity[: before.shape[0], : before.shape[1]] = before
        for number, lanes in enumerate(used):
            path, rank, description = self._paths[number]
            for here in range(int(lanes)):
                if self._identity[number, here] == 0:
                    self._identity[number, here] = self._tracks.get(
                        (*path[:-1], f"{path[-1]}\0{here}"), rank=rank, name=path[-1], description=description, merge=True
                    )
        found: Int = self._identity[track, lane]
        return found
