"""What is to be made of a medium: the value that passes from a plan to the codecs. Seconds are of the source."""

from __future__ import annotations

from dataclasses import dataclass

from weighlock.media.facts import Probed
from weighlock.region import Box


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoWork:
    """Clip, resample, drop the sound, scale down; MP4 (H.264, AAC) comes out unless everything can be copied."""

    start_s: float | None = None
    end_s: float | None = None
    exact: bool = True
    """False copies from the keyframe at or before `start_s`; `Made.actual_start_s` says which."""
    most_earlier_s: float | None = None
    """How long before `start_s` a copy may begin; `None` wherever its keyframe is."""
    fps: float | None = None
    """Frames a second that are kept, each the one shown at its instant; `None` keeps them all."""
    keep_sound: bool = True
    max_width_px: int | None = None
    max_height_px: int | None = None
    max_bytes: int | None = None
    """What comes out has no more: pictures and sound are encoded in fewer bits where they would."""
    strip_metadata: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StillsWork:
    """Frames of a film as one JPEG sheet, upright, row by row from the first; what cannot be decoded stays black."""

    fps: float
    """Frames a second that are taken, each the one shown at its instant."""
    frames: int
    """How many, from `start_s` on."""
    columns: int
    max_width_px: int
    """Of one frame; none is enlarged."""
    max_height_px: int
    start_s: float | None = None
    end_s: float | None = None

    @property
    def rows(self) -> int:
        return -(-self.frames // self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioWork:
    """Clip, convert, or take the sound out of a film."""

    start_s: float | None = None
    end_s: float | None = None
    mime: str | None = None
    """`audio/flac`, `audio/mpeg` or `audio/wav`; `None` keeps the format where it can be written."""
    max_bytes: int | None = None
    """What comes out has no more, in a format whose sound can be given fewer bits."""
    strip_metadata: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageWork:
    """Scale down, crop, convert, choose one frame; upright sRGB comes out."""

    mime: str | None = None
    """`image/jpeg`, `image/png` or `image/webp`; `None` keeps the format where it can be written."""
    max_width_px: int | None = None
    max_height_px: int | None = None
    crop: Box | None = None
    """Of the upright picture, before it is scaled."""
    frame: int = 0
    """Which picture of an animation."""
    max_bytes: int | None = None
    strip_metadata: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentWork:
    """Pages of a PDF, from 1, both included; nothing is rendered."""

    first_page: int
    last_page: int
    strip_metadata: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StripWork:
    """Takes out what says where and by whom it was made, and encodes nothing again."""


STRIPPED = frozenset(
    {
        "image/jpeg", "image/mpo", "image/png", "image/apng", "image/webp", "image/gif", "image/heic",
        "image/heic-sequence", "image/heif", "image/heif-sequence", "image/avif", "image/avif-sequence",
        "audio/mpeg", "audio/mp3", "audio/aac", "audio/flac", "audio/wav", "audio/x-wav", "audio/mp4", "audio/m4a",
        "audio/x-m4a", "audio/3gpp", "video/mp4", "video/quicktime", "video/mov", "video/3gpp", "video/3gpp2",
        "video/x-m4v", "application/pdf",
    }
)  # fmt: skip
"""Types `StripWork` is known for, under any of their names."""

COPIED = frozenset({"h264", "hevc", "av1", "vp9", "mpeg4"})
"""Pictures that can stand in an MP4 as they are."""

Work = VideoWork | StillsWork | AudioWork | ImageWork | DocumentWork | StripWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What came out, probed again."""

    mime: str
    size_bytes: int
    probed: Probed
    actual_start_s: float | None = None
    """Where a copied clip really begins in the source; `None` of any other."""
    notes: tuple[str, ...] = ()
    by: Work | None = None
    """What it came of, where more than one work was tried."""
    """What a person should know: `the last 3 s could not be decoded`."""
