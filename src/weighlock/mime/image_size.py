"""Size of an image from its header, in pure Python: no pixel is decoded, and no library sees hostile bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weighlock.mime import exif, heif
from weighlock.mime.window import Window

_MAX_CHUNKS = 64
_EXIF_BYTES = 1 << 14
"""The first directory of an EXIF block stands at its beginning; thumbnails and maker notes are not needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSize:
    """What the header states. Figures are not checked for sense: a hostile header may state 2^31 pixels."""

    width_px: int
    """Stored pixels, before rotation; at least 1."""
    height_px: int
    orientation: int = 1
    """EXIF orientation 1…8, or what HEIF's `irot` and `imir` amount to."""
    crop_px: tuple[int, int] | None = None
    """Width and height that HEIF's clean aperture leaves of the stored ones, before rotation."""
    animated: bool | None = None
    """`None` where telling would take more than the header."""
    frames: int | None = None
    """As the header claims; `None` where it does not say."""

    @property
    def displayed_px(self) -> tuple[int, int]:
        """(width, height) as a viewer shows it: cropped, then turned."""
        width, height = self.crop_px or (self.width_px, self.height_px)
        return (height, width) if self.orientation >= 5 else (width, height)


def image_size(source: Window | bytes | bytearray | memoryview, mime: str) -> ImageSize | None:
    """The size of an image of a type `sniff` has told; `None` when unsure, which is the codecs' turn. Never raises.

    Reads PNG, JPEG, WebP, GIF, BMP, HEIC and AVIF. Sizes are those of the first frame or the canvas.
    """
    reader = _READERS.get(mime)
    if reader is None:
        return None
    size = reader(source if isinstance(source, Window) else Window.of(source))
    return size if size and size.width_px > 0 and size.height_px > 0 else None


def _png(window: Window) -> ImageSize | None:
    head = window.head
    if head[12:16] == b"IHDR" and head[8:12] == b"\0\0\0\x0d":
        start = 8
    elif head[12:16] == b"CgBI" and head[28:32] == b"IHDR":
        # Apple's own PNG puts a chunk of 4 bytes in front.
        start = 24
    else:
        return None
    width, height = int.from_bytes(head[start + 8 : start + 12]), int.from_bytes(head[start + 12 : start + 16])
    orientation, frames = 1, None
    at = start + 25
    for _ in range(_MAX_CHUNKS):
        chunk = window.at(at, 12)
        kind = chunk[4:8]
        if len(chunk) < 12 or kind == b"IDAT":
            break
        length = int.from_bytes(chunk[:4])
        if kind == b"acTL":
            frames = int.from_bytes(chunk[8:])
        elif kind == b"eXIf":
            orientation = exif.orientation(window.at(at + 8, min(length, _EXIF_BYTES)))
        at += 12 + length
    return ImageSize(
        width_px=width, height_px=height, orientation=orientation, animated=frames is not None, frames=frames or 1
    )


def _gif(window: Window) -> ImageSize | None:
    """The logical screen, widened to the first frame where that is larger, as browsers and Pillow do."""
    head = window.head
    if len(head) < 13 or not head.startswith(b"GIF8"):
        return None
    width, height = int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    at = 13 + (3 << (head[10] & 7) + 1 if head[10] & 0x80 else 0)
    animated = None
    for _ in range(_MAX_CHUNKS):
        block = window.at(at, 20)
        if len(block) >= 10 and block[0] == 0x2C:
            left, top, across, down = (int.from_bytes(block[n : n + 2], "little") for n in (1, 3, 5, 7))
            return ImageSize(
                width_px=max(width, left + across), height_px=max(height, top + down), animated=animated, frames=None
            )
        if len(block) < 3 or block[0] != 0x21:
            break
        if block[3:14] in {b"NETSCAPE2.0", b"ANIMEXTS1.0"}:
            animated = True
        at = _after_sub_blocks(window, at + 2)
    return ImageSize(width_px=width, height_px=height, animated=animated)


def _after_sub_blocks(window: Window, at: int) -> int:
    for _ in range(_MAX_CHUNKS):
        length = window.at(at, 1)
        at += 1
        if not length or length == b"\0":
            break
        at += length[0]
    return at


