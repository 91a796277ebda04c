"""Audio without a container: MP3, ADTS, AC-3 and their kin, also behind ID3 tags, zeros or junk.

A sync word is short enough to occur by chance, so a frame counts only when the next one stands where it says.
"""

from __future__ import annotations

from collections.abc import Callable

from weighlock.mime.sniffed import Flag, Sniffed, audio, flagged
from weighlock.mime.window import Window

SEARCH_BYTES = 1 << 16
"""How far junk in front of the first frame is searched."""
_MAX_TAGS = 8
_MAX_CANDIDATES = 2048
_HEADER_BYTES = 8
_FRAMES_AFTER_JUNK = 4

_FRAMES_OF_LAYER_1 = 6

_LAYER_1 = audio("audio/mpeg", "mp1")
_MPEG_LAYERS = {3: _LAYER_1, 2: audio("audio/mpeg", "mp2"), 1: audio("audio/mpeg", "mp3")}
_AAC = audio("audio/aac", "adts")
_LATM = audio("audio/x-loas", "loas")
_AC3 = audio("audio/ac3", "ac3")
_EAC3 = audio("audio/eac3", "eac3")
_AC4 = audio("audio/ac4", "ac4")

_KBPS = {
    # (is version 1, layer bits) → kbit/s by index; 0 (free format) and 15 say no length.
    (True, 3): (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 1): (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 3): (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 1): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_HZ = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}

Frame = tuple[int, int, Sniffed]
"""Length in bytes, what must stay the same from frame to frame, and what it is."""


def sniff(window: Window) -> Sniffed | None:
    """Frames from the very first byte on; `None` when the second one is missing though there is room for it."""
    return _frames(window, 0, 2)


def search(window: Window) -> Sniffed | None:
    """Frames behind junk, within `SEARCH_BYTES`: MPEG audio and ADTS only, several in a row, and never layer I."""
    data = window.up_to(SEARCH_BYTES)
    at = data.find(b"\xff", 1)
    for _ in range(_MAX_CANDIDATES):
        if at < 0:
            return None
        found = _mpeg_or_adts(data[at : at + _HEADER_BYTES]) and _frames(window, at, _FRAMES_AFTER_JUNK)
        if found and found is not _LAYER_1:
            return flagged(found, Flag.LEADING_BYTES)
        at = data.find(b"\xff", at + 1)
    return None


def is_tag(head: bytes) -> bool:
    """Whether an ID3v2 tag begins here. Its version and size keep it apart from words."""
    return len(head) >= 10 and head[:3] == b"ID3" and head[3] in {2, 3, 4} and max(head[6:10]) < 0x80


def behind_id3(window: Window) -> Window:
    """What follows the ID3v2 tags, of any size and number."""
    at = 0
    for _ in range(_MAX_TAGS):
        tag = window.at(at, 10)
        if not is_tag(tag):
            break
        at += 10 + (tag[6] << 21 | tag[7] << 14 | tag[8] << 7 | tag[9])
        if tag[5] & 0x10:
            at += 10
    return window.shifted(at)


def behind_zeros(window: Window) -> Window:
    """What follows the zeros some writers leave between a tag and the frames."""
    padding = window.up_to(SEARCH_BYTES)
    return window.shifted(len(padding) - len(padding.lstrip(b"\0")))


def _frames(window: Window, at: int, wanted: int) -> Sniffed | None:
    """What the frames at an offset are; `None` where fewer than `wanted` follow each other.

    A file that ends within its second frame is a guess, and only for formats whose sync word no text can hold.
    """
    parse = _PARSERS.get(window.at(at, 1))
    first = parse(window.at(at, _HEADER_BYTES)) if parse else None
    if parse is None or first is None:
        return None
    length, key, sniffed = first
    if sniffed is _LAYER_1:
        # Its headers look like pixels, and hardly anybody writes it.
        wanted = _FRAMES_OF_LAYER_1
    for number in range(1, wanted):
        at += length
        header = window.at(at, _HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            is_guess = number == 1 and wanted == 2 and parse is _mpeg_or_adts
            return flagged(sniffed, Flag.HEADER_ONLY_GUESS) if is_guess else None
        following = parse(header)
        if following is None or following[1] != key:
            return None
        length = following[0]
    return sniffed


def _mpeg_or_adts(header: bytes) -> Frame | None:
    if len(header) < _HEADER_BYTES or header[1] < 0xE0:
        return None
    if header[1] & 0xF6 == 0xF0:
        return _adts(header)
    return _mpeg(header)


def _mpeg(header: bytes) -> Frame | None:
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    rate, hz, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    if version == 1 or layer == 0 or rate in {0, 15} or hz == 3 or header[3] & 3 == 2:
        return None
    bits, samples_per_s = _KBPS[version == 3, layer][rate] * 1000, _HZ[version][hz]
    if layer == 3:
        length = (12 * bits // samples_per_s + padding) * 4
    else:
        length = (72 if layer == 1 and version != 3 else 144) * bits // samples_per_s + padding
    return length, version << 4 | layer << 2 | hz, _MPEG_LAYERS[layer]


def _adts(header: bytes) -> Frame | None:
    length = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    frequency = header[2] >> 2 & 15
    if length < 7 or frequency > 12:
        return None
    return length, header[1] << 8 | frequency, _AAC


def _dolby(header: bytes) -> Frame | None:
    if len(header) < _HEADER_BYTES or header[1] != 0x77:
        return None
    version = header[5] >> 3
    if 11 <= version <= 16:
        return ((header[2] & 7) << 8 | header[3]) * 2 + 2, 1, _EAC3
    hz, size = header[4] >> 6, header[4] & 63
    if hz == 3 or size > 37 or version > 10:
        return None
    kbps = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640)[size >> 1]
    # 1,536 samples a frame; at 44.1 kHz the odd sizes are one word longer.
    words = (kbps * 2, kbps * 96000 // 44100 + (size & 1), kbps * 3)[hz]
    return words * 2, hz, _AC3


def _ac4(header: bytes) -> Frame | None:
    if len(header) < _HEADER_BYTES or header[1] not in {0x40, 0x41}:
        return None
    length, size = 4, int.from_bytes(header[2:4])
    if size == 0xFFFF:
        length, size = 7, int.from_bytes(header[4:7])
    return length + size + (2 if header[1] == 0x41 else 0), header[1], _AC4


def _loas(header: bytes) -> Frame | None:
    if len(header) < 3 or header[1] & 0xE0 != 0xE0:
        return None
    return ((header[1] & 0x1F) << 8 | header[2]) + 3, 0, _LATM


_PARSERS: dict[bytes, Callable[[bytes], Frame | None]] = {
    b"\xff": _mpeg_or_adts,
    b"\x0b": _dolby,
    b"\xac": _ac4,
    b"\x56": _loas,
}
