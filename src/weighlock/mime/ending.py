"""Does a picture stop before its end, as an interrupted upload does? Its header, and so its size, may be whole."""

from __future__ import annotations

from weighlock.mime.isobmff import boxes
from weighlock.mime.window import Window

_TAIL_BYTES = 64 * 1024
_PNG_END = b"IEND\xaeB`\x82"
_JPEG_END = b"\xff\xd9"
_MORE_BEHIND_JPEG = (b"MotionPhoto", b"MicroVideo", b"MPF\0", b"SEFH")
"""Marks of cameras that write a film, a second picture or notes of their own behind the first picture's end."""


def ends_early(window: Window, mime: str) -> bool:
    """True where the end mark is missing and nothing explains why. One short read for a picture that is whole."""
    match mime:
        case "image/png":
            return not _tail_has(window, _PNG_END)
        case "image/jpeg":
            return not _tail_has(window, _JPEG_END) and not _continues(window)
        case "image/heic" | "image/heif" | "image/avif":
            return any(box.end > window.end for box in boxes(window, 0, window.end))
        case _:
            return False


def _tail_has(window: Window, mark: bytes) -> bool:
    if window.size is None:
        return True
    if window.at(window.size - len(mark), len(mark)) == mark:
        return True
    start = max(0, window.size - _TAIL_BYTES)
    return mark in window.at(start, window.size - start)


def _continues(window: Window) -> bool:
    whole = window.end
    ends = window.at(0, min(whole, _TAIL_BYTES)) + window.at(max(0, whole - 64), 64)
    return any(mark in ends for mark in _MORE_BEHIND_JPEG)
