"""The life of a transform: progress, cancelling, limits, lies and hostile media; nothing of it is ever left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import films
import media
from weighlock.codecs import MakeLimits, Prober, Transformer, answers, make_bytes, make_file, wire
from weighlock.codecs.encoding import Encoding
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.program import Watch
from weighlock.errors import (
    Cancelled,
    InputError,
    MalformedMedia,
    MediaTooLarge,
    ProberUnavailable,
    TransformFailed,
    WeighlockError,
)
from weighlock.media.facts import Anomaly, AudioFacts, FactSource, ImageFacts, Probed, VideoFacts
from weighlock.media.work import AudioWork, DocumentWork, ImageWork, Made, StillsWork, VideoWork, Work
from weighlock.preflight import Preflight
from weighlock.request import MediaPart
from weighlock.settings import load

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts processes through /proc")

MP4 = "video/mp4"
MIB = 2**20


@pytest.fixture(scope="module")
def transformer() -> Iterator[Transformer]:
    with Transformer() as one:
        yield one


@cache
def long_film() -> bytes:
    """Takes half a minute and more to encode again."""
    return media.video(1200, fps=10, size=(320, 240), options={"preset": "ultrafast", "g": "600"})


def descendants(pid: int) -> set[int]:
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                found |= {int(child), *descendants(int(child))}
    return found


def busy(pids: set[int]) -> set[int]:
    """Those that run; a worker and its spare child sleep."""
    states = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            states[pid] = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return {pid for pid, state in states.items() if state == "R"}


def gone_or_idle(pid: int, *, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if not busy(descendants(pid)):
            return True
        time.sleep(0.02)
    return False


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a Path per descriptor would be one more


def test_progress_rises_to_one(transformer: Transformer) -> None:
    shares: list[float] = []

    make_bytes(
        transformer, media.video(60, fps=10, size=(320, 240)), mime=MP4, work=VideoWork(start_s=0.05),
        progress=shares.append,
    )  # fmt: skip

    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert len(shares) >= 3


def test_a_transform_is_cancelled_at_once_and_leaves_nothing(transformer: Transformer, tmp_path: Path) -> None:
    source, target = tmp_path / "long.mp4", tmp_path / "short.mp4"
    source.write_bytes(long_film())
    began = threading.Event()
    files = open_files()
    threading.Timer(0.8, began.set).start()
    cancelled_at: list[float] = []

    def cancelled() -> bool:
        if began.is_set() and not cancelled_at:
            cancelled_at.append(time.monotonic())
        return began.is_set()

    with pytest.raises(Cancelled):
        make_file(transformer, source, target, mime=MP4, work=VideoWork(start_s=0.05), cancelled=cancelled)

    assert time.monotonic() - cancelled_at[0] < 1
    assert [path.name for path in tmp_path.iterdir()] == ["long.mp4"]
    assert open_files() == files
    assert gone_or_idle(os.getpid(), within_s=1)


@pytest.mark.parametrize("supervised", [False, True], ids=["fork", "supervised"])
def test_ctrl_c_in_the_middle_ends_within_a_second_and_leaves_nothing(tmp_path: Path, supervised: bool) -> None:
    source = tmp_path / "long.mp4"
    source.write_bytes(long_film())
    script = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from weighlock.codecs import Prober, Transformer, make_file
        from weighlock.media.work import VideoWork
        with Prober(supervised={supervised}) as prober:
            def told(share):
                print(share, flush=True)
            make_file(Transformer(prober), Path(sys.argv[1]), Path(sys.argv[2]), mime="video/mp4",
                      work=VideoWork(start_s=0.05), progress=told)
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(source), str(tmp_path / "out.mp4")],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    left = descendants(process.pid)
    assert left
    begin = time.monotonic()

    process.send_signal(signal.SIGINT)
    process.wait(timeout=5)

    assert time.monotonic() - begin < 1
    time.sleep(0.2)
    assert not {pid for pid in left if Path(f"/proc/{pid}").exists()}
    assert [path.name for path in tmp_path.iterdir()] == ["long.mp4"]
    process.stdout.close()


def test_a_process_of_its_own_makes_the_same(transformer: Transformer) -> None:
    data, work = films.film(3), VideoWork(fps=1)
    shares: list[float] = []

    with Prober(supervised=True) as prober:
        alone, _ = make_bytes(Transformer(prober), data, mime=MP4, work=work, progress=shares.append)

    assert alone == make_bytes(transformer, data, mime=MP4, work=work)[0]
    assert shares[-1] == 1.0


def test_a_file_appears_whole_under_its_name(transformer: Transformer, tmp_path: Path) -> None:
    source, target = tmp_path / "film.mp4", tmp_path / "thin.mp4"
    source.write_bytes(films.film(3))
    target.write_bytes(b"what was there before")

    told = make_file(transformer, source, target, mime=MP4, work=VideoWork(fps=1))

    assert target.stat().st_size == told.size_bytes
    assert len(films.pictures(target.read_bytes())) == 3
    with pytest.raises(InputError):
        make_file(transformer, source, target, mime=MP4, work=VideoWork(start_s=9))
    assert target.stat().st_size == told.size_bytes
    assert {path.name for path in tmp_path.iterdir()} == {"film.mp4", "thin.mp4"}


@pytest.mark.parametrize(
    ("limits", "expected", "limit"),
    [
        (MakeLimits(base_cpu_s=1, cpu_per_media_s=0.0001, pixels_per_cpu_s=1e12), MalformedMedia, "cpu"),
        (MakeLimits(max_output_bytes=100_000), MediaTooLarge, "file size"),
        (MakeLimits(memory_bytes=12 * MIB), MalformedMedia, "memory"),
    ],
    ids=["cpu", "output", "memory"],
)
def test_each_limit_ends_in_an_error_that_names_it(limits: MakeLimits, expected: type[InputError], limit: str) -> None:
    with Prober() as prober, pytest.raises(expected) as caught:
        make_bytes(Transformer(prober, limits), long_film(), mime=MP4, work=VideoWork(start_s=0.05))

    assert caught.value.figures["limit"] == limit


def test_a_wall_limit_ends_a_child_that_sleeps() -> None:
    with Prober() as prober:
        out = os.memfd_create("out")
        job = wire.Job(task="sleep", memory_bytes=64 * MIB, cpu_s=5, wall_s=0.2)

        assert prober.ask(job, out, out, watch=Watch()).timed_out
        os.close(out)


def test_the_queue_is_bounded() -> None:
    with Prober() as prober:
        transformer = Transformer(prober, MakeLimits(workers=1, queue=0))
        started = threading.Event()

        def long_work() -> None:
            with contextlib.suppress(WeighlockError):
                make_bytes(
                    transformer, long_film(), mime=MP4, work=VideoWork(start_s=0.05),
                    progress=lambda _: started.set(), cancelled=done.is_set,
                )  # fmt: skip

        done = threading.Event()
        thread = threading.Thread(target=long_work)
        thread.start()
        assert started.wait(20)
        with pytest.raises(ProberUnavailable, match="1 transforms run, 0 wait"):
            make_bytes(transformer, films.film(1), mime=MP4, work=VideoWork(fps=1))
        done.set()
        thread.join(5)
        assert not thread.is_alive()


def test_a_worker_that_dies_under_a_transform_is_replaced(transformer: Transformer) -> None:
    data = media.video(100, fps=10, size=(320, 240))
    killed: list[int] = []

    def kill_once(_: float) -> None:
        if not killed:
            program = transformer._prober._program
            assert program is not None
            killed.append(program.pid)
            os.kill(program.pid, signal.SIGKILL)

    out, told = make_bytes(transformer, data, mime=MP4, work=VideoWork(start_s=0.05), progress=kill_once)

    assert killed
    assert told.size_bytes == len(out)


def test_another_encoder_can_be_chosen(transformer: Transformer) -> None:
    with Prober() as prober:
        other = Transformer(prober, encoding=Encoding(codec="libx265", preset="ultrafast"))
        _, told = make_bytes(other, films.film(2), mime=MP4, work=VideoWork(fps=2))

    assert isinstance(told.probed.facts, VideoFacts)
    assert told.probed.facts.codec == "hevc"


def noise(seconds: float) -> bytes:
    """As a WAV, which nothing can pack."""
    drawn = random.Random(7)
    made = bytearray(media.wav(seconds, rate=48_000))
    made[44:] = drawn.randbytes(len(made) - 44)
    return bytes(made)


def test_sound_takes_the_bits_that_are_chosen() -> None:
    sizes = []
    with Prober() as prober:
        for bits in (32_000, 160_000):
            chosen = Transformer(prober, encoding=Encoding(sound_bits_per_channel=bits))
            for mime in ("audio/mpeg", "audio/mp4", "audio/ogg"):
                _, told = make_bytes(chosen, noise(2), mime="audio/wav", work=AudioWork(mime=mime))
                sizes.append(told.size_bytes)
            _, told = make_bytes(chosen, films.film(2), mime=MP4, work=VideoWork(start_s=0.2, fps=2))
            sizes.append(told.size_bytes)

    assert all(many > 1.5 * few for few, many in zip(sizes[:3], sizes[4:7], strict=True))
    assert sizes[7] > sizes[3]


def test_the_settings_say_how_to_encode(tmp_path: Path) -> None:
    settings = load(None, environ={}, cwd=tmp_path)
    part = MediaPart(source=films.film(2), label="a.mp4", declared_mime=MP4)

    def size(crf: int) -> int:
        with Preflight(replace(settings, encoding=Encoding(crf=crf))) as preflight:
            return preflight.made(part, VideoWork(fps=2))[1].size_bytes

    assert size(10) > size(45)


WORKS: dict[str, Work] = {
    "thin": VideoWork(fps=1), "exact": VideoWork(start_s=0.2, end_s=2.0), "copy": VideoWork(start_s=0.2, exact=False),
    "whole copy": VideoWork(keep_sound=False), "sound": AudioWork(mime="audio/wav"), "sound kept": AudioWork(),
    "sound clip": AudioWork(start_s=0.2, end_s=9.0, mime="audio/mpeg"),
    "stills": StillsWork(fps=1, frames=60, columns=8, max_width_px=1056, max_height_px=576),
}  # fmt: skip


def facts(duration_s: float, *, sound: bool = True, size: tuple[int, int] = (160, 96)) -> VideoFacts:
    return VideoFacts(
        width_px=size[0], height_px=size[1], duration_s=duration_s, duration_high_s=duration_s,
        duration_source=FactSource.HEADER, average_fps=20.0, audio_tracks=int(sound),
        audio_duration_s=duration_s if sound else None,
    )  # fmt: skip


def song(duration_s: float) -> AudioFacts:
    return AudioFacts(duration_s=duration_s, duration_high_s=duration_s, duration_source=FactSource.HEADER)


@pytest.mark.parametrize(
    ("work", "source", "result", "notes", "kept"),
    [
        (VideoWork(end_s=5), facts(60), facts(5.1), (), True),
        (VideoWork(end_s=5), facts(60), facts(9), ("a note",), False),
        (VideoWork(end_s=5), facts(60), facts(2), (), False),
        (VideoWork(end_s=5), facts(60), facts(2), ("the last 3 s could not be decoded",), True),
        (VideoWork(fps=1, keep_sound=False), facts(60), facts(60), (), False),
        (VideoWork(fps=1, max_width_px=100), facts(60), facts(60), (), False),
        (VideoWork(fps=1), facts(60), song(60), (), False),
        (AudioWork(mime="audio/wav"), facts(60), song(60), (), False),
        (AudioWork(end_s=5), song(60), song(6), (), False),
        (AudioWork(end_s=5), song(60), song(5.04), (), True),
        (
            ImageWork(max_width_px=10), ImageFacts(width_px=99, height_px=9), ImageFacts(width_px=11, height_px=1), (),
            False,
        ),
    ],
)  # fmt: skip
def test_what_came_out_is_held_against_what_was_asked_for(
    work: Work, source: object, result: object, notes: tuple[str, ...], kept: bool
) -> None:
    from weighlock.codecs import promises

    made = Made(mime=MP4, size_bytes=1, probed=Probed(facts=result), notes=notes)  # type: ignore[arg-type]
    check = contextlib.nullcontext() if kept else pytest.raises(TransformFailed)

    with check:
        promises.refuse_unkept(work, Probed(facts=source), made)  # type: ignore[arg-type]


def test_a_source_that_contradicts_itself_may_come_out_shorter() -> None:
    from weighlock.codecs import promises

    half = Made(mime=MP4, size_bytes=1, probed=Probed(facts=facts(30)))
    odd = Probed(facts=facts(60), anomalies=(Anomaly(code="truncated", detail="half of it is missing"),))

    promises.refuse_unkept(VideoWork(fps=1), odd, half)
    with pytest.raises(TransformFailed):
        promises.refuse_unkept(VideoWork(fps=1), Probed(facts=facts(60)), half)


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"{}", b'{"made": {}}', b'{"made": {"mime": 5}}', b'{"made": {"mime": "video/mp4", "actual_start_s": -1}}',
        b'{"made": {"mime": "video/mp4", "notes": ["' + b"x" * 301 + b'"]}}', b'{"values": []}',
        b'{"made": {"mime": "video/mp4", "more": 1}}',
    ],
)  # fmt: skip
def test_an_account_no_honest_child_gives_is_refused(payload: bytes) -> None:
    with pytest.raises(answers.InconsistentAnswer):
        answers.load_made(payload)


def test_an_account_travels_unchanged() -> None:
    told = Outcome("video/mp4", 1.5, ("one", "two"))

    assert answers.load_made(wire.dump_made(told)) == told


@pytest.mark.parametrize("work", [*WORKS.values(), DocumentWork(first_page=1, last_page=2)])
def test_work_travels_unchanged(work: Work) -> None:
    from weighlock.codecs import orders

    assert orders.load(orders.dump(work)) == work


@pytest.mark.parametrize(
    ("line", "thousandths"),
    [(b"%5\n", 5), (b"%1000", 1000), (b"%9999", 1000), (b"%", None), (b"%-4", None), (b"%12345", None), (b"{}", None)],
)
def test_progress_is_read_with_care(line: bytes, thousandths: int | None) -> None:
    assert wire.progress_of(line) == thousandths
