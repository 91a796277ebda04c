"""Closing a prober while it is used: the medium is never blamed, and nothing is left of the program."""

from __future__ import annotations

import contextlib
import gc
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
from weighlock.codecs import ProbeLimits, Prober, probe_bytes, wire
from weighlock.codecs import prober as prober_module
from weighlock.codecs import program as program_module
from weighlock.codecs.program import Program, ProgramEnded
from weighlock.errors import ProberUnavailable
from weighlock.media.facts import AudioFacts, ImageFacts
from weighlock.request import Modality

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts processes through /proc")

PNG = media.picture((40, 30))
SONG = media.sound(2.0, "libmp3lame", "mp3")


@pytest.fixture
def prober() -> Iterator[Prober]:
    with Prober() as one:
        yield one


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No process, no zombie and no descriptor more than before, once the test is over."""
    gc.collect()
    before, open_before = set(children()), descriptors()
    yield
    gc.collect()
    assert set(children()) <= before
    assert descriptors() == open_before


def children() -> list[int]:
    """Of this process, zombies included."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a Path per descriptor would be one more


def weigh(prober: Prober) -> object:
    return probe_bytes(prober, PNG, mime="image/png", modality=Modality.IMAGE).facts


def listen(prober: Prober) -> object:
    return probe_bytes(prober, SONG, mime="audio/mpeg", modality=Modality.AUDIO).facts


def test_a_prober_closed_again_and_again_under_eight_threads_never_blames_a_medium(prober: Prober) -> None:
    stop = threading.Event()
    answered: list[object] = []

    def work(number: int) -> list[BaseException]:
        unexpected: list[BaseException] = []
        while not stop.is_set():
            try:
                answered.append(weigh(prober) if number % 2 else listen(prober))
            except ProberUnavailable as error:
                if "closed while probing" not in error.message:
                    unexpected.append(error)
            except Exception as error:  # whatever it is, it is not what was promised
                unexpected.append(error)
        return unexpected

    with ThreadPoolExecutor(8) as pool:
        running = [pool.submit(work, number) for number in range(8)]
        for pause in range(24):
            time.sleep(0.02 * (pause % 12))
            prober.close()
        time.sleep(0.5)
        stop.set()
        unexpected = [error for future in running for error in future.result()]
    prober.close()

    assert unexpected == []
    assert answered
    assert all(isinstance(facts, ImageFacts | AudioFacts) for facts in answered)
    assert prober._programs == set()


def test_a_probe_under_way_when_the_prober_closes_is_told_so_at_once(prober: Prober) -> None:
    weigh(prober)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(prober._ask, prober._job("sleep", wall_s=30), None)
        time.sleep(0.3)
        started = time.monotonic()
        prober.close()
        with pytest.raises(ProberUnavailable, match="closed while probing"):
            running.result(10)

    assert time.monotonic() - started < 5
    assert prober._program is None


def test_a_probe_that_waits_for_a_worker_when_the_prober_closes_starts_nothing() -> None:
    with Prober(ProbeLimits(workers=1)) as prober, ThreadPoolExecutor(1) as pool:
        with prober._turn():
            waiting = pool.submit(weigh, prober)
            time.sleep(0.3)
            prober.close()
        with pytest.raises(ProberUnavailable, match="closed while probing"):
            waiting.result(10)

        assert prober._program is None


