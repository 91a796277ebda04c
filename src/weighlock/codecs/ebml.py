"""Reading the skeleton of a Matroska or WebM file: tracks and cluster times, by hopping from element to element."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from itertools import pairwise

from weighlock.codecs.streams import steady

_SEGMENT, _INFO, _TRACKS, _CLUSTER = 0x18538067, 0x1549A966, 0x1654AE6B, 0x1F43B675
_TOP = {_INFO, _TRACKS, _CLUSTER, 0x114D9B74, 0x1C53BB6B, 0x1941A469, 0x1043A770, 0x1254C367, 0xEC, 0xBF}
_SCALE, _TRACK_ENTRY, _TRACK_NUMBER, _TRACK_TYPE, _DEFAULT_DURATION = 0x2AD7B1, 0xAE, 0xD7, 0x83, 0x23E383
_TIMESTAMP, _SIMPLE_BLOCK, _BLOCK_GROUP, _BLOCK, _BLOCK_DURATION = 0xE7, 0xA3, 0xA0, 0xA1, 0x9B
_MAX_CLUSTERS = 200_000
_MAX_CHILDREN = 1000
_WALK_WHOLE = 16
"""Clusters up to which every block is read, so that frames are counted; of longer files only both ends are read."""
_KINDS = {1: "video", 2: "audio"}


@dataclass(slots=True, kw_only=True)
class Track:
    """Times in ticks of the file's scale.

    `last` is where the last block begins, `tail` what it says to last (0: not said).
    """

    kind: str = ""
    frame_s: float = 0.0
    """`DefaultDuration`: one frame."""
    first: int | None = None
    last: int = 0
    tail: int = 0
    tail_frames: int = 1
    """Frames laced into the last block."""
    frames: int = 0
    times: list[int] = field(default_factory=list)
    """When the frames that were read begin."""

    def pace(self, scale_s: float) -> float | None:
        """Frames a second, of the stretch that was read first."""
        stretch = sorted(self.times)
        return (
            (len(stretch) - 1) / ((stretch[-1] - stretch[0]) * scale_s)
            if len(stretch) > 1 and stretch[-1] > stretch[0]
            else None
        )

    def steady(self) -> bool | None:
        stretch = sorted(self.times)
        deltas: dict[int, int] = {}
        for before, after in pairwise(stretch):
            deltas[after - before] = deltas.get(after - before, 0) + 1
        return steady(deltas)


@dataclass(slots=True, kw_only=True)
class Skeleton:
    scale_s: float
    tracks: list[Track]
    """In the order of the file, kinds other than sound and pictures left out."""
    whole: bool
    """Every block was read."""

    def of_kind(self, kind: str) -> list[Track]:
        return [track for track in self.tracks if track.kind == kind]


def read_skeleton(view: mmap.mmap) -> Skeleton | None:
    """Tracks and their times, or `None` where the file is not a plain chain of elements.

    Live recordings are not, nor are damaged files.
    """
    top = _top(view)
    if top is None:
        return None
    info, entries, clusters = top
    scale = (_unsigned(view, *info, _SCALE) if info else 0) or 1_000_000
    tracks = _tracks(view, *entries)
    whole = len(clusters) <= _WALK_WHOLE
    for position, (start, end) in enumerate(clusters):
        if whole or position < 2 or position >= len(clusters) - 3:
            _read_cluster(view, start, end, tracks, keep_times=whole or position < 2)
    if any(track.first is None for track in tracks.values()):
        return None
    known = [track for track in tracks.values() if track.kind]
    return Skeleton(scale_s=scale / 1e9, tracks=known, whole=whole)


_Range = tuple[int, int]


def _top(view: mmap.mmap) -> tuple[_Range | None, _Range, list[_Range]] | None:
    at, end, inside = 0, len(view), False
    info: _Range | None = None
    entries: _Range | None = None
    clusters: list[_Range] = []
    while at < end:
        element = _element(view, at, end)
        if element is None:
            return None
        kind, body, size = element
        if not inside and kind == _SEGMENT:
            inside, at = True, body
            end = min(end, body + size) if size >= 0 else end
            continue
        if size < 0 or (inside and kind not in _TOP) or len(clusters) > _MAX_CLUSTERS:
            return None
        if kind == _INFO:
            info = (body, min(body + size, end))
        elif kind == _TRACKS and entries is None:
            entries = (body, min(body + size, end))
        elif kind == _CLUSTER:
            clusters.append((body, min(body + size, end)))
        at = body + size
    return (info, entries, clusters) if entries and clusters else None


def _tracks(view: mmap.mmap, at: int, end: int) -> dict[int, Track]:
    found: dict[int, Track] = {}
    while at < end and len(found) < 64:
        element = _element(view, at, end)
        if element is None or element[2] < 0:
            break
        kind, body, size = element
        if kind == _TRACK_ENTRY:
            number = _unsigned(view, body, body + size, _TRACK_NUMBER)
            kind_of = _KINDS.get(_unsigned(view, body, body + size, _TRACK_TYPE), "")
            if kind_of:
                frame_s = _unsigned(view, body, body + size, _DEFAULT_DURATION) / 1e9
                found[number] = Track(kind=kind_of, frame_s=frame_s)
        at = body + size
    return found


def _read_cluster(view: mmap.mmap, at: int, end: int, tracks: dict[int, Track], *, keep_times: bool) -> None:
    base = 0
    while at < end:
        element = _element(view, at, end)
        if element is None or element[2] < 0:
            return
        kind, body, size = element
        if kind == _TIMESTAMP:
            base = int.from_bytes(view[body : body + min(size, 8)], "big")
        elif kind == _SIMPLE_BLOCK:
            _read_block(view, body, base, 0, tracks, keep_times)
        elif kind == _BLOCK_GROUP:
            block = _child(view, body, body + size, _BLOCK)
            if block is not None:
                lasts = _unsigned(view, body, body + size, _BLOCK_DURATION)
                _read_block(view, block[0], base, lasts, tracks, keep_times)
        at = body + size


def _read_block(view: mmap.mmap, at: int, base: int, lasts: int, tracks: dict[int, Track], keep_times: bool) -> None:
    number = _number(view, at, len(view))
    if number is None or number[1] + 4 > len(view):
        return
    track = tracks.get(number[0])
    if track is None:
        return
    after = number[1]
    begins = base + struct.unpack_from(">h", view, after)[0]
    laced = view[after + 3] + 1 if view[after + 2] & 0x06 else 1
    track.frames += laced
    track.first = begins if track.first is None else min(track.first, begins)
    if begins >= track.last:
        track.last, track.tail, track.tail_frames = begins, lasts, laced
    if keep_times:
        track.times.append(begins)


def _child(view: mmap.mmap, at: int, end: int, wanted: int) -> tuple[int, int] | None:
    end = min(end, len(view))
    for _ in range(_MAX_CHILDREN):
        element = _element(view, at, end)
        if element is None or element[2] < 0:
            return None
        kind, body, size = element
        if kind == wanted:
            return body, size
        at = body + size
    return None


def _unsigned(view: mmap.mmap, at: int, end: int, wanted: int) -> int:
    found = _child(view, at, end, wanted)
    return int.from_bytes(view[found[0] : found[0] + min(found[1], 8)], "big") if found else 0


def _element(view: mmap.mmap, at: int, end: int) -> tuple[int, int, int] | None:
    """(id, start of the content, size or -1 for unknown) of the element at an offset."""
    if at >= end or view[at] == 0:
        return None
    width = 9 - view[at].bit_length()
    if width > 4 or at + width >= end:
        return None
    kind = int.from_bytes(view[at : at + width], "big")
    number = _number(view, at + width, end)
    if number is None:
        return None
    size, body = number
    unknown = size == (1 << 7 * (body - at - width)) - 1
    return kind, body, -1 if unknown else size


def _number(view: mmap.mmap, at: int, end: int) -> tuple[int, int] | None:
    """(value, offset behind it) of a variable-length number."""
    if at >= end or view[at] == 0:
        return None
    width = 9 - view[at].bit_length()
    if at + width > end:
        return None
    return int.from_bytes(view[at : at + width], "big") & (1 << 7 * width) - 1, at + width
