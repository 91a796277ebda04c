"""Encodes a finished picture, within a byte target if there is one. Runs in the confined child."""

from __future__ import annotations

import io
from collections.abc import Iterator

from PIL import Image, ImageChops

from weighlock.errors import MediaTooLarge, UnsupportedMedia
from weighlock.media.image_sizes import reduced

_WRITTEN = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP"}
_KEPT = {
    "JPEG": "image/jpeg", "MPO": "image/jpeg", "HEIF": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp",
    "AVIF": "image/webp",
}  # fmt: skip
_LONGEST_SIDE = {"image/jpeg": 65_535, "image/webp": 16_383}
_BEST = 90
_ROUGH = 100
"""Of PNG only: packed in a hurry, to see what its careful packing, ten times as slow, could come to."""
_QUALITIES = (80, 70, 60, 50)
_HOPELESS = 6
"""Times the target beyond which no quality meets it, and pixels have to go."""
_SMALLEST_PX = 16
_MAX_SIZES = 12


def warm_up() -> None:
    """Have each encoder in memory."""
    for mime in _WRITTEN:
        encoded(Image.new("RGB", (8, 8)), mime, None)


def target(asked: str | None, form: str) -> str:
    """The type to write: what is asked for, else the format itself or the nearest that can be written.

    Raises:
        UnsupportedMedia: it is not written here.
    """
    if asked is None:
        return _KEPT.get(form, "image/png")
    if asked not in _WRITTEN:
        raise UnsupportedMedia(f"{asked} is not written here; {', '.join(sorted(_WRITTEN))} are", mime=asked)
    return asked


def encoded(picture: Image.Image, mime: str, max_bytes: int | None) -> tuple[bytes, list[str]]:
    """The file, and how its byte target was met: by lower quality (PNG: 256 colours), then by fewer pixels.

    Raises:
        MediaTooLarge: no rung of the ladder is small enough, or the format holds no such side.
    """
    longest = _LONGEST_SIDE.get(mime)
    if longest is not None and max(picture.size) > longest:
        width, height = picture.size
        raise MediaTooLarge(f"{width}×{height} pixels; a side of {mime} is at most {longest:,}", max_side_px=longest)
    smallest = 0
    for data, how in _ladder(picture, mime, max_bytes):
        if max_bytes is None or len(data) <= max_bytes:
            return data, how
        smallest = min(smallest or len(data), len(data))
    raise MediaTooLarge(
        f"it takes {smallest:,} bytes at the least, {max_bytes:,} were asked for",
        max_bytes=max_bytes, smallest_bytes=smallest,
    )  # fmt: skip


def _ladder(picture: Image.Image, mime: str, max_bytes: int | None) -> Iterator[tuple[bytes, list[str]]]:
    """Ever smaller files. Each size is guessed from the last one's bytes, a little low, so that few are drawn."""
    wanted = max_bytes or 1
    size = len(_encode(picture, mime, _ROUGH)) if max_bytes and mime == "image/png" else 0
    if size <= _HOPELESS * wanted:
        data = _encode(picture, mime, _BEST)
        size = len(data)
        yield data, []
    qualities = _QUALITIES if size <= _HOPELESS * wanted else ()
    for quality in qualities[:1] if mime == "image/png" else qualities:
        data = _encode(picture, mime, quality)
        size = len(data)
        yield data, [_lossy(mime, quality)]
    if not qualities:
        size //= 2  # about what the first quality of the next rung saves
    scale = 1.0
    for _ in range(_MAX_SIZES):
        scale *= min(0.85, (wanted / size) ** 0.5 * 0.95)
        width, height = reduced(picture.size, scale)
        if max(width, height) < _SMALLEST_PX:
            return
        smaller = picture.resize((width, height), Image.Resampling.LANCZOS)
        for quality in _QUALITIES[1:2] if mime == "image/png" else (_QUALITIES[1], _QUALITIES[-1]):
            data = _encode(smaller, mime, quality)
            size = len(data)
            yield data, [_lossy(mime, quality), f"scaled to {width}×{height} to meet {wanted:,} bytes"]


def _lossy(mime: str, quality: int) -> str:
    return "reduced to 256 colours" if mime == "image/png" else f"quality {quality} of 100"


def _encode(picture: Image.Image, mime: str, quality: int) -> bytes:
    drawn = io.BytesIO()
    if mime == "image/png":
        few = _by_palette(picture) if quality >= _BEST else picture.quantize(256, Image.Quantize.FASTOCTREE)
        few.save(drawn, "PNG", optimize=quality < _BEST, compress_level=1 if quality == _ROUGH else 6)
    elif mime == "image/webp":
        colour = "RGBA" if picture.mode in {"LA", "RGBA"} else "RGB"
        (picture if picture.mode == colour else picture.convert(colour)).save(drawn, "WEBP", quality=quality)
    else:
        picture.save(drawn, "JPEG", quality=quality, optimize=quality != _BEST)
    return drawn.getvalue()


def _by_palette(picture: Image.Image) -> Image.Image:
    """The same picture by palette where at most 256 colours make that exact; a third of the bytes of a screenshot."""
    if picture.mode != "RGB" or picture.getcolors(256) is None:
        return picture
    few = picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    return few if ImageChops.difference(few.convert("RGB"), picture).getbbox() is None else picture
