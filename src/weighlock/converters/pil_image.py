"""The bytes a PIL image was read from, where they still are what it shows; lossless PNG where not.

PIL itself is never imported here: whoever hands in an image has it loaded.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from weighlock.converters.wire import malformed
from weighlock.mime import sniff

_KEPT = frozenset(
    f"image/{name}" for name in ("png", "jpeg", "webp", "heic", "heif", "avif", "gif", "bmp")
)  # what the service takes or we convert; the rest is sent as PNG, as the SDK does
_PNG_MODES = frozenset({"1", "L", "LA", "I", "I;16", "I;16B", "P", "RGB", "RGBA"})


def is_image(value: object) -> bool:
    """Whether this is a PIL image."""
    pil = sys.modules.get("PIL.Image")
    return pil is not None and isinstance(value, pil.Image)


def file_name(image: Any) -> str | None:
    """Of the file it was opened from; `None` where there is none."""
    name = getattr(image, "filename", None)
    return Path(name).name if isinstance(name, str) and name else None


def bytes_and_mime(image: Any, place: str) -> tuple[bytes, str]:
    """The original file where its pixels are still the image's, else the current frame as PNG.

    The SDK re-encodes every image, and makes PNG of whatever was not opened from a path.

    Raises:
        MalformedRequest: an image without pixels (closed before they were loaded), or of floats.
    """
    data = _read(image)
    if data is not None and (mime := sniff(data).mime) in _KEPT and _shows(image, data):
        return data, mime
    return _png(image, place), "image/png"


def _read(image: Any) -> bytes | None:
    if getattr(image, "format", None) is None:
        return None
    try:
        if _is_loaded(image) and file_name(image) is not None:
            path = Path(image.filename)
            return path.read_bytes() if path.is_file() else None
        file = getattr(image, "fp", None)
        if file is None:
            return None
        stood = file.tell()
        file.seek(0)
        try:
            data = file.read()
        finally:
            file.seek(stood)
    except (OSError, ValueError):  # ValueError: the file is closed
        return None
    return data if isinstance(data, bytes) else None


def _shows(image: Any, data: bytes) -> bool:
    """Whether these bytes are still what the image shows: it may have been drawn on, cropped or replaced on disk.

    Pixels nobody has loaded cannot have been drawn on. Others are compared, decoded by the class that decoded them for
    the caller, and only where the header promises no more pixels than the caller has already decoded.
    """
    try:
        if image.tell() != 0:
            return False
        fresh = type(image)(io.BytesIO(data))
        if (fresh.mode, fresh.size) != (image.mode, image.size):
            return False
        if not _is_loaded(image):
            return True
        fresh.load()  # some plug-ins tell more about the file then, and `==` heeds that
        return bool(image == fresh)
    except Exception:  # a plug-in may raise anything on bytes that are not its own
        return False


def _is_loaded(image: Any) -> bool:
    return getattr(image, "_im", image) is not None


def _png(image: Any, place: str) -> bytes:
    written = io.BytesIO()
    try:
        if image.mode not in _PNG_MODES and image.mode != "F":
            image = image.convert("RGBA" if image.has_transparency_data else "RGB")
        image.save(written, "PNG")
    except (
        OSError,
        ValueError,
        SyntaxError,
        AttributeError,
        AssertionError,
    ) as error:  # the last two where it is closed
        raise malformed(place, f"is a PIL image that cannot be written as PNG ({type(error).__name__})") from error
    return written.getvalue()
