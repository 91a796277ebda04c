"""Hostile media: the host stays small, and in time comes a typed error or a figure that errs upwards."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import media
from weighlock.codecs import Prober, probe_bytes
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge, UnsupportedMedia
from weighlock.media.facts import AudioFacts, DocumentFacts, ImageFacts, Probed, VideoFacts
from weighlock.request import Modality

VIDEO, AUDIO, IMAGE, DOCUMENT = Modality.VIDEO, Modality.AUDIO, Modality.IMAGE, Modality.DOCUMENT
MINUTE = 60.0
MIB = 2**20


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    with Prober() as one:
        yield one


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def attacked(prober: Prober, data: bytes, mime: str, modality: Modality) -> Probed | InputError:
    """The answer, after checking that it came within ten seconds and left this process small."""
    before, started = resident_bytes(), time.monotonic()
    answer: Probed | InputError
    try:
        answer = probe_bytes(prober, data, mime=mime, modality=modality)
    except InputError as error:
        answer = error
    assert time.monotonic() - started < 10
    assert resident_bytes() - before < 64 * MIB
    return answer


def high_s(answer: Probed | InputError) -> float:
    """The bound the answer gives; a refusal bounds everything."""
    if isinstance(answer, InputError):
        return float("inf")
    assert isinstance(answer.facts, AudioFacts | VideoFacts)
    return answer.facts.duration_high_s


BOMBS: dict[str, tuple[Callable[[], bytes], str, Modality, type[InputError]]] = {
    "sample table": (media.stsz_bomb, "video/mp4", VIDEO, MalformedMedia),
    "one sample table": (lambda: media.stsz_bomb(1, 80_000_000), "video/mp4", VIDEO, MalformedMedia),
    "compressed header": (media.cmov_bomb, "video/quicktime", VIDEO, UnsupportedMedia),
    "thousand tracks": (media.many_tracks, "video/mp4", VIDEO, UnsupportedMedia),
    "huge frames": (
        lambda: media.video(1, "mov", fps=1, codec="png", size=(8000, 8000), pixel_format="rgb24"),
        "video/quicktime", VIDEO, MalformedMedia,
    ),
    "huge picture": (lambda: media.png_header((100_000, 100_000)), "image/png", IMAGE, MediaTooLarge),
    "compressed comment": (lambda: media.ztxt_bomb(50_000_000), "image/png", IMAGE, MalformedMedia),
    "object stream": (lambda: media.object_stream_bomb(1 << 30), "application/pdf", DOCUMENT, MalformedMedia),
    "circle of pages": (media.cyclic_pdf, "application/pdf", DOCUMENT, MalformedMedia),
    "fan of pages": (media.fan_pdf, "application/pdf", DOCUMENT, InputError),
    "too many pages": (lambda: media.pdf_that_lies(1001, 1), "application/pdf", DOCUMENT, MediaTooLarge),
    "sparse gigabyte": (lambda: media.box(b"ftyp", b"isom") + bytes(64 * MIB), "video/mp4", VIDEO, MalformedMedia),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_in_a_typed_error(prober: Prober, name: str) -> None:
    draw, mime, modality, expected = BOMBS[name]

    assert isinstance(attacked(prober, draw(), mime, modality), expected)


def test_a_picture_too_large_is_refused_with_its_size(prober: Prober) -> None:
    answer = attacked(prober, media.png_header((20_992, 10_496)), "image/png", IMAGE)

    assert isinstance(answer, MediaTooLarge)
    assert (answer.figures["width_px"], answer.figures["height_px"]) == (20_992, 10_496)


def test_a_hundred_thousand_edits_do_not_multiply(prober: Prober) -> None:
    answer = attacked(prober, media.elst_bomb(2000, 50_000), "video/mp4", VIDEO)

    assert high_s(answer) >= 5000


def test_a_hundred_thousand_gif_frames_are_not_walked(prober: Prober) -> None:
    answer = attacked(prober, media.animated_gif((9000, 9000), 100_000), "image/gif", IMAGE)

    assert isinstance(answer, Probed)
    assert isinstance(answer.facts, ImageFacts)
    assert (answer.facts.width_px, answer.facts.frames) == (9000, None)


def test_an_animation_s_claimed_frames_are_not_believed(prober: Prober) -> None:
    claim = media.png_chunk(b"acTL", b"\x7f\xff\xff\xff\0\0\0\0")
    answer = attacked(prober, media.png_header((8, 8), claim), "image/png", IMAGE)

    assert isinstance(answer, InputError) or answer.anomalies[0].code == "frame_count"


def test_a_thousand_jpeg_scans_are_not_decoded(prober: Prober) -> None:
    started = time.monotonic()
    answer = attacked(prober, media.jpeg_of_many_scans((3000, 3000), 1000), "image/jpeg", IMAGE)

    assert isinstance(answer, Probed)
    assert time.monotonic() - started < 1


@cache
@cache
def lying_minutes() -> dict[str, tuple[bytes, str]]:
    mp3, flac = media.sound(MINUTE, "libmp3lame", "mp3"), media.sound(MINUTE, "flac", "flac")
    mka, m4a = media.sound(MINUTE, "aac", "matroska"), media.sound(MINUTE, "aac", "mp4")
    return {
        "Xing says one frame": (media.with_xing_frames(mp3, 1), "audio/mpeg"),
        "Xing says zero frames": (media.with_xing_frames(mp3, 0), "audio/mpeg"),
        "Xing says ten times as many": (media.with_xing_frames(mp3, 23_000), "audio/mpeg"),
        "Xing says two thousand million": (media.with_xing_frames(mp3, 2**31 - 1), "audio/mpeg"),
        "FLAC says a second": (media.with_flac_samples(flac, 44_100), "audio/flac"),
        "FLAC says two weeks": (media.with_flac_samples(flac, 2**36 - 1), "audio/flac"),
        "FLAC does not say": (media.with_flac_samples(flac, 0), "audio/flac"),
        "Matroska says a second": (media.with_matroska_duration(mka, 1000.0), "audio/x-matroska"),
        "Matroska says for ever": (media.with_matroska_duration(mka, 1e15), "audio/x-matroska"),
        "Matroska says infinity": (media.with_matroska_duration(mka, float("inf")), "audio/x-matroska"),
        "Matroska says less than nothing": (media.with_matroska_duration(mka, -5.0), "audio/x-matroska"),
        "an MP4 clock a thousand times too fast": (media.with_fast_clock(m4a), "audio/mp4"),
        "an MP4 edit list of two milliseconds": (media.with_short_edit(m4a), "audio/mp4"),
        "an Opus WebM whose clock is a thousand times too fast": (
            media.with_matroska_scale(media.sound(MINUTE, "libopus", "webm", rate=48000), 1000),
            "audio/webm",
        ),
        "an Opus WebM whose clock is four times too fast": (
            media.with_matroska_scale(media.sound(MINUTE, "libopus", "webm", rate=48000), 250_000),
            "audio/webm",
        ),
        "an AAC Matroska whose clock is ten times too fast": (
            media.with_matroska_scale(mka, 100_000),
            "audio/x-matroska",
        ),
        "an Opus MP4 whose clock is a thousand times too fast": (
            media.with_fast_clock(media.sound(MINUTE, "libopus", "mp4", rate=48000)),
            "audio/mp4",
        ),
        "a wave header of one second": (media.wav(MINUTE, data_size=16_000), "audio/wav"),
    }


def test_no_lie_about_a_minute_bounds_it_below_a_minute(prober: Prober) -> None:
    for name, (data, mime) in lying_minutes().items():
        answer = attacked(prober, data, mime, AUDIO)

        assert high_s(answer) >= 0.95 * MINUTE, name


def test_a_lie_is_flagged_or_corrected(prober: Prober) -> None:
    for name, (data, mime) in lying_minutes().items():
        answer = attacked(prober, data, mime, AUDIO)
        assert isinstance(answer, Probed), name
        assert isinstance(answer.facts, AudioFacts)
        corrected = abs(answer.facts.duration_s - MINUTE) < 0.1 and answer.facts.duration_high_s < 1.05 * MINUTE

        assert corrected or answer.anomalies[0].code == "duration_mismatch", name


def test_a_film_clock_a_thousand_times_too_fast_is_bounded_by_its_frames(prober: Prober) -> None:
    answer = attacked(prober, media.with_fast_clock(media.video(20, fps=20)), "video/mp4", VIDEO)

    assert isinstance(answer, Probed)
    assert high_s(answer) >= 0.95 * 400 / 24
    assert answer.anomalies[0].code == "duration_mismatch"


@pytest.mark.parametrize(("kids", "count"), [(900, 1), (1, 10**9), (3, -7)])
def test_pages_are_counted_and_not_believed(prober: Prober, kids: int, count: int) -> None:
    answer = attacked(prober, media.pdf_that_lies(kids, count), "application/pdf", DOCUMENT)

    assert isinstance(answer, Probed)
    assert isinstance(answer.facts, DocumentFacts)
    assert answer.facts.pages == kids
    assert answer.facts.pages_high >= kids


@pytest.fixture
def trap() -> Iterator[tuple[int, list[object]]]:
    """A listener on loopback that notes whoever connects."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        callers: list[object] = []

        def note() -> None:
            while True:
                try:
                    connection, caller = listener.accept()
                except OSError:
                    return
                callers.append(caller)
                connection.close()

        threading.Thread(target=note, daemon=True).start()
        yield listener.getsockname()[1], callers
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("mime", "modality"),
    [
        ("video/mp4", VIDEO), ("video/webm", VIDEO), ("video/mpeg", VIDEO), ("video/mp2t", VIDEO), ("video/avi", VIDEO),
        ("video/x-flv", VIDEO), ("video/x-ms-wmv", VIDEO), ("audio/mpeg", AUDIO), ("audio/aac", AUDIO), ("audio/wav",
        AUDIO),
        ("audio/flac", AUDIO), ("audio/ogg", AUDIO), ("image/png", IMAGE), ("application/pdf", DOCUMENT),
    ],
)  # fmt: skip
def test_playlists_under_any_label_reach_nothing(
    prober: Prober, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: tuple[int, list[object]], mime: str,
    modality: Modality
) -> None:  # fmt: skip
    port, callers = trap
    (tmp_path / "victim.mp4").write_bytes(media.video(1))
    monkeypatch.chdir(tmp_path)

    for playlist in (
        media.HLS % port,
        media.CONCAT % b"victim.mp4",
        media.CONCAT % (b"http://127.0.0.1:%d/x" % port),
        media.SDP % port,
    ):
        assert isinstance(attacked(prober, playlist, mime, modality), InputError)
    assert callers == []


@pytest.mark.parametrize(("mime", "modality"), [("video/mp4", VIDEO), ("video/webm", VIDEO), ("audio/mpeg", AUDIO)])
def test_the_allow_lists_hold_where_no_filter_of_system_calls_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: tuple[int, list[object]], mime: str, modality: Modality
) -> None:
    """The filter would hide a missing allow-list: here a playlist is stopped by FFmpeg's own lists or not at all."""
    port, callers = trap
    (tmp_path / "victim.mp4").write_bytes(media.video(1))
    monkeypatch.chdir(tmp_path)

    with Prober(supervised=True) as prober:
        for playlist in (media.CONCAT % b"victim.mp4", media.HLS % port, media.SDP % port):
            begin = time.monotonic()
            assert isinstance(attacked(prober, playlist, mime, modality), InputError)
            assert time.monotonic() - begin < 5
    assert callers == []