def test_a_program_still_starting_when_the_prober_closes_is_ended_with_the_rest(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = threading.Event()
    honest = Program.__init__

    def slowly(self: Program) -> None:
        starting.set()
        time.sleep(0.3)
        honest(self)

    monkeypatch.setattr(Program, "__init__", slowly)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(weigh, prober)
        starting.wait()
        prober.close()

        assert prober._programs == set()
        with contextlib.suppress(ProberUnavailable):  # it may have been answered in time
            assert isinstance(running.result(10), ImageFacts)
        assert prober._program is None


def test_a_closed_prober_that_is_used_again_can_be_closed_again(prober: Prober) -> None:
    for _ in range(3):
        assert isinstance(weigh(prober), ImageFacts)
        assert len(prober._programs) == 1
        prober.close()
        assert prober._programs == set()


def test_a_prober_nobody_closed_ends_with_its_last_reference() -> None:
    before = set(children())
    prober = Prober()
    weigh(prober)
    started = set(children()) - before
    assert len(started) == 1

    del prober
    gc.collect()

    assert not started & set(children())


def test_a_prober_nobody_closed_ends_with_its_host() -> None:
    script = textwrap.dedent("""
        from weighlock.codecs import Prober, probe_bytes
        prober = Prober()
        prober.versions()
        print(prober._program.pid)
    """)
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)

    assert said.stderr == ""
    assert not Path(f"/proc/{said.stdout.strip()}").exists()


def test_a_stopped_program_delays_the_answer_by_its_wall_and_no_more() -> None:
    with Prober(ProbeLimits(wall_s=1)) as prober:
        listen(prober)
        assert prober._program is not None
        stopped = prober._program.pid
        os.kill(stopped, signal.SIGSTOP)
        started = time.monotonic()

        assert isinstance(listen(prober), AudioFacts)
        assert time.monotonic() - started < 1 + program_module.GRACE_S + 3  # and the time a new one takes to start
        assert stopped not in children()


def test_closing_a_stopped_program_does_not_hang(prober: Prober) -> None:
    weigh(prober)
    assert prober._program is not None
    os.kill(prober._program.pid, signal.SIGSTOP)
    started = time.monotonic()
    prober.close()

    assert time.monotonic() - started < program_module.GRACE_S + 1


def test_an_answer_nobody_had_read_when_the_program_ended_is_not_an_empty_one(prober: Prober) -> None:
    """A child that has done its work exits with 0, and so does one that never got any."""
    weigh(prober)
    program = prober._program
    assert program is not None
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(program.ask, prober._job("limits"), None)
        os.kill(program.pid, signal.SIGSTOP)
        time.sleep(0.3)
        program._control.close()
        os.kill(program.pid, signal.SIGCONT)
        with contextlib.suppress(ProgramEnded):
            assert running.result(10).payload


@pytest.mark.parametrize(
    ("outcome", "silent"),
    [
        (wire.Outcome(), True),
        (wire.Outcome(trouble=wire.CLOSING), True),
        (wire.Outcome(trouble="OSError: no room"), False),
        (wire.Outcome(payload=b"{}"), False),
        (wire.Outcome(exit_code=1), False),
        (wire.Outcome(signal=9), False),
        (wire.Outcome(timed_out=True), False),
        (wire.Outcome(too_much=True), False),
    ],
)
def test_only_the_program_s_own_end_says_nothing_of_the_medium(outcome: wire.Outcome, silent: bool) -> None:
    assert outcome.says_nothing is silent


def test_a_process_per_file_that_ends_without_a_word_is_not_the_medium_s_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prober_module, "ask_once", lambda *_, **__: wire.Outcome())
    with Prober(supervised=True) as prober, pytest.raises(ProberUnavailable, match="without a word"):
        weigh(prober)


@pytest.mark.parametrize("cut", [1, 5, 9, -1])
def test_an_outcome_cut_off_anywhere_is_noticed(cut: int) -> None:
    whole = wire.Outcome(payload=b'{"values": []}\n').dump()

    with pytest.raises(ValueError, match="cut short"):
        wire.Outcome.load(whole[:cut])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_of_the_host_ends_nothing_of_its_parent_s(prober: Prober) -> None:
    weigh(prober)
    program = prober._program
    assert program is not None
    pid = os.fork()
    if pid == 0:
        try:
            fine = prober._programs == set()
            prober.close()
            del prober
            gc.collect()
        except BaseException:  # the test runner must not go on in the child
            fine = False
        os._exit(0 if fine else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert isinstance(weigh(prober), ImageFacts)
    assert prober._program is program
