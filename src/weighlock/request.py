"""What travels, and the words for it. Names are the google-genai SDK's where it has one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Modality(StrEnum):
    """What the caller sent, in the words of `usageMetadata.promptTokensDetails`."""

    TEXT = "TEXT"
    IMAGE = "IMAGE"
    VIDEO = "VIDEO"
    AUDIO = "AUDIO"
    DOCUMENT = "DOCUMENT"


class Backend(StrEnum):
    """Which service answers; the same model is billed differently on each."""

    DEVELOPER = "developer"
    VERTEX = "vertex"


class MediaResolution(StrEnum):
    """`generationConfig.mediaResolution` (request-wide) and `part.mediaResolution.level` (`ULTRA_HIGH` only there)."""

    UNSPECIFIED = "unspecified"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    ULTRA_HIGH = "ultra_high"


class Placement(StrEnum):
    """How a medium's bytes reach the service. It can change what a video frame costs."""

    INLINE = "inline"
    FILES = "files"
    URI = "uri"
    """gs://, https:// or YouTube, which the service reads itself."""


class Carrier(StrEnum):
    """Whose turn holds the medium. A PDF inside a tool result has another page budget than in a user turn."""

    USER = "user"
    TOOL_RESULT = "tool_result"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPart:
    """One medium of a request."""

    source: Path | bytes
    label: str
    """What a person calls it, in reports: a file name, `screenshot 1`."""
    declared_mime: str | None = None
    """What the caller says it is; `None` where nobody said. Never believed."""
