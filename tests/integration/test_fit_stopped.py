"""`weighlock fit` stopped in the middle, as a terminal does and as a supervisor does: at once, with nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median

import pytest

import media
from integration.test_transforms_life import busy, descendants

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into processes through /proc")

GOAL_S, BOUND_S = 1.0, 5.0
"""What is promised, and what even a machine with much else to do keeps."""
SETTINGS = """
version: 1
accounts: {a: {backend: developer, api_key_env: X}}
default: {account: a, model: gemini-3.8-flash}
"""
COMMAND = "from weighlock.cli import main; main()"
ENDS = {signal.SIGINT: (130, b"stopped"), signal.SIGTERM: (143, b"")}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for name in ("spool", "made"):
        (tmp_path / name).mkdir()
    (tmp_path / "weighlock.yaml").write_text(SETTINGS)
    (tmp_path / "made/request.json").write_text("of an earlier run")
    yield tmp_path
    assert os.listdir(tmp_path / "spool") == []  # noqa: PTH208


class Running:
    """The command in a process group of its own, as a shell starts it."""

    def __init__(self, folder: Path, *words: str) -> None:
        environment = {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder / "spool"), "HOME": str(folder)}
        self.spool = str(folder / "spool")
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "fit", *words, "--out", "made"],
            cwd=folder, env={**environment, "PATH": os.environ["PATH"]}, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.seen: set[int] = set()

    def wait_until(self, what: Callable[[], object]) -> None:
        until = time.monotonic() + 30
        while not what():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        self.seen = descendants(self.process.pid)

    def spooled(self) -> bool:
        """Whether it holds a nameless file open."""
        for one in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed
                if str(one.readlink()).startswith(self.spool):
                    return True
        return False

    def is_making(self) -> bool:
        """Whether something is being made: the file it goes to is open, and a child is busy for longer than a probe."""
        if not self.spooled():
            return False
        time.sleep(0.5)
        return bool(busy(descendants(self.process.pid)))

    def stop(self, *signals: signal.Signals) -> float:
        """To the whole group, as Ctrl-C is; the seconds until it has ended."""
        begin = time.monotonic()
        for one in signals:
            os.killpg(self.process.pid, one)
        _, self.said = self.process.communicate(timeout=30)
        return time.monotonic() - begin

    def left(self) -> set[int]:
        """Of its children, those that still run a moment later."""
        time.sleep(0.2)
        return {pid for pid in self.seen if Path(f"/proc/{pid}").exists()}


def told(seconds: float) -> None:
    print(f"ended within {seconds:.3f} s, goal {GOAL_S:g} s")
    assert seconds < BOUND_S


@pytest.mark.parametrize("sent", ENDS, ids=lambda sent: sent.name)
def test_a_long_film_is_given_up_at_once(folder: Path, sent: signal.Signals) -> None:
    (folder / "long.mkv").write_bytes(media.endless(600))
    running = Running(folder, "long.mkv")
    running.wait_until(running.is_making)
    assert running.seen

    told(running.stop(sent))

    assert (running.process.returncode, running.said.strip()) == ENDS[sent]
    assert not running.left()
    assert [path.name for path in (folder / "made").iterdir()] == ["request.json"]
    assert (folder / "made/request.json").read_text() == "of an earlier run"


@pytest.mark.parametrize("sent", ENDS, ids=lambda sent: sent.name)
def test_one_who_waits_for_standard_input_ends_too(folder: Path, sent: signal.Signals) -> None:
    running = Running(folder, "-")
    running.wait_until(running.spooled)

    told(running.stop(sent))

    assert (running.process.returncode, running.said.strip()) == ENDS[sent]


@pytest.mark.slow
def test_an_impatient_second_ctrl_c_changes_nothing(folder: Path) -> None:
    (folder / "long.mkv").write_bytes(media.endless(600))
    running = Running(folder, "long.mkv")
    running.wait_until(running.is_making)

    told(running.stop(signal.SIGINT, signal.SIGINT, signal.SIGINT))

    assert running.process.returncode == 130
    assert b"Traceback" not in running.said
    assert not running.left()


@pytest.mark.slow
@pytest.mark.parametrize("sent", ENDS, ids=lambda sent: sent.name)
def test_whenever_it_is_stopped_nothing_is_left(folder: Path, sent: signal.Signals) -> None:
    """Also while it starts, probes, plans, or writes."""
    (folder / "long.mkv").write_bytes(media.endless(20))
    (folder / "a.gif").write_bytes(media.picture((2000, 1500), "GIF"))
    took = []
    for delay_s in (0.05, 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5):
        running = Running(folder, "a.gif", "long.mkv")
        time.sleep(delay_s)
        running.seen = descendants(running.process.pid)
        took.append(running.stop(sent))

        assert running.process.returncode in (ENDS[sent][0], -sent, 0), running.said
        assert not running.left()
        assert {path.name for path in (folder / "made").iterdir()} <= {"request.json", "a.png", "long.mp4"}
    print(f"median {median(took):.3f} s, at most {max(took):.3f} s, goal {GOAL_S:g} s")
    assert max(took) < BOUND_S
