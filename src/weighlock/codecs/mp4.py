"""A bounded reader of ISO base media (MP4, MOV, 3GP) headers: the truth about time, and what would blow up a demuxer.

It reads boxes, never samples. Every count is checked against the bytes that would have to hold it, so that its work is
bounded by the size of the headers, and FFmpeg is not handed tables that promise more than the file can contain.
"""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Iterator
from operator import mul

from weighlock.codecs.movie import Movie, Track
from weighlock.errors import MalformedMedia, UnsupportedMedia

_CONTAINERS = {b"trak", b"mdia", b"minf", b"stbl", b"edts", b"mvex", b"traf"}
_MAX_BOXES = 200_000
_MAX_DEPTH = 8
_MAX_EDITS = 10_000
_FREE_SAMPLES = 1_000_000
"""Samples of constant size that are let through without proof: a truncated file promises more than it holds."""
_ROTATIONS = {(0, 1, -1, 0): 90, (-1, 0, 0, -1): 180, (0, -1, 1, 0): 270}

_NEAR_AN_END = 64

_U32 = struct.Struct(">I")
_I32 = struct.Struct(">i")
_U64 = struct.Struct(">Q")


class _Reader:
    def __init__(self, view: mmap.mmap) -> None:
        self.view = view
        self.size = len(view)
        self.boxes = 0
        self.movie = Movie()
        self.seen_moov = False
        self.defaults: dict[int, tuple[int, int]] = {}
        """`trex`: sample duration and size by track, for fragments that do not say."""

    def children(self, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
        """(type, start of the content, end) of each box between two offsets."""
        at = start
        while at + 8 <= end:
            self.boxes += 1
            if self.boxes > _MAX_BOXES:
                raise MalformedMedia(f"more than {_MAX_BOXES:,} boxes", boxes=self.boxes)
            length, kind = _U32.unpack_from(self.view, at)[0], self.view[at + 4 : at + 8]
            body = at + 8
            if length == 1 and at + 16 <= end:
                length, body = _U64.unpack_from(self.view, at + 8)[0], at + 16
            elif length == 0:
                length = end - at
            if length < body - at:
                return
            stop = at + length
            if stop > end:
                self.movie.complete = False
            yield kind, body, min(stop, end)
            at = stop

    def u32(self, at: int, end: int) -> int:
        if at + 4 > end:
            raise MalformedMedia("a box is too short for its own fields")
        return int(_U32.unpack_from(self.view, at)[0])

    def words(self, at: int, end: int, count: int) -> array[int]:
        """`count` big-endian 32-bit words, or as many as the box really holds."""
        count = max(0, min(count, (end - at) // 4))
        values = array("I", self.view[at : at + 4 * count])
        values.byteswap()
        return values


def read_movie(view: mmap.mmap) -> Movie:
    """Tracks and times of a movie, fragmented or not.

    Raises:
        MalformedMedia: no movie header (as when an upload was cut off), or tables that promise more than the file
        holds. UnsupportedMedia: a compressed movie header, which nothing current writes and which can unpack to any
        size.
    """
    reader = _Reader(view)
    try:
        _read_file(reader)
    except (struct.error, IndexError) as error:
        raise MalformedMedia("a box of its movie header is too short for its own fields") from error
    if not reader.seen_moov and not reader.movie.fragmented:
        raise MalformedMedia(
            "truncated: the movie header (moov) is missing, so the upload or recording was probably cut off",
            reason="truncated",
        )
    return reader.movie


def _read_file(reader: _Reader) -> None:
    for kind, start, end in reader.children(0, reader.size):
        if kind == b"moov" and not reader.seen_moov:
            reader.seen_moov = True
            _read_moov(reader, start, end)
        elif kind == b"moof":
            reader.movie.fragmented = True
            _read_moof(reader, start, end)


def _read_moov(reader: _Reader, start: int, end: int) -> None:
    movie = reader.movie
    for kind, at, stop in reader.children(start, end):
        if kind == b"cmov":
            raise UnsupportedMedia("its movie header is compressed (cmov); save it again with a current program")
        if kind == b"mvhd":
            movie.timescale, movie.header_ticks = _clock(reader, at, stop, skip=0)
        elif kind == b"trak":
            track = Track()
            _read_track(reader, track, at, stop, 0)
            movie.tracks.append(track)
        elif kind == b"mvex":
            for inner, a, b in reader.children(at, stop):
                if inner == b"trex" and a + 24 <= b:
                    _trex(reader, a)


def _trex(reader: _Reader, at: int) -> None:
    track_id, _, duration, size = struct.unpack_from(">IIII", reader.view, at + 4)
    reader.defaults[track_id] = (duration, size)


def _clock(reader: _Reader, at: int, end: int, *, skip: int) -> tuple[int, int]:
    """(timescale, duration) of `mvhd` or `mdhd`."""
    long = reader.view[at] == 1 if at < end else False
    at += 4 + (16 if long else 8) + skip
    scale = reader.u32(at, end)
    if long and at + 12 <= end:
        return scale, int(_U64.unpack_from(reader.view, at + 4)[0])
    return scale, reader.u32(at + 4, end)


def _read_track(reader: _Reader, track: Track, start: int, end: int, depth: int) -> None:
    if depth > _MAX_DEPTH:
        return
    for kind, at, stop in reader.children(start, end):
        if kind in _CONTAINERS:
            _read_track(reader, track, at, stop, depth + 1)
        elif kind == b"tkhd":
            _tkhd(reader, track, at, stop)
        elif kind == b"mdhd":
            track.timescale, track.header_ticks = _clock(reader, at, stop, skip=0)
        elif kind == b"hdlr" and not track.kind:
            track.kind = reader.view[at + 8 : at + 12]
        elif kind == b"stsd":
            track.codec = reader.view[at + 12 : at + 16]
        elif kind == b"elst":
            _elst(reader, track, at, stop)
        elif kind == b"stts":
            _stts(reader, track, at, stop)
        elif kind == b"ctts":
            _ctts(reader, track, at, stop)
        elif kind in (b"stsz", b"stz2"):
            _stsz(reader, track, at, stop, packed=kind == b"stz2")


def _tkhd(reader: _Reader, track: Track, at: int, end: int) -> None:
    ids = at + (20 if at < end and reader.view[at] == 1 else 12)
    track.track_id = reader.u32(ids, end)
    matrix = ids + (32 if reader.view[at] == 1 else 28)
    if matrix + 20 <= end:
        signs = [(v > 0) - (v < 0) for v in struct.unpack_from(">5i", reader.view, matrix)]
        track.rotation_deg = _ROTATIONS.get((signs[0], signs[1], signs[3], signs[4]), 0)


def _elst(reader: _Reader, track: Track, at: int, end: int) -> None:
    long = reader.view[at] == 1
    count = reader.u32(at + 4, end)
    layout = struct.Struct(">QqI" if long else ">IiI")
    if count > _MAX_EDITS:
        raise MalformedMedia(f"an edit list of {count:,} entries", entries=count)
    for i in range(min(count, (end - at - 8) // layout.size)):
        duration, media_time, _ = layout.unpack_from(reader.view, at + 8 + i * layout.size)
        track.edits.append((duration, media_time))


def _stts(reader: _Reader, track: Track, at: int, end: int) -> None:
    entries = reader.u32(at + 4, end)
    words = reader.words(at + 8, end, 2 * entries)
    counts, deltas = words[0 : len(words) // 2 * 2 : 2], words[1::2]
    # A delta above 2^31 is a negative number to other readers; they clamp it to nothing or one tick.
    if max(deltas, default=0) >= 1 << 31:
        deltas = array("I", (0 if delta >= 1 << 31 else delta for delta in deltas))
    track.samples += sum(counts)
    track.table_ticks += sum(map(mul, counts, deltas))
    for count, delta in zip(counts, deltas, strict=True):
        track.deltas[delta] = track.deltas.get(delta, 0) + count


def _ctts(reader: _Reader, track: Track, at: int, end: int) -> None:
    entries = max(0, min(reader.u32(at + 4, end), (end - at - 8) // 8))
    ends = [*range(min(entries, _NEAR_AN_END)), *range(max(0, entries - _NEAR_AN_END), entries)]
    track.delay_ticks = max((_I32.unpack_from(reader.view, at + 12 + 8 * i)[0] for i in ends), default=0)
    track.delay_ticks = max(0, track.delay_ticks)


def _stsz(reader: _Reader, track: Track, at: int, end: int, *, packed: bool) -> None:
    constant, count = (0 if packed else reader.u32(at + 4, end)), reader.u32(at + 8, end)
    if constant:
        if constant * count > reader.size and count > _FREE_SAMPLES:
            raise MalformedMedia(
                f"its sample table promises {count:,} samples of {constant:,} bytes in a file of {reader.size:,}",
                samples=count, size_bytes=reader.size,
            )  # fmt: skip
        track.sized_samples, track.sample_bytes = count, constant * count
        return
    bits = reader.view[at + 7] if packed else 32
    held = (end - at - 12) * 8 // max(bits, 4)
    if count > held:
        if reader.movie.complete:
            raise MalformedMedia(f"its sample table promises {count:,} samples and lists {held:,}", samples=count)
        count = held
    track.sized_samples = count
    if not packed:
        track.sample_bytes = sum(reader.words(at + 12, end, count))


def _read_moof(reader: _Reader, start: int, end: int) -> None:
    for kind, at, stop in reader.children(start, end):
        if kind == b"traf":
            _read_traf(reader, at, stop)


def _read_traf(reader: _Reader, start: int, end: int) -> None:
    track: Track | None = None
    duration = size = 0
    for kind, at, stop in reader.children(start, end):
        if kind == b"tfhd":
            flags = reader.u32(at, stop) & 0xFFFFFF
            track_id = reader.u32(at + 4, stop)
            track = reader.movie.track(track_id)
            duration, size = reader.defaults.get(track_id, (0, 0))
            field_at = at + 8 + 8 * bool(flags & 1) + 4 * bool(flags & 2)
            if flags & 8:
                duration, field_at = reader.u32(field_at, stop), field_at + 4
            if flags & 16:
                size = reader.u32(field_at, stop)
        elif kind == b"trun" and track is not None:
            _trun(reader, track, at, stop, duration, size)


def _trun(reader: _Reader, track: Track, at: int, end: int, duration: int, size: int) -> None:
    flags, count = reader.u32(at, end) & 0xFFFFFF, reader.u32(at + 4, end)
    at += 8 + 4 * bool(flags & 1) + 4 * bool(flags & 4)
    columns = [flag for flag in (0x100, 0x200, 0x400, 0x800) if flags & flag]
    if columns and count > (end - at) // (4 * len(columns)):
        raise MalformedMedia(
            f"a fragment promises {count:,} samples and lists {(end - at) // (4 * len(columns)):,}", samples=count
        )
    if not flags & 0x200 and size * count > reader.size and count > _FREE_SAMPLES // 10:
        raise MalformedMedia(f"a fragment promises {count:,} samples of {size:,} bytes", samples=count)
    if not columns and size == 0 and count > _FREE_SAMPLES // 10:
        raise MalformedMedia(f"a fragment promises {count:,} empty samples", samples=count)
    words = reader.words(at, end, count * len(columns))
    if flags & 0x800 and count and not track.samples:
        track.delay_ticks = max(0, _I32.unpack_from(reader.view, at + 4 * columns.index(0x800))[0])
    if flags & 0x100:
        durations = words[0 :: len(columns)]
        track.table_ticks += sum(durations)
        for delta in durations:
            track.deltas[delta] = track.deltas.get(delta, 0) + 1
    else:
        track.table_ticks += count * duration
        track.deltas[duration] = track.deltas.get(duration, 0) + count
    if flags & 0x200:
        track.sample_bytes += sum(words[columns.index(0x200) :: len(columns)])
    else:
        track.sample_bytes += size * count
    track.samples += count
    track.sized_samples += count
