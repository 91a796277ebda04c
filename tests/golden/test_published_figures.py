"""The figures weighlock promises: likely tokens at the default resolution."""

from __future__ import annotations

from datetime import date

import pytest

from weighlock.media.facts import AudioFacts, DocumentFacts, FactSource, ImageFacts, PageRun, VideoFacts
from weighlock.request import Backend, MediaResolution, Modality, Placement
from weighlock.rules import Controls, RuleBook, estimate

BOOK = RuleBook.packaged()
ON = date(2026, 11, 30)
DEVELOPER, VERTEX = Backend.DEVELOPER, Backend.VERTEX
GEMINI_3 = ["gemini-3-pro-preview", "gemini-3.1-flash-lite", "gemini-3.5-flash", "gemini-3.8-flash"]
RECORDING = VideoFacts(
    width_px=1280, height_px=720, duration_s=240.0, duration_high_s=240.0, duration_source=FactSource.HEADER,
    audio_tracks=1, audio_duration_s=240.0, audio_duration_high_s=240.0,
)  # fmt: skip


def likely(
    facts: ImageFacts | VideoFacts | AudioFacts | DocumentFacts,
    model: str,
    backend: Backend = DEVELOPER,
    controls: Controls | None = None,
) -> list[tuple[Modality, int]]:
    rules = BOOK.for_model(model, backend, ON)
    return [(tokens.modality, tokens.likely) for tokens in estimate(facts, controls or Controls(), rules).tokens]


@pytest.mark.parametrize(
    ("model", "backend", "tokens"),
    [
        ("gemini-2.5-flash", DEVELOPER, 258),
        ("gemini-2.5-flash", VERTEX, 1806),
        ("gemini-2.0-flash", DEVELOPER, 1806),
        ("gemini-2.0-flash", VERTEX, 1806),
        *((model, backend, 1100) for model in GEMINI_3 for backend in Backend),
    ],
)
def test_a_full_hd_screenshot(model: str, backend: Backend, tokens: int) -> None:
    assert likely(ImageFacts(width_px=1920, height_px=1080), model, backend) == [(Modality.IMAGE, tokens)]


@pytest.mark.parametrize("side_px", [64, 1024])
def test_a_square_costs_the_same_at_every_size_on_gemini_3(side_px: int) -> None:
    assert likely(ImageFacts(width_px=side_px, height_px=side_px), "gemini-3.8-flash") == [(Modality.IMAGE, 1089)]


def test_four_minutes_of_film_on_gemini_2_5() -> None:
    assert likely(RECORDING, "gemini-2.5-flash") == [(Modality.VIDEO, 63_120), (Modality.AUDIO, 7_680)]


@pytest.mark.parametrize("model", GEMINI_3)
def test_four_minutes_of_film_on_gemini_3(model: str) -> None:
    assert likely(RECORDING, model) == [(Modality.VIDEO, 15_840), (Modality.AUDIO, 6_000)]


def test_by_the_files_api_a_frame_of_gemini_3_flash_preview_is_64() -> None:
    by_files = Controls(placement=Placement.FILES)

    assert likely(RECORDING, "gemini-3-flash-preview", controls=by_files)[0] == (Modality.VIDEO, 240 * 64)
    assert likely(RECORDING, "gemini-3-flash-preview")[0] == (Modality.VIDEO, 240 * 66)


@pytest.mark.parametrize(
    ("width_pt", "height_pt", "low", "medium", "high"),
    [(595.276, 841.89, 266, 532, 1092), (595, 842, 266, 532, 1092), (612, 792, 266, 520, 1102)],
)
def test_a_page_on_gemini_3(width_pt: float, height_pt: float, low: int, medium: int, high: int) -> None:
    page = DocumentFacts(
        pages=1, pages_high=1, runs=(PageRun(pages=1, width_pt=width_pt, height_pt=height_pt),)
    )  # fmt: skip
    levels = (MediaResolution.LOW, MediaResolution.MEDIUM, MediaResolution.HIGH)
    found = [likely(page, "gemini-3.8-flash", controls=Controls(media_resolution=level)) for level in levels]

    assert found == [[(Modality.DOCUMENT, tokens)] for tokens in (low, medium, high)]
    assert likely(page, "gemini-3.8-flash") == [(Modality.DOCUMENT, medium)]


def test_three_seconds_of_sound_on_gemini_3() -> None:
    sound = AudioFacts(duration_s=3.049, duration_high_s=3.049, duration_source=FactSource.SCANNED)

    assert likely(sound, "gemini-3.8-flash") == [(Modality.AUDIO, 77)]
