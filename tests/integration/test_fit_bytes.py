"""A limit of bytes over films, sound and documents: what is planned, what is made, and that the two agree."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pikepdf
import pytest

import films
import media
from unit.test_fit import preflight
from weighlock.codecs.allotted import too_many
from weighlock.deeds import Doer
from weighlock.errors import TransformFailed
from weighlock.fitted import Fitted
from weighlock.media.facts import VideoFacts
from weighlock.media.work import AudioWork, DocumentWork, Made, VideoWork, Work
from weighlock.planning.admit import Decision
from weighlock.planning.weigh import Tally
from weighlock.preflight import Preflight
from weighlock.request import MediaPart, Modality, Request, TextPart, Turn
from weighlock.scales import Asked

TRIAGE = Asked(endpoint="triage")
SOUND_SLACK = 4
"""Tokens of the sound that is left out, so that the last packet does not go beyond the end."""
NO_LINES = bytes.maketrans(b"\r\n", b"xx")
SECONDS = 15
LOW = {"level": "MEDIA_RESOLUTION_LOW"}
WINDOW = {"videoMetadata": {"startOffset": "5s", "endOffset": "10s"}}


@cache
def film(form: str = "mp4") -> bytes:
    """Filled up to 400 kbit/s, as what a camera records is."""
    rate = {"b": "400000", "maxrate": "400000", "bufsize": "100000", "x264-params": "nal-hrd=cbr"}
    return films.film(SECONDS, form, fps=10, size=(320, 192), options=rate)


@cache
def song() -> bytes:
    return films.beeps(SECONDS, "libmp3lame", "mp3")


@cache
def paper(pages: int = 8, *, shared: bool = False) -> bytes:
    """Pages of noise, each its own or all the same."""
    document, drawn, seen = pikepdf.new(), io.BytesIO(), random.Random(7)
    stamp = document.make_stream(b"% " + seen.randbytes(80_000).translate(NO_LINES))
    for _ in range(pages):
        page = document.add_blank_page(page_size=(200, 200))
        page.obj.Contents = (
            stamp if shared else document.make_stream(b"% " + seen.randbytes(10_000).translate(NO_LINES))
        )
    document.save(drawn, compress_streams=False)
    return drawn.getvalue()


def request(data: bytes, mime: str, **carried: Any) -> Request:
    part = MediaPart(source=data, label="it", declared_mime=mime, carried=carried)
    return Request(turns=(Turn(role="user", parts=(TextPart(text="what is wrong?"), part)),))


def sent(fitted: Fitted) -> MediaPart:
    part = fitted.request.turns[0].parts[1]
    assert isinstance(part, MediaPart)
    return part


def carried_out(line: Preflight, asked_for: Request) -> tuple[Fitted, Fitted]:
    """The plan, and what came of it, which fits, weighs what was planned, and stays as it is when planned again."""
    planned = line.fit(asked_for, TRIAGE)
    planned.demand_fit()
    made = line.carry_out(planned, TRIAGE)
    made.demand_fit()
    for before, after in zip(planned.after.parts, made.after.parts, strict=True):
        for was, now in zip(before.tokens, after.tokens, strict=True):  # sound ends with the last packet that is whole
            assert was.likely - (SOUND_SLACK if was.modality is Modality.AUDIO else 0) <= now.likely <= was.likely
        assert after.total.high <= before.total.high
        assert (after.examined.size_bytes or 0) <= (before.examined.size_bytes or 0)
    again = line.fit(made.request, TRIAGE)
    assert again.request is made.request
    assert not again.plan.steps
    return planned, made


def test_a_film_keeps_in_its_file_what_is_sampled_of_it_before_anything_is_lost(tmp_path: Path) -> None:
    line = preflight(tmp_path, f"limits: {{bytes: {len(film()) * 3 // 4}}}")

    planned, made = carried_out(line, request(film(), "video/mp4"))

    (step,) = planned.plan.steps
    assert step.words == f"its file at 1 fps, at most {-(-len(film()) // 2):,} bytes"
    assert step.saved.likely == 0
    assert sent(made).carried == {"videoMetadata": {"fps": 1}}
    facts = made.made[0].probed.facts
    assert isinstance(facts, VideoFacts)
    assert (facts.frames, facts.duration_s, facts.audio_tracks) == (SECONDS, SECONDS, 1)
    assert [number for _, number in films.pictures(made.files[0])] == list(range(0, 10 * SECONDS, 10))


def test_a_film_sent_in_part_is_cut_to_that_part_and_carries_no_offsets(tmp_path: Path) -> None:
    line = preflight(tmp_path, f"limits: {{bytes: {len(film()) * 2 // 5}}}")

    planned, made = carried_out(line, request(film(), "video/mp4", **WINDOW))

    (step,) = planned.plan.steps
    assert step.words.startswith("its file cut to what is sent of it, at most ")
    assert planned.works == {0: VideoWork(start_s=5, end_s=10, max_bytes=-(-len(film()) // 3))}
    assert not sent(made).carried
    assert films.pictures(made.files[0])[0] == (0, 50)


def test_a_window_the_endpoint_sets_is_cut_out_once(tmp_path: Path) -> None:
    settings = "media: {video: {apply: always, clip: 5-10}}, limits: {bytes: 300kB}"
    line = preflight(tmp_path, settings)

    planned = line.fit(request(film(), "video/mp4"), TRIAGE)
    made = line.carry_out(planned, TRIAGE)

    assert planned.works == {0: VideoWork(start_s=5, end_s=10, max_bytes=-(-len(film()) // 3))}
    assert made.after.parts[0].of(Modality.VIDEO).likely == planned.after.parts[0].of(Modality.VIDEO).likely == 300


@pytest.mark.parametrize(
    ("film_wanted", "carried"),
    [("apply: always, clip: 5-10, fps: 2", {}), ("cut: exact", {**WINDOW, "mediaResolution": LOW})],
)
def test_of_a_film_that_becomes_another_format_only_what_is_sent_is_made(
    tmp_path: Path, film_wanted: str, carried: dict[str, Any]
) -> None:
    line = preflight(tmp_path, f"media: {{video: {{{film_wanted}}}}}")
    mkv = film("matroska")

    planned, made = carried_out(line, request(mkv, "video/x-matroska", **carried))

    assert planned.works == {0: VideoWork(start_s=5, end_s=10, max_bytes=planned.after.parts[0].examined.size_bytes)}
    assert sent(made).carried == ({"mediaResolution": LOW} if carried else {"videoMetadata": {"fps": 2}})
    assert (films.pictures(made.files[0])[0], len(films.pictures(made.files[0]))) == ((0, 50), 50)


def test_sound_that_becomes_another_format_is_made_of_its_window_alone(tmp_path: Path) -> None:
    line = preflight(tmp_path, "media: {audio: {apply: always, clip: last 5s}}")

    planned, made = carried_out(line, request(films.beeps(SECONDS, "pcm_s16le", "caf"), "audio/x-caf"))

    assert planned.works == {0: AudioWork(start_s=10, end_s=15, mime="audio/flac")}
    assert not sent(made).carried


@pytest.mark.parametrize("clip", ["2-10", "2-", "last 8s", "7s around 6s"])
@pytest.mark.parametrize(("form", "mime"), [("mp4", "video/mp4"), ("matroska", "video/x-matroska")])
def test_a_window_the_endpoint_sets_is_not_cut_out_of_what_is_left_once_more(
    tmp_path: Path, clip: str, form: str, mime: str
) -> None:
    limit = len(film()) * 9 // 10
    line = preflight(tmp_path, f"media: {{video: {{apply: always, clip: {clip}}}}}, limits: {{bytes: {limit}}}")

    made = line.carry_out(line.fit(request(film(form), mime), TRIAGE), TRIAGE)

    assert made.files
    assert line.fit(made.request, TRIAGE).request is made.request
    assert sent(made).carried == ({"videoMetadata": {"startOffset": "0s"}} if clip.startswith("2-") else {})


@pytest.mark.parametrize("clip", ["2-10", "last 8s", "first 8s", "7s around 6s"])
def test_sound_cut_where_nothing_can_mark_it_so_is_not_cut_once_more(tmp_path: Path, clip: str) -> None:
    line = preflight(tmp_path, f"local_work: allowed, media: {{audio: {{apply: always, clip: {clip}}}}}")
    asked = replace(TRIAGE, model="gemini-2.5-flash")  # which is not known to read offsets of sound

    made = line.carry_out(line.fit(request(song(), "audio/mpeg"), asked), asked)

    assert made.files
    assert not sent(made).carried
    assert line.fit(made.request, asked).request is made.request


def stubborn(line: Preflight, least: int, tried: list[int]) -> Callable[..., tuple[bytes, Made]]:
    """An encoder that brings no film below so many bytes."""

    def make(
        part: MediaPart, work: Work, progress: Any, cancelled: Any, *, size_bytes: int | None
    ) -> tuple[bytes, Made]:
        assert isinstance(work, VideoWork)
        assert work.max_bytes
        tried.append(work.max_bytes)
        if work.max_bytes < least:
            raise too_many(work.max_bytes, least)
        data, made = line.made(part, work)
        return data + bytes(least - len(data)), replace(made, size_bytes=least)

    return make


@pytest.mark.parametrize("films_sent", [1, 2])
def test_where_half_the_bytes_are_too_few_those_the_limit_leaves_are_tried_and_no_more(
    tmp_path: Path, films_sent: int
) -> None:
    room, planned = 60_000, -(-len(film()) // 2)
    line = preflight(tmp_path, f"limits: {{bytes: {planned * films_sent + room}}}, media: {{levers: [reencode]}}")
    parts = tuple(MediaPart(source=film(), label=f"{at}.mp4", declared_mime="video/mp4") for at in range(films_sent))
    fitted = line.fit(Request(turns=(Turn(role="user", parts=parts),)), TRIAGE)
    tried = list[int]()
    doer = Doer(
        fitted=fitted,
        scales=line.scales(TRIAGE),
        make=stubborn(line, planned + 50_000, tried),
        weigh=lambda request: line.weigh_request(request, TRIAGE),
        clock=float,
    )

    if films_sent == 1:
        doer.carry_out().demand_fit()
    else:  # the first took the room
        with pytest.raises(TransformFailed, match=r"parts\[1\]: .* the least it came to is "):
            doer.carry_out()
    assert tried == [planned, planned + 50_000, planned][: films_sent + 1]


def test_levers_follow_in_the_endpoint_s_order_down_to_the_bytes(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {bytes: 520kB}, media: {levers: [drop_audio, clip]}")

    planned, made = carried_out(line, request(film(), "video/mp4"))

    assert [step.lever.value for step in planned.plan.steps] == ["drop_audio", "clip"]
    assert "contentLayers" not in str(sent(made).carried)
    facts = made.made[0].probed.facts
    assert isinstance(facts, VideoFacts)
    assert facts.audio_tracks == 0


@pytest.mark.parametrize(("codec", "form"), [("pcm_s16le", "wav"), ("flac", "flac")])
def test_sound_becomes_what_the_service_hears_of_it(tmp_path: Path, codec: str, form: str) -> None:
    line = preflight(tmp_path, "limits: {bytes: 200kB}")

    planned, made = carried_out(line, request(media.sound(20, codec, form), f"audio/{form}"))

    assert planned.works == {0: AudioWork(start_s=0, end_s=20, mime="audio/mpeg", max_bytes=166_096)}
    assert sent(made).declared_mime == "audio/mpeg"


def test_sound_that_is_small_already_is_clipped(tmp_path: Path) -> None:
    data = media.sound(30, "libmp3lame", "mp3", bit_rate=32_000)
    line = preflight(tmp_path, "limits: {bytes: 100kB}, media: {levers: [clip]}")

    planned, _ = carried_out(line, request(data, "audio/mpeg"))

    assert [step.words.partition(",")[0] for step in planned.plan.steps] == ["clip last 20s"]


def test_a_document_is_cut_to_the_pages_that_are_sent_and_then_to_fewer(tmp_path: Path) -> None:
    line = preflight(tmp_path, f"limits: {{bytes: {len(paper()) * 3 // 4}}}")
    wide, tight = {"startPage": 2, "endPage": 6}, preflight(tmp_path, f"limits: {{bytes: {len(paper()) // 3}}}")

    planned, made = carried_out(line, request(paper(), "application/pdf", documentMetadata=wide))
    fewer, _ = carried_out(tight, request(paper(), "application/pdf", documentMetadata=wide))

    assert planned.works == {0: DocumentWork(first_page=2, last_page=6)}
    assert not sent(made).carried
    assert "about" in planned.plan.steps[0].words
    assert fewer.works == {0: DocumentWork(first_page=2, last_page=3)}


def test_a_document_whose_pages_share_what_it_holds_is_told_as_it_came_out(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {bytes: 50kB}")
    planned = line.fit(request(paper(shared=True), "application/pdf"), TRIAGE)

    made = line.carry_out(planned, TRIAGE)

    assert planned.fits
    assert not made.fits
    assert "as it was made: " in made.exceeded().message


def test_a_film_that_lost_its_sound_is_counted_with_what_2_5_may_bill_for_silence(tmp_path: Path) -> None:
    line = preflight(tmp_path, f"limits: {{bytes: {len(film()) - 50_000}}}, media: {{levers: [drop_audio]}}")
    asked = Asked(endpoint="triage", model="gemini-2.5-flash")

    planned = line.fit(request(film(), "video/mp4"), asked)
    made = line.carry_out(planned, asked)

    assert planned.fits
    assert made.fits
    assert made.after.parts[0].of(Modality.AUDIO) == Tally(high=480)
    assert planned.after.parts[0].of(Modality.AUDIO) == Tally(high=482), "how far its sound goes beyond the end"


def test_nothing_is_worked_on_where_that_is_never_wanted_and_the_setting_is_named(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {bytes: 1000}, local_work: never")
    medias = [(film(), "video/mp4"), (media.sound(20, "pcm_s16le", "wav"), "audio/wav"), (paper(), "application/pdf")]
    medias.append((media.picture((640, 480)) + bytes(400_000), "image/png"))

    for data, mime in medias:
        found = line.fit(request(data, mime), TRIAGE)

        assert not found.works
        assert not found.fits
        assert {one.knob for one in found.obstacles} == {"local_work"}


def test_a_pinned_film_is_left_alone(tmp_path: Path) -> None:
    line = preflight(tmp_path, "limits: {bytes: 1000}")
    part = MediaPart(source=film(), label="it.mp4", declared_mime="video/mp4", pinned=True)
    asked_for = Request(turns=(Turn(role="user", parts=(part,)),))

    found = line.fit(asked_for, TRIAGE)

    assert found.request is asked_for
    assert not found.works
    assert found.verdict.decision is Decision.REJECT
