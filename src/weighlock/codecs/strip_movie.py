"""Metadata of MP4 and QuickTime, blanked where it stands, so that no offset into the samples moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from weighlock.codecs.pieces import Piece, Reader
from weighlock.codecs.strip_track import Box, boxes, handler, sample_ranges
from weighlock.errors import MalformedMedia

_MAX_BOXES = 100_000
_MAX_DEPTH = 8
_INSIDE = {b"moov", b"trak", b"mdia", b"minf", b"moof", b"traf", b"mvex"}
_BLANKED = {b"udta", b"meta", b"uuid", b"XMP_"}
_UUID_STAYS = {b"traf", b"moof"}
"""Where `uuid` holds timing or keys of a fragment, not words about it."""
_DATED = {b"mvhd", b"tkhd", b"mdhd"}
_TIMED_METADATA = {b"meta", b"camm", b"gpmd"}
"""Tracks of readings beside picture and sound: where the camera was each second, faces it saw."""
_NO_WORDS = b"\0\0\0\x35meta\0\0\0\0\0\0\0\x21hdlr" + bytes(8) + b"mdirappl" + bytes(9) + b"\0\0\0\x08ilst"
"""All that `udta` holds where FFmpeg had no tag to write: it stays, so that what was made here leaves as it is."""
_ZEROS = bytes(1 << 20)


@dataclass(slots=True)
class Found:
    """What is to be overwritten, and what else was met."""

    words: list[tuple[int, bytes]] = field(default_factory=list)
    """New bytes and where: the kind of a box becomes `free`."""
    zeros: list[range] = field(default_factory=list)
    samples: list[range] = field(default_factory=list)
    """Of timed metadata; blanked where they lie in sample data."""
    data: list[range] = field(default_factory=list)
    boxes: int = 0
    movie: bool = False
    fragments: bool = False
    tracks: int = 0


def movie(reader: Reader) -> tuple[list[Piece], list[str]]:
    """The same file, as long as it was, with `udta`, `meta`, `uuid` and tracks of readings blank and without dates."""
    found = found_in(reader)
    if not found.movie:
        raise MalformedMedia("it has no movie header")
    notes = [f"tracks of readings beside picture and sound were blanked: {found.tracks}"] if found.tracks else []
    if found.tracks and found.fragments:
        notes.append("readings inside its fragments stayed; they may say where a camera was")
    return patched(reader, found), notes


def found_in(reader: Reader, *, spare_top: frozenset[bytes] = frozenset()) -> Found:
    """What is to be blanked; boxes of the kinds in `spare_top` that lie in no other are left alone."""
    found = Found()
    _walk(reader, Box(b"", 0, 0, reader.size), found, spare_top, 0)
    return found


def patched(reader: Reader, found: Found) -> list[Piece]:
    """The file with all of it blanked."""
    zeros = found.zeros + [part for part in _clipped(found.samples, found.data) if len(part)]
    return list(_patched(reader.size, found.words, zeros))


def _walk(reader: Reader, parent: Box, found: Found, spared: frozenset[bytes], depth: int) -> None:
    for box in boxes(reader, parent):
        found.boxes += 1
        if found.boxes > _MAX_BOXES:
            raise MalformedMedia(f"more than {_MAX_BOXES:,} boxes")
        found.movie = found.movie or box.kind in {b"moov", b"moof"}
        found.fragments = found.fragments or box.kind == b"moof"
        if box.kind == b"mdat":
            found.data.append(range(box.body, box.end))
        elif box.kind in spared or (box.kind == b"udta" and _says_nothing(reader, box)):
            continue
        elif box.kind in _BLANKED and not (box.kind == b"uuid" and parent.kind in _UUID_STAYS):
            _free(box, found)
        elif box.kind == b"trak" and handler(reader, box) in _TIMED_METADATA:
            found.tracks += 1
            found.samples += sample_ranges(reader, box)
            _free(box, found)
        elif box.kind in _DATED:
            dates = 16 if reader.exactly(box.body, 1, "a header")[0] == 1 else 8
            found.zeros.append(range(box.body + 4, max(box.body + 4, min(box.end, box.body + 4 + dates))))
        elif box.kind in _INSIDE and depth < _MAX_DEPTH:
            _walk(reader, box, found, frozenset(), depth + 1)


def _says_nothing(reader: Reader, box: Box) -> bool:
    return box.end - box.body == len(_NO_WORDS) and reader.at(box.body, len(_NO_WORDS)) == _NO_WORDS


def _free(box: Box, found: Found) -> None:
    found.words.append((box.begin + 4, b"free"))
    found.zeros.append(range(box.body, box.end))


def _clipped(samples: list[range], data: list[range]) -> Iterator[range]:
    """Parts of `samples` that lie in `data`, both in any order."""
    samples, data = sorted(samples, key=lambda r: r.start), sorted(data, key=lambda r: r.start)
    first = 0
    for sample in samples:
        while first < len(data) and data[first].stop <= sample.start:
            first += 1
        if first < len(data):
            start = max(sample.start, data[first].start)
            yield range(start, max(start, min(sample.stop, data[first].stop)))


def _patched(size: int, words: list[tuple[int, bytes]], zeros: list[range]) -> Iterator[Piece]:
    at = 0
    changes = [(place, place + len(new), new) for place, new in words] + [(z.start, z.stop, b"") for z in zeros]
    for begin, stop, new in sorted(changes):
        start = max(at, begin)  # samples of a lying table may overlap
        if stop <= start:
            continue
        yield range(at, start)
        if new:
            yield new[start - begin :]
        else:
            yield from (_ZEROS[: min(len(_ZEROS), stop - offset)] for offset in range(start, stop, len(_ZEROS)))
        at = stop
    yield range(at, size)
