"""What a client says of an upload, by the resumable protocol. Pure, and strict: what is overlooked is lost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from weighlock.converters.json_text import loads
from weighlock.converters.wire import malformed
from weighlock.gemini.files import demand_mime, is_name
from weighlock.service.keys import Headers
from weighlock.written import is_unicode

_LONGEST_NAME = 512
_MOST_DIGITS = 18


class Command(StrEnum):
    """What is to be done with an upload."""

    START = "start"
    UPLOAD = "upload"
    UPLOAD_AND_FINALIZE = "upload, finalize"
    FINALIZE = "finalize"
    QUERY = "query"
    CANCEL = "cancel"

    @property
    def uploads(self) -> bool:
        return self in (Command.UPLOAD, Command.UPLOAD_AND_FINALIZE)

    @property
    def finalizes(self) -> bool:
        return self in (Command.FINALIZE, Command.UPLOAD_AND_FINALIZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """A file that is to come; `None` is what was not said."""

    mime: str | None
    """Without parameters."""
    display_name: str | None
    name: str | None
    """`files/…`, where the client chose one."""
    size_bytes: int | None


def command(headers: Headers) -> Command:
    """
    Raises:
        MalformedRequest: none, or what belongs to no upload.
    """
    words = [word.strip() for word in header(headers, "x-goog-upload-command").lower().split(",")]
    said = ", ".join(sorted(words, key=lambda word: word == Command.FINALIZE))
    found = next((one for one in Command if one == said), None)
    if found is None:
        raise malformed("X-Goog-Upload-Command", f"is one of {'; '.join(Command)}")
    return found


def demand_resumable(headers: Headers) -> None:
    """
    Raises:
        MalformedRequest: an upload of another kind.
    """
    if header(headers, "x-goog-upload-protocol").lower() != "resumable":
        raise malformed("X-Goog-Upload-Protocol", "is resumable: no other kind of upload is taken")


def announced(headers: Headers, body: bytes) -> Announced:
    """
    Raises:
        MalformedRequest: a field is none of its kind.
        InputError: the type is no media type.
    """
    document = loads(body) if body.strip() else {}
    file = document.get("file", {}) if isinstance(document, dict) else None
    if not isinstance(file, dict):
        raise malformed("file", "is no object")
    mime = header(headers, "x-goog-upload-header-content-type") or _text(file, "mimeType", "mime_type") or ""
    mime = mime.partition(";")[0].strip()
    if mime:
        demand_mime(mime)
    display_name = _text(file, "displayName", "display_name")
    if display_name is not None and len(display_name) > _LONGEST_NAME:
        raise malformed("file.displayName", f"is longer than {_LONGEST_NAME} characters")
    size = header(headers, "x-goog-upload-header-content-length")
    if size and (size_bytes := number(size)) is None:
        raise malformed("X-Goog-Upload-Header-Content-Length", "is no number of bytes")
    name = _text(file, "name")
    if name is not None and not is_name(name := f"files/{name.removeprefix('files/')}"):
        raise malformed("file.name", "is up to 40 of a-z, 0-9 and dashes, none at an end")
    return Announced(mime=mime or None, display_name=display_name, name=name, size_bytes=size_bytes if size else None)


def number(text: str) -> int | None:
    """A whole number in ASCII digits, `None` where it is none; of more digits than anything has, a huge one."""
    if not (text.isascii() and text.isdigit()):
        return None
    return int(text) if len(text) <= _MOST_DIGITS else 10**_MOST_DIGITS


def header(headers: Headers, name: str) -> str:
    """The value of a header, in lower case its name; empty where there is none.

    Raises:
        MalformedRequest: it is there twice.
    """
    wanted = name.encode()
    found = [value for key, value in headers if key == wanted]
    if len(found) > 1:
        raise malformed(name, "is there twice")
    return found[0].decode("latin-1").strip() if found else ""


def _text(file: dict[str, Any], *names: str) -> str | None:
    """A field in any of its spellings; `None` where it is empty."""
    found = next((file[name] for name in names if file.get(name) is not None), None)
    if found is not None and not (isinstance(found, str) and is_unicode(found)):
        raise malformed(f"file.{names[0]}", "is no text")
    return found or None
