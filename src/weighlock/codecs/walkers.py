"""Walking a file's own framing without a demuxer: cheap enough to be done always, so that no header has to be believed.

Each walker returns `None` where the file is not of the plain kind it understands; a scan of the packets then decides.
"""

from __future__ import annotations

import mmap
import struct
from collections import Counter

from weighlock.codecs.streams import Evidence

_BITRATES = {
    # (MPEG-1, layer): kbit/s by index 1…14
    (True, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_ADTS_RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350)
_MAX_RESYNCS = 10_000


def _mpeg_headers() -> dict[int, tuple[int, int, int]]:
    """(frame bytes, samples, rate) by the second and third byte of a frame header."""
    table = {}
    for second in range(0xE0, 0x100):
        version, layer = second >> 3 & 3, 4 - (second >> 1 & 3)
        if version == 1 or layer == 4:
            continue
        samples = 384 if layer == 1 else 576 if layer == 3 and version != 3 else 1152
        for third in range(0x100):
            index, rate_index = third >> 4, third >> 2 & 3
            if index in (0, 15) or rate_index == 3:
                continue
            rate, padding = _RATES[version][rate_index], third >> 1 & 1
            bitrate = 1000 * _BITRATES[version == 3, layer][index - 1]
            size = (12 * bitrate // rate + padding) * 4 if layer == 1 else samples // 8 * bitrate // rate + padding
            table[second << 8 | third] = (size, samples, rate)
    return table


_MPEG = _mpeg_headers()


def mpeg_audio(view: mmap.mmap) -> Evidence | None:
    """Every frame of an MP1/2/3 file.

    A Xing, Info or VBRI frame is a claim, not sound; its LAME part tells what players trim.
    """
    end = _before_trailing_tags(view)
    start = _first_frame(view, _after_id3(view), end)
    if start is None:
        return None
    at = start
    evidence, trim = Evidence(packets=0), 0
    size, samples, rate = _MPEG[view[at + 1] << 8 | view[at + 2]]
    claimed = _vbr_header(view, at, size)
    if claimed is not None:
        frames, trim = claimed
        if frames is not None:
            evidence.claims["its VBR header"] = frames * samples / rate
        at += size
    headers, frames = _walk_mpeg(view, at, end)
    seconds = sum(n * _MPEG[key][1] / _MPEG[key][2] for key, n in headers.items())
    evidence.claims["its frames"] = seconds
    evidence.packets = frames
    evidence.end_s = max(0.0, seconds - trim / rate)
    return evidence


def _walk_mpeg(view: mmap.mmap, at: int, end: int) -> tuple[Counter[int], int]:
    headers: dict[int, int] = {}
    table, resyncs = _MPEG, 0
    while at + 4 <= end:
        key = view[at + 1] << 8 | view[at + 2] if view[at] == 0xFF else -1
        entry = table.get(key)
        if entry is None:
            resyncs += 1
            found = _first_frame(view, at + 1, end) if resyncs <= _MAX_RESYNCS else None
            if found is None:
                break
            at = found
            continue
        headers[key] = headers.get(key, 0) + 1
        at += entry[0]
    return Counter(headers), sum(headers.values())


def _first_frame(view: mmap.mmap, at: int, end: int) -> int | None:
    """Offset of the next header that is followed by another one like it, or that ends the file."""
    for _ in range(100_000):
        at = view.find(b"\xff", at, end)
        if at < 0 or at + 4 > end:
            return None
        entry = _MPEG.get(view[at + 1] << 8 | view[at + 2])
        if entry is not None:
            following = at + entry[0]
            same_kind = (
                following + 2 <= end and view[following] == 0xFF and view[following + 1] & 0xFE == view[at + 1] & 0xFE
            )
            if same_kind or following == end:
                return at
        at += 1
    return None


def _vbr_header(view: mmap.mmap, at: int, size: int) -> tuple[int | None, int] | None:
    """(frames claimed, samples a player trims), or `None` if the frame is sound."""
    frame = view[at : at + size]
    for tag in (b"Xing", b"Info"):
        where = frame.find(tag, 4, 48)
        if where >= 0:
            flags = int.from_bytes(frame[where + 4 : where + 8], "big")
            frames = int.from_bytes(frame[where + 8 : where + 12], "big") if flags & 1 else None
            lame = where + 8 + 4 * bool(flags & 1) + 4 * bool(flags & 2) + 100 * bool(flags & 4) + 4 * bool(flags & 8)
            delays = int.from_bytes(frame[lame + 21 : lame + 24], "big") if frame[lame : lame + 4].strip(b"\0") else 0
            return frames, (delays >> 12) + (delays & 0xFFF)
    if frame[36:40] == b"VBRI":
        return int.from_bytes(frame[50:54], "big"), 0
    return None


def adts(view: mmap.mmap) -> Evidence | None:
    """Every frame of a raw AAC stream.

    The duration players show for it is a guess from the bitrate; this one is exact.
    """
    at, end = _after_id3(view), _before_trailing_tags(view)
    counts: dict[int, int] = {}
    resyncs = 0
    while at + 7 <= end:
        if view[at] != 0xFF or view[at + 1] & 0xF6 != 0xF0:
            resyncs += 1
            at = view.find(b"\xff", at + 1, end)
            if at < 0 or resyncs > _MAX_RESYNCS:
                break
            continue
        length = (view[at + 3] & 3) << 11 | view[at + 4] << 3 | view[at + 5] >> 5
        rate_index = view[at + 2] >> 2 & 15
        if length < 7 or rate_index >= len(_ADTS_RATES) or at + length > end:
            resyncs += 1
            at += 1
            continue
        key = rate_index << 2 | view[at + 6] & 3
        counts[key] = counts.get(key, 0) + 1
        at += length
    if not counts:
        return None
    seconds = sum(n * 1024 * ((key & 3) + 1) / _ADTS_RATES[key >> 2] for key, n in counts.items())
    return Evidence(end_s=seconds, claims={"its frames": seconds}, packets=sum(counts.values()))


def _after_id3(view: mmap.mmap) -> int:
    at = 0
    while view[at : at + 3] == b"ID3" and at + 10 <= len(view):
        size = 0
        for byte in view[at + 6 : at + 10]:
            size = size << 7 | byte & 0x7F
        at += 10 + size + (10 if view[at + 5] & 0x10 else 0)
    return min(at, len(view))


def _before_trailing_tags(view: mmap.mmap) -> int:
    end = len(view)
    if end >= 128 and view[end - 128 : end - 125] == b"TAG":
        end -= 128
    if end >= 32 and view[end - 32 : end - 24] == b"APETAGEX":
        size = struct.unpack_from("<I", view, end - 20)[0] + (32 if view[end - 9] & 0x80 else 0)
        end = end - size if 32 <= size <= end else end
    return end
