"""A film or a sound that may have so many bytes has no more, whatever is in it; and none goes beyond its end."""

from __future__ import annotations

import io
import random
from functools import cache
from typing import Any

import av
import pytest

import films
import media
from making import BOUNDS, make_here, mapped
from weighlock.codecs import pyav
from weighlock.errors import TransformFailed
from weighlock.media.facts import AudioFacts, VideoFacts
from weighlock.media.work import AudioWork, VideoWork
from weighlock.request import Modality


@cache
def noise(seconds: int = 8, fps: int = 5) -> bytes:
    """What nothing packs."""
    drawn, seen = io.BytesIO(), random.Random(7)
    with av.open(drawn, "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=fps, options={"preset": "ultrafast", "g": "10"})
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        for number in range(seconds * fps):
            frame = av.VideoFrame(160, 96, "yuv420p")
            for plane in frame.planes:
                plane.update(seen.randbytes(plane.buffer_size))
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return drawn.getvalue()


def lasts_at_most(data: bytes, mime: str) -> float:
    with mapped(data) as window:
        view = window.window.view
        facts = pyav.probe(view, mime=mime, modality=Modality.VIDEO, bounds=BOUNDS).facts
    assert isinstance(facts, VideoFacts | AudioFacts)
    return facts.duration_high_s


@pytest.mark.parametrize(
    "work",
    [
        VideoWork(start_s=2, end_s=6, max_bytes=len(noise()) // 2),
        VideoWork(fps=1, end_s=8, max_bytes=len(noise()) // 8),
        VideoWork(fps=1, end_s=8, max_bytes=8_000),
    ],
)
def test_noise_is_held_to_its_bytes(work: VideoWork) -> None:
    made, _ = make_here(noise(), "video/mp4", work)

    assert work.max_bytes is not None
    assert work.max_bytes / 4 < len(made) <= work.max_bytes
    if work.fps:
        assert [at for at, _ in films.pictures(made)] == list(range(8))


def test_sound_gives_way_with_the_pictures() -> None:
    data = films.film(6, fps=10)

    made, _ = make_here(data, "video/mp4", VideoWork(start_s=1, end_s=5, max_bytes=22_000))

    assert len(made) <= 22_000
    assert [round(at) for at in films.sound(made)[0]] == [0, 1, 2, 3]


def test_what_cannot_be_held_is_an_error_and_not_a_larger_file() -> None:
    with pytest.raises(TransformFailed, match="at most 900 bytes"):
        make_here(noise(), "video/mp4", VideoWork(fps=1, max_bytes=900))


@pytest.mark.parametrize(
    ("codec", "form", "mime"),
    [("aac", "mp4", "audio/mp4"), ("libmp3lame", "mp3", "audio/mpeg"), ("libopus", "ogg", "audio/ogg")],
)
@pytest.mark.parametrize("max_bytes", [50_000, 16_000])
def test_a_clip_of_sound_is_held_to_its_bytes_and_its_end(codec: str, form: str, mime: str, max_bytes: int) -> None:
    data = media.sound(8, codec, form, rate=48_000, layout="stereo")

    made, _ = make_here(data, mime, AudioWork(start_s=1, end_s=6, max_bytes=max_bytes))

    assert len(made) <= max_bytes
    assert 4.8 < lasts_at_most(made, mime) <= 5


@pytest.mark.parametrize(
    "work", [VideoWork(start_s=1, end_s=5, max_bytes=90_000), VideoWork(fps=1, end_s=6, max_bytes=90_000)]
)
def test_a_film_is_not_longer_than_was_asked_for_by_the_last_packet_of_its_sound(work: VideoWork) -> None:
    made, _ = make_here(films.film(6, fps=10), "video/mp4", work)

    assert lasts_at_most(made, "video/mp4") == (work.end_s or 0) - (work.start_s or 0)
