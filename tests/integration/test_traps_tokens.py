"""Known traps of tokens: figures that were guessed, taken from another model, or from the wrong thing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import films
import media
from unit.planning.drawn import examined, recording, screenshot
from weighlock.media.tokens import Confidence
from weighlock.planning.levers import Lever
from weighlock.planning.plan import plan
from weighlock.planning.steps import Wish
from weighlock.report import Report
from weighlock.request import Backend, MediaPart, MediaResolution, Modality
from weighlock.rules import Controls
from weighlock.scales import Asked
from weighlock.settings import load
from weighlock.weigher import Weigher

OLD, NEW, NEWEST = "gemini-2.5-flash", "gemini-3.5-flash", "gemini-3.8-flash"
CONTEXT = 1_048_576


@pytest.fixture(scope="module")
def line() -> Iterator[Weigher]:
    with Weigher(load(None, environ={}), preload=False) as weigher:
        yield weigher


@pytest.fixture(scope="module")
def clip() -> bytes:
    return films.film(10.0, fps=5)


def weighed(
    line: Weigher, data: bytes, mime: str, model: str, backend: Backend = Backend.DEVELOPER, **said: Any
) -> Report:
    part = MediaPart(source=data, label="medium", declared_mime=mime)
    return line.check([part], model=model, backend=backend, controls=Controls(**said) if said else None)


def likely(report: Report, kind: Modality) -> int:
    return report.tokens[kind].likely


# ---- TOK-001, TOK-026: frames by their rate and their level


@pytest.mark.parametrize("model", [OLD, NEW])
def test_frames_follow_the_rate_and_sound_does_not(line: Weigher, clip: bytes, model: str) -> None:
    plain = weighed(line, clip, "video/mp4", model, fps=1)
    for fps in (2, 5):
        faster = weighed(line, clip, "video/mp4", model, fps=fps)
        assert likely(faster, Modality.VIDEO) == fps * likely(plain, Modality.VIDEO)
        assert faster.tokens.get(Modality.AUDIO) == plain.tokens.get(Modality.AUDIO)


def test_low_takes_a_film_of_the_old_models_from_258_to_66_a_frame(line: Weigher) -> None:
    scales = line.scales(Asked(model=OLD))
    for level, frame in ((MediaResolution.UNSPECIFIED, 258), (MediaResolution.LOW, 66)):
        (part,) = scales.parts([examined(recording(7200))], Controls(media_resolution=level), standing=False)
        frames = part.of(Modality.VIDEO)
        assert frames.low <= 7200 * frame <= frames.high
        assert part.of(Modality.AUDIO).likely == 7200 * 32


# ---- TOK-004, TOK-020, TOK-022, TOK-027: pictures, by model and backend


@pytest.mark.parametrize(
    ("size", "tiles"), [((1, 1), 1), ((384, 384), 1), ((385, 384), 2), ((960, 540), 7), ((1920, 1080), 7)]
)
def test_tiles_of_the_old_models_on_vertex(line: Weigher, size: tuple[int, int], tiles: int) -> None:
    report = weighed(line, media.picture(size), "image/png", OLD, Backend.VERTEX)
    if size == (385, 384):  # the edge where tiles begin: one more than none
        assert likely(report, Modality.IMAGE) > 258
    else:
        assert likely(report, Modality.IMAGE) == 258 * tiles


@pytest.mark.parametrize("size", [(64, 64), (768, 1280), (1024, 1024), (3840, 2160)])
def test_any_picture_is_258_on_the_developer_api_of_the_old_models(line: Weigher, size: tuple[int, int]) -> None:
    data = media.picture(size)
    assert likely(weighed(line, data, "image/png", "gemini-2.5-pro"), Modality.IMAGE) == 258
    if max(size) > 384:
        assert likely(weighed(line, data, "image/png", "gemini-2.5-pro", Backend.VERTEX), Modality.IMAGE) > 258


@pytest.mark.parametrize(
    ("size", "tokens"),
    [*(((side, side), 1089) for side in (64, 256, 384, 385, 512, 1024)), ((1024, 512), 1081), ((2048, 512), 1056)],
)
def test_gemini_3_follows_the_shape_of_a_picture_and_not_its_pixels(
    line: Weigher, size: tuple[int, int], tokens: int
) -> None:
    report = weighed(line, media.picture(size), "image/png", "gemini-3.5-flash-lite")
    assert likely(report, Modality.IMAGE) == tokens
    assert report.total.high <= 1120


def test_the_way_out_of_ten_pictures_is_their_resolution_with_what_it_saves(line: Weigher) -> None:
    scales = line.scales(Asked(model=NEWEST, max_tokens=3000))
    parts = scales.parts([examined(screenshot()) for _ in range(10)], standing=False)
    found = plan(parts, scales.rules, scales.shaping, scales.judge, [Wish()] * 10)
    assert found.fits
    assert {step.lever for step in found.steps} == {Lever.RESOLUTION}
    before, after = sum(p.total.likely for p in parts), sum(p.total.likely for p in found.parts)
    assert before / after == pytest.approx(4, rel=0.1)
    assert sum(step.saved.likely for step in found.steps) == before - after


# ---- TOK-005, TOK-006, TOK-025: sound by its seconds


@pytest.mark.parametrize(("form", "codec"), [("mp3", "libmp3lame"), ("wav", "pcm_s16le"), ("flac", "flac")])
def test_sound_weighs_its_seconds_and_never_its_base64(line: Weigher, form: str, codec: str) -> None:
    data = media.sound(30.0, codec, form)
    report = weighed(line, data, f"audio/{form}", OLD)
    assert abs(likely(report, Modality.AUDIO) - 960) <= 32


def test_a_file_twelve_times_as_large_weighs_the_same(line: Weigher) -> None:
    small, large = media.wav(30.0, rate=8000), media.sound(30.0, "pcm_s16le", "wav", rate=48_000, layout="stereo")
    assert len(large) > 11 * len(small)
    assert {likely(weighed(line, data, "audio/wav", OLD), Modality.AUDIO) for data in (small, large)} == {960}


def test_a_second_of_sound_is_32_on_the_old_models_and_25_on_the_new(line: Weigher) -> None:
    data = media.wav(60.0)
    assert likely(weighed(line, data, "audio/wav", OLD), Modality.AUDIO) == 1920
    assert likely(weighed(line, data, "audio/wav", NEW, Backend.VERTEX), Modality.AUDIO) == 1500


# ---- TOK-008: two hours in a context that holds one


@pytest.mark.parametrize("hours", [2, 3])
def test_a_film_past_the_context_is_planned_into_it(line: Weigher, hours: int) -> None:
    scales = line.scales(Asked(model=OLD, max_tokens=CONTEXT))
    parts = scales.parts([examined(recording(hours * 3600))], standing=False)
    assert parts[0].total.low <= hours * 3600 * 290 <= parts[0].total.high
    found = plan(parts, scales.rules, scales.shaping, scales.judge, [Wish()])
    assert found.fits
    assert found.parts[0].total.high <= CONTEXT
    assert found.steps


# ---- TOK-010, TOK-011: pixels of a film are bytes, not tokens


@pytest.mark.parametrize("model", [OLD, NEW])
def test_a_smaller_picture_of_a_film_saves_bytes_and_no_token(line: Weigher, model: str) -> None:
    large = films.film(2.0, fps=5, size=(1920, 1080), sound_codec=None)
    small = films.film(2.0, fps=5, size=(640, 360), sound_codec=None)
    assert len(small) < len(large)
    tokens = {likely(weighed(line, data, "video/mp4", model), Modality.VIDEO) for data in (large, small)}
    assert len(tokens) == 1


def test_high_takes_four_times_the_tokens_of_a_frame_on_gemini_3(line: Weigher, clip: bytes) -> None:
    high, medium = (
        likely(weighed(line, clip, "video/mp4", NEW, part_resolution=level), Modality.VIDEO)
        for level in ("high", "medium")
    )
    assert high / medium == pytest.approx(4, rel=0.1)


# ---- TOK-012, TOK-030: each medium is what its bytes are, and none is text


def test_four_kinds_of_media_are_four_counters_and_no_text(line: Weigher) -> None:
    kinds = {
        Modality.IMAGE: (media.picture((64, 64)), "image/png"),
        Modality.VIDEO: (films.film(1.0, fps=5, sound_codec=None), "video/mp4"),
        Modality.AUDIO: (media.wav(1.0), "audio/wav"),
        Modality.DOCUMENT: (media.pdf(), "application/pdf"),
    }
    parts = [MediaPart(source=data, label=kind, declared_mime=mime) for kind, (data, mime) in kinds.items()]
    report = line.check(parts, text="what are these?", model=NEW)
    assert {kind for kind in report.tokens if kind is not Modality.TEXT} == set(kinds)
    alone = line.check([], text="what are these?", model=NEW)
    assert report.tokens[Modality.TEXT] == alone.tokens[Modality.TEXT]
    for part in report.parts[:-1]:
        assert [tokens.modality for tokens in part.tokens] == [Modality(part.examined.label)]
        assert all(tokens.confidence in Confidence for tokens in part.tokens)
