"""An ordinary MP4 out of the fragments FFmpeg writes, as it writes them.

FFmpeg keeps some 70 bytes of every packet until an MP4 is finished, and forgets them with each fragment. Here a packet
takes 4, its size: the rest are runs. Times are those the packets came with; a fragment's own may be a tick off.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import IO

from weighlock.errors import TransformFailed

OPTIONS = {"movflags": "empty_moov+skip_trailer", "frag_duration": "1000000", "frag_size": "1000000"}
"""For FFmpeg: a second or a megabyte waits in memory."""

_FTYP = struct.pack(">I4s4sI12s", 28, b"ftyp", b"isom", 512, b"isomiso2mp41")
_MDAT = struct.Struct(">I4sQ")
_ROLL = struct.pack(">I4sB3x4sIIh", 26, b"sgpd", 1, b"roll", 2, 1, -1)
"""A frame of AAC needs the one before it."""
_32_BITS, _UNKNOWN = 1 << 32, 0xFFFFFFFF
_TABLES = {b"stts", b"ctts", b"stss", b"stsz", b"stsc", b"stco", b"co64", b"sgpd", b"sbgp", b"sdtp"}
_AROUND_TABLES = {b"mdia", b"minf", b"stbl"}

Pieces = list[bytes | memoryview]
"""Of a box, and of those in it: a table is not copied for each it stands in."""


@dataclass(slots=True)
class Track:
    """What was written of one stream. Times are in ticks of it."""

    sizes: array[int] = field(default_factory=lambda: array("I"))
    chunks: array[int] = field(default_factory=lambda: array("Q"))
    chunk_samples: array[int] = field(default_factory=lambda: array("I"))
    lasting: array[int] = field(default_factory=lambda: array("I"))
    """Runs: how many packets, and how long to the next of each."""
    delays: array[int] = field(default_factory=lambda: array("I"))
    """Runs: how many packets, and how much later than decoded each is shown."""
    keys: array[int] = field(default_factory=lambda: array("I"))
    packets: int = 0
    first: tuple[int, int] = (0, 0)
    """When the first is shown and decoded."""
    last: tuple[int, int] = (0, 0)
    """When the last is decoded, and how long it lasts."""
    end: int = 0

    def add(self, pts: int, dts: int, duration: int, *, key: bool) -> None:
        """Note the next packet, which is decoded after the one before.

        Raises:
            TransformFailed: so long after that MP4 cannot say it.
        """
        if self.packets:
            _extend(self.lasting, dts - self.last[0])
        else:
            self.first, self.end = (pts, dts), pts
        self.packets += 1
        self.last, self.end = (dts, duration), max(self.end, pts + duration)
        _extend(self.delays, pts - dts)
        if key:
            self.keys.append(self.packets)

    def lay(self, at: int, sizes: array[int]) -> int:
        """Note that packets of these sizes stand from `at` on; returns where they end."""
        self.chunks.append(at)
        self.chunk_samples.append(len(sizes))
        self.sizes.extend(sizes)
        return at + sum(sizes)

    @property
    def ticks(self) -> int:
        """From when the first is shown until the last has been."""
        return self.end - self.first[0]

    def tables(self) -> Iterator[bytes | memoryview]:
        """What `stbl` holds behind its description of the samples. Once: the tables are then those of the file."""
        _extend(self.lasting, self.last[1])
        yield from _table(b"stts", self.lasting, width=2)
        if 0 < len(self.keys) < self.packets:
            yield from _table(b"stss", self.keys)
        if any(self.delays[1::2]):
            yield from _table(b"ctts", self.delays, width=2)
        yield from _table(b"stsc", self._runs(), width=3)
        same = self.sizes[0] if min(self.sizes) == max(self.sizes) else 0
        head = struct.pack(">II", same, self.packets)
        yield from _table(b"stsz", array("I") if same else self.sizes, head=head)
        if self.chunks[-1] < _32_BITS:
            yield from _table(b"stco", array("I", self.chunks))
        else:
            yield from _table(b"co64", self.chunks)

    def _runs(self) -> array[int]:
        rows, before = array("I"), 0
        for number, count in enumerate(self.chunk_samples, 1):
            if count != before:
                rows.extend((number, count, 1))
                before = count
        return rows


class Flattened:
    """The file FFmpeg writes fragments to: their samples pass into `out`, their tables are gathered for `finish`."""

    def __init__(self, out: IO[bytes]) -> None:
        self.tracks: defaultdict[int, Track] = defaultdict(Track)
        """By the number FFmpeg gives them, from 1 on."""
        self.header = b""
        """The movie without samples; empty until FFmpeg has written it."""
        self._out = out
        self._held = bytearray()
        self._samples_left = 0
        self._at = out.write(_FTYP + _MDAT.pack(1, b"mdat", 0))

    def write(self, data: bytes) -> int:
        self._held += data
        while self._take():
            pass
        return len(data)

    def _take(self) -> bool:
        """One box out of what is held, or some samples; whether there may be more."""
        held = self._held
        if self._samples_left:
            some = held[: self._samples_left]
            self._at += self._out.write(some)
            self._samples_left -= len(some)
            del held[: len(some)]
            return bool(held)
        size, kind = struct.unpack_from(">I4s", held) if len(held) >= 8 else (0, b"")
        if kind == b"mdat":
            self._samples_left = size - 8
            del held[:8]
            return True
        if not 8 <= size <= len(held):
            return False
        if kind == b"moov":
            self.header = bytes(held[8:size])
        elif kind == b"moof":
            self._fragment(bytes(held[8:size]))
        del held[:size]
        return True

    def _fragment(self, body: bytes) -> None:
        """Whose samples follow, and how long each is: those of one track behind those of another."""
        at = self._at
        for number, sizes in (_sizes(traf) for kind, traf in boxes(body) if kind == b"traf"):
            at = self.tracks[number].lay(at, sizes)

    def finish(self) -> None:
        """Say how much there is, and what.

        Raises:
            TransformFailed: FFmpeg wrote something else than it was given.
        """
        if not self.header or any(len(track.sizes) != track.packets for track in self.tracks.values()):
            raise TransformFailed("it could not be written: the fragments do not hold what was given to FFmpeg")
        self._out.writelines(_boxed(b"moov", _movie(self.header, self.tracks)))
        self._out.seek(len(_FTYP))
        self._out.write(_MDAT.pack(1, b"mdat", self._at - len(_FTYP)))
        self._out.seek(0, 2)


def boxes(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(kind, content) of each box; FFmpeg wrote them, so that they are sound."""
    at = 0
    while at < len(body):
        size, kind = struct.unpack_from(">I4s", body, at)
        yield kind, body[at + 8 : at + size]
        at += size


