"""Metadata of a PDF, of its objects and of the photographs in it, taken out. Runs in the confined child."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pikepdf

from weighlock.codecs import pdf, strip_pictures
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pdf import opened
from weighlock.codecs.pieces import Reader
from weighlock.errors import InputError, MalformedMedia, UnsupportedMedia

MIME = "application/pdf"
READ_ERRORS = (pikepdf.PdfError, ValueError, RuntimeError, TypeError, LookupError, AttributeError, OSError)
_SAYS_WHO = ("/Metadata", "/PieceInfo", "/LastModified", "/Thumb")
_LARGEST_PHOTO = 64 * 2**20


def warm_up() -> None:
    """Have the libraries loaded and their words about oddities silenced."""
    pdf.warm_up()
    with pikepdf.new() as document:
        document.add_blank_page()
        drawn = io.BytesIO()
        document.save(drawn)
    make(drawn, io.BytesIO())


def make(source: BinaryIO, out: BinaryIO) -> Outcome:
    """Writes the document without Info, XMP, programs' private data and the EXIF of its JPEGs; pages stay as they are.

    Raises:
        UnsupportedMedia: encrypted.
        MalformedMedia: it cannot be read or written.
    """
    with typed(), opened(source) as document:
        refuse_encrypted(document)
        clear(document)
        save(document, out)
    return Outcome(mime=MIME)


@contextmanager
def typed() -> Iterator[None]:
    """What goes wrong inside as what it means to the caller."""
    try:
        yield
    except InputError:
        raise
    except pikepdf.PasswordError as error:
        raise _encrypted() from error
    except READ_ERRORS as error:
        cause = type(error).__name__
        raise MalformedMedia(f"it cannot be taken apart: {cause}", cause=cause) from error


def refuse_encrypted(document: pikepdf.Pdf) -> None:
    """Raises `UnsupportedMedia` also where an empty password opens it: its owner has said what may be done."""
    if document.is_encrypted:
        raise _encrypted()


def _encrypted() -> UnsupportedMedia:
    return UnsupportedMedia("encrypted; remove the password and send it again", encrypted=True)


def save(document: pikepdf.Pdf, out: BinaryIO, *, min_version: str = "") -> None:
    """Write what is reachable, the same bytes each time; no stream is unpacked, so none can be a bomb."""
    document.save(
        out, min_version=min_version, deterministic_id=True, compress_streams=True, fix_metadata_version=False,
        stream_decode_level=pikepdf.StreamDecodeLevel.none,
        object_stream_mode=pikepdf.ObjectStreamMode.generate,
    )  # fmt: skip


def clear(document: pikepdf.Pdf) -> None:
    """Take it all out of an open document."""
    if "/Info" in document.trailer:
        del document.trailer["/Info"]
    found: Any
    for found in document.objects:
        if not isinstance(found, (pikepdf.Dictionary, pikepdf.Stream)):
            continue
        for name in _SAYS_WHO:
            if name in found:
                del found[name]
        if isinstance(found, pikepdf.Stream) and found.get("/Filter") == pikepdf.Name.DCTDecode:
            _clear_photo(found)


def _clear_photo(photo: Any) -> None:
    """EXIF of a JPEG goes, orientation too: no PDF reader heeds it. One that is no JPEG stays as it is."""
    raw = photo.read_raw_bytes()
    if len(raw) > _LARGEST_PHOTO:
        return
    reader, cleared = Reader(io.BytesIO(raw)), io.BytesIO()
    try:
        pieces, _ = strip_pictures.jpeg(reader, keep_orientation=False)
    except MalformedMedia:
        return
    if reader.write(pieces, cleared) < len(raw):
        photo.write(cleared.getvalue(), filter=pikepdf.Name.DCTDecode, decode_parms=photo.get("/DecodeParms"))
