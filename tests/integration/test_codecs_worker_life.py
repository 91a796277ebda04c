"""The worker program's life: started late, restarted when it dies, ended with its host, and never in the host's way."""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import media
from weighlock.codecs import ProbeLimits, Prober, descriptor_of, probe_bytes, versions, wire
from weighlock.codecs.confine import Growth
from weighlock.codecs.job import _believable as believable
from weighlock.codecs.job import probe as probe_in_process
from weighlock.codecs.prober import _verdict
from weighlock.codecs.program import Program
from weighlock.errors import ConfinementUnavailable, MalformedMedia, MediaTooLarge, ProberUnavailable
from weighlock.media.facts import AudioFacts, ImageFacts
from weighlock.request import Modality

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts processes through /proc")

PNG = media.picture((40, 30))


@pytest.fixture
def prober() -> Iterator[Prober]:
    with Prober() as one:
        yield one


def weigh(prober: Prober, data: bytes = PNG, mime: str = "image/png", modality: Modality = Modality.IMAGE) -> object:
    return probe_bytes(prober, data, mime=mime, modality=modality).facts


def children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def program_of(prober: Prober) -> Program:
    assert prober._program is not None
    return prober._program


def gone(pid: int, *, within_s: float = 5.0) -> bool:
    """Whether the process ends in time. A zombie of somebody else's counts as ended."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a Path per descriptor would be one more


def test_importing_the_room_loads_no_codec() -> None:
    codecs = ("av", "PIL", "pi_heif", "pypdfium2", "pikepdf")
    script = f"import sys, weighlock.codecs; print([m for m in {codecs} if m in sys.modules])"

    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_probing_loads_no_codec_in_the_host() -> None:
    script = textwrap.dedent("""
        import sys
        from weighlock.codecs import Prober, probe_bytes, versions
        from weighlock.request import Modality
        with Prober() as prober:
            for modality in (Modality.IMAGE, Modality.VIDEO, Modality.DOCUMENT):
                try:
                    probe_bytes(prober, b"nothing", mime="image/png", modality=modality)
                except ValueError:
                    pass
            assert prober.versions()["av"]
        print([m for m in ("av", "PIL", "pi_heif", "pypdfium2", "pikepdf") if m in sys.modules])
    """)

    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_versions_name_every_library() -> None:
    assert {"av", "ffmpeg", "pillow", "libheif", "pypdfium2", "pikepdf", "qpdf"} <= set(versions())


def test_no_program_runs_before_the_first_probe(prober: Prober) -> None:
    before = children(os.getpid())
    assert prober._program is None

    weigh(prober)

    assert set(children(os.getpid())) - set(before) == {program_of(prober).pid}


def test_the_program_holds_no_secret_of_the_environment(prober: Prober, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "do-not-inherit-me")
    weigh(prober)

    assert b"do-not-inherit-me" not in Path(f"/proc/{program_of(prober).pid}/environ").read_bytes()


def test_every_limit_is_tried_and_holds_here(prober: Prober) -> None:
    found = prober.confinement()

    assert found.missing == ()
    assert found.mechanism == "fork+seccomp"
    assert found.as_dict()["held"] == ["memory", "cpu", "wall", "file size", "open files", "core dumps", "system calls"]


def test_required_confinement_lets_probes_through_where_it_is_complete() -> None:
    with Prober(ProbeLimits(required=True)) as prober:
        assert isinstance(weigh(prober), ImageFacts)


def test_a_process_per_file_works_and_says_what_it_lacks() -> None:
    with Prober(supervised=True) as prober:
        assert isinstance(weigh(prober), ImageFacts)
        found = prober.confinement()

        assert found.mechanism == "supervised process"
        assert found.missing == ("system calls",)
        with pytest.raises(MalformedMedia):
            weigh(prober, media.object_stream_bomb(1 << 30), "application/pdf", Modality.DOCUMENT)


def test_required_confinement_names_the_limit_that_is_missing() -> None:
    with (
        Prober(ProbeLimits(required=True), supervised=True) as prober,
        pytest.raises(ConfinementUnavailable, match="system calls"),
    ):
        weigh(prober)


@pytest.mark.parametrize("supervised", [False, True])
def test_a_child_that_takes_too_long_is_ended_by_the_wall(supervised: bool) -> None:
    with Prober(ProbeLimits(wall_s=0.4), supervised=supervised) as prober:
        started = time.monotonic()
        outcome = prober._ask(prober._job("sleep"), None)

        assert outcome.timed_out
        assert time.monotonic() - started < 3
        with pytest.raises(MalformedMedia, match=r"0\.4 s") as caught:
            _verdict(outcome, prober.limits)
        assert caught.value.figures["limit"] == "wall"


def test_a_scan_that_takes_too_long_gives_up_with_a_word() -> None:
    song = media.sound(90, "libopus", "ogg", rate=48000)
    job = Prober(ProbeLimits())._job("probe", size_bytes=len(song), mime="audio/ogg", modality=Modality.AUDIO)
    hurried = dataclasses.replace(job, cpu_s=0)

    with (
        descriptor_of(song) as fd,
        mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view,
        pytest.raises(MediaTooLarge, match="CPU"),
    ):
        probe_in_process(hurried, view)


def test_a_child_that_burns_its_time_is_ended_and_the_limit_named() -> None:
    junk = b"%PDF-1.4\n" + b"1 0 obj<<>>endobj\n" * 4_000_000
    with Prober(ProbeLimits(cpu_s=1)) as prober, pytest.raises(MalformedMedia, match="1 s of CPU") as caught:
        weigh(prober, junk, "application/pdf", Modality.DOCUMENT)

    assert caught.value.figures["limit"] == "cpu"


def test_a_probe_that_came_near_its_memory_limit_is_not_believed() -> None:
    """FFmpeg that is refused memory reports fewer packets, and no error."""
    song = media.sound(5, "libopus", "ogg", rate=48000)
    job = Prober(ProbeLimits())._job("probe", size_bytes=len(song), mime="audio/ogg", modality=Modality.AUDIO)
    with descriptor_of(song) as fd, mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        found = probe_in_process(job, view)

    assert believable(job, found, GrownBy(100 * 2**20)) is found
    with pytest.raises(MemoryError):
        believable(job, found, GrownBy(480 * 2**20))


class GrownBy(Growth):
    def __init__(self, amount: int) -> None:
        super().__init__()
        os.close(self.descriptor)
        self._amount = amount

    def bytes(self) -> int:
        return self._amount


def test_growth_is_the_peak_since_it_was_asked_for() -> None:
    script = textwrap.dedent("""
        import mmap
        from weighlock.codecs.confine import Growth
        growth = Growth()
        mmap.mmap(-1, 300 << 20).close()
        print(300 << 20 <= growth.bytes() < 310 << 20)
    """)

    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "True\n"


def test_a_probe_that_needs_more_memory_than_it_may_have_names_the_limit() -> None:
    data = media.movie(media.track(samples=900_000))
    with Prober(ProbeLimits(memory_bytes=8 * 2**20)) as prober, pytest.raises(MalformedMedia, match="8 MiB") as caught:
        weigh(prober, data, "video/mp4", Modality.VIDEO)

    assert caught.value.figures["limit"] == "memory"


def test_a_child_killed_while_it_waits_for_work_is_replaced(prober: Prober) -> None:
    weigh(prober)
    time.sleep(0.2)
    waiting = children(program_of(prober).pid)
    for pid in waiting:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)

    assert len(waiting) == 1
    assert isinstance(weigh(prober), ImageFacts)
    time.sleep(0.3)
    assert len(children(program_of(prober).pid)) == 1


def test_a_medium_longer_than_the_bound_is_refused() -> None:
    with Prober(ProbeLimits(max_duration_s=5)) as prober, pytest.raises(MediaTooLarge, match=r"max\.duration_s"):
        weigh(prober, media.sound(6, "flac", "flac"), "audio/flac", Modality.AUDIO)


def test_a_film_of_more_frames_than_the_bound_is_refused() -> None:
    with Prober(ProbeLimits(max_frames=9)) as prober, pytest.raises(MediaTooLarge, match=r"max\.frames"):
        weigh(prober, media.video(1), "video/mp4", Modality.VIDEO)


def test_a_file_that_is_not_as_long_as_it_was_is_malformed(prober: Prober) -> None:
    with descriptor_of(PNG) as fd, pytest.raises(MalformedMedia, match="changed"):
        prober.probe(fd, size_bytes=len(PNG) + 1, mime="image/png", modality=Modality.IMAGE)


def test_the_descriptor_is_neither_closed_nor_moved(prober: Prober) -> None:
    with descriptor_of(PNG) as fd:
        os.lseek(fd, 7, os.SEEK_SET)
        prober.probe(fd, size_bytes=len(PNG), mime="image/png", modality=Modality.IMAGE)

        assert os.lseek(fd, 0, os.SEEK_CUR) == 7


def test_a_killed_program_is_restarted_for_the_next_probe(prober: Prober) -> None:
    weigh(prober)
    first = program_of(prober).pid
    os.kill(first, signal.SIGKILL)

    assert isinstance(weigh(prober), ImageFacts)
    assert program_of(prober).pid != first


def test_a_program_killed_under_a_job_is_restarted_for_that_job() -> None:
    with Prober(ProbeLimits(wall_s=30)) as prober:
        weigh(prober)
        first = program_of(prober).pid
        outcomes: list[wire.Outcome] = []
        waiting = threading.Thread(target=lambda: outcomes.append(prober._ask(prober._job("sleep", wall_s=1.0), None)))
        waiting.start()
        time.sleep(0.3)
        busy = children(first)
        os.kill(first, signal.SIGKILL)
        waiting.join(20)

        assert outcomes[0].timed_out
        assert busy
        assert all(gone(pid) for pid in [first, *busy])


def test_a_program_that_dies_twice_under_one_job_is_given_up(prober: Prober, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "ask", lambda self, *_, **__: self.close() or (_ for _ in ()).throw(_ended()))

    with pytest.raises(ProberUnavailable, match="died twice"):
        weigh(prober)


def _ended() -> Exception:
    from weighlock.codecs.program import ProgramEnded

    return ProgramEnded()


def test_the_program_and_its_children_end_with_their_host() -> None:
    script = textwrap.dedent("""
        import os, sys, threading, time
        from weighlock.codecs import Prober, ProbeLimits
        prober = Prober(ProbeLimits(wall_s=60))
        threading.Thread(target=lambda: prober._ask(prober._job("sleep"), None), daemon=True).start()
        while prober._program is None:
            time.sleep(0.01)
        time.sleep(0.3)
        pid = prober._program.pid
        print(pid, *open(f"/proc/{pid}/task/{pid}/children").read().split(), flush=True)
        os.kill(os.getpid(), 9)
    """)
    said = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True).stdout.split()

    assert len(said) >= 2
    assert all(gone(int(pid)) for pid in said)


def test_closing_ends_the_program_and_a_later_probe_starts_another(prober: Prober) -> None:
    weigh(prober)
    first = program_of(prober).pid
    prober.close()
    prober.close()

    assert gone(first)
    assert isinstance(weigh(prober), ImageFacts)


def test_one_probe_too_many_is_refused_at_once() -> None:
    with Prober(ProbeLimits(workers=1, queue=1, wall_s=5)) as prober:
        weigh(prober)
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(_sleep_in_turn, prober) for _ in range(2)]
            time.sleep(0.3)
            with pytest.raises(ProberUnavailable, match="1 wait"):
                weigh(prober)
            assert [future.result() for future in running] == [True, True]


def _sleep_in_turn(prober: Prober) -> bool:
    with prober._turn():
        return prober._ask(prober._job("sleep", wall_s=0.7), None).timed_out


def test_no_more_children_run_than_there_are_workers() -> None:
    with Prober(ProbeLimits(workers=2, wall_s=5)) as prober:
        weigh(prober)
        with ThreadPoolExecutor(6) as pool:
            running = [pool.submit(_sleep_in_turn, prober) for _ in range(6)]
            time.sleep(0.4)
            busy = len(children(program_of(prober).pid))
            assert all(future.result() for future in running)

    assert busy <= 3  # two at work, and one forked ahead


def test_sixteen_threads_of_twenty_probes_leave_nothing_behind() -> None:
    film = media.video(2, sound_s=2.0)
    with Prober(ProbeLimits(queue=16)) as prober:
        weigh(prober, film, "video/mp4", Modality.VIDEO)
        weigh(prober)
        before = open_descriptors()
        program = program_of(prober).pid
        program_before = len(os.listdir(f"/proc/{program}/fd"))  # noqa: PTH208

        def twenty(seed: int) -> int:
            jobs = [(PNG, "image/png", Modality.IMAGE), (film, "video/mp4", Modality.VIDEO)]
            return sum(weigh(prober, *jobs[(seed + i) % 2]) is not None for i in range(20))

        with ThreadPoolExecutor(16) as pool:
            assert sum(pool.map(twenty, range(16))) == 320
        time.sleep(0.2)

        assert program_of(prober).pid == program
        assert open_descriptors() == before
        assert abs(len(os.listdir(f"/proc/{program}/fd")) - program_before) <= 2  # noqa: PTH208 - give or take one forked ahead
        assert len(children(program)) <= 1
        assert all(
            Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z" for pid in children(program)
        )


def test_killing_the_program_again_and_again_leaks_no_descriptor() -> None:
    with Prober() as prober:
        weigh(prober)
        before = open_descriptors()
        for _ in range(5):
            os.kill(program_of(prober).pid, signal.SIGKILL)
            weigh(prober)

        assert open_descriptors() == before


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_of_the_host_gets_a_program_of_its_own(prober: Prober) -> None:
    weigh(prober)
    ours = program_of(prober).pid
    pid = os.fork()
    if pid == 0:
        try:
            fine = isinstance(weigh(prober), ImageFacts) and program_of(prober).pid != ours
            prober.close()
        except BaseException:  # the test runner must not go on in the child
            fine = False
        os._exit(0 if fine else 1)
    status = os.waitpid(pid, 0)[1]

    assert os.waitstatus_to_exitcode(status) == 0
    assert program_of(prober).pid == ours
    assert isinstance(weigh(prober), ImageFacts)


def test_the_program_outlives_the_thread_that_started_it(prober: Prober) -> None:
    starter = threading.Thread(target=weigh, args=(prober,))
    starter.start()
    starter.join()
    first = program_of(prober).pid
    time.sleep(0.1)

    assert isinstance(weigh(prober), ImageFacts)
    assert program_of(prober).pid == first


def test_a_worker_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with Prober() as prober:
        monkeypatch.setattr(sys, "executable", "/nonexistent/python")
        with pytest.raises(ProberUnavailable, match="could not be started"):
            weigh(prober)
        monkeypatch.setattr(sys, "executable", "")
        with pytest.raises(ProberUnavailable, match="empty"):
            weigh(prober)


@pytest.mark.parametrize(
    ("outcome", "limit"),
    [
        (wire.Outcome(signal=signal.SIGXCPU), "cpu"),
        (wire.Outcome(signal=signal.SIGKILL, cpu_s=6.0), "cpu"),
        (wire.Outcome(too_much=True, signal=signal.SIGKILL), "answer"),
        (wire.Outcome(payload=b'{"audio": {"duration_s": 1e400}}'), "answer"),
        (wire.Outcome(signal=signal.SIGABRT, peak_bytes=600 * 2**20), "memory"),
        (wire.Outcome(signal=signal.SIGBUS), None),
        (wire.Outcome(signal=signal.SIGSEGV), None),
        (wire.Outcome(exit_code=1), None),
    ],
)
def test_every_way_a_child_can_end_badly_is_malformed_media(outcome: wire.Outcome, limit: str | None) -> None:
    with pytest.raises(MalformedMedia) as caught:
        _verdict(outcome, ProbeLimits())

    assert caught.value.figures.get("limit") == limit


def test_memory_does_not_grow_with_a_big_file(tmp_path: Path) -> None:
    """Two gigabytes of WAV under a limit of 64 MB: the file is mapped, not read."""
    path = tmp_path / "big.wav"
    path.write_bytes(media.wav(1, data_size=2_000_000_000))
    os.truncate(path, 2_000_000_044)
    with Prober(ProbeLimits(memory_bytes=64 * 2**20, max_duration_s=10**6)) as prober, path.open("rb") as file:
        facts = prober.probe(file.fileno(), size_bytes=2_000_000_044, mime="audio/wav", modality=Modality.AUDIO).facts

    assert isinstance(facts, AudioFacts)
    assert facts.duration_s == 125_000.0


@pytest.mark.parametrize("limits", [{"workers": 0}, {"queue": -1}, {"cpu_s": 0}, {"memory_bytes": 0}, {"wall_s": 0.0}])
def test_limits_that_make_no_sense_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ProbeLimits(**limits)  # type: ignore[arg-type]


def test_text_is_not_a_probe_s_business(prober: Prober) -> None:
    with descriptor_of(b"abc") as fd, pytest.raises(ValueError, match="text_facts"):
        prober.probe(fd, size_bytes=3, mime="text/plain", modality=Modality.TEXT)
