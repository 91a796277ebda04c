"""Examined media out of thin air."""

from __future__ import annotations

from weighlock.media.facts import (
    AudioFacts,
    DocumentFacts,
    Facts,
    FactSource,
    ImageFacts,
    PageRun,
    TextFacts,
    VideoFacts,
)
from weighlock.planning.weigh import Examined
from weighlock.request import Modality

_KINDS: dict[type, tuple[Modality, str]] = {
    ImageFacts: (Modality.IMAGE, "image/png"),
    VideoFacts: (Modality.VIDEO, "video/mp4"),
    AudioFacts: (Modality.AUDIO, "audio/mpeg"),
    DocumentFacts: (Modality.DOCUMENT, "application/pdf"),
    TextFacts: (Modality.TEXT, "text/plain"),
}


def examined(facts: Facts, *, label: str = "file", declared: str | None = None, size_bytes: int = 1000) -> Examined:
    modality, mime = _KINDS[type(facts)]
    return Examined(
        label=label, size_bytes=size_bytes, declared_mime=declared, mime=mime, modality=modality, facts=facts
    )


def screenshot(width_px: int = 1920, height_px: int = 1080) -> ImageFacts:
    return ImageFacts(width_px=width_px, height_px=height_px)


def recording(seconds: float = 240, *, sound: bool = True, fps: float | None = None) -> VideoFacts:
    return VideoFacts(
        width_px=1280,
        height_px=720,
        duration_s=seconds,
        duration_high_s=seconds,
        duration_source=FactSource.HEADER,
        average_fps=fps,
        audio_tracks=int(sound),
        audio_duration_s=seconds if sound else None,
        audio_duration_high_s=seconds if sound else None,
    )


def song(seconds: float = 30, *, codec: str | None = None) -> AudioFacts:
    return AudioFacts(
        duration_s=seconds,
        duration_high_s=seconds,
        duration_source=FactSource.HEADER,
        codec=codec,
        sample_rate_hz=44_100 if codec else None,
        channels=2 if codec else None,
    )


def paper(pages: int = 1) -> DocumentFacts:
    runs = (PageRun(pages=pages, width_pt=595, height_pt=842),)
    return DocumentFacts(pages=pages, pages_high=pages, runs=runs)
