"""Hostile media through every transform: in bounded time and memory a typed error, or no more than was asked for.

Nothing is left of it, neither a process nor a file, and nothing else is opened.
"""

from __future__ import annotations

import io
import os
import random
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

import films
import media
from integration.test_transforms_life import MIB, MP4, WORKS, descendants, gone_or_idle, open_files
from weighlock.codecs import MakeLimits, ProbeLimits, Transformer, make_bytes
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge, UnsupportedMedia
from weighlock.media.work import DocumentWork, ImageWork, Made, StillsWork, StripWork, Work
from weighlock.request import Box

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts processes through /proc")

LONGEST_S = MakeLimits().wall_s(MakeLimits().base_cpu_s) + 2 * ProbeLimits().wall_s
"""What the limits promise of a still, or of a few seconds, with the looks before and after. Most take far less."""
LARGEST_CHILD, LARGEST_HOST_GROWTH = 1024 * MIB, 128 * MIB
"""A child may allocate 768 MiB on top of the worker, and maps the file."""
MOVING: dict[str, Work] = {**WORKS, "bare": StripWork()}
STILL: dict[str, Work] = {
    "smaller": ImageWork(max_width_px=64, max_height_px=64),
    "jpeg": ImageWork(mime="image/jpeg"),
    "bytes": ImageWork(mime="image/webp", max_bytes=2_000),
    "corner": ImageWork(mime="image/png", crop=Box(left=0, top=0, right=4, bottom=4)),
    "second frame": ImageWork(mime="image/png", frame=1),
    "last frame": ImageWork(mime="image/png", frame=99_999),
    "bare": StripWork(),
    "bare and smaller": ImageWork(max_width_px=64, max_height_px=64, strip_metadata=True),
    "stills": StillsWork(fps=1, frames=4, columns=2, max_width_px=64, max_height_px=64),
}
HARD = {asked: STILL[asked] for asked in ("smaller", "last frame", "bare")}
"""Of what takes each of them to the limit of CPU."""
DECODED: dict[str, Work] = {asked: work for asked, work in STILL.items() if isinstance(work, ImageWork)}
PAGES: dict[str, Work] = {
    "first": DocumentWork(first_page=1, last_page=1),
    "many": DocumentWork(first_page=1, last_page=999),
    "bare and first": DocumentWork(first_page=1, last_page=1, strip_metadata=True),
    "bare": StripWork(),
}


# ---- the files


def _nested(kind: bytes, deep: int = 20_000) -> bytes:
    body = b"".join(struct.pack(">I", 8 * (deep - at)) + kind for at in range(deep))
    return media.box(b"ftyp", b"isom\0\0\0\0isom") + body


def _times(count: int, delta: int) -> bytes:
    """A film whose samples are said to be so many, so far apart."""
    entry = struct.pack(">II", count, delta & 0xFFFFFFFF)
    return media.patched(films.film(1, sound_codec=None), b"stts", lambda old: old[:8] + entry + old[16:])


def _clock(scale: int) -> bytes:
    return media.patched(films.film(1), b"mvhd", lambda old: old[:12] + struct.pack(">I", scale) + old[16:])


def _tiff(frames: int) -> bytes:
    """Directories one behind the other, each of one pixel."""
    entries = [
        (256, 3, 1, 1),
        (257, 3, 1, 1),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, 8),
        (279, 4, 1, 1),
    ]
    size = 2 + 12 * len(entries) + 4
    body = b"".join(
        struct.pack("<H", len(entries))
        + b"".join(struct.pack("<HHII", *entry) for entry in entries)
        + struct.pack("<I", 10 + size * (at + 1) if at + 1 < frames else 0)
        for at in range(frames)
    )
    return b"II*\0" + struct.pack("<I", 10) + b"\0\0" + body


def _forged(form: str, side: int) -> bytes:
    """A picture whose container claims another size than its pixels have."""
    drawn = io.BytesIO()
    Image.new("RGB", (64, 64)).save(drawn, form)
    return media.patched(drawn.getvalue(), b"ispe", lambda old: old[:4] + struct.pack(">II", side, side))


