"""Seconds into frames and tokens of sound."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from weighlock.errors import InputError
from weighlock.media.facts import AudioFacts, FactSource, VideoFacts
from weighlock.media.rule import Rounding
from weighlock.request import Backend, MediaResolution, Modality, Placement
from weighlock.rules import Controls, Estimate, RuleBook, estimate

BOOK = RuleBook.packaged()
ON = date(2026, 11, 30)


def film(duration_s: float, *, sound_s: float | None = None, width_px: int = 1280, height_px: int = 720) -> VideoFacts:
    return VideoFacts(
        width_px=width_px,
        height_px=height_px,
        duration_s=duration_s,
        duration_high_s=duration_s,
        duration_source=FactSource.SCANNED,
        audio_tracks=0 if sound_s is None else 1,
        audio_duration_s=sound_s,
        audio_duration_high_s=sound_s,
    )


def sound(duration_s: float, duration_high_s: float | None = None, **more: object) -> AudioFacts:
    high_s = duration_s if duration_high_s is None else duration_high_s
    facts = AudioFacts(duration_s=duration_s, duration_high_s=high_s, duration_source=FactSource.SCANNED)
    return replace(facts, **more)  # type: ignore[arg-type]  # checked by replace itself


def ask(
    facts: VideoFacts | AudioFacts,
    model: str,
    controls: Controls | None = None,
    backend: Backend = Backend.DEVELOPER,
) -> Estimate:
    return estimate(facts, controls or Controls(), BOOK.for_model(model, backend, ON))


def likely(found: Estimate) -> dict[Modality, int]:
    return {tokens.modality: tokens.likely for tokens in found.tokens}


def test_frames_follow_fps_and_sound_does_not() -> None:
    clip = film(10.0, sound_s=10.0)
    counts = [likely(ask(clip, "gemini-3.8-flash", Controls(fps=fps))) for fps in (0.5, 1, 2, 5)]

    assert [count[Modality.VIDEO] for count in counts] == [5 * 66, 10 * 66, 20 * 66, 50 * 66]
    assert {count[Modality.AUDIO] for count in counts} == {250}


def test_a_product_that_floats_make_a_hair_too_large_is_no_extra_frame() -> None:
    assert Rounding.CEIL.whole(0.1 * 30) == 3
    assert Rounding.FLOOR.whole(0.29 * 100) == 29
    assert likely(ask(film(0.1), "gemini-2.5-flash", Controls(fps=24)))[Modality.VIDEO] == 3 * 263
    assert likely(ask(film(1.1), "gemini-2.5-flash", Controls(fps=10)))[Modality.VIDEO] == 11 * 263


@pytest.mark.parametrize(
    ("model", "placement", "backend", "frames", "each"),
    [
        ("gemini-3.8-flash", Placement.INLINE, Backend.DEVELOPER, 10, 66),
        ("gemini-2.5-flash", Placement.INLINE, Backend.DEVELOPER, 11, 263),
        ("gemini-2.5-flash", Placement.FILES, Backend.DEVELOPER, 10, 263),
        ("gemini-2.0-flash", Placement.INLINE, Backend.DEVELOPER, 10, 258),
        ("gemini-2.0-flash", Placement.URI, Backend.VERTEX, 10, 260),
    ],
)
def test_the_odd_fraction_of_a_second_is_a_frame_only_where_it_was_billed(
    model: str, placement: Placement, backend: Backend, frames: int, each: int
) -> None:
    found = ask(film(10.03), model, Controls(placement=placement), backend).tokens[0]

    assert found.likely == frames * each
    assert found.high >= 11 * each  # high takes the fraction for a frame everywhere


def test_the_number_of_pixels_of_a_frame_does_not_matter_only_its_aspect_does() -> None:
    large, small = film(5.0, width_px=1920, height_px=1080), film(5.0, width_px=683, height_px=384)
    high = Controls(media_resolution=MediaResolution.HIGH)

    for model in ("gemini-3.8-flash", "gemini-2.5-flash", "gemini-2.0-flash"):
        assert ask(large, model).tokens == ask(small, model).tokens
    ratio = (
        likely(ask(large, "gemini-3.8-flash", high))[Modality.VIDEO]
        / likely(ask(large, "gemini-3.8-flash"))[Modality.VIDEO]
    )
    assert ratio == 4


def test_low_resolution_on_gemini_2_5_is_66_a_frame() -> None:
    two_hours = film(7200.0, sound_s=7200.0)
    low = Controls(media_resolution=MediaResolution.LOW)

    assert sum(likely(ask(two_hours, "gemini-2.5-flash", low)).values()) == 7200 * (66 + 32)


def test_the_high_bound_of_a_frame_covers_64_66_and_70() -> None:
    for placement in Placement:
        for backend in Backend:
            found = ask(film(100.0), "gemini-3-flash-preview", Controls(placement=placement), backend).tokens[0]
            assert found.low <= 100 * 64
            assert found.high == 100 * 70


def test_a_clip_takes_frames_and_sound_from_its_seconds_only() -> None:
    clip = Controls(start_offset_s=180.0, end_offset_s=240.0, fps=0.5)

    assert likely(ask(film(240.0, sound_s=240.0), "gemini-3.8-flash", clip)) == {
        Modality.VIDEO: 30 * 66,
        Modality.AUDIO: 1500,
    }


def test_a_clip_that_ends_after_the_film_takes_what_is_there() -> None:
    clip = Controls(start_offset_s=50.0, end_offset_s=1000.0)

    assert likely(ask(film(60.0), "gemini-3.8-flash", clip)) == {Modality.VIDEO: 10 * 66}


def test_less_than_one_sampling_interval_counts_a_frame_and_warns_of_the_refusal() -> None:
    found = ask(film(0.4), "gemini-3.8-flash")

    assert likely(found) == {Modality.VIDEO: 66}
    assert "No frames to extract" in found.refused[0]
    assert "fps of 2.5 or more" in found.refused[0]
    assert ask(film(0.4), "gemini-3.8-flash", Controls(fps=2.5)).refused == ()
    assert ask(film(1.0), "gemini-3.8-flash").refused == ()


def test_a_clip_that_begins_after_the_end_warns_of_the_refusal() -> None:
    found = ask(film(60.0, sound_s=60.0), "gemini-3.8-flash", Controls(start_offset_s=90.0))

    assert "begins at 90 s" in found.refused[0]
    assert likely(found) == {Modality.VIDEO: 66, Modality.AUDIO: 0}


def test_an_fps_the_service_does_not_take_is_said() -> None:
    assert "the most is 24" in ask(film(10.0), "gemini-3.8-flash", Controls(fps=30)).refused[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"fps": 0.0},
        {"fps": -1.0},
        {"fps": float("nan")},
        {"fps": float("inf")},
        {"start_offset_s": -1.0},
        {"start_offset_s": 5.0, "end_offset_s": 5.0},
        {"end_offset_s": 0.0},
        {"media_resolution": MediaResolution.ULTRA_HIGH},
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Controls(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_a_silent_film_has_no_sound_on_gemini_3_and_at_most_a_bound_on_gemini_2_5() -> None:
    silent = film(240.0)

    assert [tokens.modality for tokens in ask(silent, "gemini-3.8-flash").tokens] == [Modality.VIDEO]
    _, bound = ask(silent, "gemini-2.5-flash").tokens
    assert (bound.low, bound.likely, bound.high) == (0, 0, 7680)
    by_files = ask(silent, "gemini-2.5-flash", Controls(placement=Placement.FILES))
    assert [tokens.modality for tokens in by_files.tokens] == [Modality.VIDEO]


def test_the_sound_of_a_film_is_audio_as_sent_and_video_on_the_developer_bill_of_gemini_3() -> None:
    clip = film(10.0, sound_s=10.0)
    billed = [ask(clip, "gemini-3.8-flash", backend=backend).tokens[1] for backend in Backend]

    assert {tokens.modality for tokens in billed} == {Modality.AUDIO}
    assert [tokens.billed_as for tokens in billed] == [Modality.VIDEO, Modality.AUDIO]


@pytest.mark.parametrize("model", ["gemini-2.0-flash", "gemini-2.5-flash", "gemini-3.8-flash"])
def test_codec_priming_does_not_become_another_second(model: str) -> None:
    # One second of AAC: presented 1.000 s, decoded 1.0027 s, every packet 1.0667 s.
    primed = sound(1.0, 1.0667)
    decoded = sound(1.0027, 1.0667)
    rate = {"gemini-2.0-flash": 25, "gemini-2.5-flash": 32, "gemini-3.8-flash": 25}[model]

    assert likely(ask(primed, model)) == {Modality.AUDIO: rate}
    assert likely(ask(decoded, model))[Modality.AUDIO] <= rate + 1
    assert ask(primed, model).tokens[0].high >= rate * 1.0667


def test_only_seconds_count_for_sound() -> None:
    narrow = sound(30.0, container="wav", codec="pcm_s16le", sample_rate_hz=8000, channels=1)
    wide = sound(30.0, container="mp3", codec="mp3", sample_rate_hz=48000, channels=2, tracks=3)

    assert ask(narrow, "gemini-2.5-flash").tokens == ask(wide, "gemini-2.5-flash").tokens
    assert likely(ask(narrow, "gemini-2.5-flash")) == {Modality.AUDIO: 960}


@pytest.mark.parametrize(
    ("model", "backend", "tokens"),
    [
        ("gemini-2.5-flash", Backend.DEVELOPER, 1920),
        ("gemini-3.8-flash", Backend.VERTEX, 1500),
        ("gemini-2.0-flash", Backend.DEVELOPER, 1500),
    ],
)
def test_a_minute_of_sound(model: str, backend: Backend, tokens: int) -> None:
    assert likely(ask(sound(60.0), model, backend=backend)) == {Modality.AUDIO: tokens}


def test_the_longest_span_decides_high() -> None:
    found = ask(sound(10.0, 3600.0), "gemini-3.8-flash").tokens[0]

    assert (found.low, found.likely, found.high) == (250, 250, 90_000)


def test_a_clip_behind_the_end_of_a_sound_is_said() -> None:
    sound = AudioFacts(duration_s=30.0, duration_high_s=30.0, duration_source=FactSource.HEADER)

    behind = ask(sound, "gemini-3.8-flash", Controls(start_offset_s=500, end_offset_s=600))

    assert behind.notes == ("the clip begins at 500 s, after the sound's end at 30.00 s",)
    assert ask(sound, "gemini-3.8-flash", Controls(start_offset_s=10)).notes == ()
