"""`prepare_deadline_s`: past it local work is broken off, and the request goes without it or is refused."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL.PngImagePlugin import PngInfo

import media
from integration.test_transforms_life import gone_or_idle, open_files
from weighlock.errors import Cancelled, InputError, TransformFailed
from weighlock.fitted import Fitted
from weighlock.media.work import ImageWork, StripWork
from weighlock.mime import declared_from_name
from weighlock.planning.levers import Lever
from weighlock.preflight import Preflight
from weighlock.request import Clip, MediaPart, Request, TextPart, Turn
from weighlock.scales import Asked
from weighlock.settings import load

SETTINGS = """
version: 1
accounts: {a: {backend: vertex, project: p}}
default: {account: a, model: gemini-2.5-flash, local_work: allowed, prepare_deadline_s: 5}
endpoints:
  quiet: {limits: {prompt_tokens: 1400}, media: {levers: [reencode, resolution]}}
  stubborn: {limits: {prompt_tokens: 400}, media: {levers: [clip]}}
  tidy: {limits: {prompt_tokens: 1400}, media: {levers: [reencode, resolution], strip_metadata: true}}
  clean: {media: {strip_metadata: true}}
"""


class Clock:
    """Stands still until it is told to run."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def run(self, seconds: float = 5.0) -> None:
        self.now_s += seconds

    def runs_out(self) -> bool:
        """A caller who lets time pass and breaks nothing off."""
        self.run()
        return False


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def line(tmp_path: Path, clock: Clock) -> Iterator[Preflight]:
    (tmp_path / "weighlock.yaml").write_text(SETTINGS)
    with Preflight(load(tmp_path / "weighlock.yaml", environ={}), clock=clock) as one:
        yield one


def noted(words: str) -> PngInfo:
    info = PngInfo()
    info.add_text("Author", words)
    return info


def as_part(data: bytes, name: str) -> MediaPart:
    return MediaPart(source=data, label=name, declared_mime=declared_from_name(name))


def planned(line: Preflight, endpoint: str, **media_of: bytes) -> tuple[Fitted, Asked]:
    asked = Asked(endpoint=endpoint)
    parts = tuple(as_part(data, name.replace("_", ".")) for name, data in media_of.items())
    fitted = line.fit(Request(turns=(Turn(role="user", parts=(*parts, TextPart(text="what is wrong?"))),)), asked)
    assert fitted.works
    return fitted, asked


SHOT = media.picture((1920, 1080))


def late_at(clock: Clock, part: int) -> Callable[[int, float], None]:
    """The time is up as soon as something of a part is done."""
    return lambda at, _: clock.run(5.0 * (at == part))


def test_what_is_done_in_time_is_the_plan(line: Preflight, clock: Clock) -> None:
    fitted, asked = planned(line, "quiet", a_png=SHOT)
    assert [step.lever for step in fitted.plan.steps] == [Lever.REENCODE]

    done = line.carry_out(fitted, asked, progress=lambda *_: clock.run(0.01))

    assert done.late is None
    assert done.made[0].mime == "image/png"
    assert done.as_dict()["late"] is None


def test_past_the_deadline_the_wire_alone_is_used_where_that_fits(line: Preflight, clock: Clock) -> None:
    fitted, asked = planned(line, "quiet", a_png=SHOT)

    done = line.carry_out(fitted, asked, cancelled=clock.runs_out)

    assert done.fits
    assert done.is_sendable
    assert [step.lever for step in done.plan.steps] == [Lever.RESOLUTION]
    assert done.request.turns == fitted.original.turns
    assert done.request.carried["generationConfig"] == {"mediaResolution": "MEDIA_RESOLUTION_LOW"}
    assert done.late is not None
    assert done.late.words == "local work took longer than 5 s (prepare_deadline_s)"
    told = json.loads(json.dumps(done.as_dict()))["late"]
    assert told["deadline_s"] == 5.0
    assert [(one["part"], one["kind"]) for one in told["left_out"]] == [(0, "ImageWork")]


def test_where_that_does_not_fit_the_refusal_says_so(line: Preflight, clock: Clock) -> None:
    fitted, asked = planned(line, "stubborn", a_wav=media.wav(30))
    assert fitted.fits

    done = line.carry_out(fitted, asked, cancelled=clock.runs_out)

    assert not done.fits
    refusal = done.exceeded()
    assert "Local work took longer than 5 s (prepare_deadline_s), so there is none in it." in refusal.message
    assert "prepare_deadline_s" in refusal.figures["in_the_way"]
    assert "local_work" not in refusal.message


