"""`weighlock.media(x)`: a medium among the SDK's contents that is not read until it has to be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from google.genai import types

from weighlock import mime as mime_types
from weighlock.converters.genai_media import carrying
from weighlock.errors import InputError
from weighlock.request import Box, Clip, Content, MediaPart
from weighlock.settings.amounts import parse_clip


def media(
    source: bytes | bytearray | memoryview | str | os.PathLike[str] | BinaryIO | Any,
    *,
    mime: str | None = None,
    label: str | None = None,
    pinned: bool = False,
    clip: Clip | str | None = None,
    content: Content | str | None = None,
    region: Box | None = None,
) -> types.Part:
    """A medium for `contents`, not read whole: it is weighed where it is, and sent from there.

    For `weighlock.Client`, its chats too, and for `prepare`; a plain client of the SDK would send an empty part.

    Args:
        source: Bytes; a path; a binary file object that can seek; or an upload of a web framework: Starlette's and
            FastAPI's `UploadFile`, Django's `UploadedFile`, Werkzeug's `FileStorage`, aiohttp's `FileField`.
        mime: What it is said to be; the upload's own word, or the file name's, when left out. Never believed.
        label: What a person calls it, in reports; the file's name when left out.
        pinned: It is sent as it is: no lever touches it.
        clip: What is wanted of a recording: `last 60s`, `first 2m`, `30-90`, `around 95s`.
        content: What a film shows: `screen`, `talk`, `motion`.
        region: What of a picture matters.

    Raises:
        InputError: a clip or content that is none, or a file that cannot seek.
        TypeError: nothing of all that.
    """
    where, name, declared = _source(source)
    said = name if isinstance(name, str) else None
    medium = MediaPart(
        source=where,
        label=label or (os.path.basename(said) if said else "") or "medium",  # noqa: PTH119  # of any system
        declared_mime=mime or declared or (mime_types.declared_from_name(said) if said else None),
        pinned=pinned,
        clip=_clip(clip) if isinstance(clip, str) else clip,
        content=_content(content),
        region=region,
    )
    return carrying(medium)


def _source(source: Any) -> tuple[bytes | Path | BinaryIO, object, str | None]:
    """Where the bytes are, what they are called and what somebody says they are."""
    if isinstance(source, bytes):
        return source, None, None
    if isinstance(source, bytearray | memoryview):
        return bytes(source), None, None
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return path, path.name, None
    # An upload: its file, its name and its type go by these names in one framework or another.
    held = [getattr(source, key, None) for key in ("file", "stream")]
    file: Any = next(filter(_is_file, held), source)
    if not _is_file(file):
        raise TypeError(f"a medium is bytes, a path, a binary file or an upload, not {type(source).__name__}")
    if getattr(file, "closed", False):
        raise InputError("a medium's file is closed: keep it open until it is sent")
    if not file.seekable():
        raise InputError("a medium's file has to seek: read it into a temporary file first")
    name = getattr(source, "filename", None) or getattr(source, "name", None)
    declared = getattr(source, "content_type", None) or getattr(source, "mimetype", None)
    return file, name, declared if isinstance(declared, str) else None


def _is_file(value: object) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("read", "seek", "tell", "seekable"))


def _clip(words: str) -> Clip:
    try:
        return parse_clip(words)
    except ValueError as error:
        raise InputError(str(error)) from None


def _content(content: Content | str | None) -> Content | None:
    try:
        return None if content is None else Content(content)
    except ValueError:
        raise InputError(f"content {content!r} is not one of {', '.join(Content)}") from None
