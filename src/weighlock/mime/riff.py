"""RIFF and its elder IFF: WAV, AVI, WebP, AIFF. The form type is a claim; the first chunk confirms it."""

from __future__ import annotations

from weighlock.mime.sniffed import Flag, Sniffed, audio, flagged, image, other, video
from weighlock.mime.window import Window

_WAV = audio("audio/wav", "wav")
_WEBP = image("image/webp", "webp")
_AVI = video("video/x-msvideo", "avi")
_AVI_SOUND_ONLY = audio("video/x-msvideo", "avi", Flag.NO_PICTURE)
_UNCONFIRMED = other("application/x-riff", "riff", Flag.CONTRADICTION)
_WEBP_CHUNKS = frozenset({b"VP8 ", b"VP8L", b"VP8X"})
_LIVE_SIZES = frozenset({0, 0xFFFFFFFF})

_RIFF_FORMS = {
    b"RMID": audio("audio/midi", "rmi"),
    b"CDXA": video("video/mpeg", "cdxa"),
    b"ACON": other("application/x-navi-animation"),
    b"sfbk": other("audio/x-soundfont"),
    b"DLS ": other("audio/x-dls"),
}
_IFF_FORMS = {
    b"AIFF": audio("audio/aiff", "aiff"),
    b"AIFC": audio("audio/aiff", "aifc"),
    b"8SVX": audio("audio/x-8svx", "iff"),
    b"ILBM": image("image/x-ilbm", "iff"),
    b"PBM ": image("image/x-ilbm", "iff"),
}


def sniff(window: Window) -> Sniffed | None:
    """RIFF, RIFX, RF64 and BW64 files; `None` where the form type is nothing known."""
    head = window.head
    form, chunk = head[8:12], head[12:16]
    if form == b"WAVE":
        return flagged(_WAV, Flag.CONTRADICTION) if chunk in _WEBP_CHUNKS else _WAV
    if form == b"WEBP":
        return _webp(window, chunk)
    if form == b"AVI ":
        return _avi(head)
    return _RIFF_FORMS.get(form)


def sniff_iff(window: Window) -> Sniffed | None:
    return _IFF_FORMS.get(window.head[8:12])


def _webp(window: Window, chunk: bytes) -> Sniffed:
    if not chunk:
        return flagged(_WEBP, Flag.TRUNCATED, Flag.HEADER_ONLY_GUESS)
    if chunk not in _WEBP_CHUNKS:
        return _UNCONFIRMED
    size = int.from_bytes(window.head[4:8], "little")
    if window.size is None or size in _LIVE_SIZES:
        return _WEBP
    if window.size < size + 8:
        return flagged(_WEBP, Flag.TRUNCATED)
    # One byte of padding is allowed.
    return flagged(_WEBP, Flag.TRAILING_BYTES) if window.size > size + 9 else _WEBP


def _avi(head: bytes) -> Sniffed:
    """Whether a stream header in sight says `vids`; an AVI that cannot tell is taken for a film."""
    streams = [head[at + 8 : at + 12] for at in _occurrences(head, b"strh")]
    if streams and all(kind == b"auds" for kind in streams):
        return _AVI_SOUND_ONLY
    return _AVI


def _occurrences(head: bytes, needle: bytes) -> list[int]:
    found: list[int] = []
    at = head.find(needle)
    while at >= 0 and len(found) < 16:
        found.append(at)
        at = head.find(needle, at + 4)
    return found
