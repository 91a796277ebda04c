"""Metadata of JPEG, PNG, WebP and GIF, cut out of the file. Reads structure only, decodes nothing."""

from __future__ import annotations

import struct
import zlib

from weighlock.codecs.jpeg import EOI, SOS, end_of_scan, segment
from weighlock.codecs.pieces import Piece, Reader, length
from weighlock.errors import MalformedMedia
from weighlock.mime import exif

_MAX_PARTS = 1_000_000
_MAX_EXIF = 1 << 20
_WINDOW = 1 << 20
_BEHIND = "{:,} bytes behind the picture were left out"
_CUT_OFF = "it is cut off; what there is of the picture stayed"

_COM, _APP0, _APP1, _APP2, _APP14, _APP15 = 0xFE, 0xE0, 0xE1, 0xE2, 0xEE, 0xEF
_KEPT_SEGMENTS = {_APP0: b"JFIF\0", _APP2: b"ICC_PROFILE\0", _APP14: b"Adobe"}

_PNG_HEAD = b"\x89PNG\r\n\x1a\n"
_KEPT_CHUNKS = frozenset(
    (b"tRNS", b"cHRM", b"gAMA", b"iCCP", b"sBIT", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"mDCv", b"cLLi", b"bKGD",
     b"hIST", b"pHYs", b"sPLT", b"acTL", b"fcTL", b"fdAT")
)  # fmt: skip

_WEBP_KEPT = {b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"ICCP"}
_HAS_XMP, _HAS_EXIF = 0x04, 0x08

_GIF_APPLICATIONS = {b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012"}


def oriented(orientation: int) -> bytes:
    """The shortest TIFF block of EXIF that says how a picture is turned, and nothing else."""
    return b"MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHIHH", 0x0112, 3, 1, orientation, 0) + bytes(4)


# -- JPEG -------------------------------------------------------------------------------------------------------------


def jpeg(reader: Reader, *, keep_orientation: bool = True) -> tuple[list[Piece], list[str]]:
    """All but EXIF, XMP, IPTC, comments, previews and what stands behind the picture, which may be another one."""
    if reader.at(0, 2) != b"\xff\xd8":
        raise MalformedMedia("it does not begin as a JPEG")
    pieces: list[Piece] = [range(2)]
    turned, insert_at, at = 1, 1, 2
    for _ in range(_MAX_PARTS):
        marker, begin, end = segment(reader, at)
        if marker is None:
            return _with_orientation(pieces, insert_at, turned), [_CUT_OFF]
        if marker == EOI:
            pieces.append(b"\xff\xd9")
            behind = reader.size - end
            return _with_orientation(pieces, insert_at, turned), [_BEHIND.format(behind)] if behind else []
        if keep_orientation and marker == _APP1 and turned == 1 and reader.at(begin + 4, 6) == b"Exif\0\0":
            turned = exif.orientation(reader.at(begin + 4, end - begin - 4))
        if _kept(reader, marker, begin):
            pieces.append(range(begin, end))
            if marker == _APP0:
                insert_at = len(pieces)
        at = end
        if marker == SOS:
            at = end_of_scan(reader, end)
            pieces.append(range(end, at))
    raise MalformedMedia(f"more than {_MAX_PARTS:,} segments")


def _kept(reader: Reader, marker: int, begin: int) -> bool:
    if marker in _KEPT_SEGMENTS:
        wanted = _KEPT_SEGMENTS[marker]
        return reader.at(begin + 4, len(wanted)) == wanted
    return marker != _COM and not _APP0 <= marker <= _APP15


def _with_orientation(pieces: list[Piece], at: int, orientation: int) -> list[Piece]:
    if orientation != 1:
        body = b"Exif\0\0" + oriented(orientation)
        pieces.insert(at, b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body)
    return pieces


# -- PNG --------------------------------------------------------------------------------------------------------------


def png(reader: Reader) -> tuple[list[Piece], list[str]]:
    """The picture, its colours and its animation; no text, time, EXIF or chunk of unknown purpose."""
    if reader.at(0, 8) != _PNG_HEAD or reader.at(12, 4) != b"IHDR":
        raise MalformedMedia("it does not begin as a PNG")
    pieces: list[Piece] = [range(8)]
    turned, at = 1, 8
    for _ in range(_MAX_PARTS):
        head = reader.at(at, 8)
        if len(head) < 8:
            return _with_chunk(pieces, turned), [_CUT_OFF]
        kind, end = head[4:], at + 12 + int.from_bytes(head[:4], "big")
        if end > reader.size:
            if _is_kept(kind):
                pieces.append(range(at, reader.size))
            return _with_chunk(pieces, turned), [_CUT_OFF]
        if kind == b"eXIf" and turned == 1:
            turned = exif.orientation(reader.at(at + 8, min(end - at - 12, _MAX_EXIF)))
        if _is_kept(kind):
            pieces.append(range(at, end))
        if kind == b"IEND":
            behind = reader.size - end
            return _with_chunk(pieces, turned), [_BEHIND.format(behind)] if behind else []
        at = end
    raise MalformedMedia(f"more than {_MAX_PARTS:,} chunks")


