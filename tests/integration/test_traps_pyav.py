"""What goes wrong with PyAV in other programs (tests/golden/known_traps_media.md), each with all of its kind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import films
import media
from weighlock.codecs import ProbeLimits, Prober, Transformer, make_bytes, probe_bytes
from weighlock.errors import InputError
from weighlock.media.facts import VideoFacts
from weighlock.media.work import VideoWork
from weighlock.request import Modality

MP4, WEBM, MKV, TS = "video/mp4", "video/webm", "video/x-matroska", "video/mp2t"
FRAGMENTS = {"movflags": "frag_keyframe+empty_moov"}
AUDIO_FRAME_S = 1024 / 48000
QUICK = {"deadline": "realtime", "cpu-used": "8"}
"""For libvpx."""


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    with Prober(ProbeLimits(queue=64)) as one:
        yield one


@pytest.fixture(scope="module")
def transformer(prober: Prober) -> Iterator[Transformer]:
    with Transformer(prober) as one:
        yield one


def numbers(data: bytes) -> list[int]:
    return [number for _, number in films.pictures(data)]


# -- VID-018: copying packets -----------------------------------------------------------------------------------------


B_FRAMES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "mp4": ("mp4", MP4, {}),
    "fragments": ("mp4", MP4, {"container_options": FRAGMENTS}),
    "mov": ("mov", "video/quicktime", {}),
    "matroska": ("matroska", MKV, {}),
    "mpegts": ("mpegts", TS, {}),
    "flv": ("flv", "video/x-flv", {}),
    "open groups": ("mp4", MP4, {"options": {"x264-params": "open-gop=1"}}),
    "without sound": ("matroska", MKV, {"sound_codec": None}),
}


@pytest.mark.parametrize(("kind", "hushed"), [*((kind, False) for kind in B_FRAMES), ("mp4", True), ("mpegts", True)])
def test_a_copy_of_a_copy_of_a_copy_has_every_picture_at_its_time(
    transformer: Transformer, kind: str, hushed: bool
) -> None:
    form, mime, options = B_FRAMES[kind]
    work = VideoWork(keep_sound=not hushed)
    data = films.film(4, form, b_frames=3, gop=24, **options)
    shown = films.pictures(data)
    first, made = shown[0][0], data
    for _ in range(3):
        made, _ = make_bytes(transformer, made, mime=mime, work=work)
        mime = MP4

    assert numbers(made) == list(range(80))
    again = films.pictures(made)
    assert [at - again[0][0] for at, _ in again] == pytest.approx([at - first for at, _ in shown], abs=0.002)


def test_pictures_without_times_of_their_own_are_copied_or_encoded_but_not_dropped(transformer: Transformer) -> None:
    data = films.film(4, "avi", codec="mpeg4", b_frames=2, sound_codec="libmp3lame", options={"bf": "2"})

    for work in (VideoWork(), VideoWork(keep_sound=False)):
        out, _ = make_bytes(transformer, data, mime="video/avi", work=work)

        assert numbers(out) == numbers(data)


# -- VID-019: seeking -------------------------------------------------------------------------------------------------

LONG_GROUPS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "mp4": ("mp4", MP4, {}),
    "fragments": ("mp4", MP4, {"container_options": FRAGMENTS}),
    "mov": ("mov", "video/quicktime", {}),
    "matroska": ("matroska", MKV, {}),
    "mpegts": ("mpegts", TS, {}),
    "mpegts from ten seconds on": ("mpegts", TS, {"container_options": {"output_ts_offset": "10"}}),
    "webm": ("webm", WEBM, {"codec": "libvpx", "sound_codec": "libopus", "options": QUICK}),
    "a browser's recording": ("webm", WEBM, {"codec": "libvpx", "sound_codec": "libopus", "options": QUICK}),
    "avi": ("avi", "video/avi", {"codec": "mpeg4", "sound_codec": "libmp3lame"}),
    "flv": ("flv", "video/x-flv", {}),
}


@cache
def long_group(kind: str) -> tuple[bytes, str]:
    form, mime, options = LONG_GROUPS[kind]
    data = films.film(15, form, gop=300, size=(128, 64), **options)
    return (media.as_live_recording(data) if kind.startswith("a browser") else data), mime


@cache
def _long_group_shows(kind: str) -> list[tuple[float, int]]:
    return films.pictures(long_group(kind)[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG_GROUPS)
@pytest.mark.parametrize("start_s", [5.0, 13.0])
def test_a_clip_within_a_group_of_three_hundred_begins_where_it_was_asked_to(
    transformer: Transformer, kind: str, start_s: float
) -> None:
    data, mime = long_group(kind)

    out, told = make_bytes(transformer, data, mime=mime, work=VideoWork(start_s=start_s, end_s=start_s + 1.5))

    shown = films.pictures(out)
    expected = max(number for at, number in _long_group_shows(kind) if at <= start_s + 0.001)
    assert shown[0][0] == pytest.approx(0, abs=0.002)
    assert abs(shown[0][1] - expected) <= 1
    assert [number for _, number in shown] == list(range(shown[0][1], shown[-1][1] + 1))
    assert len(shown) == pytest.approx(30, abs=1)
    assert len(films.sound(out)[0]) == 2
    assert max(map(abs, films.offsets_s(out, 20))) <= 0.040
    assert told.actual_start_s is None


@pytest.mark.parametrize("kind", ["mp4", "matroska", "mpegts"])
def test_a_copy_from_within_such_a_group_says_that_it_begins_before(transformer: Transformer, kind: str) -> None:
    data, mime = long_group(kind)

    out, told = make_bytes(transformer, data, mime=mime, work=VideoWork(start_s=5, end_s=6, exact=False))

    assert told.actual_start_s == pytest.approx(0, abs=0.1)
    assert numbers(out)[0] == 0
    facts = told.probed.facts
    assert isinstance(facts, VideoFacts)
    assert facts.duration_s == pytest.approx(6, abs=0.3)


# -- VID-020: a clock for each stream ---------------------------------------------------------------------------------

CLOCKS: dict[str, tuple[str, str, dict[str, str]]] = {
    "1/15360": ("mp4", MP4, {"video_track_timescale": "15360"}),
    "1/600": ("mov", "video/quicktime", {"video_track_timescale": "600"}),
    "1/90000": ("mp4", MP4, {"video_track_timescale": "90000"}),
    "1/20": ("mp4", MP4, {"video_track_timescale": "20"}),
    "milliseconds": ("matroska", MKV, {}),
    "a transport stream": ("mpegts", TS, {}),
    "a transport stream from an hour on": ("mpegts", TS, {"output_ts_offset": "3600"}),
    "flash": ("flv", "video/x-flv", {}),
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("work", [VideoWork(start_s=1.237, end_s=4.321), VideoWork(start_s=2.5, fps=2)])
def test_pictures_and_sound_stay_together_whatever_their_clocks(
    transformer: Transformer, clock: str, work: VideoWork
) -> None:
    form, mime, options = CLOCKS[clock]
    data = films.film(6, form, container_options=options)
    before = films.offsets_s(data, 20)

    out, told = make_bytes(transformer, data, mime=mime, work=work)

    facts = told.probed.facts
    assert isinstance(facts, VideoFacts)
    assert facts.audio_duration_s is not None
    if work.fps is None:
        assert films.sound(out)[1] == pytest.approx(films.pictures(out)[-1][0] + 0.05, abs=0.05 + AUDIO_FRAME_S)
    assert facts.audio_duration_s == pytest.approx((work.end_s or 6) - (work.start_s or 0), abs=AUDIO_FRAME_S + 0.03)
    for offset in films.offsets_s(out, 20):
        assert abs((offset - before[-1] + 0.5) % 1 - 0.5) <= 0.040


# -- VID-021: nothing is left behind ----------------------------------------------------------------------------------


def _rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _program(prober: Prober) -> int:
    assert prober._program is not None
    return prober._program.pid


@pytest.mark.slow
def test_two_hundred_media_leave_neither_memory_nor_descriptors_behind(
    prober: Prober, transformer: Transformer
) -> None:
    film = films.film(1, size=(64, 48))
    broken = film[: len(film) // 2]

    def rounds(count: int) -> None:
        for number in range(count):
            data = broken if number % 5 == 0 else film
            try:
                probe_bytes(prober, data, mime=MP4, modality=Modality.VIDEO)
            except InputError:
                assert data is broken
            if number % 25 == 0:
                make_bytes(transformer, film, mime=MP4, work=VideoWork(fps=1))

    def left() -> tuple[int, int, int]:
        descriptors = sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in (os.getpid(), _program(prober)))
        return _rss_bytes(os.getpid()), _rss_bytes(_program(prober)), descriptors

    rounds(25)
    before, program = left(), _program(prober)
    rounds(175)
    after = left()

    assert _program(prober) == program
    assert after[0] - before[0] < 20 * 2**20
    assert after[1] - before[1] < 20 * 2**20
    assert abs(after[2] - before[2]) <= 4


# -- VID-022: threads -------------------------------------------------------------------------------------------------


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("codec", ["libx264", "libvpx", "mpeg4"])
@pytest.mark.parametrize("work", [VideoWork(start_s=1, end_s=3), VideoWork(fps=2, max_width_px=320)])
def test_pictures_are_decoded_and_encoded_without_threads(
    prober: Prober, transformer: Transformer, work: VideoWork, codec: str
) -> None:
    options = QUICK if codec == "libvpx" else {}
    data = films.film(4, "matroska", size=(320, 192), codec=codec, sound_codec=None, options=options)
    most = 0

    def look(_: float) -> None:
        nonlocal most
        for child in _children(_program(prober)):
            try:
                most = max(most, len(list(Path(f"/proc/{child}/task").iterdir())))
            except OSError:
                continue

    make_bytes(transformer, data, mime=MKV, work=work, progress=look)

    assert most == 1


_COUNTING_THREADS = textwrap.dedent(
    """
    import io, os
    import films, media
    from making import BOUNDS, mapped
    from weighlock.codecs import job, pyav_audio, pyav_video
    from weighlock.codecs.encoding import Encoding
    from weighlock.media.work import AudioWork, VideoWork

    pyav_video.warm_up()
    most = 0
    def look(_):
        global most
        most = max(most, len(os.listdir("/proc/self/task")))
    film = films.film(2, "matroska", size=(64, 48), sound_codec="libmp3lame")
    for work in [
        VideoWork(start_s=0.5, end_s=1.5), VideoWork(fps=2), VideoWork(start_s=0.5, exact=False), VideoWork(),
        *(AudioWork(start_s=0.3, mime=f"audio/{form}") for form in "flac mpeg wav mp4 ogg aac aiff".split()),
    ]:
        make = (pyav_audio if isinstance(work, AudioWork) else pyav_video).make
        context = job.Context(mime="video/x-matroska", bounds=BOUNDS, encoding=Encoding(), progress=look)
        with mapped(film) as medium:
            make(medium.window, io.BytesIO(), work, context)
    print(most)
    """
)


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_sound_is_decoded_resampled_and_encoded_without_threads() -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _COUNTING_THREADS]
    counted = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)

    assert counted.stdout.strip() == "1"


def test_sixteen_at_once_hang_nothing_and_starve_nobody(prober: Prober, transformer: Transformer) -> None:
    film, song = films.film(2, size=(64, 48)), media.sound(2, "aac", "mp4")
    broken = bytearray(media.header_first(film))
    broken[len(broken) // 2 :] = bytes(len(broken) - len(broken) // 2)

    def serve(seed: int) -> int:
        answers = 0
        for number in range(6):
            data, mime, modality = ((film, MP4, Modality.VIDEO), (song, "audio/mp4", Modality.AUDIO))[number % 2]
            probe_bytes(prober, data, mime=mime, modality=modality)
            if (number + seed) % 6 == 0:
                _made_or_refused(transformer, (film, bytes(broken))[seed % 2])
            answers += 1
        return answers

    started = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(serve, range(16))) == 96

    assert time.monotonic() - started < 30


def _made_or_refused(transformer: Transformer, data: bytes) -> None:
    try:
        make_bytes(transformer, data, mime=MP4, work=VideoWork(fps=1))
    except InputError:
        return


# -- VID-023, VID-024: logging, forks, and the end of the interpreter -------------------------------------------------

_SCRIPT = """
    import io, sys, threading
    from concurrent.futures import ThreadPoolExecutor
    import films, media
    from weighlock.codecs import Prober, Transformer, make_bytes, probe_bytes
    from weighlock.errors import InputError
    from weighlock.media.work import VideoWork
    from weighlock.request import Modality

    film = bytearray(media.header_first(films.film(3, size=(96, 64))))
    for at in range(len(film) // 2, len(film), 97):
        film[at] ^= 0x5A
    film = bytes(film)

    def one(number):
        try:
            probe_bytes(prober, film, mime="video/mp4", modality=Modality.VIDEO)
            make_bytes(transformer, film, mime="video/mp4", work=VideoWork(fps=5))
        except InputError:
            pass
        return 1

    prober = Prober()
    transformer = Transformer(prober)
    with ThreadPoolExecutor(8) as pool:
        print(sum(pool.map(one, range(12))))
    threading.Thread(target=one, args=(0,), daemon=True).start()  # still at work when the interpreter ends
"""


def test_broken_films_in_eight_threads_end_without_a_word_and_so_does_the_interpreter() -> None:
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_SCRIPT)],
        check=False, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip

    assert (said.returncode, said.stdout, said.stderr) == (0, "12\n", "")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_decode_decodes_in_both(prober: Prober, transformer: Transformer) -> None:
    film = films.film(4, size=(96, 64))
    expected, _ = make_bytes(transformer, film, mime=MP4, work=VideoWork(fps=2))

    with ThreadPoolExecutor(2) as pool:
        at_work = [pool.submit(make_bytes, transformer, film, mime=MP4, work=VideoWork(fps=2)) for _ in range(2)]
        pid = os.fork()
        if pid == 0:
            try:
                fine = make_bytes(transformer, film, mime=MP4, work=VideoWork(fps=2))[0] == expected
                prober.close()
            except BaseException:  # the test runner must not go on in the child
                fine = False
            os._exit(0 if fine else 1)
        assert [future.result(timeout=30)[0] for future in at_work] == [expected, expected]

    for _ in range(300):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        time.sleep(0.1)
    else:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
