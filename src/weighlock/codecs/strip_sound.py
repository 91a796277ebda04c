"""Tags of MP3 and AAC, FLAC and WAV, cut out of the file. Samples and what decodes them stay byte for byte."""

from __future__ import annotations

import struct

from weighlock.codecs.pieces import Piece, Reader, length
from weighlock.errors import MalformedMedia

_MAX_TAGS = 64
_MAX_CHUNKS = 100_000
_APE_HAS_HEADER = 1 << 31

_FLAC_KEPT = {0, 3}
"""STREAMINFO and SEEKTABLE."""
_WAVE_KEPT = {b"fmt ", b"data", b"fact", b"ds64", b"wavl", b"slnt", b"smpl", b"cue "}
_LIVE = {0, 0xFFFFFFFF}


def tagged(reader: Reader) -> tuple[list[Piece], list[str]]:
    """Frames of MPEG audio without ID3, APE and Lyrics3 tags at either end."""
    start = _front(reader, 0)
    end = _back(reader, start)
    if start >= end:
        raise MalformedMedia("there is no sound besides its tags")
    return [range(start, end)], []


def flac(reader: Reader) -> tuple[list[Piece], list[str]]:
    """The stream with its description and seek table; no tags, pictures, cue sheet or padding."""
    start = _front(reader, 0)
    if reader.at(start, 4) != b"fLaC":
        raise MalformedMedia("it does not begin as a FLAC")
    at, last = start + 4, False
    kept: list[tuple[int, int, int]] = []
    while not last:
        head = reader.exactly(at, 4, "its metadata")
        kind, end, last = head[0] & 0x7F, at + 4 + int.from_bytes(head[1:], "big"), bool(head[0] & 0x80)
        if end > reader.size or len(kept) > _MAX_CHUNKS:
            raise MalformedMedia("it ends within its metadata", size_bytes=reader.size)
        if kind in _FLAC_KEPT:
            kept.append((kind, at + 1, end))
        at = end
    if not kept or kept[0][0] != 0:
        raise MalformedMedia("it does not say what its stream is")
    pieces: list[Piece] = [b"fLaC"]
    for number, (kind, begin, end) in enumerate(kept, 1):
        pieces += [bytes([kind | (0x80 if number == len(kept) else 0)]), range(begin, end)]
    return [*pieces, range(at, max(at, _back(reader, at)))], []


def wav(reader: Reader) -> tuple[list[Piece], list[str]]:
    """Format and samples; no INFO list, ID3, broadcast or iXML chunk."""
    head = reader.exactly(0, 12, "its header")
    if head[:4] not in {b"RIFF", b"RF64", b"BW64"} or head[8:] != b"WAVE":
        raise MalformedMedia("it does not begin as a WAV")
    at, long_data = 12, None
    pieces: list[Piece] = []
    notes: list[str] = []
    for _ in range(_MAX_CHUNKS):
        chunk = reader.at(at, 8)
        if len(chunk) < 8:
            break
        kind, size = chunk[:4], int.from_bytes(chunk[4:], "little")
        if kind == b"ds64" and size >= 24:
            long_data = int.from_bytes(reader.exactly(at + 16, 8, "its sizes"), "little")
        if kind == b"data" and size == 0xFFFFFFFF and long_data is not None:
            size = long_data
        endless = kind == b"data" and (size in _LIVE or at + 8 + size > reader.size)
        end = reader.size if endless else at + 8 + size + (size & 1)
        if kind in _WAVE_KEPT:
            pieces.append(range(at, min(end, reader.size)))
        if endless:
            notes.append("its header does not say where the samples end; all that follows stayed")
        at = end
    if head[:4] == b"RIFF":
        return [b"RIFF", struct.pack("<I", min(4 + length(pieces), 0xFFFFFFFF)), b"WAVE", *pieces], notes
    return _with_long_sizes(reader, head, pieces), notes


def _with_long_sizes(reader: Reader, head: bytes, pieces: list[Piece]) -> list[Piece]:
    """RF64 says its size in `ds64`, which comes first."""
    total = 4 + length(pieces)
    first = pieces[0] if pieces else b""
    if not isinstance(first, range) or reader.at(first.start, 4) != b"ds64" or len(first) < 16:
        raise MalformedMedia("it does not say its size")
    sized: list[Piece] = [
        range(first.start, first.start + 8),
        struct.pack("<Q", total),
        range(first.start + 16, first.stop),
    ]
    return [head, *sized, *pieces[1:]]


def _front(reader: Reader, at: int) -> int:
    """Behind the tags a file begins with."""
    for _ in range(_MAX_TAGS):
        head = reader.at(at, 32)
        if head[:3] == b"ID3" and len(head) >= 10 and max(head[6:10]) < 0x80:
            at += 10 + _synchsafe(head[6:10]) + (10 if head[5] & 0x10 else 0)
        elif head[:8] == b"APETAGEX" and len(head) == 32:
            at += 32 + int.from_bytes(head[12:16], "little")
        else:
            break
    return min(at, reader.size)


def _back(reader: Reader, start: int) -> int:
    """Before the tags a file ends with, in whatever order they were added."""
    end = reader.size
    for _ in range(_MAX_TAGS):
        begin = _begin_of_tag(reader, end)
        if begin is None or begin < start:
            break
        end = begin
    return end


def _begin_of_tag(reader: Reader, end: int) -> int | None:
    if reader.at(end - 128, 3) == b"TAG":
        return end - 355 if reader.at(end - 355, 4) == b"TAG+" else end - 128
    foot = reader.at(end - 32, 32)
    if foot[:8] == b"APETAGEX" and len(foot) == 32:
        size, flags = struct.unpack("<II", foot[12:16] + foot[20:24])
        return end - int(size) - (32 if flags & _APE_HAS_HEADER else 0)
    if foot[-10:-7] == b"3DI" and max(foot[-4:]) < 0x80:
        return end - 20 - _synchsafe(foot[-4:])
    if foot[-9:] == b"LYRICS200" and foot[-15:-9].isdigit():
        return end - 15 - int(foot[-15:-9])
    return None


def _synchsafe(four: bytes) -> int:
    return four[0] << 21 | four[1] << 14 | four[2] << 7 | four[3]