def _sizes(traf: bytes) -> tuple[int, array[int]]:
    """The number of a fragment's track, and the size of each of its samples."""
    number, usual, sizes = 0, 0, array("I")
    for kind, body in boxes(traf):
        flags = int.from_bytes(body[1:4], "big")
        if kind == b"tfhd":
            number = int.from_bytes(body[4:8], "big")
            at = 8 + 8 * bool(flags & 1) + 4 * bool(flags & 2) + 4 * bool(flags & 8)
            usual = int.from_bytes(body[at : at + 4], "big") if flags & 16 else 0
        elif kind == b"trun":
            count, at = int.from_bytes(body[4:8], "big"), 8 + 4 * bool(flags & 1) + 4 * bool(flags & 4)
            columns = [flag for flag in (0x100, 0x200, 0x400, 0x800) if flags & flag]
            if not flags & 0x200:
                sizes.extend([usual] * count)
                continue
            rows = array("I", body[at : at + 4 * count * len(columns)])
            if sys.byteorder == "little":
                rows.byteswap()
            sizes.extend(rows[columns.index(0x200) :: len(columns)])
    return number, sizes


def _movie(header: bytes, tracks: dict[int, Track]) -> Pieces:
    """The content of `moov`: as FFmpeg began it, with what there turned out to be."""
    parts = list(boxes(header))
    scale = next(int.from_bytes(body[12:16], "big") for kind, body in parts if kind == b"mvhd")
    traks: Pieces = []
    longest = 0
    for body in (body for kind, body in parts if kind == b"trak"):
        track = tracks.get(int.from_bytes(dict(boxes(body))[b"tkhd"][12:16], "big"))
        if track is not None:
            trak, length = _trak(body, track, scale)
            traks += trak
            longest = max(longest, length)
    after = struct.pack(">I", max(tracks, default=0) + 1)
    first = (_box(b"mvhd", _long(body[:-4] + after, 16, longest)) for kind, body in parts if kind == b"mvhd")
    rest = (_box(kind, body) for kind, body in parts if kind not in {b"mvhd", b"trak", b"mvex"})
    return [*first, *traks, *rest]


