"""MPEG transport and program streams: which elementary streams they announce decides between film and sound."""

from __future__ import annotations

from weighlock.mime.sniffed import Flag, Sniffed, audio, video
from weighlock.mime.window import Window

_SYNC = 0x47
_LAYOUTS = ((188, 0), (192, 4), (204, 0))
"""Bytes a packet and bytes in front of its sync byte: plain, Blu-ray (m2ts) and with error correction."""
_CONFIRMING_PACKETS = 4
_SEARCH_BYTES = 1 << 18
_FIRST_LOOK_BYTES = 1 << 14

_VIDEO_TYPES = frozenset(
    {0x01, 0x02, 0x10, 0x1B, 0x1E, 0x1F, 0x20, 0x21, 0x24, 0x25, 0x32, 0x33, 0x34, 0x42, 0xD1, 0xD2, 0xEA}
)
_AUDIO_TYPES = frozenset(
    {0x03, 0x04, 0x0F, 0x11, 0x1C, 0x2D, 0x2E, *range(0x80, 0x8A), 0x8B, 0xA1, 0xA2, 0xC1, 0xC2, 0xCF}
)
_PRIVATE_TYPE = 0x06
_AUDIO_DESCRIPTORS = frozenset({0x6A, 0x7A, 0x7B, 0x7C, 0x7F, 0x81})
_AUDIO_FORMATS = frozenset({b"AC-3", b"EAC3", b"AC-4", b"DTS1", b"DTS2", b"DTS3", b"Opus", b"BSSD"})
_VIDEO_FORMATS = frozenset({b"HEVC", b"AV01", b"VC-1", b"drac", b"VP09", b"VVC "})
_REGISTRATION = 0x05


def sniff_ts(window: Window) -> Sniffed | None:
    """A transport stream whose first packet begins at the first byte (or 4 bytes on); `None` when it is none."""
    for size, lead in _LAYOUTS:
        if is_ts(window.head, size, lead):
            return _transport(window, size, lead)
    return None


def search_ts(window: Window) -> Sniffed | None:
    """A transport stream that was cut inside a packet."""
    head = window.head
    for at in range(1, min(len(head), 208)):
        if head[at] == _SYNC and is_ts(head, 188, at):
            return _transport(window, 188, at)
    return None


def is_ts(head: bytes, size: int, lead: int) -> bool:
    """Whether sync bytes stand at each of the first packets in sight, of which there must be two."""
    syncs = head[lead : lead + size * _CONFIRMING_PACKETS : size]
    return len(syncs) >= 2 and syncs.count(_SYNC) == len(syncs)


def _transport(window: Window, size: int, lead: int) -> Sniffed:
    flags = () if lead in {0, 4} else (Flag.LEADING_BYTES,)
    for reach in (_FIRST_LOOK_BYTES, _SEARCH_BYTES):
        data = window.up_to(reach)
        has_video, has_audio = _programs(data, size, lead)
        if has_video:
            return video("video/mp2t", "ts", *flags)
        if has_audio:
            return audio("audio/mp2t", "ts", *flags)
        if len(data) < reach:
            break
    return video("video/mp2t", "ts", *flags, Flag.HEADER_ONLY_GUESS)


def _programs(data: bytes, size: int, lead: int) -> tuple[bool, bool]:
    """(has video, has audio), from the program maps; where there are none, from the packets' stream ids."""
    maps: set[int] = set()
    announced: set[bool] = set()
    carried: set[bool] = set()
    for start in range(lead, len(data) - 187, size):
        if data[start] != _SYNC or not data[start + 1] & 0x40:
            continue
        pid = (data[start + 1] & 0x1F) << 8 | data[start + 2]
        control = data[start + 3] >> 4 & 3
        at = start + 4 + (1 + data[start + 4] if control & 2 else 0)
        payload = data[at : start + 188] if control & 1 else b""
        if pid == 0:
            maps |= _map_pids(payload)
        elif pid in maps:
            announced |= _stream_kinds(payload)
            # Several programs may follow: a picture settles it, sound alone waits for the rest.
            if True in announced or (announced and len(maps) == 1):
                break
        elif payload[:3] == b"\0\0\1" and len(payload) > 3:
            carried |= _by_stream_id(payload[3])
    kinds = announced or carried
    return True in kinds, False in kinds


def _map_pids(payload: bytes) -> set[int]:
    section = _section(payload)
    return {
        (section[at + 2] & 0x1F) << 8 | section[at + 3]
        for at in range(8, len(section) - 3, 4)
        if section[at] or section[at + 1]
    }


def _stream_kinds(payload: bytes) -> set[bool]:
    """True for each picture, False for each sound the program map lists."""
    section = _section(payload)
    kinds: set[bool] = set()
    if len(section) < 12 or section[0] != 2:
        return kinds
    at = 12 + ((section[10] & 0x0F) << 8 | section[11])
    while at + 5 <= len(section):
        length = (section[at + 3] & 0x0F) << 8 | section[at + 4]
        kinds |= _kind(section[at], section[at + 5 : at + 5 + length])
        at += 5 + length
    return kinds


def _kind(stream_type: int, descriptors: bytes) -> set[bool]:
    if stream_type in _VIDEO_TYPES:
        return {True}
    if stream_type in _AUDIO_TYPES:
        return {False}
    if stream_type != _PRIVATE_TYPE:
        return set()
    at = 0
    while at + 2 <= len(descriptors):
        tag, body = descriptors[at], descriptors[at + 2 : at + 2 + descriptors[at + 1]]
        if tag in _AUDIO_DESCRIPTORS or (tag == _REGISTRATION and body[:4] in _AUDIO_FORMATS):
            return {False}
        if tag == _REGISTRATION and body[:4] in _VIDEO_FORMATS:
            return {True}
        at += 2 + len(body)
    return set()


def _section(payload: bytes) -> bytes:
    """A PSI section from its table id to before its checksum, as far as this packet holds it."""
    if not payload:
        return b""
    section = payload[1 + payload[0] :]
    if len(section) < 3:
        return b""
    return section[: max(((section[1] & 0x0F) << 8 | section[2]) - 1, 0)]


def _by_stream_id(stream_id: int) -> set[bool]:
    if 0xE0 <= stream_id <= 0xEF or stream_id == 0xFD:
        return {True}
    return {False} if 0xC0 <= stream_id <= 0xDF or stream_id == 0xBD else set()


def sniff_ps(window: Window) -> Sniffed:
    """A program stream: a film, unless only sound packets are in sight."""
    data = window.head
    for reach in (len(data), 1 << 16):
        data = window.up_to(reach)
        kinds = _packet_kinds(data)
        if True in kinds:
            return video("video/mpeg", "mpeg")
        if window.is_whole:
            break
    if False in kinds:
        return audio("video/mpeg", "mpeg", Flag.NO_PICTURE)
    return video("video/mpeg", "mpeg", Flag.HEADER_ONLY_GUESS)


def _packet_kinds(data: bytes) -> set[bool]:
    kinds: set[bool] = set()
    at = data.find(b"\0\0\1")
    while 0 <= at < len(data) - 3:
        kind = _by_stream_id(data[at + 3])
        kinds |= kind
        if True in kind:
            break
        # Step over what a sound packet holds: its bytes may look like start codes.
        step = 6 + int.from_bytes(data[at + 4 : at + 6]) if kind else 4
        at = data.find(b"\0\0\1", at + step)
    return kinds