def _junk_pdf(size: int = 20_000_000) -> bytes:
    objects = b"".join(b"%d 0 obj\n<</A %d>>\nendobj\n" % (at, at) for at in range(1, size // 30))
    return b"%PDF-1.4\n" + objects + b"trailer\n<</Root 1 0 R>>\n%%EOF"


def _compressed(name: bytes, unpacked: int) -> bytes:
    return media.png_header((8, 8), media.png_chunk(name, b"x\0\0" + zlib.compress(bytes(unpacked), 9)))


Draw = Callable[[], bytes]
FILM = partial(films.film, 3)
MINUTE = partial(media.sound, 60, "libmp3lame", "mp3")
ATTACKS: dict[str, tuple[Draw, str, dict[str, Work], type[InputError] | None]] = {
    # the file, what it passes for, what is asked for, and the error that every work ends in; None where some end well
    "sample table": (media.stsz_bomb, MP4, MOVING, MalformedMedia),
    "one sample table": (lambda: media.stsz_bomb(1, 80_000_000), MP4, MOVING, MalformedMedia),
    "compressed header": (media.cmov_bomb, "video/quicktime", MOVING, UnsupportedMedia),
    "thousand tracks": (media.many_tracks, MP4, MOVING, UnsupportedMedia),
    "five thousand tracks": (lambda: media.many_tracks(5000), MP4, MOVING, InputError),
    "edit lists": (media.elst_bomb, MP4, MOVING, None),
    "two hundred edits": (lambda: media.elst_bomb(200, 90_000), MP4, MOVING, None),
    "huge frames": (
        lambda: media.video(1, "mov", fps=1, codec="png", size=(8000, 8000), pixel_format="rgb24"),
        "video/quicktime", MOVING, InputError,
    ),
    "more than huge frames": (
        lambda: media.video(1, "mov", fps=1, codec="png", size=(16_000, 16_000), pixel_format="gray"),
        "video/quicktime", MOVING, InputError,
    ),
    "large frames": (
        lambda: media.video(1, fps=2, size=(8192, 8192), options={"preset": "ultrafast"}), MP4, MOVING, None,
    ),
    "sparse": (lambda: media.box(b"ftyp", b"isom") + bytes(64 * MIB), MP4, MOVING, InputError),
    "zeros": (lambda: bytes(256 * MIB), "audio/mpeg", MOVING, InputError),
    "random": (lambda: random.Random(1).randbytes(20_000_000), MP4, MOVING, InputError),
    "random frames": (lambda: random.Random(2).randbytes(20_000_000), "audio/mpeg", MOVING, None),
    "nested user data": (lambda: _nested(b"udta"), MP4, MOVING, InputError),
    "nested headers": (lambda: _nested(b"moov"), MP4, MOVING, InputError),
    "only a brand": (lambda: media.box(b"ftyp", b"isom\0\0\0\0isom"), MP4, MOVING, InputError),
    "empty": (lambda: b"", MP4, MOVING, InputError),
    "cut header": (lambda: media.header_first(FILM())[:900], MP4, MOVING, InputError),
    "clock of nothing": (lambda: _clock(0), MP4, MOVING, None),
    "clock of four thousand million": (lambda: _clock(2**32 - 1), MP4, MOVING, None),
    "times without end": (lambda: _times(2**32 - 1, 2**32 - 1), MP4, MOVING, None),
    "times that go back": (lambda: _times(20, -1), MP4, MOVING, None),
    "fast clock": (lambda: media.with_fast_clock(FILM()), MP4, MOVING, None),
    "slow Matroska": (
        lambda: media.with_matroska_scale(FILM("matroska"), 16_000_000), "video/x-matroska", MOVING, None,
    ),
    "Matroska says for ever": (
        lambda: media.with_matroska_duration(media.sound(5, "aac", "matroska"), 1e15), "audio/x-matroska", MOVING, None,
    ),
    "clusters leap": (
        lambda: media.with_cluster_times(films.film(12, "matroska", gop=20), lambda n, at: at + 50_000 * (n > 0)),
        "video/x-matroska", MOVING, None,
    ),
    "noise in the middle": (
        lambda: FILM()[:3000] + random.Random(3).randbytes(2000) + FILM()[5000:], MP4, MOVING, None,
    ),
    "playlist": (lambda: media.HLS % 9, MP4, MOVING, InputError),
    "concat": (lambda: media.CONCAT % b"film.mp4", "video/webm", MOVING, InputError),
    "session": (lambda: media.SDP % 9, "audio/mpeg", MOVING, InputError),
    "Xing says two thousand million": (
        lambda: media.with_xing_frames(MINUTE(), 2**31 - 1), "audio/mpeg", MOVING, None,
    ),
    "Xing says one": (lambda: media.with_xing_frames(MINUTE(), 1), "audio/mpeg", MOVING, None),
    "short wave": (lambda: media.wav(1, data_size=2**32 - 1), "audio/wav", MOVING, None),
    "wave of one a second": (
        lambda: media.with_wave_format(media.wav(9), rate=1, byte_rate=2), "audio/wav", MOVING, None,
    ),
    "wave of all channels": (lambda: media.with_wave_format(media.wav(9), channels=65535), "audio/wav", MOVING, None),
    "wave of no bytes a second": (lambda: media.with_wave_format(media.wav(9), byte_rate=0), "audio/wav", MOVING, None),
    "huge picture": (lambda: media.png_header((100_000, 100_000)), "image/png", STILL, InputError),
    "large picture": (lambda: media.picture((13_000, 13_000), mode="RGBA"), "image/png", STILL, None),
    "compressed comment": (lambda: media.ztxt_bomb(50_000_000), "image/png", STILL, None),
    "compressed profile": (lambda: _compressed(b"iCCP", 50_000_000), "image/png", STILL, None),
    "half a million chunks": (
        lambda: media.png_header((8, 8), *[media.png_chunk(b"teSt", b"")] * 500_000), "image/png", STILL, None,
    ),
    "a hundred thousand frames": (lambda: media.animated_gif((9000, 9000), 100_000), "image/gif", HARD, None),
    "frames that are claimed": (
        lambda: media.png_header((8, 8), media.png_chunk(b"acTL", b"\x7f\xff\xff\xff\0\0\0\0")),
        "image/png", STILL, None,
    ),
    "directories in a row": (lambda: _tiff(100_000), "image/tiff", STILL, InputError),
    "thousand scans": (lambda: media.jpeg_of_many_scans((9000, 9000), 1000), "image/jpeg", DECODED, MediaTooLarge),
    "film of thousand scans": (
        lambda: media.film_of_pictures(media.jpeg_of_many_scans((3000, 3000), 1000), (3000, 3000), 8, "avi"),
        "video/x-msvideo", MOVING, None,
    ),
    "forged AVIF": (lambda: _forged("AVIF", 9000), "image/avif", STILL, None),
    "forged huge AVIF": (lambda: _forged("AVIF", 60_000), "image/avif", STILL, None),
    "PostScript": (
        lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n", "image/x-eps", STILL, InputError,
    ),
    "object stream": (media.object_stream_bomb, "application/pdf", PAGES, InputError),
    "circle of pages": (media.cyclic_pdf, "application/pdf", PAGES, InputError),
    "fan of pages": (media.fan_pdf, "application/pdf", PAGES, InputError),
    "a thousand pages said to be one": (lambda: media.pdf_that_lies(1000, 1), "application/pdf", PAGES, None),
    "one page said to be a thousand million": (lambda: media.pdf_that_lies(1, 10**9), "application/pdf", PAGES, None),
    "too many pages": (lambda: media.pdf_that_lies(1001, 1), "application/pdf", PAGES, MediaTooLarge),
    "junk for objects": (_junk_pdf, "application/pdf", PAGES, InputError),
    "junk in front": (lambda: bytes(2000) + media.pdf(), "application/pdf", PAGES, None),
}  # fmt: skip


# ---- what holds for each


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Transformer() as one:
        yield one


def resident_bytes(pid: int | str) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


@contextmanager
def watched() -> Iterator[dict[str, int]]:
    """The largest this process and any of its children were meanwhile."""
    peaks, over = {"host": resident_bytes("self"), "child": 0}, threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            peaks["host"] = max(peaks["host"], resident_bytes("self"))
            peaks["child"] = max(peaks["child"], *map(resident_bytes, descendants(os.getpid())), 0)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def attacked(transformer: Transformer, data: bytes, mime: str, work: Work) -> Made | InputError:
    before, begin = resident_bytes("self"), time.monotonic()
    answer: Made | InputError
    with watched() as peaks:
        try:
            _, answer = make_bytes(transformer, data, mime=mime, work=work)
        except InputError as error:
            answer = error
    assert time.monotonic() - begin < LONGEST_S
    assert peaks["child"] < LARGEST_CHILD + len(data)
    assert peaks["host"] - before < LARGEST_HOST_GROWTH
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_media_end_in_a_typed_error_or_in_what_was_asked_for(
    transformer: Transformer, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, mime, works, expected = ATTACKS[name]
    (tmp_path / "film.mp4").write_bytes(films.film(1))
    (tmp_path / "spool").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spool"))
    make_bytes(transformer, media.picture((8, 8)), mime="image/png", work=ImageWork(max_width_px=4))
    files, data = open_files(), draw()

    answers = {asked: attacked(transformer, data, mime, work) for asked, work in works.items()}

    for asked, answer in answers.items():
        if expected is not None:
            assert isinstance(answer, expected), (asked, answer)
        elif isinstance(answer, Made):
            assert answer.size_bytes < max(64 * MIB, 2 * len(data)), asked
        else:
            assert answer.message
            assert str(tmp_path) not in answer.message
    assert open_files() == files
    assert gone_or_idle(os.getpid(), within_s=1)
    assert os.listdir("spool") == []  # noqa: PTH208
    assert sorted(path.name for path in tmp_path.iterdir()) == ["film.mp4", "spool"]


@pytest.mark.parametrize(
    ("attack", "asked"),
    [
        ("sample table", "thin"), ("compressed header", "exact"), ("thousand tracks", "copy"), ("cut header", "sound"),
        ("playlist", "thin"), ("huge picture", "smaller"), ("circle of pages", "first"), ("fan of pages", "bare"),
    ],
)  # fmt: skip
def test_a_bomb_ends_in_a_typed_error(transformer: Transformer, attack: str, asked: str) -> None:
    draw, mime, works, expected = ATTACKS[attack]

    assert expected is not None
    assert isinstance(attacked(transformer, draw(), mime, works[asked]), expected)
