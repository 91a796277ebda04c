"""Ogg: every logical stream announces itself on a first page of its own, and all of those come first."""

from __future__ import annotations

from weighlock.mime.sniffed import Flag, Sniffed, audio, other, video
from weighlock.mime.window import Window

_FIRST_OF_STREAM = 0x02
_MAX_STREAMS = 32

_VIDEO = (b"\x80theora", b"BBCD\0", b"\x01video\0", b"OVP80", b"\x80daala", b"YUV4MPEG")
_AUDIO = (
    b"\x01vorbis",
    b"OpusHead",
    b"\x7fFLAC",
    b"fLaC",
    b"Speex   ",
    b"CELT    ",
    b"PCM     ",
    b"\x01audio\0",
    b"OggMIDI\0",
)


def sniff(window: Window) -> Sniffed:
    has_audio = has_video = False
    offset = 0
    for _ in range(_MAX_STREAMS):
        header = window.at(offset, 27)
        if len(header) < 27 or header[:4] != b"OggS" or not header[5] & _FIRST_OF_STREAM:
            break
        segments = window.at(offset + 27, header[26])
        packet = window.at(offset + 27 + header[26], 9)
        has_video |= packet.startswith(_VIDEO)
        has_audio |= packet.startswith(_AUDIO)
        offset += 27 + header[26] + sum(segments)
    if has_video:
        return video("video/ogg", "ogg")
    if has_audio:
        return audio("audio/ogg", "ogg")
    return other("application/ogg", "ogg", Flag.HEADER_ONLY_GUESS)
