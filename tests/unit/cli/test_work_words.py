"""Work on media, told to a person."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from weighlock.cli.work_words import work_in_words
from weighlock.media.work import AudioWork, DocumentWork, ImageWork, StillsWork, StripWork, VideoWork, Work
from weighlock.request import Box


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (VideoWork(start_s=180, end_s=240, keep_sound=False), "cut to 180–240 s, without its sound"),
        (VideoWork(start_s=180, exact=False), "cut from 180 s on, copied from the key frame at or before"),
        (VideoWork(), "made an MP4"),
        (VideoWork(strip_metadata=True), "made an MP4, metadata taken out"),
        (AudioWork(start_s=20, mime="audio/wav"), "cut from 20 s on, made a WAV"),
        (ImageWork(mime="image/png"), "made a PNG"),
        (ImageWork(max_bytes=50_000, mime="image/webp"), "made a WebP, at most 50,000 bytes"),
        (ImageWork(crop=Box(left=10, top=20, right=110, bottom=70)), "cropped to 100×50 at 10, 20"),
        (ImageWork(max_width_px=512, max_height_px=288), "scaled to 512×288"),
        (DocumentWork(first_page=2, last_page=4), "pages 2–4 of it"),
        (DocumentWork(first_page=2, last_page=2), "page 2 of it"),
        (StripWork(), "metadata taken out"),
    ],
)
def test_work_is_told_in_the_words_of_a_person(work: Work, words: str) -> None:
    assert work_in_words(work) == words


VALUES: dict[str, Any] = {"mime": "image/png", "crop": Box(left=0, top=0, right=8, bottom=8), "exact": False}
WORKS: list[Work] = [
    VideoWork(),
    StillsWork(fps=1, frames=4, columns=2, max_width_px=160, max_height_px=90),
    AudioWork(),
    ImageWork(),
    DocumentWork(first_page=1, last_page=9),
]


@pytest.mark.parametrize(("work", "name"), [(work, field.name) for work in WORKS for field in fields(work)])
def test_every_field_is_told_and_none_by_its_name_in_the_code(work: Work, name: str) -> None:
    now = getattr(work, name)
    value = VALUES.get(name, not now if isinstance(now, bool) else 7)

    words = work_in_words(replace(work, **{name: value}))

    assert words != work_in_words(work)
    assert not re.search(r"_|\bNone\b|\bTrue\b|\bFalse\b", words)
