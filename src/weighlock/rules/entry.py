"""One figure about Gemini: what it says, when it holds, for whom, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase

from weighlock.media.area import Area
from weighlock.media.counted import CountRule
from weighlock.media.rule import Rounding
from weighlock.media.text import TextRatios
from weighlock.media.tokens import Confidence
from weighlock.request import Backend, Carrier, MediaResolution, Modality, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How many frames a film gives."""

    rounding: Rounding
    default_fps: float
    max_fps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Tokens a second of sound."""

    tokens_per_s: int
    rounding: Rounding
    whole_seconds: bool = False
    low_tokens_per_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """How many pixels of a picture one token stands for."""

    cell_px: int
    """Width and height of the square."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResolution:
    """Whether a resolution set on a part counts."""

    honoured: bool


class WireControl(StrEnum):
    """A field of the wire that changes what a medium costs."""

    VIDEO_OFFSETS = "video_offsets"
    VIDEO_FPS = "video_fps"
    CONTENT_LAYERS = "content_layers"
    AUDIO_OFFSETS = "audio_offsets"
    DOCUMENT_PAGES = "document_pages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Honoured:
    """Whether the service is known to act on these fields; one it ignores fails silently: same answer, same bill."""

    control: tuple[WireControl, ...]
    honoured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Media types taken; none at all where the list is empty."""

    modality: tuple[Modality, ...]
    mimes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One of the service's own limits; `limit` is a field of `RequestLimits`."""

    limit: str
    value: int


Figure = Area | Sampling | Rate | Sight | TextRatios | PartResolution | Honoured | CountRule | Accepted | Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Selectors:
    """For whom a figure holds; `None` is everyone. `models` are names or shell patterns."""

    backends: frozenset[Backend] | None = None
    placements: frozenset[Placement] | None = None
    carriers: frozenset[Carrier] | None = None
    resolutions: frozenset[MediaResolution] | None = None
    models: tuple[str, ...] | None = None

    def fits_endpoint(self, model: str, backend: Backend) -> bool:
        """Does it hold for this model on this backend at all?"""
        if self.backends is not None and backend not in self.backends:
            return False
        return self.models is None or any(fnmatchcase(model, pattern) for pattern in self.models)

    def fits_part(self, resolution: MediaResolution, placement: Placement, carrier: Carrier) -> bool:
        """Does it hold for a medium sent this way?"""
        return (
            (self.resolutions is None or resolution in self.resolutions)
            and (self.placements is None or placement in self.placements)
            and (self.carriers is None or carrier in self.carriers)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A dated, sourced figure in force from `since` on, for those its selectors fit."""

    section: str
    figure: Figure
    since: date
    checked_on: date
    """When somebody last compared the figure with its sources."""
    sources: tuple[str, ...]
    """Keys of `data/sources.toml` or of the file's own `[sources]`, or addresses."""
    confidence: Confidence
    selectors: Selectors
    billed_as: Modality | None = None
    note: str | None = None
    warning: str | None = None
    """Said to whoever sends a medium this entry applies to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One rule file."""

    name: str
    title: str
    checked_on: date
    models: tuple[str, ...]
    inherits: str | None
    entries: tuple[Entry, ...]
    sources: Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """What the service itself refuses, whatever the endpoint's budget says. `None` is unknown."""

    context_tokens: int | None = None
    inline_request_bytes: int | None = None
    """The whole request, base64 counted."""
    inline_image_bytes: int | None = None
    pdf_bytes: int | None = None
    text_bytes: int | None = None
    file_bytes: int | None = None
    """One file of the Files API."""
    url_bytes: int | None = None
    images: int | None = None
    videos: int | None = None
    audio_files: int | None = None
    audio_s: int | None = None
    """Seconds of sound in one prompt."""
    pages_per_file: int | None = None
    least_text_parts: int | None = None
    """Text parts a request must hold beside its media."""
