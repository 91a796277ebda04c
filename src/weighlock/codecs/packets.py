"""How much sound a packet holds, by its own first bytes: the one figure no container's clock can talk down."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

Measure = Callable[[bytes, int], float]
"""Seconds of sound in a packet, from its first `HEAD_BYTES` and its size in bytes; 0 where they do not say."""

HEAD_BYTES = 16
_OPUS_LONGEST_S = 0.12
_FLAC_SHORTEST = 6
_FLAC_RATES = (0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000)


def measure_of(stream: Any) -> Measure | None:
    """The measure for a stream of PyAV whose packets differ in length; `None` where none is known."""
    context = stream.codec_context if stream.type == "audio" else None
    if context is None:
        return None
    name, rate = context.codec.canonical_name, context.sample_rate or 0
    if name == "opus":
        return lambda head, _: opus_s(head)
    if name == "flac":
        return lambda head, _: flac_s(head, rate)
    if name == "alac" and rate:
        packet_s = _alac_frames(bytes(context.extradata or b"")) / rate
        return lambda _, __: packet_s
    if name.startswith("pcm_") and rate and context.channels:
        second = rate * context.channels * _pcm_bytes(name)
        return lambda _, size: size / second
    return None


def opus_s(head: bytes) -> float:
    """Seconds of an Opus packet, by its table of contents (RFC 6716 §3.1)."""
    if not head:
        return 0.0
    config, code = head[0] >> 3, head[0] & 3
    if config < 12:
        frame_ms: float = (10, 20, 40, 60)[config & 3]
    elif config < 16:
        frame_ms = (10, 20)[config & 1]
    else:
        frame_ms = (2.5, 5, 10, 20)[config & 3]
    frames = (1, 2, 2, head[1] & 0x3F if len(head) > 1 else 0)[code]
    return min(frames * frame_ms / 1000, _OPUS_LONGEST_S)


def flac_s(head: bytes, rate_hz: int) -> float:
    """Seconds of a FLAC frame, by its header (RFC 9639 §9.1); `rate_hz` where the header leaves the rate to others."""
    if len(head) < _FLAC_SHORTEST or head[0] != 0xFF or head[1] & 0xFC != 0xF8:
        return 0.0
    head = head.ljust(HEAD_BYTES, b"\0")
    size_code, rate_code = head[2] >> 4, head[2] & 15
    at = 4 + max(1, 8 - (head[4] ^ 0xFF).bit_length())  # behind the frame's number, coded as UTF-8 codes a character
    if size_code == 1:
        samples = 192
    elif 2 <= size_code <= 5:
        samples = 576 << size_code - 2
    elif size_code == 6:
        samples = head[at] + 1
    elif size_code == 7:
        samples = struct.unpack_from(">H", head, at)[0] + 1
    else:
        samples = 256 << size_code - 8 if size_code else 0
    rate = (_FLAC_RATES[rate_code] if rate_code < len(_FLAC_RATES) else 0) or rate_hz
    return samples / rate if rate else 0.0


def _alac_frames(cookie: bytes) -> int:
    """Samples in a packet, from the codec's configuration, with or without the box around it."""
    at = 12 if cookie[4:8] == b"alac" else 0
    frames = struct.unpack_from(">I", cookie, at)[0] if len(cookie) >= at + 4 else 0
    return frames if frames <= 1 << 16 else 0


def _pcm_bytes(name: str) -> float:
    bits = re.search(r"\d+", name)
    return int(bits[0]) / 8 if bits else 1.0
