"""What a medium is, from its first bytes: enough to decide what may carry it. Nothing is opened or decoded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from weighlock import mime
from weighlock.encoded import Base64
from weighlock.errors import MalformedMedia, WeighlockError
from weighlock.mime import Flag, Window
from weighlock.request import MediaPart, Modality, Placement, Uri

_FILES_API = re.compile(r"(?:^|/v[0-9a-z]+/)files/[a-z0-9-]+(?::download)?$", re.IGNORECASE)
_YOUTUBE = re.compile(r"^(?:www\.|m\.)?(?:youtube\.com|youtu\.be)$", re.IGNORECASE)
_HEADERLESS = frozenset({"audio/l16", "audio/alaw", "audio/mulaw", "audio/x-alaw-basic", "audio/x-mulaw"})
"""Raw samples: no byte of them says what they are, so their label is all there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """One medium, before anything but its head was read."""

    mime: str | None = None
    """From the bytes; of a reference, from its label or its name. `None` where nothing tells."""
    modality: Modality | None = None
    declared_mime: str | None = None
    size_bytes: int | None = None
    encoding: str | None = None
    """Of text: a codec's name; `cp1252` also stands in where no Unicode encoding fits."""
    utf8: bytes | None = None
    """The text again as UTF-8, which is all the service reads; set where it came in another encoding."""
    placement: Placement = Placement.INLINE
    flags: tuple[Flag, ...] = ()
    certain: bool = True
    seen: bool = True
    """False for a reference: nobody here looked at its bytes."""
    error: WeighlockError | None = None


def identify(part: MediaPart) -> Identified:
    """What a part holds whose bytes are in memory, or a reference.

    Never raises: what is wrong with it comes back as its `error`.
    """
    declared = part.declared_mime
    try:
        if isinstance(part.source, Uri):
            return _reference(part.source.text, declared)
        if isinstance(part.source, Base64):
            part.source.check()
        return identify_bytes(window_of(part), part, lambda: _bytes_of(part))
    except WeighlockError as error:
        return Identified(declared_mime=declared, error=error)


def identify_bytes(found: Window, part: MediaPart, whole: Callable[[], bytes]) -> Identified:
    """What bytes are that somebody has opened. `part` says what the caller calls them, `whole` reads all of them.

    Raises:
        MalformedMedia: empty, or text that is none in the encoding its start is in.
    """
    if not found.size:
        raise MalformedMedia("empty: 0 bytes, nothing to send")
    declared, sniffed = part.declared_mime, mime.sniff(found)
    name, claim = mime.refine_text(sniffed.mime, part.label), mime.canonical(declared)
    if sniffed.modality is None and claim in _HEADERLESS:
        return Identified(
            mime=claim, modality=Modality.AUDIO, declared_mime=declared, size_bytes=found.size, certain=False
        )
    encoding = mime.text_encoding(found.head) if sniffed.modality is Modality.TEXT else None
    return Identified(
        mime=None if name == "application/octet-stream" else name,
        modality=sniffed.modality,
        declared_mime=declared,
        size_bytes=found.size,
        encoding=encoding,
        utf8=None if encoding in (None, "utf-8") else _as_utf8(whole(), encoding),
        flags=sniffed.flags,
        certain=sniffed.certain,
    )


def window_of(part: MediaPart) -> Window:
    """How the bytes of a medium that is in memory are reached."""
    source = part.source
    if isinstance(source, Base64):
        return Window(head=source.read_at(0, mime.HEAD_BYTES), size=source.size_bytes, read_at=source.read_at)
    if isinstance(source, bytes):
        return Window.of(source)
    raise TypeError(f"a {type(source).__name__} has to be opened by whoever asks")


def _bytes_of(part: MediaPart) -> bytes:
    return part.source.decode() if isinstance(part.source, Base64) else bytes(part.source)  # type: ignore[arg-type]


def _as_utf8(data: bytes, encoding: str) -> bytes:
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeDecodeError as error:
        if encoding == "cp1252":  # it leaves five bytes undefined
            return data.decode("latin-1").encode()
        raise MalformedMedia(f"not {encoding} text: byte {error.start:,} is {error.reason}") from None


def _reference(uri: str, declared: str | None) -> Identified:
    try:
        split = urlsplit(uri)
    except ValueError:
        raise MalformedMedia("a reference that is no URI") from None
    if declared is None and _YOUTUBE.match(split.netloc):
        declared = "video/mp4"  # the service wants no label there
    claim = mime.canonical(declared) or mime.declared_from_name(split.path)
    return Identified(
        mime=claim,
        modality=modality_of(claim),
        declared_mime=declared,
        placement=Placement.FILES if _FILES_API.search(split.path) else Placement.URI,
        certain=False,
        seen=False,
    )


def modality_of(claim: str | None) -> Modality | None:
    if claim is None:
        return None
    if claim == "application/pdf":
        return Modality.DOCUMENT
    if mime.is_text(claim):
        return Modality.TEXT
    kind = claim.partition("/")[0].upper()
    return Modality(kind) if kind in ("IMAGE", "VIDEO", "AUDIO") else None
