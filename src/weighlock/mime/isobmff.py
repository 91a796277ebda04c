"""ISO base media files: MP4, MOV, 3GP, M4A, HEIC, AVIF. The brand is a hint; the tracks decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weighlock.mime.sniffed import Flag, Sniffed, audio, image, video
from weighlock.mime.window import Window

MAX_BOXES = 128
MAX_TRACKS = 64
_BRAND_BYTES = 512

TOP_LEVEL_BOXES = frozenset({b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"sidx"})
"""Boxes a file may begin with. Old QuickTime files have no `ftyp`."""

_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_AVIF_BRANDS = frozenset({b"avif", b"avis", b"avio"})
_HEIF_BRANDS = frozenset({b"mif1", b"msf1", b"mif2", b"miaf", b"jpeg", b"jpgs", b"avci", b"avcs", b"vvic", b"vvis"})
_IMAGE_BRANDS = _HEIC_BRANDS | _AVIF_BRANDS | (_HEIF_BRANDS - {b"miaf"})
_AUDIO_BRANDS = frozenset({b"M4A ", b"M4B ", b"M4P ", b"F4A ", b"F4B "})
_OTHER_IMAGES = {
    b"jp2 ": image("image/jp2"),
    b"jpx ": image("image/jpx"),
    b"jpm ": image("image/jpm"),
    b"jxl ": image("image/jxl"),
    b"crx ": image("image/x-canon-cr3"),
}
_ITEM_MIMES = {b"hvc1": "image/heic", b"lhv1": "image/heic", b"av01": "image/avif"}


class Box(NamedTuple):
    kind: bytes
    body: int
    """Offset of the first byte after the header."""
    end: int
    """Offset after the last byte; may lie beyond the parent when the file was cut."""


def boxes(window: Window, start: int, end: int) -> Iterator[Box]:
    """The boxes between two offsets, at most `MAX_BOXES`; stops where a size makes no sense."""
    for _ in range(MAX_BOXES):
        header = window.at(start, 16)
        if len(header) < 8 or start + 8 > end:
            return
        size, body = int.from_bytes(header[:4]), start + 8
        if size == 1 and len(header) == 16:
            size, body = int.from_bytes(header[8:]), start + 16
        elif size == 0:
            size = end - start
        if size < body - start:
            return
        yield Box(header[4:8], body, start + size)
        start += size


def sniff(window: Window) -> Sniffed | None:
    """The type of a file that begins with a box; `None` when the first box makes no sense."""
    first = next(boxes(window, 0, window.end), None)
    if first is None:
        return None
    brands = _brands(window, first)
    if brands and brands[0] in _OTHER_IMAGES:
        return _OTHER_IMAGES[brands[0]]
    image_brand = next((brand for brand in brands if brand in _IMAGE_BRANDS), None)
    moov: Box | None = None
    cut = False
    for box in boxes(window, 0, window.end):
        cut = box.end > window.end
        if image_brand and box.kind == b"meta" and handler(window, box) == b"pict":
            # A file that calls itself an image first and opens as one is one, whatever else it carries (live photos).
            if brands[0] in _IMAGE_BRANDS:
                return _still(window, brands, box)
        elif box.kind == b"moov":
            moov = box
            break
    flags = (Flag.TRUNCATED,) if cut else ()
    return _movie(window, brands, image_brand, moov, flags)


def _brands(window: Window, first: Box) -> tuple[bytes, ...]:
    if first.kind not in {b"ftyp", b"styp"}:
        return ()
    size = min(first.end - first.body, _BRAND_BYTES)
    body = window.at(first.body, size)
    # Bytes 4…8 of the body are a version, not a brand.
    return (body[:4], *(body[at : at + 4] for at in range(8, len(body) - 3, 4)))


def _still(window: Window, brands: tuple[bytes, ...], meta: Box) -> Sniffed:
    for brand in brands:
        if brand in _HEIC_BRANDS:
            return image("image/heic", "heif")
        if brand in _AVIF_BRANDS:
            return image("image/avif", "heif")
    # mif1 and its kin name no codec: ask the items.
    kinds = window.at(meta.body, min(meta.end - meta.body, 2048))
    for kind, mime in _ITEM_MIMES.items():
        if kind in kinds:
            return image(mime, "heif")
    return image("image/heif", "heif")


def _movie(
    window: Window, brands: tuple[bytes, ...], image_brand: bytes | None, moov: Box | None, flags: tuple[Flag, ...]
) -> Sniffed:
    family = _family(brands)
    kinds = _track_kinds(window, moov) if moov else frozenset()
    if b"vide" in kinds:
        if image_brand and brands[0] in _IMAGE_BRANDS:
            flags = (*flags, Flag.CONTRADICTION)
        return video(_VIDEO_MIMES[family], family, *flags)
    if b"pict" in kinds and image_brand:
        return _sequence(image_brand, flags)
    if b"soun" in kinds:
        return audio(_AUDIO_MIMES[family], family, *flags)
    flags = (*flags, Flag.HEADER_ONLY_GUESS)
    if image_brand and brands[0] in _IMAGE_BRANDS:
        return _sequence(image_brand, flags)
    if brands and brands[0] in _AUDIO_BRANDS:
        return audio(_AUDIO_MIMES[family], family, *flags)
    return video(_VIDEO_MIMES[family], family, *flags)


def _sequence(brand: bytes, flags: tuple[Flag, ...]) -> Sniffed:
    if brand in _AVIF_BRANDS:
        return image("image/avif", "heif", *flags)
    return image("image/heic" if brand in _HEIC_BRANDS else "image/heif", "heif", *flags)


_VIDEO_MIMES = {
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "3gp": "video/3gpp",
    "3g2": "video/3gpp2",
    "mj2": "video/mj2",
}
_AUDIO_MIMES = {
    "mp4": "audio/mp4",
    # QuickTime has no audio name of its own; an MP4 reader opens it.
    "mov": "audio/mp4",
    "3gp": "audio/3gpp",
    "3g2": "audio/3gpp2",
    "mj2": "audio/mp4",
}


def _family(brands: tuple[bytes, ...]) -> str:
    if not brands:
        return "mov"
    major = brands[0]
    if major == b"qt  ":
        return "mov"
    if major == b"mjp2":
        return "mj2"
    if major[:3] == b"3g2":
        return "3g2"
    return "3gp" if major[:2] == b"3g" else "mp4"


def handler(window: Window, box: Box) -> bytes:
    """The handler type inside a `mdia` or `meta` box, or empty. `meta` is a full box in MP4 and a plain one in MOV."""
    start = box.body
    if box.kind == b"meta" and window.at(start + 4, 4) != b"hdlr":
        start += 4
    for child in boxes(window, start, box.end):
        if child.kind == b"hdlr":
            return window.at(child.body + 8, 4)
    return b""


def _track_kinds(window: Window, moov: Box) -> frozenset[bytes]:
    """Handler types of the tracks, pictures that only illustrate chapters left out."""
    kinds: dict[int, bytes] = {}
    chapters: set[int] = set()
    for number, box in enumerate(boxes(window, moov.body, moov.end)):
        if box.kind == b"trak" and len(kinds) < MAX_TRACKS:
            track_id, kind = -number, b""
            for child in boxes(window, box.body, box.end):
                if child.kind == b"tkhd":
                    version = window.at(child.body, 1)
                    track_id = int.from_bytes(window.at(child.body + (20 if version == b"\1" else 12), 4))
                elif child.kind == b"tref":
                    chapters |= _chapter_ids(window, child)
                elif child.kind == b"mdia":
                    kind = handler(window, child)
            kinds[track_id if track_id not in kinds else -number] = kind
    return frozenset(kind for track_id, kind in kinds.items() if track_id not in chapters)


def _chapter_ids(window: Window, tref: Box) -> set[int]:
    ids: set[int] = set()
    for box in boxes(window, tref.body, tref.end):
        if box.kind == b"chap":
            raw = window.at(box.body, min(box.end - box.body, 64))
            ids.update(int.from_bytes(raw[at : at + 4]) for at in range(0, len(raw) - 3, 4))
    return ids
