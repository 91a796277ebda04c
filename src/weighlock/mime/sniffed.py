"""The answer of a sniff, and the words for what was odd."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from weighlock.request import Modality

UNKNOWN_MIME = "application/octet-stream"


class Flag(StrEnum):
    """What a sniff noticed beside the type."""

    EMPTY = "empty"
    """Zero bytes."""
    TRUNCATED = "truncated"
    """The header promises more bytes than there are."""
    HEADER_ONLY_GUESS = "header_only_guess"
    """Only a magic number or a brand speaks for this; what should confirm it is missing or out of reach."""
    TRAILING_BYTES = "trailing_bytes"
    """Bytes follow the end of the image. Told only where it costs no extra read."""
    LEADING_BYTES = "leading_bytes"
    """The medium does not begin at the first byte."""
    POLYGLOT = "polyglot"
    """Another format's reader would accept these bytes too."""
    CONTRADICTION = "contradiction"
    """The outside says one format, the inside another."""
    ENCODING_GUESSED = "encoding_guessed"
    """Text in no Unicode encoding."""
    NO_PICTURE = "no_picture"
    """A container whose name says video, holding sound only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sniffed:
    """What the bytes are. The same bytes always give the same answer, whatever the file is called."""

    mime: str
    """Canonical (`aliases.canonical`); `application/octet-stream` where nothing is recognised."""
    modality: Modality | None
    """What a model would take it for; `None` when it is none of them (archives, programs) or unknown.

    Says nothing about what the service accepts: SVG, TIFF and PSD are images too.
    """
    container: str | None = None
    """Short format name: "mp4", "webm", "mp3"; `None` where the MIME type says it all."""
    certain: bool = True
    """False when what should confirm the type was missing, out of reach or contradicting. A cut file can be certain."""
    flags: tuple[Flag, ...] = ()


def image(mime: str, container: str | None = None, *flags: Flag) -> Sniffed:
    return _of(Modality.IMAGE, mime, container, flags)


def audio(mime: str, container: str | None = None, *flags: Flag) -> Sniffed:
    return _of(Modality.AUDIO, mime, container, flags)


def video(mime: str, container: str | None = None, *flags: Flag) -> Sniffed:
    return _of(Modality.VIDEO, mime, container, flags)


def text(mime: str, container: str | None = None, *flags: Flag) -> Sniffed:
    return _of(Modality.TEXT, mime, container, flags)


def document(mime: str, container: str | None = None, *flags: Flag) -> Sniffed:
    return _of(Modality.DOCUMENT, mime, container, flags)


def other(mime: str, container: str | None = None, *flags: Flag) -> Sniffed:
    """Recognised, but nothing a model takes."""
    return _of(None, mime, container, flags)


_DOUBTS = frozenset({Flag.HEADER_ONLY_GUESS, Flag.POLYGLOT, Flag.CONTRADICTION, Flag.ENCODING_GUESSED})


def _of(modality: Modality | None, mime: str, container: str | None, flags: tuple[Flag, ...]) -> Sniffed:
    certain = not flags or _DOUBTS.isdisjoint(flags)
    return Sniffed(mime=mime, modality=modality, container=container, certain=certain, flags=flags)


def flagged(sniffed: Sniffed, *flags: Flag) -> Sniffed:
    """The same answer with more flags, and no longer certain where one of them casts doubt."""
    merged = tuple(dict.fromkeys((*sniffed.flags, *flags)))
    certain = sniffed.certain and _DOUBTS.isdisjoint(merged)
    return Sniffed(
        mime=sniffed.mime, modality=sniffed.modality, container=sniffed.container, certain=certain, flags=merged
    )


EMPTY = Sniffed(mime="application/x-empty", modality=None, flags=(Flag.EMPTY,))
UNKNOWN = Sniffed(mime=UNKNOWN_MIME, modality=None, certain=False)