def _trak(body: bytes, track: Track, scale: int) -> tuple[Pieces, int]:
    """A track with its tables, and how long it is in ticks of the movie."""
    media = dict(boxes(dict(boxes(body))[b"mdia"]))
    second = int.from_bytes(media[b"mdhd"][12:16], "big")
    length = -(-track.end * scale // second)
    parts: Pieces = []
    for kind, part in boxes(body):
        if kind == b"tkhd":
            parts += [_box(kind, _long(part, 20, length)), _box(b"edts", _edits(track, Fraction(scale, second)))]
        elif kind != b"edts":
            parts += _filled(kind, part, track)
    return _boxed(b"trak", parts), length


def _filled(kind: bytes, body: bytes, track: Track) -> Pieces:
    if kind == b"mdhd":
        return [_box(kind, _long(body, 16, track.ticks))]
    if kind not in _AROUND_TABLES:
        return [_box(kind, body)]
    inside = [(inner, part) for inner, part in boxes(body) if inner not in _TABLES]
    parts = [piece for inner, part in inside for piece in _filled(inner, part, track)]
    if kind == b"stbl":
        parts += track.tables()
        if _is_aac(dict(inside)[b"stsd"]):
            parts += [_ROLL, _full(b"sbgp", struct.pack(">4sIII", b"roll", 1, track.packets, 1))]
    return _boxed(kind, parts)


def _is_aac(described: bytes) -> bool:
    """By the description of how it is decoded, behind a mark and its length."""
    _, mark, decoded = described.partition(b"\x04\x80\x80\x80")
    return described[12:16] == b"mp4a" and bool(mark) and decoded[1:2] == b"\x40"


def _edits(track: Track, scale: Fraction) -> bytes:
    """When the track begins, and what stands before its beginning: what a decoder needs to settle."""
    shown, decoded = track.first
    delay, length = int(shown * scale // 1), -int(-track.ticks * scale // 1)
    edits = [(delay, -1), (length, shown - decoded)] if delay > 0 else [(length + delay, max(0, -decoded))]
    return _full(b"elst", struct.pack(">I", len(edits)) + b"".join(struct.pack(">Iii", *e, 1 << 16) for e in edits))


def _long(body: bytes, at: int, ticks: int) -> bytes:
    """A header with its length, which stands at `at` as long as it takes 32 bits."""
    if ticks < _UNKNOWN:
        return body[:at] + struct.pack(">I", ticks) + body[at + 4 :]
    times = struct.pack(">QQ", *struct.unpack_from(">II", body, 4))
    return b"\x01" + body[1:4] + times + body[12:at] + struct.pack(">Q", ticks) + body[at + 4 :]


def _extend(runs: array[int], value: int) -> None:
    if runs and runs[-1] == value:
        runs[-2] += 1
    elif 0 <= value < _32_BITS:
        runs.extend((1, value))
    else:
        raise TransformFailed(f"it could not be written: {value:,} ticks between packets are more than MP4 can say")


def _table(kind: bytes, rows: array[int], *, width: int = 1, head: bytes = b"") -> Iterator[bytes | memoryview]:
    """A box of `rows`, which are turned into the order of the file where they stand."""
    head = head or struct.pack(">I", len(rows) // width)
    yield struct.pack(">I4s4x", 12 + len(head) + len(rows) * rows.itemsize, kind) + head
    if sys.byteorder == "little":
        rows.byteswap()
    yield memoryview(rows).cast("B")


def _full(kind: bytes, body: bytes) -> bytes:
    return _box(kind, bytes(4) + body)


def _box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(body), kind) + body


def _boxed(kind: bytes, pieces: Pieces) -> Pieces:
    return [struct.pack(">I4s", 8 + sum(map(len, pieces)), kind), *pieces]
