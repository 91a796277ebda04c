"""Audio without a container, behind whatever was put in front of it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from weighlock.mime import Flag, Window, sniff
from weighlock.request import Modality

if TYPE_CHECKING:
    from collections.abc import Callable


def id3(size: int, *, footer: bool = False) -> bytes:
    digits = bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\4\0" + (b"\x10" if footer else b"\0") + digits + bytes(size + (10 if footer else 0))


@pytest.mark.parametrize(
    ("container", "sound", "mime", "name"),
    [
        ("mp3", "libmp3lame", "audio/mpeg", "mp3"),
        ("mp2", "mp2", "audio/mpeg", "mp2"),
        ("adts", "aac", "audio/aac", "adts"),
        ("latm", "aac", "audio/x-loas", "loas"),
        ("flac", "flac", "audio/flac", "flac"),
        ("ac3", "ac3", "audio/ac3", "ac3"),
        ("eac3", "eac3", "audio/eac3", "eac3"),
    ],
)
def test_frames_say_what_they_are(mux: Callable[..., bytes], container: str, sound: str, mime: str, name: str) -> None:
    sniffed = sniff(mux(container, sound=sound))

    assert (sniffed.mime, sniffed.container, sniffed.modality) == (mime, name, Modality.AUDIO)
    assert sniffed.certain


@pytest.mark.parametrize("tag", [id3(100), id3(70_000), id3(5 << 20), id3(300, footer=True), id3(20) + id3(9_000)])
@pytest.mark.parametrize(
    ("container", "sound", "mime"),
    [
        ("mp3", "libmp3lame", "audio/mpeg"),
        ("adts", "aac", "audio/aac"),
        ("flac", "flac", "audio/flac"),
    ],
)
def test_a_tag_of_any_size_hides_nothing(
    mux: Callable[..., bytes], tag: bytes, container: str, sound: str, mime: str
) -> None:
    options = {"id3v2_version": "0", "write_xing": "0"} if container == "mp3" else {}
    sniffed = sniff(tag + mux(container, sound=sound, **options))

    assert (sniffed.mime, sniffed.certain) == (mime, True)


def test_zeros_between_tag_and_frames_are_skipped(mux: Callable[..., bytes]) -> None:
    assert sniff(id3(40) + bytes(3000) + mux("flac", sound="flac")).mime == "audio/flac"


def test_a_large_tag_costs_no_large_read(mux: Callable[..., bytes]) -> None:
    data = id3(40 << 20) + mux("adts", sound="aac")
    read_bytes: list[int] = []

    def read_at(offset: int, n: int) -> bytes:
        read_bytes.append(n)
        return data[offset : offset + n]

    sniffed = sniff(Window(data[:4096], len(data), read_at))

    assert sniffed.mime == "audio/aac"
    assert sum(read_bytes) <= 16_384


@pytest.mark.parametrize("junk", [bytes(5000), bytes(30_000), random.Random(7).randbytes(3000)])
def test_frames_behind_zeros_or_junk_are_found(mux: Callable[..., bytes], junk: bytes) -> None:
    frames = mux("mp3", sound="libmp3lame", id3v2_version="0", write_xing="0")

    sniffed = sniff(junk + frames)

    assert sniffed.mime == "audio/mpeg"
    assert Flag.LEADING_BYTES in sniffed.flags


def test_a_tag_with_nothing_behind_it_is_a_guess() -> None:
    sniffed = sniff(id3(200))

    assert (sniffed.mime, sniffed.certain) == ("audio/mpeg", False)


@pytest.mark.parametrize(
    "inner", [b"<!DOCTYPE html><html><body>hello</body></html>", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + bytes(30)]
)
def test_a_tag_in_front_of_something_else_proves_nothing(inner: bytes) -> None:
    sniffed = sniff(id3(50) + inner)

    assert (sniffed.modality, sniffed.flags) == (None, (Flag.CONTRADICTION,))


def test_a_film_behind_a_tag_is_not_called_audio(mux: Callable[..., bytes]) -> None:
    sniffed = sniff(id3(50) + mux("mp4", picture="libx264"))

    assert (sniffed.modality, sniffed.flags) == (None, (Flag.CONTRADICTION,))


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"#!AMR\n" + bytes([0x3C]) + bytes(31), "audio/amr"),
        (b"#!AMR-WB\n" + bytes(32), "audio/amr"),
        (b"MThd\0\0\0\x06\0\1\0\1\0\x60MTrk", "audio/midi"),
        (b"ADIF" + bytes(40), "audio/aac"),
        (b"MP+\x07" + bytes(40), "audio/x-musepack"),
        (b"\x7f\xfe\x80\x01" + bytes(40), "audio/vnd.dts"),
    ],
)
def test_magic_numbers_of_the_rarer_kinds(data: bytes, mime: str) -> None:
    assert (sniff(data).mime, sniff(data).modality) == (mime, Modality.AUDIO)


def test_one_sync_word_alone_is_chance() -> None:
    assert sniff(b"\xff\xfb\x90\x00" + random.Random(3).randbytes(4000)).modality is None


@pytest.mark.parametrize("lead", [b"", b"Xcur\x10\0\0\0"])
def test_pixels_that_look_like_layer_one_are_no_sound(lead: bytes) -> None:
    row = (b"\xff\xff\x49\x49\x49\xff\x48\x48" * 200)[:192]

    assert sniff(lead + row * 5 + bytes([1, 2, 3, 0]) * 2000).modality is None
