"""Boxes of MP4 and QuickTime, and where the samples of a track lie. Reads tables, trusts none of their figures."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from weighlock.codecs.pieces import Reader
from weighlock.errors import MalformedMedia

_MAX_ROWS = 2_000_000
_CUT_HARMS = {b"moov", b"moof"}


@dataclass(frozen=True, slots=True)
class Box:
    """Its kind, and offsets of its first byte, of its content and of what follows it."""

    kind: bytes
    begin: int
    body: int
    end: int


def boxes(reader: Reader, parent: Box) -> Iterator[Box]:
    """The boxes within `parent`; one without kind is the whole file, whose last box may be cut off.

    Raises:
        MalformedMedia: a box that does not fit where it stands.
    """
    at, end = parent.body, parent.end
    while at + 8 <= end:
        size, kind = struct.unpack(">I4s", reader.exactly(at, 8, "a box"))
        body = at + 8
        if size == 1:
            size, body = int.from_bytes(reader.exactly(at + 8, 8, "a box"), "big"), at + 16
        elif size == 0:
            size = end - at
        stop = at + size
        if stop < body or (stop > end and (parent.kind or kind in _CUT_HARMS)):
            raise MalformedMedia(f"a box of {size:,} bytes where {end - at:,} are left")
        yield Box(kind, at, min(body, end), min(stop, end))
        at = stop


def handler(reader: Reader, track: Box) -> bytes:
    """What a track is for: `vide`, `soun`, `meta`; empty where it does not say."""
    found = _at(reader, track, b"mdia", b"hdlr")
    return b"" if found is None else reader.at(found.body + 8, 4)


def sample_ranges(reader: Reader, track: Box) -> list[range]:
    """Where the chunks of a track lie in the file, by its tables; empty where they do not say."""
    table = _at(reader, track, b"mdia", b"minf", b"stbl")
    parts = {} if table is None else {box.kind: box for box in boxes(reader, table)}
    offsets = _rows(reader, parts.get(b"co64"), ">Q") or _rows(reader, parts.get(b"stco"), ">I")
    runs = [(first, count) for first, count, _ in _rows(reader, parts.get(b"stsc"), ">III")]
    sizes = _sizes(reader, parts.get(b"stsz"))
    found: list[range] = []
    sample = run = 0
    for chunk, (offset,) in enumerate(offsets, 1):
        while run + 1 < len(runs) and runs[run + 1][0] <= chunk:
            run += 1
        count = runs[run][1] if runs else 0
        span = sizes * count if isinstance(sizes, int) else sum(sizes[sample : sample + count])
        sample += count
        found.append(range(offset, offset + span))
    return found


def _at(reader: Reader, box: Box, *path: bytes) -> Box | None:
    for kind in path:
        found = next((inner for inner in boxes(reader, box) if inner.kind == kind), None)
        if found is None:
            return None
        box = found
    return box


def _rows(reader: Reader, box: Box | None, form: str, *, skip: int = 4) -> list[tuple[int, ...]]:
    """Rows of a full box behind their count, as many as are there."""
    if box is None:
        return []
    count = int.from_bytes(reader.at(box.body + skip, 4), "big")
    width, begin = struct.calcsize(form), box.body + skip + 4
    count = min(count, max(0, box.end - begin) // width, _MAX_ROWS)
    data = reader.at(begin, count * width)
    return list(struct.iter_unpack(form, data[: len(data) // width * width]))


def _sizes(reader: Reader, box: Box | None) -> int | list[int]:
    """One size for every sample, or each sample's own."""
    if box is None:
        return 0
    same = int.from_bytes(reader.at(box.body + 4, 4), "big")
    return same or [size for (size,) in _rows(reader, box, ">I", skip=8)]
