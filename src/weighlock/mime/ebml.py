"""Matroska and WebM: the doctype names the family, the track list says whether there is a picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weighlock.mime.sniffed import Flag, Sniffed, audio, other, video
from weighlock.mime.window import Window

_EBML, _DOC_TYPE = 0x1A45DFA3, 0x4282
_SEGMENT, _SEEK_HEAD, _SEEK, _SEEK_ID, _SEEK_POSITION = 0x18538067, 0x114D9B74, 0x4DBB, 0x53AB, 0x53AC
_CLUSTER, _TRACKS, _TRACK_ENTRY, _TRACK_TYPE = 0x1F43B675, 0x1654AE6B, 0xAE, 0x83
_VIDEO_TRACK, _AUDIO_TRACK = 1, 2
_MAX_ELEMENTS = 256


class _Element(NamedTuple):
    ident: int
    body: int
    end: int


def sniff(window: Window) -> Sniffed | None:
    header = _first(window, 0, window.end, _EBML)
    if header is None:
        return None
    doc_type = _first(window, header.body, header.end, _DOC_TYPE)
    name = window.at(doc_type.body, min(doc_type.end - doc_type.body, 32)).rstrip(b"\0") if doc_type else b""
    if name not in {b"webm", b"matroska"}:
        return other("application/x-ebml", None, Flag.HEADER_ONLY_GUESS)
    video_mime, audio_mime, container = (
        ("video/webm", "audio/webm", "webm") if name == b"webm" else ("video/x-matroska", "audio/x-matroska", "mkv")
    )
    types = _track_types(window, header.end)
    if _VIDEO_TRACK in types:
        return video(video_mime, container)
    if _AUDIO_TRACK in types:
        return audio(audio_mime, container)
    return video(video_mime, container, Flag.HEADER_ONLY_GUESS)


def _track_types(window: Window, start: int) -> set[int]:
    segment = _first(window, start, window.end, _SEGMENT)
    tracks = _find_tracks(window, segment) if segment else None
    types: set[int] = set()
    if tracks:
        for entry in _elements(window, tracks.body, tracks.end):
            if entry.ident == _TRACK_ENTRY and (kind := _first(window, entry.body, entry.end, _TRACK_TYPE)):
                types.add(_integer(window, kind))
    return types


def _find_tracks(window: Window, segment: _Element) -> _Element | None:
    """The track list: in front of the first cluster, or where the seek head points."""
    seek_head: _Element | None = None
    for element in _elements(window, segment.body, segment.end):
        if element.ident == _TRACKS:
            return element
        if element.ident == _SEEK_HEAD:
            seek_head = element
        elif element.ident == _CLUSTER:
            break
    offset = _sought(window, seek_head) if seek_head else 0
    found = next(_elements(window, segment.body + offset, segment.end), None) if offset else None
    return found if found and found.ident == _TRACKS else None


def _sought(window: Window, seek_head: _Element) -> int:
    for seek in _elements(window, seek_head.body, seek_head.end):
        ident = _first(window, seek.body, seek.end, _SEEK_ID)
        position = _first(window, seek.body, seek.end, _SEEK_POSITION)
        if seek.ident == _SEEK and ident and position and _integer(window, ident) == _TRACKS:
            return _integer(window, position)
    return 0


def _integer(window: Window, element: _Element) -> int:
    return int.from_bytes(window.at(element.body, min(element.end - element.body, 8)))


def _first(window: Window, start: int, end: int, ident: int) -> _Element | None:
    return next((element for element in _elements(window, start, end) if element.ident == ident), None)


def _elements(window: Window, start: int, end: int) -> Iterator[_Element]:
    for _ in range(_MAX_ELEMENTS):
        raw = window.at(start, 12)
        if start >= end or not raw or raw[0] < 0x10:
            return
        id_bytes = 9 - raw[0].bit_length()
        if len(raw) <= id_bytes or not raw[id_bytes]:
            return
        size_bytes = 9 - raw[id_bytes].bit_length()
        body = start + id_bytes + size_bytes
        if len(raw) < id_bytes + size_bytes:
            return
        ones = (1 << (7 * size_bytes)) - 1
        size = int.from_bytes(raw[id_bytes : id_bytes + size_bytes]) & ones
        # All ones means "unknown, until the parent ends", as live recorders write it.
        stop = end if size == ones else body + size
        yield _Element(int.from_bytes(raw[:id_bytes]), body, stop)
        start = stop