def _bmp(window: Window) -> ImageSize | None:
    head = window.head
    header_bytes = int.from_bytes(head[14:18], "little")
    if header_bytes == 12:
        width, height = int.from_bytes(head[18:20], "little"), int.from_bytes(head[20:22], "little")
    elif len(head) >= 26 and header_bytes >= 16:
        width = int.from_bytes(head[18:22], "little", signed=True)
        # Negative: the rows run from the top down.
        height = abs(int.from_bytes(head[22:26], "little", signed=True))
    else:
        return None
    return ImageSize(width_px=width, height_px=height, animated=False, frames=1)


def _webp(window: Window) -> ImageSize | None:
    head = window.head
    kind = head[12:16]
    if len(head) < 30 and not (kind == b"VP8L" and len(head) >= 25):
        return None
    if kind == b"VP8X":
        return _webp_extended(window)
    if kind == b"VP8L" and head[20] == 0x2F:
        bits = int.from_bytes(head[21:25], "little")
        return ImageSize(width_px=(bits & 0x3FFF) + 1, height_px=(bits >> 14 & 0x3FFF) + 1, animated=False, frames=1)
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:30], "little")
        # The two upper bits are a scaling hint.
        return ImageSize(width_px=width & 0x3FFF, height_px=height & 0x3FFF, animated=False, frames=1)
    return None


def _webp_extended(window: Window) -> ImageSize:
    head = window.head
    has_exif, animated = bool(head[20] & 0x08), bool(head[20] & 0x02)
    orientation = 1
    at = 30
    for _ in range(_MAX_CHUNKS if has_exif else 0):
        chunk = window.at(at, 8)
        if len(chunk) < 8:
            break
        length = int.from_bytes(chunk[4:], "little")
        if chunk[:4] == b"EXIF":
            orientation = exif.orientation(window.at(at + 8, min(length, _EXIF_BYTES)))
            break
        at += 8 + length + (length & 1)
    return ImageSize(
        width_px=int.from_bytes(head[24:27], "little") + 1,
        height_px=int.from_bytes(head[27:30], "little") + 1,
        orientation=orientation,
        animated=animated,
        frames=None if animated else 1,
    )


_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})
_END_OF_IMAGE, _START_OF_SCAN, _APP1 = 0xD9, 0xDA, 0xE1
_MAX_SEGMENTS = 512
_MAX_JUNK_BYTES = 1 << 12


def _jpeg(window: Window) -> ImageSize | None:
    orientation: int | None = None
    at = 2
    for _ in range(_MAX_SEGMENTS):
        segment = window.at(at, 10)
        if len(segment) < 4:
            return None
        marker = segment[1]
        if segment[0] != 0xFF or marker in {0x00, 0xFF}:
            step = _to_next_marker(window, at)
            if not step:
                return None
            at += step
        elif marker in _BARE_MARKERS:
            at += 2
        elif marker in {_END_OF_IMAGE, _START_OF_SCAN}:
            return None
        elif marker in _FRAME_MARKERS:
            height, width = int.from_bytes(segment[5:7]), int.from_bytes(segment[7:9])
            # A height of 0 is told only after the first scan.
            return ImageSize(width_px=width, height_px=height, orientation=orientation or 1, animated=False, frames=1)
        else:
            length = int.from_bytes(segment[2:4])
            if marker == _APP1 and orientation is None and segment[4:10] == b"Exif\0\0":
                orientation = exif.orientation(window.at(at + 10, min(length, _EXIF_BYTES)))
            at += 2 + length
    return None


def _to_next_marker(window: Window, at: int) -> int:
    """Bytes of junk or padding before the next marker; 0 when there is none near."""
    junk = window.at(at, _MAX_JUNK_BYTES)
    step = junk.find(b"\xff", 1)
    while 0 < step < len(junk) - 1 and junk[step + 1] in {0x00, 0xFF}:
        step = junk.find(b"\xff", step + 1)
    return step if 0 < step < len(junk) - 1 else 0


def _heif(window: Window) -> ImageSize | None:
    found = heif.primary_item(window) or heif.first_track(window)
    if found is None:
        return None
    animated = heif.is_sequence(window)
    return ImageSize(
        width_px=found.width_px,
        height_px=found.height_px,
        orientation=found.orientation,
        crop_px=found.crop_px,
        animated=animated,
        frames=None if animated else 1,
    )


_READERS: dict[str, Callable[[Window], ImageSize | None]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
    "image/gif": _gif,
    "image/bmp": _bmp,
    "image/heic": _heif,
    "image/heif": _heif,
    "image/avif": _heif,
}
