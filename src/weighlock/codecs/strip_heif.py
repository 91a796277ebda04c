"""Metadata of HEIC and AVIF, blanked where it stands. How the picture is turned is not EXIF's to say in these."""

from __future__ import annotations

from weighlock.codecs import strip_movie
from weighlock.codecs.pieces import Piece, Reader
from weighlock.codecs.strip_track import Box, boxes
from weighlock.errors import MalformedMedia

_MAX_ITEMS = 65_536
_EXIF, _MIME, _URI = b"Exif", b"mime", b"uri "
_EMPTY_EXIF = bytes(4) + b"MM\0*\0\0\0\x08" + bytes(6)
_EMPTY_XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"
_BY_FILE, _BY_IDAT = 0, 1


def heif(reader: Reader) -> tuple[list[Piece], list[str]]:
    """The same file, as long as it was, with nothing in its EXIF and XMP items; `uuid` and `udta` boxes are blank."""
    metas = [box for box in boxes(reader, Box(b"", 0, 0, reader.size)) if box.kind == b"meta"]
    if not metas:
        raise MalformedMedia("it has no description of its pictures")
    found = strip_movie.found_in(reader, spare_top=frozenset((b"meta",)))
    for meta in metas:
        _blank_items(reader, meta, found)
    return strip_movie.patched(reader, found), []


def _blank_items(reader: Reader, meta: Box, found: strip_movie.Found) -> None:
    parts = {box.kind: box for box in boxes(reader, Box(b"meta", meta.begin, meta.body + 4, meta.end))}
    kinds = _telling_items(reader, parts.get(b"iinf"))
    places = _places(reader, parts.get(b"iloc"), parts.get(b"idat"))
    for item, kind in kinds.items():
        extents = [extent for extent in places.get(item, ()) if 0 <= extent.start < extent.stop <= reader.size]
        empty = _EMPTY_EXIF if kind == _EXIF else _EMPTY_XMP
        for number, extent in enumerate(extents):
            begin = extent.start
            if number == 0 and len(extent) >= len(empty):
                found.words.append((begin, empty))
                begin += len(empty)
            found.zeros.append(range(begin, extent.stop))


def _telling_items(reader: Reader, table: Box | None) -> dict[int, bytes]:
    """Items that are no picture but words about one, by number."""
    if table is None:
        return {}
    wide = reader.exactly(table.body, 1, "its list of items")[0] > 0
    kinds: dict[int, bytes] = {}
    for entry in boxes(reader, Box(b"iinf", table.begin, table.body + (8 if wide else 6), table.end)):
        version = reader.exactly(entry.body, 1, "an item")[0]
        width = 4 if version == 3 else 2
        if entry.kind != b"infe" or version < 2:
            continue
        number = int.from_bytes(reader.at(entry.body + 4, width), "big")
        kind = reader.at(entry.body + 6 + width, 4)
        if kind in {_EXIF, _MIME, _URI}:
            kinds[number] = kind
    return kinds


def _places(reader: Reader, table: Box | None, idat: Box | None) -> dict[int, list[range]]:
    """Where each item lies in the file, as far as that is said in a way we follow."""
    if table is None:
        return {}
    data = memoryview(reader.exactly(table.body, table.end - table.body, "its table of places"))
    at, version = 6, data[0]
    offset_size, length_size, base_size, index_size = data[4] >> 4, data[4] & 15, data[5] >> 4, data[5] & 15

    def number(width: int) -> int:
        nonlocal at
        if at + width > len(data):
            raise MalformedMedia("its table of places ends early")
        at += width
        return int.from_bytes(data[at - width : at], "big")

    places: dict[int, list[range]] = {}
    for _ in range(min(number(4 if version == 2 else 2), _MAX_ITEMS)):
        item = number(4 if version == 2 else 2)
        method = number(2) & 15 if version in {1, 2} else _BY_FILE
        number(2)
        base, extents = number(base_size), []
        for _ in range(number(2)):
            if version in {1, 2}:
                number(index_size)
            offset, size = base + number(offset_size), number(length_size)
            if method == _BY_IDAT and idat is not None:
                extents.append(range(idat.body + offset, min(idat.end, idat.body + offset + size)))
            elif method == _BY_FILE:
                extents.append(range(offset, offset + size if size else reader.size))
        places[item] = extents
    return places
