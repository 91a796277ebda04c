"""ASF (WMA, WMV): the stream properties in its header say what it holds."""

from __future__ import annotations

from weighlock.mime.sniffed import Flag, Sniffed, audio, video
from weighlock.mime.window import Window

MAGIC = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_STREAM_PROPERTIES = bytes.fromhex("9107dcb7b7a9cf118ee600c00c205365")
_HEADER_EXTENSION = bytes.fromhex("b503bf5f2ea9cf118ee300c00c205365")
_EXTENDED_STREAM = bytes.fromhex("cba5e61472c632438399a96952065b5a")
_AUDIO_STREAM = bytes.fromhex("409e69f84d5bcf11a8fd00805f5c442b")
_VIDEO_STREAM = bytes.fromhex("c0ef19bc4d5bcf11a8fd00805f5c442b")

_MAX_OBJECTS = 128
_EXTENDED_BYTES = 4096
_SEARCH_BYTES = 1 << 16


def sniff(window: Window) -> Sniffed:
    end = 24 + 6 + max(int.from_bytes(window.at(16, 8), "little") - 30, 0)
    kinds = _stream_kinds(window, 30, end) or _stream_kinds_by_search(window.up_to(_SEARCH_BYTES))
    if _VIDEO_STREAM in kinds:
        return video("video/x-ms-wmv", "asf")
    if _AUDIO_STREAM in kinds:
        return audio("audio/x-ms-wma", "asf")
    return video("video/x-ms-asf", "asf", Flag.HEADER_ONLY_GUESS)


def _stream_kinds(window: Window, start: int, end: int) -> set[bytes]:
    kinds: set[bytes] = set()
    for _ in range(_MAX_OBJECTS):
        header = window.at(start, 46)
        size = int.from_bytes(header[16:24], "little")
        if len(header) < 24 or start >= end or size < 24:
            break
        if header[:16] == _STREAM_PROPERTIES:
            kinds.add(header[24:40])
        elif header[:16] == _HEADER_EXTENSION:
            # Step inside: its own objects follow 46 bytes of header, and the list goes on behind them.
            size = 46
        elif header[:16] == _EXTENDED_STREAM:
            body = window.at(start, min(size, _EXTENDED_BYTES))
            found = body.find(_STREAM_PROPERTIES)
            if found >= 0:
                kinds.add(body[found + 24 : found + 40])
        start += size
    return kinds


def _stream_kinds_by_search(data: bytes) -> set[bytes]:
    """For headers whose list of objects is broken: FFmpeg and others still find the streams."""
    found = data.find(_STREAM_PROPERTIES)
    return {data[found + 24 : found + 40]} if found >= 0 else set()
