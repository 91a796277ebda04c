"""What goes wrong with films in other programs (tests/golden/known_traps_media.md), each with all of its kind."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import av
import pytest

import films
import media
from traps import inline, likely, parsed, preflight, seconds, sent, weighed, weighed_request
from weighlock import Controls, Decision, Preflight
from weighlock.codecs import Transformer, make_bytes
from weighlock.errors import ConfigError, InputError, MalformedMedia, MalformedRequest
from weighlock.media.facts import VideoFacts
from weighlock.media.work import AudioWork, VideoWork, Work
from weighlock.request import Modality

MP4, WEBM, MKV, TS, MOV = "video/mp4", "video/webm", "video/x-matroska", "video/mp2t", "video/quicktime"
TINY = "model: gemini-3.8-flash, media: {{video: {{apply: always, clip: {}}}}}"
QUICK = {"deadline": "realtime", "cpu-used": "8"}
"""For libvpx."""
FRAME, SECOND = 263, 32
"""Tokens on gemini-2.5-flash."""


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Transformer() as one:
        yield one


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preflight]:
    with preflight(tmp_path_factory.mktemp("line")) as one:
        yield one


@pytest.fixture(scope="module")
def clip() -> bytes:
    return media.video(10, sound_s=10.0)


# -- TOK-007: controls of a part, and where they stand ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("beside", "frames", "heard_s"),
    [
        ({}, 10, 10),
        ({"videoMetadata": {"fps": 5}}, 50, 10),
        ({"video_metadata": {"fps": 5}}, 50, 10),
        ({"videoMetadata": {"fps": 0.5, "startOffset": "2s", "endOffset": "8s"}}, 3, 6),
        ({"video_metadata": {"fps": 0.5, "start_offset": "2s", "end_offset": "8s"}}, 3, 6),
        ({"video_metadata": {"startOffset": "2s", "end_offset": "8s"}}, 6, 6),
    ],
)
def test_controls_beside_a_film_count_in_either_spelling(
    line: Preflight, clip: bytes, beside: dict[str, Any], frames: int, heard_s: int
) -> None:
    (part,) = weighed_request(line, inline(clip, MP4, **beside))

    assert likely(part) == {Modality.VIDEO: frames * FRAME, Modality.AUDIO: heard_s * SECOND}


def test_controls_leave_as_siblings_of_the_medium_in_camel_case(
    tmp_path_factory: pytest.TempPathFactory, clip: bytes
) -> None:
    with preflight(tmp_path_factory.mktemp("fit"), "model: gemini-3.8-flash, limits: {prompt_tokens: 700}") as tight:
        (part,), fitted = sent(tight, inline(clip, MP4, video_metadata={"fps": 5, "start_offset": "1s"}))

    assert fitted.plan.fits
    assert set(part["videoMetadata"]) <= {"fps", "startOffset", "endOffset", "contentLayers"}
    assert set(part["inlineData"]) == {"mimeType", "data"}
    assert "_" not in re.sub(r'"data": "[^"]*"|MEDIA_RESOLUTION_\w+', "", json.dumps(part))


@pytest.mark.parametrize(
    ("within", "key", "value"),
    [
        ("inlineData", "videoMetadata", {"fps": 5}),
        ("inlineData", "video_metadata", {"fps": 5}),
        ("inlineData", "fps", 5),
        ("", "fps", 5),
        ("", "start_offset", "5s"),
        ("", "startPage", 2),
        ("inlineData", "mediaResolution", {"level": "MEDIA_RESOLUTION_LOW"}),
    ],
)
def test_controls_in_the_wrong_place_are_refused_with_where_they_belong(
    line: Preflight, clip: bytes, within: str, key: str, value: Any
) -> None:
    part = inline(clip, MP4)
    (part[within] if within else part)[key] = value

    (medium, *_) = line.weigh_request(parsed(part).request).parts

    assert isinstance(medium.error, MalformedRequest)
    assert re.search(rf"parts\[1\][a-zA-Z.]*\.{key}: the service reads it as \w+", medium.error.message)


@pytest.mark.parametrize("twice", [{"videoMetadata": {"fps": 5}, "video_metadata": {"fps": 1}}])
def test_controls_in_two_spellings_are_refused(line: Preflight, clip: bytes, twice: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest, match="two spellings"):
        weighed_request(line, inline(clip, MP4, **twice))


# -- VID-003: offsets as people write them ----------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["1s-4s", "1-4", "1.0s - 4.0s", "1S-4S", "1-4s"])
def test_a_clip_is_understood_however_it_is_written(line: Preflight, clip: bytes, words: str) -> None:
    assert likely(weighed(line, clip, clip=words)) == {Modality.VIDEO: 3 * FRAME, Modality.AUDIO: 3 * SECOND}


@pytest.mark.parametrize(
    "words", ["1500ms-4s", "-1s-4s", "NaN-4s", "inf-4s", "00:01:30-", "1e0-4", "4s-1s", "1s", "", "1s-4s-8s"]
)
def test_a_clip_that_is_none_is_refused_and_never_taken_for_another(line: Preflight, clip: bytes, words: str) -> None:
    with pytest.raises(InputError):
        weighed(line, clip, clip=words)


@pytest.mark.parametrize("offset", ["1s", "1.5s", "1.500000000s", "0s"])
def test_an_offset_of_the_wire_is_read(line: Preflight, clip: bytes, offset: str) -> None:
    (part,) = weighed_request(line, inline(clip, MP4, videoMetadata={"startOffset": offset}))

    assert likely(part)[Modality.AUDIO] == (10 - float(offset[:-1])) * SECOND


@pytest.mark.parametrize(
    "offset",
    ["1500ms", "1.5", "90", "00:01:30", "-1s", "NaN", "NaNs", "Infinitys", "1e0s", " 1s", "s", "", 90, 1.5, []],
)
def test_an_offset_the_wire_does_not_know_is_refused_with_its_place(line: Preflight, clip: bytes, offset: Any) -> None:
    try:
        (part,) = weighed_request(line, inline(clip, MP4, videoMetadata={"startOffset": offset}))
    except MalformedRequest as error:
        told = error.message
    else:
        assert part.error
        told = part.error.message
    assert "videoMetadata.startOffset" in told


@pytest.mark.parametrize("words", ["1s-4s", "1.5-", "first 2.25s", "last 3.3333s", "1.23456789-9.87654321"])
def test_offsets_leave_in_the_form_of_the_wire(
    tmp_path_factory: pytest.TempPathFactory, clip: bytes, words: str
) -> None:
    always = f"model: gemini-3.8-flash, media: {{video: {{apply: always, clip: {words}}}}}"
    with preflight(tmp_path_factory.mktemp("fit"), always) as one:
        (part,), fitted = sent(one, inline(clip, MP4))
        told = {key: part["videoMetadata"][key] for key in part["videoMetadata"] if key.endswith("Offset")}
        (again,) = weighed_request(one, part)

    assert told
    assert all(re.fullmatch(r"\d+(\.\d{1,9})?s", value) for value in told.values())
    assert likely(again) == likely(fitted.after.parts[0])


@pytest.mark.parametrize("words", ["first 0.00001s", "0.00001s-5s"])
def test_the_smallest_clips_are_read_or_refused_by_their_setting(
    tmp_path_factory: pytest.TempPathFactory, words: str
) -> None:
    with contextlib.suppress(ConfigError), preflight(tmp_path_factory.mktemp("fit"), TINY.format(words)) as one:
        assert one.settings is not None


# -- VID-002: what the wire does not take is cut here, and weighs the same --------------------------------------------


@cache
def ten_seconds(form: str) -> bytes:
    return films.film(10, form, size=(96, 64))


@pytest.mark.parametrize(("start_s", "end_s"), [(2.0, 7.0), (None, 4.0), (6.0, None), (2.5, 6.5)])
@pytest.mark.parametrize("form", ["mp4", "matroska"])
def test_a_film_clipped_here_weighs_what_it_weighs_clipped_on_the_wire(
    line: Preflight, transformer: Transformer, form: str, start_s: float | None, end_s: float | None
) -> None:
    data = ten_seconds(form)
    on_the_wire = weighed(line, data, controls=Controls(start_offset_s=start_s, end_offset_s=end_s))

    out, _ = make_bytes(
        transformer, data, mime=MP4 if form == "mp4" else MKV, work=VideoWork(start_s=start_s, end_s=end_s)
    )
    here = weighed(line, out)

    assert likely(here)[Modality.VIDEO] == likely(on_the_wire)[Modality.VIDEO]
    assert likely(here)[Modality.AUDIO] == pytest.approx(likely(on_the_wire)[Modality.AUDIO], abs=1)


def test_what_the_model_does_not_honour_is_cut_here_and_carries_no_offsets(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    limits = "model: gemini-2.5-flash, limits: {prompt_tokens: 700}, local_work: allowed"
    with preflight(tmp_path_factory.mktemp("fit"), limits) as tight:
        (part,), fitted = sent(tight, inline(media.sound(30, "flac", "flac"), "audio/flac"))

    assert fitted.plan.fits
    assert "audioMetadata" not in part
    assert seconds(fitted.after.parts[0]) == 20
    assert likely(fitted.after.parts[0]) == {Modality.AUDIO: 20 * SECOND}


# -- VID-010: the count of frames a container states -----------------------------------------------------------------


UNCOUNTED: dict[str, tuple[str, dict[str, Any]]] = {
    "VP8": ("webm", {"codec": "libvpx", "options": QUICK}),
    "VP9": ("webm", {"codec": "libvpx-vp9", "options": QUICK}),
    "of a browser's recorder": ("webm", {"codec": "libvpx", "options": QUICK}),
    "Matroska": ("matroska", {}),
    "a transport stream": ("mpegts", {}),
    "fragments": ("mp4", {"container_options": {"movflags": "frag_keyframe+empty_moov"}, "options": {"g": "25"}}),
}


@pytest.mark.parametrize("kind", UNCOUNTED)
def test_frames_are_counted_where_the_container_says_none(line: Preflight, kind: str) -> None:
    form, options = UNCOUNTED[kind]
    data = media.video(4, form, fps=25, size=(96, 64), **options)
    if kind == "of a browser's recorder":
        data = media.as_live_recording(data)
    with av.open(io.BytesIO(data)) as container:
        assert container.streams.video[0].frames in (0, 1)

    part = weighed(line, data)

    assert isinstance(part.examined.facts, VideoFacts)
    assert part.examined.facts.frames == 100
    assert seconds(part) == pytest.approx(4.0, abs=0.05)
    assert likely(part)[Modality.VIDEO] == 4 * FRAME


# -- VID-014: a pace that is none -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["mp4", "matroska", "mov"])
def test_a_film_that_claims_one_rate_and_shows_another_is_weighed_by_its_times(line: Preflight, form: str) -> None:
    times = [second * 1000 + at for second in range(6) for at in ((0, 16, 33, 50, 66, 500) if second % 2 else (0, 900))]
    part = weighed(line, media.video(form=form, times_ms=times, fps=60, options={"bf": "0"}))

    facts = part.examined.facts
    assert isinstance(facts, VideoFacts)
    assert facts.variable_frame_rate is True
    assert facts.frames == len(times)
    assert facts.average_fps == pytest.approx(len(times) / seconds(part), rel=0.02)
    assert 5 * FRAME <= likely(part)[Modality.VIDEO] <= 6 * FRAME


@pytest.mark.parametrize("form", ["mp4", "matroska", "mpegts"])
def test_times_rounded_to_the_container_s_clock_are_an_even_pace(line: Preflight, form: str) -> None:
    facts = weighed(line, media.video(3, form, fps=30)).examined.facts

    assert isinstance(facts, VideoFacts)
    assert facts.variable_frame_rate is False


# -- VID-015: uploads that broke off ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["mp4", "mov", "3gp", "ipod"])
@pytest.mark.parametrize("share", [0.05, 0.6, 0.9])
def test_a_film_cut_off_before_its_header_is_called_truncated_and_never_admitted(
    line: Preflight, transformer: Transformer, form: str, share: float
) -> None:
    whole = media.sound(5, "aac", "ipod") if form == "ipod" else media.video(5, form, sound_s=5.0)
    cut = whole[: int(len(whole) * share)]
    assert b"moov" not in cut

    part = weighed(line, cut, "holiday.mp4")

    assert part.error is not None
    assert "truncated" in part.error.message
    assert not part.tokens
    assert line.weigh_request(parsed(inline(cut, MP4)).request).verdict.decision is Decision.UNKNOWN
    work: Work = AudioWork(mime="audio/wav") if form == "ipod" else VideoWork(fps=1)
    with pytest.raises(MalformedMedia, match="truncated"):
        make_bytes(transformer, cut, mime="audio/mp4" if form == "ipod" else MP4, work=work)


# -- VID-016: tracks that begin at different times -------------------------------------------------------------------

LATE_S = 5.0


@cache
def late(form: str, *, pictures_s: float = 0.0, sound_s: float = 0.0) -> bytes:
    return films.film(8.5, form, gop=20, size=(96, 64), picture_delay_s=pictures_s, sound_delay_s=sound_s)


@pytest.mark.parametrize(("form", "mime"), [("mp4", MP4), ("matroska", MKV), ("mpegts", TS)])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "copy"])
def test_pictures_that_begin_after_the_clip_keep_their_place_and_no_sound_is_lost(
    transformer: Transformer, form: str, mime: str, exact: bool
) -> None:
    data = late(form, pictures_s=LATE_S)

    out, told = make_bytes(transformer, data, mime=mime, work=VideoWork(start_s=3, end_s=8, exact=exact))

    shown = films.pictures(out)
    assert shown[0][1] == 0
    assert shown[0][0] == pytest.approx(2.0, abs=0.04)
    assert films.sound(out)[0] == pytest.approx([0, 1, 2, 3, 4], abs=0.03)
    assert isinstance(told.probed.facts, VideoFacts)
    assert told.probed.facts.audio_duration_s == pytest.approx(5.0, abs=0.06)
    assert told.actual_start_s in (None, 3.0)


@pytest.mark.parametrize(("form", "mime"), [("mp4", MP4), ("matroska", MKV), ("mpegts", TS)])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "copy"])
def test_sound_that_begins_after_the_clip_keeps_its_place(
    transformer: Transformer, form: str, mime: str, exact: bool
) -> None:
    data = late(form, sound_s=LATE_S)

    out, _ = make_bytes(transformer, data, mime=mime, work=VideoWork(start_s=3, end_s=7.5, exact=exact))

    at, number = films.pictures(out)[0]
    assert number == 60
    assert at == pytest.approx(0, abs=0.001)
    assert films.sound(out)[0] == pytest.approx([2, 3, 4], abs=0.03)


def test_a_clip_that_holds_none_of_the_late_track_is_of_the_other_alone(transformer: Transformer) -> None:
    data = late("mp4", sound_s=LATE_S)

    out, told = make_bytes(transformer, data, mime=MP4, work=VideoWork(start_s=1, end_s=4))

    assert [number for _, number in films.pictures(out)] == list(range(20, 80))
    assert isinstance(told.probed.facts, VideoFacts)
    assert films.sound(out)[0] == [] if told.probed.facts.audio_tracks else True


# -- VID-025: several tracks of sound ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "mime"), [("mp4", MP4), ("matroska", MKV), ("mov", MOV), ("mpegts", TS)])
@pytest.mark.parametrize("tracks", [2, 3])
def test_several_tracks_of_sound_are_weighed_once_and_one_of_them_is_kept(
    line: Preflight, transformer: Transformer, form: str, mime: str, tracks: int
) -> None:
    one, several = (films.film(3, form, tracks=count, size=(96, 64)) for count in (1, tracks))
    part = weighed(line, several)

    assert likely(part) == likely(weighed(line, one))
    assert isinstance(part.examined.facts, VideoFacts)
    assert part.examined.facts.audio_tracks == tracks
    for work in (VideoWork(start_s=1, end_s=2.5), VideoWork(end_s=2.5, exact=False), AudioWork(mime="audio/wav")):
        out, told = make_bytes(transformer, several, mime=mime, work=work)

        with av.open(io.BytesIO(out)) as container:
            assert len(container.streams.audio) == 1
        assert films.sound(out)[2] == pytest.approx(1000, rel=0.1)
        assert any(f"of {tracks} tracks of sound" in note for note in told.notes)