def test_a_conversion_the_service_needs_cannot_be_left_out(line: Preflight, clock: Clock) -> None:
    fitted, asked = planned(line, "clean", a_gif=media.picture((64, 48), "GIF"))

    with pytest.raises(
        TransformFailed, match=r"parts\[0\]: local work took longer than 5 s \(prepare_deadline_s of clean"
    ):
        line.carry_out(fitted, asked, cancelled=clock.runs_out)


def test_a_clip_the_caller_asked_for_is_not_left_out_either(line: Preflight, clock: Clock) -> None:
    part = replace(as_part(media.wav(30), "a.wav"), clip=Clip(last_s=10.0))
    asked = Asked(endpoint="clean")
    fitted = line.fit(Request(turns=(Turn(role="user", parts=(part, TextPart(text="what is said?"))),)), asked)

    with pytest.raises(TransformFailed, match="it cannot be sent whole: the model takes no clip of it"):
        line.carry_out(fitted, asked, cancelled=clock.runs_out)


def test_metadata_the_endpoint_wants_out_does_not_travel_for_want_of_time(line: Preflight, clock: Clock) -> None:
    fitted, asked = planned(line, "clean", a_png=media.picture((64, 48)))

    with pytest.raises(TransformFailed, match=r"with its metadata in it \(media.strip_metadata\)") as caught:
        line.carry_out(fitted, asked, cancelled=clock.runs_out)
    assert caught.value.figures["limit"] == "prepare_deadline_s"


def test_metadata_is_taken_out_of_what_is_not_encoded_again_for_want_of_time(line: Preflight, clock: Clock) -> None:
    told = media.picture((1920, 1080), pnginfo=noted("by Ann"))
    fitted, asked = planned(line, "tidy", a_png=told)
    assert isinstance(fitted.works[0], ImageWork)
    once = iter([5.0])

    def runs_out_once() -> bool:
        clock.run(next(once, 0.0))
        return False

    done = line.carry_out(fitted, asked, cancelled=runs_out_once)

    assert done.late is not None
    assert set(done.late.left_out) == {0}
    assert done.fits
    assert done.is_sendable
    assert b"by Ann" in told
    assert b"by Ann" not in done.files[0]
    assert isinstance(done.shaped[0].work, StripWork)


def test_what_cannot_be_left_out_comes_first_and_stays(line: Preflight, clock: Clock) -> None:
    fitted, asked = planned(line, "quiet", a_png=SHOT, b_gif=media.picture((64, 48), "GIF"))
    assert set(fitted.works) == {0, 1}

    done = line.carry_out(fitted, asked, progress=late_at(clock, 1))

    assert done.late is not None
    assert set(done.late.left_out) == {0}
    assert set(done.made) == {1}
    shot, picture, _ = done.request.turns[0].parts
    assert isinstance(shot, MediaPart)
    assert isinstance(picture, MediaPart)
    assert shot.source == SHOT
    assert picture.declared_mime == "image/png"
    assert picture.source == done.files[1]
    assert done.fits


def test_the_caller_who_breaks_it_off_is_not_late(line: Preflight, clock: Clock) -> None:
    fitted, asked = planned(line, "quiet", a_png=SHOT)

    def cancelled() -> bool:
        clock.run()
        return True

    with pytest.raises(Cancelled):
        line.carry_out(fitted, asked, cancelled=cancelled)


def test_a_caller_s_own_deadline_beats_the_endpoint_s(line: Preflight, clock: Clock) -> None:
    fitted, asked = planned(line, "quiet", a_png=SHOT)

    patient = Asked(endpoint=asked.endpoint, deadline_s=math.inf)
    assert line.carry_out(fitted, patient, progress=lambda *_: clock.run(1e9)).late is None
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match="deadline_s must be more than 0"):
            Asked(deadline_s=wrong)


def test_what_is_under_way_is_killed(line: Preflight, clock: Clock) -> None:
    fitted, asked = planned(line, "clean", a_mkv=media.endless(600))
    files = open_files()

    with pytest.raises(TransformFailed, match="it cannot be sent as it is"):
        line.carry_out(fitted, asked, progress=late_at(clock, 0))

    assert open_files() == files
    assert gone_or_idle(os.getpid(), within_s=1)
