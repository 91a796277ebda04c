"""The segments of a JPEG, and how many scans it has. Reads structure only, decodes nothing."""

from __future__ import annotations

import re

from weighlock.codecs.pieces import Reader
from weighlock.errors import MalformedMedia, MediaTooLarge

EOI, SOS = 0xD9, 0xDA
_MARKER = re.compile(rb"\xff+[^\x00\x01\xff\xd0-\xd8]", re.DOTALL)
_SCAN = b"\xff\xda"
_WINDOW = 1 << 20
_MOST_SCANS = 100
"""Encoders write about ten. Each is decoded over all pixels, so that a thousand empty ones take twenty seconds."""


def refuse_many_scans(reader: Reader) -> None:
    """Raises `MediaTooLarge` for a picture of more scans than any encoder writes; what is broken is not told here."""
    starts = (reader.at(at, _WINDOW + 1).count(_SCAN) for at in range(0, reader.size, _WINDOW))
    if sum(starts) <= _MOST_SCANS:  # what stands behind the picture counted in, so that few have to be walked
        return
    at = scans = 0
    try:
        while (found := segment(reader, at))[0] not in (None, EOI):
            marker, _, at = found
            scans += marker == SOS
            if scans > _MOST_SCANS:
                raise MediaTooLarge(f"a JPEG of more than {_MOST_SCANS} scans", max_scans=_MOST_SCANS)
    except MalformedMedia:
        return


def segment(reader: Reader, at: int) -> tuple[int | None, int, int]:
    """The next marker at or behind `at` and where its segment begins and ends; what lies between belongs to nothing."""
    begin = end_of_scan(reader, at)
    head = reader.at(begin, 4)
    if len(head) < 2:
        return None, begin, reader.size
    marker = head[1]
    if marker == EOI:
        return marker, begin, begin + 2
    size = int.from_bytes(head[2:4], "big")
    if len(head) < 4 or begin + 2 + size > reader.size:
        return None, begin, reader.size
    if size < 2:
        raise MalformedMedia(f"a segment of {size} bytes")
    return marker, begin, begin + 2 + size


def end_of_scan(reader: Reader, at: int) -> int:
    """Where the next marker that ends compressed data stands: its `ff`; the end of the file where there is none."""
    while at < reader.size:
        window = reader.at(at, _WINDOW)
        if found := _MARKER.search(window):
            return at + found.end() - 2
        at += len(window) if len(window) < 2 or window[-1] != 0xFF else len(window) - 1
        if len(window) == 1:
            break
    return reader.size
