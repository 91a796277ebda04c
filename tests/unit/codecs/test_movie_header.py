"""The MP4 header reader: what a player shows, what the tables hold, and what it refuses to hand on."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import media
from weighlock.codecs import descriptor_of, mp4
from weighlock.codecs.movie import Movie
from weighlock.errors import MalformedMedia, UnsupportedMedia


@contextmanager
def mapped(data: bytes) -> Iterator[mmap.mmap]:
    with descriptor_of(data) as fd, mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        yield view


def movie_of(data: bytes) -> Movie:
    with mapped(data) as view:
        return mp4.read_movie(view)


def test_aac_priming_is_not_shown() -> None:
    movie = movie_of(media.sound(1.0, "aac", "mp4", rate=48000))

    assert movie.tracks[0].presented_s(movie.timescale) == (0.0, 1.0)
    assert movie.tracks[0].media_s == pytest.approx(1024 / 48000 + 1.0)


def test_without_an_edit_list_everything_is_shown() -> None:
    movie = movie_of(media.movie(media.track(samples=5, delta=100)))

    assert movie.tracks[0].presented_s(movie.timescale) == (0.0, 0.5)


def test_a_leading_empty_edit_delays_the_track() -> None:
    movie = movie_of(media.movie(media.track(samples=50, delta=100, edits=[(2000, -1), (3000, 0)])))

    assert movie.tracks[0].presented_s(movie.timescale) == (2.0, 5.0)


def test_an_edit_cannot_show_more_than_the_track_holds() -> None:
    movie = movie_of(media.movie(media.track(samples=10, delta=100, edits=[(60_000, 500)])))

    assert movie.tracks[0].presented_s(movie.timescale) == (0.0, 0.5)


def test_an_edit_of_length_zero_shows_the_rest() -> None:
    movie = movie_of(media.movie(media.track(samples=10, delta=100, edits=[(0, 0)])))

    assert movie.tracks[0].presented_s(movie.timescale) == (0.0, 1.0)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_the_display_matrix_gives_the_rotation(rotation: int) -> None:
    assert movie_of(media.video(0.5, rotation=rotation)).tracks[0].rotation_deg == rotation


def test_fragments_add_up_whatever_their_base_time_says() -> None:
    data = media.video(3, container_options={"movflags": "frag_keyframe+empty_moov"}, options={"g": "10"})
    moved = media.patched(data, b"tfdt", lambda tfdt: tfdt[:4] + b"\xff" * (len(tfdt) - 4))

    assert data.count(b"moof") > 1
    for movie in (movie_of(data), movie_of(moved)):
        assert movie.fragmented
        assert movie.tracks[0].media_s == pytest.approx(3.0)
        assert movie.tracks[0].samples == 30


def test_fragment_defaults_are_found_before_or_after_the_tracks() -> None:
    track = media.track(samples=0)
    trex = media.box(b"mvex", media.full_box(b"trex", struct.pack(">IIIII", 1, 1, 50, 4, 0)))
    traf = media.box(
        b"traf", media.full_box(b"tfhd", struct.pack(">I", 1)), media.full_box(b"trun", struct.pack(">I", 20))
    )

    for moov in (media.movie(track, extra=trex), media.movie(trex, track)):
        assert movie_of(moov + media.box(b"moof", traf)).tracks[0].media_s == 1.0


def test_a_missing_movie_header_is_called_truncated() -> None:
    with pytest.raises(MalformedMedia, match="truncated"):
        movie_of(media.video(2)[:1500])


def test_a_compressed_movie_header_is_refused_unopened() -> None:
    with pytest.raises(UnsupportedMedia, match="cmov"):
        movie_of(media.cmov_bomb(1 << 20))


@pytest.mark.parametrize(
    "data",
    [
        media.stsz_bomb(1, 40_000_000),
        media.stsz_bomb(1, 0xFFFFFFFF),
        media.movie(media.track(samples=9, sample_bytes=0)),
        media.elst_bomb(edits=10_001),
    ],
    ids=["samples", "most samples", "sizes not listed", "edits"],
)
def test_tables_that_promise_more_than_the_file_holds_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedMedia, match=r"sample table promises|edit list"):
        movie_of(data)


@pytest.mark.parametrize("flags", [0, 0x100, 0x200, 0x300])
def test_fragments_that_promise_more_than_the_file_holds_are_refused(flags: int) -> None:
    run = media.full_box(b"trun", struct.pack(">I", 0xFFFFFFF0), flags=flags)
    traf = media.box(b"traf", media.full_box(b"tfhd", struct.pack(">III", 1, 50, 8), flags=0x18), run)

    with pytest.raises(MalformedMedia, match="fragment promises"):
        movie_of(media.movie(media.track(samples=0)) + media.box(b"moof", traf))


def test_a_negative_sample_duration_counts_as_nothing() -> None:
    assert movie_of(media.movie(media.track(samples=3, delta=0xFFFFFFFF))).tracks[0].media_s == 0.0


def test_a_time_scale_of_zero_is_no_time() -> None:
    movie = movie_of(media.movie(media.track(samples=3, timescale=0), timescale=0))

    assert movie.header_s == 0.0
    assert movie.tracks[0].presented_s(movie.timescale) == (0.0, 0.0)


def test_boxes_without_end_are_cut_short() -> None:
    with pytest.raises(MalformedMedia, match="boxes"):
        movie_of(b"\0\0\0\x08free" * 200_001)
