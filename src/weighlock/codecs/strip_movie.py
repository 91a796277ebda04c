"""Metadata of MP4 and QuickTime, blanked where it stands, so that no offset into the samples moves."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from weighlock.codecs.pieces import Piece, Reader
from weighlock.errors import MalformedMedia

_MAX_BOXES = 100_000
_MAX_DEPTH = 8
_INSIDE = {b"moov", b"trak", b"mdia", b"minf", b"moof", b"traf", b"mvex"}
_BLANKED = {b"udta", b"meta", b"uuid", b"XMP_"}
_UUID_STAYS = {b"traf", b"moof"}
"""Where `uuid` holds timing or keys of a fragment, not words about it."""
_DATED = {b"mvhd", b"tkhd", b"mdhd"}
_TIMED_METADATA = {b"meta", b"camm", b"gpmd"}
_ZEROS = bytes(1 << 20)


@dataclass(frozen=True, slots=True)
class _Box:
    kind: bytes
    begin: int
    body: int
    end: int


@dataclass(slots=True)
class _Found:
    """Places to overwrite, in the order of the file, and what else was met."""

    patches: list[tuple[int, bytes | int]] = field(default_factory=list)
    """Offset, and new bytes or how many zeros."""
    boxes: int = 0
    movie: bool = False
    timed_metadata: int = 0


def movie(reader: Reader) -> tuple[list[Piece], list[str]]:
    """The same file, byte for byte as long, with `udta`, `meta` and `uuid` boxes empty and dates of making unknown."""
    found = _Found()
    _walk(reader, 0, reader.size, b"", found, 0)
    if not found.movie:
        raise MalformedMedia("it has no movie header")
    notes = []
    if found.timed_metadata:
        notes.append(f"{found.timed_metadata} data tracks stayed; such may hold where a camera was, second by second")
    return list(_patched(reader.size, found.patches)), notes


def _walk(reader: Reader, begin: int, end: int, parent: bytes, found: _Found, depth: int) -> None:
    for box in _boxes(reader, begin, end, top=not parent):
        found.boxes += 1
        if found.boxes > _MAX_BOXES:
            raise MalformedMedia(f"more than {_MAX_BOXES:,} boxes")
        found.movie = found.movie or box.kind in {b"moov", b"moof"}
        if box.kind in _BLANKED and not (box.kind == b"uuid" and parent in _UUID_STAYS):
            found.patches += [(box.begin + 4, b"free"), (box.body, box.end - box.body)]
        elif box.kind in _DATED:
            version = reader.exactly(box.body, 1, "a header")[0]
            _blank(found, box.body + 4, min(box.end, box.body + 4 + (16 if version == 1 else 8)))
        elif box.kind == b"hdlr" and parent == b"mdia":
            found.timed_metadata += reader.at(box.body + 8, 4) in _TIMED_METADATA
        elif box.kind in _INSIDE and depth < _MAX_DEPTH:
            _walk(reader, box.body, box.end, box.kind, found, depth + 1)


def _blank(found: _Found, begin: int, end: int) -> None:
    if end > begin:
        found.patches.append((begin, end - begin))


def _boxes(reader: Reader, begin: int, end: int, *, top: bool) -> Iterator[_Box]:
    at = begin
    while at + 8 <= end:
        size, kind = struct.unpack(">I4s", reader.exactly(at, 8, "a box"))
        body = at + 8
        if size == 1:
            size = int.from_bytes(reader.exactly(at + 8, 8, "a box"), "big")
            body = at + 16
        elif size == 0:
            size = end - at
        stop = at + size
        if stop < body or (stop > end and not top):
            raise MalformedMedia(f"a box of {size:,} bytes where {end - at:,} are left")
        if stop > end and kind in _INSIDE:
            raise MalformedMedia("its movie header is cut off")
        yield _Box(kind, at, min(body, end), min(stop, end))
        at = stop


def _patched(size: int, patches: list[tuple[int, bytes | int]]) -> Iterator[Piece]:
    at = 0
    for offset, new in patches:
        count = new if isinstance(new, int) else len(new)
        yield range(at, offset)
        if isinstance(new, bytes):
            yield new
        else:
            yield from (_ZEROS[: min(len(_ZEROS), count - done)] for done in range(0, count, len(_ZEROS)))
        at = offset + count
    yield range(at, size)
