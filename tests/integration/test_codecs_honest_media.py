"""Honest media through the confined worker: the facts are what was drawn."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import media
from weighlock.codecs import Prober, probe_bytes
from weighlock.errors import MalformedMedia, UnsupportedMedia
from weighlock.media.facts import AudioFacts, DocumentFacts, FactSource, ImageFacts, PageRun, Probed, VideoFacts
from weighlock.request import Modality

VIDEO, AUDIO, IMAGE, DOCUMENT = Modality.VIDEO, Modality.AUDIO, Modality.IMAGE, Modality.DOCUMENT


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    with Prober() as one:
        yield one


def probed(prober: Prober, data: bytes, mime: str, modality: Modality) -> Probed:
    return probe_bytes(prober, data, mime=mime, modality=modality)


def video_of(prober: Prober, data: bytes, mime: str = "video/mp4") -> VideoFacts:
    found = probed(prober, data, mime, VIDEO)
    assert isinstance(found.facts, VideoFacts)
    assert found.anomalies == ()
    return found.facts


def sound_of(prober: Prober, data: bytes, mime: str) -> AudioFacts:
    found = probed(prober, data, mime, AUDIO)
    assert isinstance(found.facts, AudioFacts)
    assert found.anomalies == ()
    return found.facts


@pytest.mark.parametrize(
    ("form", "mime", "options"),
    [
        ("mp4", "video/mp4", {}),
        ("mov", "video/quicktime", {}),
        ("matroska", "video/x-matroska", {}),
        ("mpegts", "video/mp2t", {}),
        ("avi", "video/avi", {"sound_codec": "libmp3lame"}),
        ("flv", "video/x-flv", {"sound_codec": "aac"}),
        ("webm", "video/webm", {"codec": "libvpx", "sound_codec": "libopus"}),
        ("3gp", "video/3gpp", {}),
    ],
)
def test_a_film_with_sound_in_every_container(prober: Prober, form: str, mime: str, options: dict[str, Any]) -> None:
    facts = video_of(prober, media.video(4, form, fps=25, size=(176, 144), sound_s=4.0, **options), mime)

    assert (facts.width_px, facts.height_px, facts.frames) == (176, 144, 100)
    assert facts.duration_s == pytest.approx(4.0, abs=0.05)
    assert facts.duration_high_s == pytest.approx(4.0, abs=0.15)
    assert facts.average_fps == pytest.approx(25, rel=0.02)
    assert facts.variable_frame_rate is False
    assert facts.audio_tracks == 1
    assert facts.audio_duration_s == pytest.approx(4.0, abs=0.05)


@pytest.mark.parametrize(
    ("codec", "form", "mime", "rate"),
    [
        ("aac", "mp4", "audio/mp4", 48000),
        ("libmp3lame", "mp3", "audio/mpeg", 44100),
        ("flac", "flac", "audio/flac", 44100),
        ("libopus", "ogg", "audio/ogg", 48000),
        ("pcm_s16le", "wav", "audio/wav", 44100),
        ("pcm_s16be", "aiff", "audio/aiff", 44100),
        ("libopus", "webm", "audio/webm", 48000),
        ("aac", "adts", "audio/aac", 48000),
    ],
)
def test_sound_in_every_container(prober: Prober, codec: str, form: str, mime: str, rate: int) -> None:
    facts = sound_of(prober, media.sound(4.0, codec, form, rate=rate, layout="stereo"), mime)

    assert facts.duration_s == pytest.approx(4.0, abs=0.05)
    assert facts.duration_s <= facts.duration_high_s <= 4.1
    assert (facts.channels, facts.sample_rate_hz, facts.tracks) == (2, rate, 1)


def test_one_second_of_aac_in_mp4_is_one_second(prober: Prober) -> None:
    assert sound_of(prober, media.sound(1.0, "aac", "mp4", rate=48000), "audio/mp4").duration_s == 1.0


def test_a_lame_tagged_mp3_of_four_seconds_is_four_seconds(prober: Prober) -> None:
    assert sound_of(prober, media.sound(4.0, "libmp3lame", "mp3"), "audio/mpeg").duration_s == 4.0


@pytest.mark.parametrize("rate", [22050, 8000])
def test_low_rate_mp3_frames_are_half_as_long(prober: Prober, rate: int) -> None:
    assert sound_of(prober, media.sound(30.0, "libmp3lame", "mp3", rate=rate), "audio/mpeg").duration_s == 30.0


def test_a_wave_with_zero_for_its_length_is_read_to_the_end(prober: Prober) -> None:
    assert sound_of(prober, media.wav(10, data_size=0), "audio/wav").duration_s == 10.0


def test_a_browser_recording_without_any_duration_is_scanned(prober: Prober) -> None:
    data = media.as_live_recording(media.video(4, "webm", fps=25, codec="libvpx"))
    facts = video_of(prober, data, "video/webm")

    assert facts.duration_s == pytest.approx(4.0, abs=0.05)
    assert (facts.frames, facts.duration_source) == (100, FactSource.SCANNED)


@pytest.mark.parametrize("rotation", [90, 270])
def test_a_film_shot_upright_is_displayed_upright(prober: Prober, rotation: int) -> None:
    facts = video_of(prober, media.video(1, size=(160, 120), rotation=rotation))

    assert (facts.width_px, facts.height_px, facts.rotation_deg) == (120, 160, rotation)


def test_oblong_pixels_are_displayed_square(prober: Prober) -> None:
    facts = video_of(prober, media.video(1, size=(160, 120), pixel_shape=Fraction(2, 1)))

    assert (facts.width_px, facts.height_px) == (320, 120)


def test_a_screen_recording_that_waits_is_of_variable_frame_rate(prober: Prober) -> None:
    times = [0, 100, 200, 2000, 2100, 9000, 9100]
    facts = video_of(prober, media.video(times_ms=times, options={"bf": "0"}))

    assert facts.variable_frame_rate is True
    assert facts.duration_s == pytest.approx(9.2, abs=0.2)
    assert facts.average_fps == pytest.approx(7 / 9.2, rel=0.05)


def test_cover_art_is_not_video(prober: Prober) -> None:
    assert sound_of(prober, media.sound_with_cover(2.0), "audio/mpeg").duration_s == 2.0


def test_sound_taken_for_video_is_sound(prober: Prober) -> None:
    found = probed(prober, media.sound(2.0, "aac", "mp4", rate=48000), "video/mp4", VIDEO)

    assert isinstance(found.facts, AudioFacts)
    assert found.facts.duration_s == 2.0


def test_video_taken_for_sound_is_video_and_flagged(prober: Prober) -> None:
    found = probed(prober, media.video(2), "audio/mp4", AUDIO)

    assert isinstance(found.facts, VideoFacts)
    assert [anomaly.code for anomaly in found.anomalies] == ["has_pictures"]


def test_several_sound_tracks_count_once(prober: Prober) -> None:
    data = media.video(3, "matroska", sound_s=3.0, sound_tracks=2)
    facts = video_of(prober, data, "video/x-matroska")

    assert facts.audio_tracks == 2
    assert facts.audio_duration_s == pytest.approx(3.0, abs=0.05)


def test_an_upload_cut_off_before_its_header_is_called_truncated(prober: Prober) -> None:
    whole = media.video(5, sound_s=5.0)

    with pytest.raises(MalformedMedia, match="truncated"):
        probed(prober, whole[: len(whole) * 6 // 10], "video/mp4", VIDEO)


def test_an_upload_cut_off_behind_its_header_is_flagged_and_bounded_by_the_header(prober: Prober) -> None:
    whole = media.header_first(media.video(20, sound_s=20.0))
    found = probed(prober, whole[: len(whole) // 2], "video/mp4", VIDEO)

    assert isinstance(found.facts, VideoFacts)
    assert found.facts.duration_s < 15
    assert found.facts.duration_high_s >= 20
    assert found.anomalies[0].code == "truncated"


def test_the_first_segment_of_a_stream_is_flagged_as_empty(prober: Prober) -> None:
    data = media.movie(media.track(samples=0), duration=0)
    found = probed(prober, data, "video/mp4", VIDEO)

    assert found.anomalies[0].code == "no_samples"


def test_tags_that_are_not_unicode_do_no_harm(prober: Prober) -> None:
    data = media.sound(1.0, "libmp3lame", "mp3", container_options={"id3v2_version": "0"}).ljust(128, b"\0")
    tagged = data + b"TAG" + b"\xff\xfe\x9d" * 40 + b"\xff\xff\xff\xff\xff"

    assert sound_of(prober, tagged, "audio/mpeg").duration_s == 1.0


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "AVIF"])
def test_a_picture_of_every_kind(prober: Prober, form: str) -> None:
    found = probed(prober, media.picture((40, 30), form), f"image/{form.lower()}", IMAGE)

    assert isinstance(found.facts, ImageFacts)
    assert (found.facts.width_px, found.facts.height_px, found.anomalies) == (40, 30, ())


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_pictures_are_measured_as_displayed(prober: Prober, form: str, orientation: int) -> None:
    facts = probed(prober, media.picture((40, 30), form, orientation=orientation), f"image/{form.lower()}", IMAGE).facts

    assert isinstance(facts, ImageFacts)
    assert (facts.width_px, facts.height_px) == ((30, 40) if orientation >= 5 else (40, 30))


def test_a_phone_s_two_picture_jpeg_is_one_jpeg(prober: Prober) -> None:
    data = media.multi_picture((40, 30))
    found = probed(prober, data, "image/jpeg", IMAGE)

    assert isinstance(found.facts, ImageFacts)
    assert (found.facts.width_px, found.facts.height_px) == (40, 30)


def test_pages_are_listed_in_order_and_equal_neighbours_merged(prober: Prober) -> None:
    a4, letter = (595.28, 841.89), (612.0, 792.0)
    facts = probed(prober, media.pdf([a4, a4, letter, a4]), "application/pdf", DOCUMENT).facts

    assert isinstance(facts, DocumentFacts)
    assert facts.pages == facts.pages_high == 4
    assert [(run.pages, run.width_pt, run.height_pt) for run in facts.runs] == [(2, *a4), (1, *letter), (1, *a4)]


def test_a_page_is_measured_as_displayed(prober: Prober) -> None:
    data = media.pdf([(100, 200)], rotate=90, user_unit=2.0, crop=(10, 10, 60, 400))
    facts = probed(prober, data, "application/pdf", DOCUMENT).facts

    assert isinstance(facts, DocumentFacts)
    assert facts.runs == (PageRun(pages=1, width_pt=380.0, height_pt=100.0),)


def test_page_sizes_are_inherited_from_the_tree(prober: Prober) -> None:
    data = media.raw_pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 2/MediaBox[0 0 100 300]/Rotate 90>>",
        b"<</Type/Pages/Parent 2 0 R/Kids[4 0 R 5 0 R]/Count 2>>",
        b"<</Type/Page/Parent 3 0 R>>",
        b"<</Type/Page/Parent 3 0 R/Rotate 0>>",
    )
    facts = probed(prober, data, "application/pdf", DOCUMENT).facts

    assert isinstance(facts, DocumentFacts)
    assert [(run.width_pt, run.height_pt) for run in facts.runs] == [(300.0, 100.0), (100.0, 300.0)]


def test_a_document_locked_against_changes_only_still_opens(prober: Prober) -> None:
    found = probed(prober, media.pdf(owner_only=True), "application/pdf", DOCUMENT)

    assert isinstance(found.facts, DocumentFacts)
    assert (found.facts.pages, found.facts.encrypted, found.anomalies) == (1, True, ())


def test_a_document_behind_a_password_says_what_to_do(prober: Prober) -> None:
    with pytest.raises(UnsupportedMedia, match="remove the password"):
        probed(prober, media.pdf(password="s" * 8), "application/pdf", DOCUMENT)


def test_a_document_without_pages_is_malformed(prober: Prober) -> None:
    with pytest.raises(MalformedMedia, match="no pages"):
        probed(prober, media.pdf([]), "application/pdf", DOCUMENT)


def test_a_document_whose_end_was_cut_off_is_mended_or_refused(prober: Prober) -> None:
    facts = probed(prober, media.pdf([(90, 90)] * 3)[:-60], "application/pdf", DOCUMENT).facts

    assert isinstance(facts, DocumentFacts)
    assert facts.pages == 3


@pytest.mark.parametrize(("junk", "opens"), [(900, True), (2000, False)])
def test_junk_before_a_document_is_allowed_within_its_first_kilobyte(prober: Prober, junk: int, opens: bool) -> None:
    data = b"x" * junk + media.pdf()
    if opens:
        assert isinstance(probed(prober, data, "application/pdf", DOCUMENT).facts, DocumentFacts)
    else:
        with pytest.raises(MalformedMedia, match="no PDF header"):
            probed(prober, data, "application/pdf", DOCUMENT)


def test_a_web_page_named_pdf_is_malformed(prober: Prober) -> None:
    with pytest.raises(MalformedMedia):
        probed(prober, b"<!doctype html><p>Sign in to download</p>", "application/pdf", DOCUMENT)


@pytest.mark.parametrize(
    ("mime", "modality"), [("audio/midi", AUDIO), ("image/tiff", IMAGE), ("video/x-unheard-of", VIDEO)]
)
def test_kinds_that_are_not_probed_are_unsupported(prober: Prober, mime: str, modality: Modality) -> None:
    with pytest.raises(UnsupportedMedia):
        probed(prober, b"MThd" + bytes(99), mime, modality)


@pytest.mark.parametrize(
    ("mime", "modality"),
    [("video/mp4", VIDEO), ("audio/mpeg", AUDIO), ("image/png", IMAGE), ("application/pdf", DOCUMENT)],
)
def test_an_empty_file_is_malformed(prober: Prober, mime: str, modality: Modality) -> None:
    with pytest.raises(MalformedMedia, match="empty"):
        probed(prober, b"", mime, modality)
