"""Makes a picture smaller or another format: upright, sRGB, eight bits. Runs in the confined child.

What comes out holds pixels and nothing else: no EXIF, no profile, no second picture.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import BinaryIO

import pi_heif
from PIL import Image, ImageFile, UnidentifiedImageError

from weighlock.codecs import pillow_colour, pillow_write
from weighlock.codecs.jpeg import refuse_many_scans
from weighlock.codecs.kinds import picture_formats
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pieces import Reader
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge, UnsupportedMedia
from weighlock.media.image_sizes import fitted, within
from weighlock.media.work import ImageWork
from weighlock.mime import exif

_ALSO_READ = {
    "image/tiff": ("TIFF",), "image/x-icon": ("ICO",), "image/jp2": ("JPEG2000",), "image/mpo": ("JPEG",),
}  # fmt: skip
"""Formats no model takes, but which become one that it does."""
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # fmt: skip
_UPRIGHT_WHEN_LOADED = {"HEIF", "TIFF"}
_FAITHFUL_GAP = 3.0
"""Whole-number reduction first, as long as three times the final size is left: indistinguishable, and faster."""
_READ_ERRORS = (
    OSError,
    ValueError,
    RuntimeError,
    SyntaxError,
    EOFError,
    LookupError,
    TypeError,
    ArithmeticError,
    struct.error,
    zlib.error,
)


def warm_up() -> None:
    """Import every plug-in, and the colour tables and writers behind them."""
    _ready()
    pillow_colour.warm_up()
    pillow_write.warm_up()


def make(
    source: BinaryIO, out: BinaryIO, work: ImageWork, *, mime: str, max_pixels: int = 100_000_000
) -> Outcome:  # fmt: skip
    """Writes what `work` makes of the picture of type `mime` to `out`. Same input and work, same bytes.

    Raises:
        MalformedMedia: truncated or broken.
        MediaTooLarge: more than `max_pixels`, more scans than any encoder writes, or `work.max_bytes` cannot be met.
        UnsupportedMedia: a format, a frame or a region that is not there.
    """
    _ready()
    formats = _ALSO_READ.get(mime) or picture_formats(mime)
    with _bounded(max_pixels), _typed(formats[0]):
        if "JPEG" in formats:
            refuse_many_scans(Reader(source))
        source.seek(0)
        with Image.open(source, formats=formats) as image:
            _check_size(image, max_pixels)
            target = pillow_write.target(work.mime, image.format or formats[0])
            notes = _choose_frame(image, work.frame)
            _check_size(image, max_pixels)
            picture = _scaled(image, work)
    picture, said = pillow_colour.to_srgb(picture)
    notes += said
    picture, said = pillow_colour.for_target(picture, target)
    notes += said
    data, said = pillow_write.encoded(picture, target, work.max_bytes)
    out.write(data)
    return Outcome(mime=target, notes=tuple(notes + said))


@cache
def _ready() -> None:
    pi_heif.register_heif_opener(thumbnails=False)
    Image.init()


@contextmanager
def _bounded(max_pixels: int) -> Iterator[None]:
    """Pillow's own bomb check at our bound, for pictures within pictures; its other warnings are nobody's business."""
    before, truncated = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
    Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = max_pixels, False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise MediaTooLarge(f"more than {max_pixels:,} pixels (safety.max.pixels)", max_pixels=max_pixels) from error
    finally:
        Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = before, truncated


@contextmanager
def _typed(name: str) -> Iterator[None]:
    try:
        yield
    except (InputError, Image.DecompressionBombError):
        raise
    except UnidentifiedImageError as error:
        raise MalformedMedia(f"it does not open as {name}", cause="UnidentifiedImageError") from error
    except _READ_ERRORS as error:
        cause = type(error).__name__
        cut = "truncated" in str(error) or isinstance(error, EOFError)
        what = "it is cut off: its pixels end early" if cut else f"its pixels cannot be decoded: {cause}"
        raise MalformedMedia(what, cause=cause) from error


def _check_size(image: Image.Image, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        raise MediaTooLarge(
            f"{width}×{height} pixels; at most {max_pixels:,} (safety.max.pixels)",
            width_px=width, height_px=height, max_pixels=max_pixels,
        )  # fmt: skip
    if min(width, height) < 1:
        raise MalformedMedia(f"a picture of {width}×{height} pixels", width_px=width, height_px=height)


def _choose_frame(image: Image.Image, frame: int) -> list[str]:
    if frame:
        try:
            image.seek(frame)
        except (EOFError, ValueError) as error:
            raise UnsupportedMedia(f"it has no frame {frame}, counted from 0", frame=frame) from error
    if image.format == "MPO":
        return ["the other pictures stored behind it were left out"]
    if getattr(image, "is_animated", False):
        which = f"frame {frame} of the animation, counted from 0," if frame else "the first frame of the animation"
        return [f"only {which} was kept"]
    return []


def _scaled(image: Image.Image, work: ImageWork) -> Image.Image:
    """The upright picture, cropped and scaled, in its own colours. Turned last, when there is least to turn."""
    if work.crop is not None:
        image.load()
        upright = pillow_colour.eight_bits(_turned(image, _orientation(image)))
        cut = within(work.crop, upright.size)
        region = upright.crop((cut.left, cut.top, cut.right, cut.bottom))
        size = fitted(region.size, work.max_width_px, work.max_height_px)
        return _carrying(image, _resized(region, size, None))
    stored = _stored_bounds(image, work)
    size = fitted(image.size, *stored)
    box = None
    if size != image.size:
        drafted = image.draft("", size)
        box = drafted[1] if drafted else None
    image.load()
    return _carrying(image, _turned(_resized(pillow_colour.eight_bits(image), size, box), _orientation(image)))


def _stored_bounds(image: Image.Image, work: ImageWork) -> tuple[int | None, int | None]:
    lying = image.format not in _UPRIGHT_WHEN_LOADED and _orientation(image) >= 5
    return (work.max_height_px, work.max_width_px) if lying else (work.max_width_px, work.max_height_px)


def _resized(
    image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float] | None
) -> Image.Image:  # fmt: skip
    if image.size == size:
        return image
    return image.resize(size, Image.Resampling.LANCZOS, box=box, reducing_gap=_FAITHFUL_GAP)


def _orientation(image: Image.Image) -> int:
    if image.format in _UPRIGHT_WHEN_LOADED:
        return 1
    found = image.info.get("exif", b"")
    return exif.orientation(found) if isinstance(found, bytes) else 1


def _turned(image: Image.Image, orientation: int) -> Image.Image:
    turn = _TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)


def _carrying(image: Image.Image, picture: Image.Image) -> Image.Image:
    """`picture` with nothing of what the file said but its colour profile."""
    profile = image.info.get("icc_profile")
    if picture is image:
        picture = image.copy()
    picture.info = {"icc_profile": profile} if isinstance(profile, bytes) and profile else {}
    return picture
