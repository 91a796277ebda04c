"""Does a picture stop before its end, as an interrupted upload does? Its header, and so its size, may be whole."""

from __future__ import annotations

from weighlock.mime.isobmff import boxes
from weighlock.mime.window import Window

_TAIL_BYTES = 64 * 1024
_ENDLESS = 0xFFFFFF00
"""Sizes from here on are what live recorders write: nobody knew the end."""
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


def stops_short(window: Window, mime: str) -> bool:
    """As `ends_early`, of every kind that says how long it is or ends on a mark.

    Stricter: some writers leave the mark out of files that are whole, so it is asked only where a cut is likely.
    """
    head, end = window.head, window.end
    match mime:
        case "image/gif":
            return window.at(end - 1, 1) != b";"
        case "image/bmp":
            return int.from_bytes(head[2:6], "little") > end
        case "image/webp" | "audio/wav" | "video/x-msvideo":
            return head[:4] == b"RIFF" and 0 < int.from_bytes(head[4:8], "little") < _ENDLESS and _riff_end(head) > end
        case "application/pdf":
            return not _tail_has(window, b"%%EOF")
        case "video/mp4" | "audio/mp4" | "video/quicktime" | "video/3gpp" | "video/3gpp2" | "audio/3gpp":
            return any(box.end > end for box in boxes(window, 0, end))
        case _:
            return ends_early(window, mime)


def _riff_end(head: bytes) -> int:
    return int.from_bytes(head[4:8], "little") + 8


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
