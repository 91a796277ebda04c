"""Takes out of a file what says where, when and by whom it was made, and encodes nothing again.

Pixels, samples and pages stay byte for byte. Runs in the confined child.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from weighlock.codecs import strip_heif, strip_movie, strip_pictures, strip_sound
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pieces import Piece, Reader
from weighlock.errors import InputError, MalformedMedia, UnsupportedMedia
from weighlock.media.work import StripWork

Surgery = Callable[[Reader], tuple[list[Piece], list[str]]]
"""The pieces that stay, and what a person should know."""

_SURGERIES: dict[str, Surgery] = {
    "image/jpeg": strip_pictures.jpeg, "image/png": strip_pictures.png, "image/webp": strip_pictures.webp,
    "image/gif": strip_pictures.gif, "image/heic": strip_heif.heif, "image/heif": strip_heif.heif,
    "image/avif": strip_heif.heif,
    "audio/mpeg": strip_sound.tagged, "audio/aac": strip_sound.tagged, "audio/flac": strip_sound.flac,
    "audio/wav": strip_sound.wav,
    **dict.fromkeys(
        ("video/mp4", "video/quicktime", "video/3gpp", "video/3gpp2", "video/x-m4v", "audio/mp4", "audio/3gpp"),
        strip_movie.movie,
    ),
}  # fmt: skip
_SAME = {
    "image/apng": "image/png", "image/mpo": "image/jpeg", "image/heic-sequence": "image/heic",
    "image/heif-sequence": "image/heif", "image/avif-sequence": "image/avif", "audio/mp3": "audio/mpeg",
    "audio/m4a": "audio/mp4", "audio/x-m4a": "audio/mp4", "audio/x-wav": "audio/wav", "video/mov": "video/quicktime",
}  # fmt: skip
_PDF = "application/pdf"
_BROKEN = (ValueError, LookupError, ArithmeticError, OSError)


def warm_up() -> None:
    """Import what the PDF surgery needs; the others need nothing."""
    from weighlock.codecs import pdf_strip

    pdf_strip.warm_up()


def make(source: BinaryIO, out: BinaryIO, work: StripWork, mime: str) -> Outcome:  # noqa: ARG001 - one shape for all doors
    """Writes `source`, of type `mime`, to `out` without its metadata. What turns a picture upright stays.

    Raises:
        UnsupportedMedia: a format that is not known here well enough, or an encrypted PDF.
        MalformedMedia: its structure ends early or contradicts itself.
    """
    if mime == _PDF:
        from weighlock.codecs import pdf_strip

        return pdf_strip.make(source, out)
    surgery = _SURGERIES.get(_SAME.get(mime, mime))
    if surgery is None:
        known = ", ".join(sorted((*_SURGERIES, _PDF)))
        raise UnsupportedMedia(f"metadata of {mime} is not taken out here, only of {known}", mime=mime)
    reader = Reader(source)
    try:
        pieces, notes = surgery(reader)
        reader.write(pieces, out)
    except InputError:
        raise
    except _BROKEN as error:
        cause = type(error).__name__
        raise MalformedMedia(f"its structure makes no sense: {cause}", cause=cause) from error
    return Outcome(mime=mime, notes=tuple(notes))