def _is_kept(kind: bytes) -> bool:
    critical = not kind[0] & 0x20
    return critical or kind in _KEPT_CHUNKS


def _with_chunk(pieces: list[Piece], orientation: int) -> list[Piece]:
    if orientation != 1:
        data = b"eXIf" + oriented(orientation)
        pieces.insert(2, struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data)))
    return pieces


# -- WebP -------------------------------------------------------------------------------------------------------------


def webp(reader: Reader) -> tuple[list[Piece], list[str]]:
    """The picture, its animation and profile; the header's flags are put right."""
    head = reader.exactly(0, 12, "its header")
    if head[:4] != b"RIFF" or head[8:] != b"WEBP":
        raise MalformedMedia("it does not begin as a WebP")
    end, at, turned = min(reader.size, 8 + int.from_bytes(head[4:8], "little")), 12, 1
    pieces: list[Piece] = []
    extended: range | None = None
    notes = [_BEHIND.format(reader.size - end)] if reader.size > end + 1 else []
    for _ in range(_MAX_PARTS):
        chunk = reader.at(at, 8)
        if at + 8 > end or len(chunk) < 8:
            break
        kind, size = chunk[:4], int.from_bytes(chunk[4:], "little")
        following = at + 8 + size + (size & 1)
        if kind == b"EXIF":
            turned = exif.orientation(reader.at(at + 8, min(size, _MAX_EXIF)))
        elif kind == b"VP8X" and size >= 10:
            extended = range(at, min(following, reader.size))
        elif kind in _WEBP_KEPT:
            pieces.append(range(at, min(following, reader.size)))
        if following > reader.size:
            notes.append(_CUT_OFF)
            break
        at = following
    if extended is not None:
        pieces = _extended(reader, extended, pieces, turned)
    return [b"RIFF" + struct.pack("<I", 4 + length(pieces)) + b"WEBP", *pieces], notes


def _extended(reader: Reader, header: range, pieces: list[Piece], orientation: int) -> list[Piece]:
    """A WebP with a header for what a plain one cannot hold; only that may say how the picture is turned."""
    turned = orientation != 1
    flags = reader.exactly(header.start + 8, 1, "its header")[0] & ~(_HAS_XMP | _HAS_EXIF)
    data = oriented(orientation)
    tail: list[Piece] = [b"EXIF" + struct.pack("<I", len(data)) + data] if turned else []
    begin: list[Piece] = [range(header.start, header.start + 8), bytes([flags | (_HAS_EXIF if turned else 0)])]
    return [*begin, range(header.start + 9, header.stop), *pieces, *tail]


# -- GIF --------------------------------------------------------------------------------------------------------------


def gif(reader: Reader) -> tuple[list[Piece], list[str]]:
    """Frames, their timing and the number of rounds; no comments, XMP or blocks of unknown programs."""
    head = reader.exactly(0, 13, "its header")
    if head[:6] not in {b"GIF87a", b"GIF89a"}:
        raise MalformedMedia("it does not begin as a GIF")
    at = 13 + _table_bytes(head[10])
    pieces: list[Piece] = [range(min(at, reader.size))]
    for _ in range(_MAX_PARTS):
        kind = reader.at(at, 10)
        if kind[:1] == b"\x3b":
            pieces.append(b"\x3b")
            behind = reader.size - at - 1
            return pieces, [_BEHIND.format(behind)] if behind else []
        if kind[:1] == b"\x2c" and len(kind) == 10:
            end = _end_of_blocks(reader, at + 10 + _table_bytes(kind[9]) + 1)
            keep = True
        elif kind[:1] == b"\x21" and len(kind) >= 2:
            end = _end_of_blocks(reader, at + 2)
            application = reader.at(at + 3, 11)
            keep = kind[1] != 0xFE and (kind[1] != 0xFF or application in _GIF_APPLICATIONS)
        else:
            return pieces, [_CUT_OFF]
        if keep:
            pieces.append(range(at, min(end, reader.size)))
        if end > reader.size:
            return pieces, [_CUT_OFF]
        at = end
    raise MalformedMedia(f"more than {_MAX_PARTS:,} blocks")


def _table_bytes(packed: int) -> int:
    return 3 << ((packed & 7) + 1) if packed & 0x80 else 0


def _end_of_blocks(reader: Reader, at: int) -> int:
    """Behind the empty block that ends a row of blocks; past the file where there is none."""
    while at < reader.size:
        window = reader.at(at, _WINDOW)
        inside = 0
        while inside < len(window):
            size = window[inside]
            inside += size + 1
            if not size:
                return at + inside
        at += inside
    return reader.size + 1
