"""HEIC and AVIF: the size of the primary item, from the properties that belong to it."""

from __future__ import annotations

from typing import NamedTuple

from weighlock.mime.isobmff import Box, boxes
from weighlock.mime.window import Window

MAX_ASSOCIATIONS = 4096
_MAX_PROPERTY_BYTES = 1 << 16


class HeifSize(NamedTuple):
    width_px: int
    height_px: int
    orientation: int
    crop_px: tuple[int, int] | None


def primary_item(window: Window) -> HeifSize | None:
    """The primary image as stored, with the crop, turn and mirror its properties ask for."""
    meta = _child(window, 0, window.end, b"meta")
    if meta is None:
        return None
    # `pitm` may stand before or after `iprp`, so the children are noted first.
    children = {box.kind: box for box in boxes(window, meta.body + 4, min(meta.end, window.end))}
    item = _primary_id(window, children.get(b"pitm"))
    iprp = children.get(b"iprp")
    if item is None or iprp is None:
        return None
    inside = {box.kind: box for box in boxes(window, iprp.body, iprp.end)}
    ipco, ipma = inside.get(b"ipco"), inside.get(b"ipma")
    if ipco is None or ipma is None:
        return None
    properties = list(boxes(window, ipco.body, ipco.end))
    wanted = [properties[index - 1] for index in _associated(window, ipma, item) if 0 < index <= len(properties)]
    return _applied(window, wanted)


def first_track(window: Window) -> HeifSize | None:
    """For sequences without a still: the first track's size, where its header holds no rotation."""
    moov = _child(window, 0, window.end, b"moov")
    trak = _child(window, moov.body, moov.end, b"trak") if moov else None
    tkhd = _child(window, trak.body, trak.end, b"tkhd") if trak else None
    if tkhd is None or tkhd.end - tkhd.body < 84:
        return None
    raw = window.at(tkhd.end - 44, 44)
    matrix, width, height = raw[:36], raw[36:40], raw[40:44]
    if int.from_bytes(matrix[:4]) != 0x10000 or int.from_bytes(matrix[16:20]) != 0x10000:
        return None
    # Both are 16.16 fixed point.
    return HeifSize(int.from_bytes(width) >> 16, int.from_bytes(height) >> 16, 1, None)


def is_sequence(window: Window) -> bool:
    """Whether the file calls itself an image sequence, by its major brand."""
    return window.head[8:12] in {b"avis", b"msf1", b"hevc", b"hevx", b"hevm", b"hevs"}


def _child(window: Window, start: int, end: int, kind: bytes) -> Box | None:
    return next((box for box in boxes(window, start, end) if box.kind == kind), None)


def _primary_id(window: Window, pitm: Box | None) -> int | None:
    if pitm is None:
        return None
    raw = window.at(pitm.body, 8)
    if len(raw) < 6:
        return None
    return int.from_bytes(raw[4:8] if raw[0] else raw[4:6])


def _associated(window: Window, ipma: Box, item: int) -> list[int]:
    """Property numbers (from 1) of one item, in the order they apply."""
    raw = window.at(ipma.body, min(ipma.end - ipma.body, _MAX_PROPERTY_BYTES))
    if len(raw) < 8:
        return []
    id_bytes, index_bytes = (2 if raw[0] < 1 else 4), (2 if raw[3] & 1 else 1)
    mask = 0x7FFF if index_bytes == 2 else 0x7F
    at = 8
    for _ in range(min(int.from_bytes(raw[4:8]), MAX_ASSOCIATIONS)):
        if at + id_bytes >= len(raw):
            break
        found, count = int.from_bytes(raw[at : at + id_bytes]), raw[at + id_bytes]
        at += id_bytes + 1
        if found == item:
            entries = raw[at : at + count * index_bytes]
            return [
                int.from_bytes(entries[n : n + index_bytes]) & mask
                for n in range(0, len(entries) - index_bytes + 1, index_bytes)
            ]
        at += count * index_bytes
    return []


def _applied(window: Window, properties: list[Box]) -> HeifSize | None:
    size: tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    turns, is_mirrored = 0, False
    for box in properties:
        if box.kind == b"ispe":
            raw = window.at(box.body + 4, 8)
            size = int.from_bytes(raw[:4]), int.from_bytes(raw[4:])
        elif box.kind == b"clap":
            crop = _clean_aperture(window.at(box.body, 16))
            if crop is None:
                return None
        elif box.kind == b"irot":
            quarter = int.from_bytes(window.at(box.body, 1)) & 3
            turns += -quarter if is_mirrored else quarter
        elif box.kind == b"imir":
            # Axis 0 swaps top and bottom; axis 1, left and right, is that and half a turn.
            turns += 2 * (int.from_bytes(window.at(box.body, 1)) & 1)
            is_mirrored = not is_mirrored
    if size is None or (crop is not None and not (1 <= crop[0] <= size[0] and 1 <= crop[1] <= size[1])):
        return None
    orientation = (_MIRRORED if is_mirrored else _TURNED)[turns % 4]
    return HeifSize(*size, orientation, crop)


_TURNED = (1, 8, 3, 6)
"""EXIF orientation after 0…3 quarter turns anticlockwise."""
_MIRRORED = (4, 5, 2, 7)
"""The same, then top and bottom swapped."""


def _clean_aperture(raw: bytes) -> tuple[int, int] | None:
    width_n, width_d, height_n, height_d = (int.from_bytes(raw[at : at + 4]) for at in (0, 4, 8, 12))
    if not width_d or not height_d:
        return None
    return width_n // width_d, height_n // height_d
