"""Frames of a film on one sheet: each cell shows the moment it stands for."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import av
import pytest
from PIL import Image

import films
from weighlock.codecs import Transformer, make_bytes
from weighlock.errors import InputError, MalformedMedia, TransformFailed
from weighlock.media.facts import ImageFacts
from weighlock.media.work import Made, StillsWork

MP4 = "video/mp4"
WORK = StillsWork(fps=1, frames=6, columns=3, max_width_px=160, max_height_px=96)


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Transformer() as one:
        yield one


def cells(transformer: Transformer, data: bytes, work: StillsWork, mime: str = MP4) -> tuple[list[Image.Image], Made]:
    out, told = make_bytes(transformer, data, mime=mime, work=work)
    facts = told.probed.facts
    assert isinstance(facts, ImageFacts)
    width, height = facts.width_px // work.columns, facts.height_px // work.rows
    with Image.open(io.BytesIO(out)) as sheet:
        assert (told.mime, sheet.format) == ("image/jpeg", "JPEG")
        drawn = []
        for number in range(work.frames):
            row, column = divmod(number, work.columns)
            drawn.append(sheet.crop((column * width, row * height, (column + 1) * width, (row + 1) * height)))
    return drawn, told


def numbers(drawn: list[Image.Image]) -> list[int]:
    frame: Any = av.VideoFrame
    return [films.number_of(frame.from_image(cell)) for cell in drawn]


@pytest.mark.parametrize(("form", "mime"), [("mp4", MP4), ("matroska", "video/x-matroska"), ("mpegts", "video/mp2t")])
def test_each_cell_shows_the_picture_of_its_instant(transformer: Transformer, form: str, mime: str) -> None:
    drawn, told = cells(transformer, films.film(6, form), WORK, mime)

    assert numbers(drawn) == pytest.approx([0, 20, 40, 60, 80, 100], abs=form == "mpegts")  # its sound begins earlier
    assert told.notes == ()


def test_a_clip_is_sampled_from_its_own_beginning(transformer: Transformer) -> None:
    drawn, _ = cells(transformer, films.film(6), replace(WORK, start_s=1.5, end_s=4.5, fps=2, frames=6))

    assert numbers(drawn) == [30, 40, 50, 60, 70, 80]


def test_frames_are_scaled_down_upright_and_never_up(transformer: Transformer) -> None:
    turned, _ = cells(transformer, films.film(2, size=(320, 192), rotation=90, corner=True), replace(WORK, frames=2))
    small, _ = cells(transformer, films.film(2), replace(WORK, frames=2, max_width_px=4000, max_height_px=4000))

    assert turned[0].size == (56, 96)
    assert small[0].size == (160, 96)


def test_no_more_frames_than_asked_for_and_what_is_missing_is_said(transformer: Transformer) -> None:
    few, told = cells(transformer, films.film(6), replace(WORK, frames=4))
    _, short = cells(transformer, films.film(3), WORK)

    assert numbers(few) == [0, 20, 40, 60]
    assert told.notes == ()
    assert short.notes == ("3 of 6 frames could be decoded",)


def test_the_same_film_gives_the_same_bytes(transformer: Transformer) -> None:
    data = films.film(3)

    assert (
        make_bytes(transformer, data, mime=MP4, work=WORK)[0] == make_bytes(transformer, data, mime=MP4, work=WORK)[0]
    )


def test_what_cannot_be_shown_is_a_typed_error(transformer: Transformer) -> None:
    with pytest.raises(TransformFailed, match="nothing lies between"):
        make_bytes(transformer, films.film(2), mime=MP4, work=replace(WORK, start_s=9.0))
    with pytest.raises(InputError):
        make_bytes(transformer, films.beeps(1, "aac", "mp4"), mime=MP4, work=WORK)
    with pytest.raises(MalformedMedia):
        make_bytes(transformer, films.film(2)[:900], mime=MP4, work=WORK)
