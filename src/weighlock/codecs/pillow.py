"""Pictures our own header reader was unsure of.

The only file that imports `PIL` and `pi_heif`; runs in the confined child.
"""

from __future__ import annotations

import io
import mmap
import warnings
from typing import IO, TYPE_CHECKING, cast

import pi_heif
from PIL import Image, ImageFile, UnidentifiedImageError
from PIL import __version__ as pillow_version

from weighlock.codecs import kinds
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge
from weighlock.media.facts import Anomaly, FactSource, ImageFacts, Probed
from weighlock.modality import Modality

if TYPE_CHECKING:
    from weighlock.codecs.job import Bounds

_ORIENTATION = 0x0112
_READ_ERRORS = (
    UnidentifiedImageError,
    OSError,
    ValueError,
    RuntimeError,
    SyntaxError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
)


def warm_up() -> None:
    """Import every plug-in on the list, and the EXIF reader behind them."""
    Image.MAX_IMAGE_PIXELS = None  # the bound is ours, checked on the size Pillow read, so that the refusal can name it
    warnings.simplefilter("ignore")
    pi_heif.register_heif_opener(thumbnails=False)
    Image.init()
    for name in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "AVIF"):
        drawn = io.BytesIO()
        exif = Image.Exif()
        exif[_ORIENTATION] = 6
        Image.new("RGB", (8, 8)).save(drawn, name, **({} if name in ("GIF", "BMP") else {"exif": exif}))
        with Image.open(drawn, formats=(name,)) as image:
            image.getexif()


def versions() -> dict[str, str]:
    return {"pillow": pillow_version, "pi_heif": pi_heif.__version__, "libheif": str(pi_heif.libheif_version())}


def probe(view: mmap.mmap, *, mime: str, modality: Modality, bounds: Bounds) -> Probed:  # noqa: ARG001 - one shape for all doors
    """Size and orientation of a picture. Nothing is decoded, so damage behind the header goes unseen."""
    formats = kinds.picture_formats(mime)
    view.seek(0)
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        with Image.open(cast("IO[bytes]", view), formats=formats) as image:
            return _facts(image, bounds)
    except InputError:
        raise
    except _READ_ERRORS as error:
        raise MalformedMedia(
            f"it does not open as {formats[0]}: {type(error).__name__}", cause=type(error).__name__
        ) from error


def _facts(image: Image.Image, bounds: Bounds) -> Probed:
    width, height = image.size
    if width * height > bounds.max_pixels:
        raise MediaTooLarge(
            f"{width}×{height} pixels; at most {bounds.max_pixels:,} (safety.max.pixels)",
            width_px=width, height_px=height, max_pixels=bounds.max_pixels,
        )  # fmt: skip
    if min(width, height) < 1:
        raise MalformedMedia(f"a picture of {width}×{height} pixels", width_px=width, height_px=height)
    orientation = _orientation(image)
    if orientation >= 5:
        width, height = height, width
    frames, anomalies = _frames(image, bounds)
    facts = ImageFacts(
        width_px=width, height_px=height, orientation=orientation, frames=frames, size_source=FactSource.HEADER
    )
    return Probed(facts=facts, anomalies=anomalies)


def _orientation(image: Image.Image) -> int:
    # On a PNG without an eXIf chunk `getexif` decodes all pixels, looking for one behind them.
    if image.format == "HEIF" or (image.format == "PNG" and "exif" not in image.info):
        return 1  # libheif has turned the picture already
    value = image.getexif().get(_ORIENTATION, 1)
    return value if value in range(1, 9) else 1


def _frames(image: Image.Image, bounds: Bounds) -> tuple[int | None, tuple[Anomaly, ...]]:
    """Frames where the header says; GIF would have to be walked.

    An APNG's claim past the bound is reported, not believed.
    """
    if image.format == "GIF":
        return None, ()
    claimed = int(getattr(image, "n_frames", 1))
    if claimed > bounds.max_frames:
        return None, (Anomaly(code="frame_count", detail=f"its header claims {claimed:,} frames"),)
    return max(1, claimed), ()
