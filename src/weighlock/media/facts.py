"""What was measured about a medium, before any rule about Gemini is applied. One value per modality.

Sizes are as displayed (after EXIF orientation, `irot`, track rotation and sample aspect ratio). `None` is unknown.
Durations come in pairs: `duration_s` is what a player would show and what we expect to be billed; `duration_high_s`
is the longest span anything in the file supports, and is what a limit is decided on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FactSource(StrEnum):
    """Where a figure came from."""

    HEADER = "header"
    """The container says so, and nothing looked at contradicts it."""
    SCANNED = "scanned"
    """Every packet (or page, or frame) was walked."""
    ASSUMED = "assumed"
    """Nothing in the file says; the figure errs upwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """Something in the file that contradicts itself. `code` is stable; `detail` is one line for a person."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """Of a picture, or the first of an animation."""

    width_px: int
    height_px: int
    orientation: int = 1
    """EXIF orientation 1…8 that was applied; 1 where there is none."""
    frames: int | None = 1
    """Animation frames; `None` where they were not counted. Gemini is known to read the first only."""
    size_source: FactSource = FactSource.HEADER


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFacts:
    """Of sound; its longest track is the one described."""

    duration_s: float
    duration_high_s: float
    duration_source: FactSource
    container: str | None = None
    codec: str | None = None
    sample_rate_hz: int | None = None
    channels: int | None = None
    tracks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFacts:
    """Of a film: its largest track of pictures, and all of its sound."""

    width_px: int
    height_px: int
    duration_s: float
    duration_high_s: float
    duration_source: FactSource
    rotation_deg: int = 0
    """Clockwise rotation already applied to the size: 0, 90, 180 or 270."""
    frames: int | None = None
    average_fps: float | None = None
    variable_frame_rate: bool | None = None
    container: str | None = None
    codec: str | None = None
    audio_tracks: int = 0
    audio_duration_s: float | None = None
    """`None` when there is no sound. Several tracks count once, as the service hears one."""
    audio_duration_high_s: float | None = None
    audio_codec: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRun:
    """`pages` consecutive pages of one displayed size, in PDF points (1/72 inch)."""

    pages: int
    width_pt: float
    height_pt: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """Of a PDF."""

    pages: int
    """Leaves of the page tree, never its `/Count`."""
    pages_high: int
    """The most pages any reader may see; equal to `pages` unless the tree contradicts itself."""
    runs: tuple[PageRun, ...]
    """Pages in order, equal neighbours merged."""
    encrypted: bool = False
    """Encrypted with an empty user password, so that it still opens."""
    pages_source: FactSource = FactSource.SCANNED


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFacts:
    """Counts in Unicode code points, after decoding."""

    chars: int
    non_ascii_chars: int = 0
    encoding: str = "utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSizes:
    """Sizes of everything in a request that is billed as TEXT, in Unicode code points."""

    content_chars: int = 0
    """Of all string values in `contents`: text parts, arguments and results of calls."""
    non_ascii_chars: int = 0
    """Those of `content_chars` beyond ASCII."""
    system_chars: int = 0
    tools_json_chars: int = 0
    thought_signature_chars: int = 0
    function_calls: int = 0
    turn_continues: bool = True
    """False when the caller spoke after the last call: signatures of an earlier turn are dropped unbilled."""


Facts = ImageFacts | AudioFacts | VideoFacts | DocumentFacts | TextFacts | TextSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """The answer of a probe: the facts, and what was odd about the file."""

    facts: Facts
    anomalies: tuple[Anomaly, ...] = ()
