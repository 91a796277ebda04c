"""Our own readers on damaged files: whatever the bytes, an answer or an InputError, and never a long wait."""

from __future__ import annotations

import contextlib
import mmap
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import media
from weighlock.codecs import descriptor_of, ebml, mp4, walkers
from weighlock.codecs.wave import wave
from weighlock.errors import InputError

SEEDS: dict[str, tuple[Callable[[mmap.mmap], object], bytes]] = {
    "mp4": (mp4.read_movie, media.video(1, sound_s=1.0)),
    "fragmented mp4": (mp4.read_movie, media.video(1, container_options={"movflags": "frag_keyframe+empty_moov"})),
    "matroska": (ebml.read_skeleton, media.video(1, "matroska", sound_s=1.0)),
    "mp3": (walkers.mpeg_audio, media.sound(1, "libmp3lame", "mp3")),
    "adts": (walkers.adts, media.sound(1, "aac", "adts")),
    "wav": (wave, media.wav(1)),
}


@pytest.mark.parametrize("name", SEEDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damage_anywhere_is_an_answer_or_an_input_error(name: str, data: st.DataObject) -> None:
    reader, seed = SEEDS[name]
    head = min(len(seed), 4096)
    spots = data.draw(
        st.lists(st.tuples(st.integers(0, head - 1) | st.integers(-head, -1), st.integers(0, 255)), max_size=8)
    )
    broken = bytearray(seed)
    for at, value in spots:
        broken[at] = value
    broken = broken[: data.draw(st.integers(1, len(broken)))]

    started = time.process_time()
    with (
        contextlib.suppress(InputError),
        descriptor_of(broken) as fd,
        mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view,
    ):
        reader(view)

    assert time.process_time() - started < 2
