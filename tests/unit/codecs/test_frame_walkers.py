"""Walking MP3, ADTS, WAV and Matroska by their own framing."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from typing import TypeVar

import pytest

import media
from weighlock.codecs import descriptor_of, ebml, walkers
from weighlock.codecs.streams import Evidence, mismatch, steady
from weighlock.codecs.wave import wave

T = TypeVar("T")


def read(reader: Callable[[mmap.mmap], T | None], data: bytes) -> T:
    with descriptor_of(data) as fd, mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        found = reader(view)
    assert found is not None
    return found


@pytest.mark.parametrize("rate", [44100, 48000, 32000, 24000, 22050, 16000, 12000, 11025, 8000])
def test_every_mp3_rate_is_exact_after_the_encoder_s_padding(rate: int) -> None:
    found = read(walkers.mpeg_audio, media.sound(3.0, "libmp3lame", "mp3", rate=rate))

    assert found.end_s == pytest.approx(3.0, abs=1e-6)


def test_mp3_without_a_header_frame_is_counted_frame_by_frame() -> None:
    data = media.sound(4.0, "libmp3lame", "mp3", options={"q": "9"}, container_options={"write_xing": "0"})
    found = read(walkers.mpeg_audio, data)

    assert b"Xing" not in data
    assert found.end_s == pytest.approx(4.0, abs=0.06)
    assert set(found.claims) == {"its frames"}


def test_tags_before_and_after_mp3_frames_are_not_sound() -> None:
    bare = media.sound(2.0, "libmp3lame", "mp3", container_options={"id3v2_version": "0"})
    tagged = b"ID3\x03\0\0\0\0\x02\0" + bytes(256) + bare + b"TAG" + bytes(125)

    assert read(walkers.mpeg_audio, tagged).claims["its frames"] == read(walkers.mpeg_audio, bare).claims["its frames"]


def test_junk_between_mp3_frames_is_skipped() -> None:
    bare = media.sound(2.0, "libmp3lame", "mp3", container_options={"id3v2_version": "0", "write_xing": "0"})
    start = bare.index(b"\xff\xfb", len(bare) // 2)
    broken = bare[:start] + b"\xff\x00junk" * 40 + bare[start:]

    assert read(walkers.mpeg_audio, broken).end_s == pytest.approx(read(walkers.mpeg_audio, bare).end_s, abs=0.06)


def test_adts_frames_are_counted() -> None:
    found = read(walkers.adts, media.sound(5.0, "aac", "adts", rate=48000))

    assert found.packets == 236
    assert found.end_s == pytest.approx(236 * 1024 / 48000)


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, None])
def test_a_wave_without_a_length_runs_to_the_end(size: int | None) -> None:
    assert read(wave, media.wav(10, data_size=size)).span_s == 10.0


def test_rf64_takes_its_length_from_its_own_chunk() -> None:
    assert read(wave, media.wav(10, rf64=True)).span_s == 10.0


def test_chunks_behind_a_wave_s_samples_are_not_sound_but_anything_else_may_be() -> None:
    chunk = b"LIST" + struct.pack("<I", 4000) + bytes(4000)

    assert read(wave, media.wav(1, tail=chunk)).high_s == 1.0
    assert read(wave, media.wav(60, data_size=16000)).high_s == 60.0


def test_a_wave_cut_off_counts_what_is_there_and_keeps_the_claim() -> None:
    found = read(wave, media.wav(10)[: -8 * 16000])

    assert (found.span_s, found.high_s) == (2.0, 10.0)


def test_a_short_matroska_film_is_counted_to_the_frame() -> None:
    found = read(ebml.read_skeleton, media.video(4, "matroska", fps=25, sound_s=4.0))
    picture = found.of_kind("video")[0]

    assert found.whole
    assert picture.frames == 100
    assert picture.pace(found.scale_s) == pytest.approx(25, abs=0.5)
    assert picture.steady()
    assert len(found.of_kind("audio")) == 1


def test_of_a_long_matroska_film_only_the_ends_are_read() -> None:
    data = media.video(60, "matroska", container_options={"cluster_time_limit": "1000"}, options={"g": "10"})
    found = read(ebml.read_skeleton, data)

    assert not found.whole
    assert found.of_kind("video")[0].last * found.scale_s == pytest.approx(59.9, abs=0.21)


def test_a_live_recording_without_sizes_is_left_to_the_scan() -> None:
    data = media.as_live_recording(media.video(2, "webm", codec="libvpx"))
    with descriptor_of(data) as fd, mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        assert ebml.read_skeleton(view) is None


@pytest.mark.parametrize("walker", [walkers.mpeg_audio, walkers.adts, wave, ebml.read_skeleton])
@pytest.mark.parametrize(
    "data", [b"\0" * 5000, b"\xff" * 5000, b"RIFF", b"\x1aE\xdf\xa3\x80\x18S\x80g\xff", b"ID3" + b"\x7f" * 20]
)
def test_bytes_of_no_such_kind_are_left_to_others(walker: Callable[[mmap.mmap], object], data: bytes) -> None:
    with descriptor_of(data) as fd, mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        assert walker(view) is None


@pytest.mark.parametrize(
    ("shown", "claim", "differ"),
    [
        (10.0, 10.19, False),
        (10.0, 10.4, False),
        (10.0, 10.6, True),
        (1.0, 1.15, False),
        (1.0, 1.3, True),
        (10.0, 0.0, False),
    ],
)
def test_a_mismatch_needs_five_percent_and_a_fifth_of_a_second(shown: float, claim: float, differ: bool) -> None:
    assert (mismatch(shown, {"its header": claim}) is not None) is differ


def test_the_longest_claim_is_the_bound() -> None:
    assert Evidence(start_s=1.0, end_s=4.0, claims={"its header": 7.0}, at_most_s=5.0).high_s == 7.0


@pytest.mark.parametrize(
    ("deltas", "even"), [({33: 50, 34: 50}, True), ({40: 98, 80: 2}, True), ({40: 90, 80: 10}, False), ({40: 2}, None)]
)
def test_a_steady_pace_allows_one_odd_frame_in_twenty(deltas: dict[int, int], even: bool | None) -> None:
    assert steady(deltas) is even
