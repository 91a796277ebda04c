"""Reading the skeleton of a Matroska or WebM file: tracks and cluster times, by hopping from element to element."""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass, field
from itertools import pairwise

from weighlock.codecs.packets import HEAD_BYTES, flac_s, opus_s
from weighlock.codecs.streams import PACE_SLACK, steady

_SEGMENT, _INFO, _TRACKS, _CLUSTER = 0x18538067, 0x1549A966, 0x1654AE6B, 0x1F43B675
_TOP = {_INFO, _TRACKS, _CLUSTER, 0x114D9B74, 0x1C53BB6B, 0x1941A469, 0x1043A770, 0x1254C367, 0xEC, 0xBF}
_SCALE, _TRACK_ENTRY, _TRACK_NUMBER, _TRACK_TYPE, _DEFAULT_DURATION = 0x2AD7B1, 0xAE, 0xD7, 0x83, 0x23E383
_CODEC, _AUDIO, _SAMPLING_RATE = 0x86, 0xE1, 0xB5
_TIMESTAMP, _SIMPLE_BLOCK, _BLOCK_GROUP, _BLOCK, _BLOCK_DURATION = 0xE7, 0xA3, 0xA0, 0xA1, 0x9B
_MAX_CLUSTERS = 200_000
_MAX_CHILDREN = 1000
_DENSEST = 3
_BLOCK_SLACK_S = 0.25
"""How far a cluster's sound may lag behind its pictures."""
_FAR_TOO_FAST = 1.5
_WALK_WHOLE = 16
"""Clusters up to which every block is read, so that frames are counted; of longer files only both ends are read."""
_KINDS = {1: "video", 2: "audio"}
_SHORTEST_FRAME_S = 1 / 1000
"""A frame of a film shorter than this is a false clock, not a camera."""
_SAMPLES = {b"A_AAC": 1024, b"A_MPEG/L2": 1152, b"A_MPEG/L3": 576, b"A_AC3": 1536}
"""In a packet, at least."""


@dataclass(slots=True, kw_only=True)
class Track:
    """Times in ticks of the file's scale.

    `last` is where the last block begins, `tail` what it says to last (0: not said).
    """

    kind: str = ""
    frame_s: float = 0.0
    """`DefaultDuration`: one frame."""
    codec: bytes = b""
    rate_hz: float = 0.0
    content_s: float = 0.0
    """How long the blocks that were read last at least, by what is in them."""
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

    Live recordings are not, nor are damaged files, nor long ones whose clock runs too fast for what they hold.
    """
    top = _top(view)
    if top is None:
        return None
    info, entries, clusters = top
    scale = (_unsigned(view, *info, _SCALE) if info else 0) or 1_000_000
    tracks = _tracks(view, *entries)
    whole = len(clusters) <= _WALK_WHOLE
    if not whole and _hurries(view, clusters, entries, scale / 1e9):
        return None
    for position, (start, end) in enumerate(clusters):
        if whole or position < 2 or position >= len(clusters) - 3:
            _read_cluster(view, start, end, tracks, keep_times=whole or position < 2)
    if any(track.first is None for track in tracks.values()):
        return None
    known = [track for track in tracks.values() if track.kind]
    return Skeleton(scale_s=scale / 1e9, tracks=known, whole=whole)


def _hurries(view: mmap.mmap, clusters: list[_Range], entries: _Range, scale_s: float) -> bool:
    """Whether the clock of a file too long to be read whole runs too fast for what its clusters hold.

    Both ends are looked at, and the clusters with the most bytes for the time they claim, for there a lie must show.
    A false alarm costs a scan of the packets, no more.
    """
    begins = [_unsigned(view, start, end, _TIMESTAMP) for start, end in clusters]
    steps = [after - before for before, after in pairwise(begins)]
    if min(steps) <= 0:
        return True
    density = sorted(range(len(steps)), key=lambda i: (clusters[i][1] - clusters[i][0]) / steps[i])
    looked_at = {0, 1, len(steps) - 2, len(steps) - 1, *density[-_DENSEST:]}
    tracks = _tracks(view, *entries)
    for i in looked_at:
        before = {number: track.content_s for number, track in tracks.items()}
        _read_cluster(view, *clusters[i], tracks, keep_times=False)
        if any(_exceeds(t.content_s - before[n], steps[i] * scale_s) for n, t in tracks.items()):
            return True
    clock_s = sum(steps[i] for i in looked_at) * scale_s
    longest_s = max((track.content_s for track in tracks.values()), default=0.0)
    return _exceeds(longest_s, clock_s) or longest_s > clock_s * _FAR_TOO_FAST


def _exceeds(content_s: float, clock_s: float) -> bool:
    return content_s > clock_s * 1.1 + _BLOCK_SLACK_S


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
                found[number] = _track(view, body, body + size, kind_of)
        at = body + size
    return found


def _track(view: mmap.mmap, at: int, end: int, kind: str) -> Track:
    codec, sound = _child(view, at, end, _CODEC), _child(view, at, end, _AUDIO)
    rate = _child(view, sound[0], sound[0] + sound[1], _SAMPLING_RATE) if sound else None
    return Track(
        kind=kind,
        frame_s=_unsigned(view, at, end, _DEFAULT_DURATION) / 1e9,
        codec=view[codec[0] : codec[0] + min(codec[1], 32)].rstrip(b"\0") if codec else b"",
        rate_hz=_float(view[rate[0] : rate[0] + rate[1]]) if rate and rate[1] in (4, 8) else 0.0,
    )


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
    track.content_s += _content_s(track, view[after + 3 : after + 3 + HEAD_BYTES], laced)
    track.first = begins if track.first is None else min(track.first, begins)
    if begins >= track.last:
        track.last, track.tail, track.tail_frames = begins, lasts, laced
    if keep_times:
        track.times.append(begins)


def _content_s(track: Track, head: bytes, laced: int) -> float:
    """Seconds in a block at least. The sizes of laced packets stand before them, so those do not say."""
    if track.kind == "video":
        return laced * (track.frame_s / PACE_SLACK or _SHORTEST_FRAME_S)
    if track.codec == b"A_OPUS":
        return opus_s(head) if laced == 1 else 0.0
    if track.codec == b"A_FLAC":
        return flac_s(head, round(track.rate_hz)) if laced == 1 else 0.0
    samples = _SAMPLES.get(track.codec, 0)
    return laced * samples / track.rate_hz if track.rate_hz > 0 else 0.0


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


def _float(data: bytes) -> float:
    value = float(struct.unpack(">f" if len(data) == 4 else ">d", data)[0])
    return value if math.isfinite(value) else 0.0


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
