"""The host's side of the worker program: starting it, handing it jobs, noticing its end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weighlock.codecs import wire
from weighlock.errors import Cancelled, ProberUnavailable
from weighlock.modality import Modality

_START_S = 20.0
"""For Python to start, and again for a library to load, on a machine with other things to do."""
GRACE_S = 2.0
"""How long the program may take over what should take it no time: ending, or telling that a child ran into the wall."""
_CHUNK = 65536
_MAPPED_BYTES = 2**20

_BOOT = (
    "import gc, json, sys; gc.disable(); sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from weighlock.codecs import worker; worker.{entry}()"
)
"""Run under `-I` and `-S`: environment, working directory and site count for nothing, the host's import path is handed
over. No garbage is collected until `job.prepare` allows it."""


GLANCE_S = 0.05
"""How often a waiting host asks whether it is still to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who wants to know how far a job is, and whether it is to be broken off. Asked and told in the waiting thread."""

    progress: Callable[[float], None] | None = None
    """Called with a share between 0 and 1 that never falls."""
    cancelled: Callable[[], bool] | None = None

    def refuse_if_cancelled(self) -> None:
        if self.cancelled is not None and self.cancelled():
            raise Cancelled("broken off by the caller")


NOBODY = Watch()


class ProgramEnded(Exception):
    """The program went away before it told how the job ended."""


class Program:
    """A running worker program. `ask` may be called from several threads at once.

    Raises:
        ProberUnavailable: it could not be started.
    """

    def __init__(self) -> None:
        command = _command("main")
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._closing = threading.Lock()
        self._sending = threading.Lock()
        self._loaded: set[Modality] = set()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [*command, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    pass_fds=(theirs.fileno(),), env=_environment(), start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                self._control.close()
                raise ProberUnavailable(f"the probing worker could not be started: {error}") from error
        try:
            self._await_hello()
        except BaseException:  # Ctrl-C while it starts: nobody will hold this program, so nobody would end it
            self.close(grace_s=0)
            raise

    def _await_hello(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None  # noqa: S101 - asked for above
        self._control.settimeout(_START_S)
        try:
            said = self._control.recv(64)
        except OSError:
            said = b""
        self._control.settimeout(None)
        if not said:
            self.close(grace_s=0.2)
            last = stderr.read().decode(errors="replace").strip().splitlines()[-1:]
            stderr.close()
            raise ProberUnavailable(f"the probing worker did not start: {' '.join(last) or 'no answer'}"[:500])
        # Read no further: nobody would drain it, and a library that complains at length must not block.
        stderr.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, job: wire.Job, medium: int | None, *, out: int | None = None, watch: Watch = NOBODY) -> wire.Outcome:
        """Hand over one job with the descriptor of its medium, and wait for how it ended.

        Whatever ends the wait early ends the child too: it sees that nobody listens.

        Raises:
            ProgramEnded: the program died, hung or was closed meanwhile; the medium has nothing to do with it.
            Cancelled: `watch` said so.
        """
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._send(job, [theirs.fileno(), *(fd for fd in (medium, out) if fd is not None)])
            try:
                outcome = wire.Outcome.load(_read_all(ours, self._patience(job), watch))
            except (OSError, ValueError) as error:
                raise ProgramEnded from error
        if outcome.says_nothing:
            raise ProgramEnded
        self._loaded.add(job.modality)
        return outcome

    def _send(self, job: wire.Job, fds: list[int]) -> None:
        with self._sending:  # closed in between, the number of the descriptor may be another socket's
            try:
                socket.send_fds(self._control, [job.dump()], fds, socket.MSG_DONTWAIT)
            except OSError as error:
                raise ProgramEnded from error

    def _patience(self, job: wire.Job) -> float:
        loads = job.task in ("versions", "make") or job.modality not in self._loaded
        return job.wall_s + GRACE_S + (_START_S if loads else 0.0)

    def close(self, *, grace_s: float = GRACE_S) -> None:
        """End the program and its children, and reap it; kill it after `grace_s`. May be called twice.

        Told to end, it reaps its children itself. Killed, it leaves that to the system.
        """
        with self._closing:
            with self._sending:
                self._control.close()
            try:
                self._process.wait(timeout=grace_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def forget(self) -> None:
        """Let go of a program that belongs to the process this one was forked from."""
        self._control.close()
        self._process.returncode = 0  # not our child: there is nothing to wait for


def ask_once(job: wire.Job, medium: int | None, *, out: int | None = None, watch: Watch = NOBODY) -> wire.Outcome:
    """The same job in a process of its own, for systems that cannot do better: slower, without a system call filter.

    Raises:
        ProberUnavailable: the process could not be started.
        Cancelled: `watch` said so.
    """
    handed = [] if out is None else [str(out)]
    try:
        process = subprocess.Popen(
            [*_command("main_once"), job.dump().decode(), *handed], pass_fds=[] if out is None else [out],
            stdin=subprocess.DEVNULL if medium is None else medium,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(),
        )  # fmt: skip
    except OSError as error:
        raise ProberUnavailable(f"the probing process could not be started: {error}") from error
    ended = threading.Event()
    timed_out = threading.Event()
    patience_s = job.wall_s + _START_S * (job.task in ("versions", "make"))
    guard = threading.Thread(target=_guard, args=(process, ended, timed_out, patience_s, watch), daemon=True)
    with process:
        guard.start()
        try:
            stdout = process.stdout
            assert stdout is not None  # noqa: S101 - asked for above
            payload = stdout.readline(wire.MAX_ANSWER_BYTES + 1)
            told = -1
            while payload.startswith(wire.PROGRESS_MARK):
                done = wire.progress_of(payload)
                if watch.progress is not None and done is not None and done > told:
                    told = done
                    watch.progress(done / 1000)
                payload = stdout.readline(wire.MAX_ANSWER_BYTES + 1)
            payload += stdout.read(wire.MAX_ANSWER_BYTES + 1 - len(payload))
            too_much = len(payload) > wire.MAX_ANSWER_BYTES
            if too_much:
                process.kill()
            code = process.wait()
        except BaseException:  # Ctrl-C: leaving the block would wait for the process
            process.kill()
            raise
        finally:
            ended.set()
            guard.join()
    watch.refuse_if_cancelled()
    return wire.Outcome(
        payload=b"" if too_much else payload,
        exit_code=max(code, 0),
        signal=max(-code, 0),
        timed_out=timed_out.is_set() and code < 0,
        too_much=too_much,
    )


def _guard(
    process: subprocess.Popen[bytes],
    ended: threading.Event,
    timed_out: threading.Event,
    patience_s: float,
    watch: Watch,
) -> None:
    """Kill a process that runs into the wall or is no longer wanted."""
    until = time.monotonic() + patience_s
    while not ended.wait(GLANCE_S if watch.cancelled else max(0.0, until - time.monotonic())):
        if time.monotonic() >= until:
            timed_out.set()
        elif watch.cancelled is None or not watch.cancelled():
            continue
        process.kill()
        return


def _command(entry: str) -> list[str]:
    if not sys.executable:
        raise ProberUnavailable("the probing worker needs a Python executable, and sys.executable is empty")
    path = [folder for folder in sys.path if folder and Path(folder).is_absolute()]
    return [sys.executable, "-I", "-S", "-c", _BOOT.format(entry=entry), json.dumps(path)]


def _environment() -> dict[str, str]:
    """Nothing but what the loader needs: API keys in the host's environment are none of the worker's business."""
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
    # Without a home named, Python looks it up in the user database. FFmpeg's tables of a long film grow in place
    # where glibc maps them; elsewhere they are copied and leave holes. What packets and reads take and give back again
    # stays with the process.
    always = {"HOME": "/", "MALLOC_MMAP_THRESHOLD_": str(_MAPPED_BYTES), "MALLOC_TRIM_THRESHOLD_": str(_MAPPED_BYTES)}
    return {**always, **{name: os.environ[name] for name in kept if name in os.environ}}


def _read_all(source: socket.socket, patience_s: float, watch: Watch) -> bytes:
    """Everything up to the end, progress apart, which is told to `watch`."""
    until = time.monotonic() + patience_s
    said = bytearray()
    while chunk := _receive(source, until, watch):
        said += chunk
        while (done := wire.pop_progress(said)) is not None:
            if watch.progress is not None:
                watch.progress(done / 1000)
        if len(said) > wire.MAX_ANSWER_BYTES + _CHUNK:
            raise ValueError("more than an answer may hold")
    return bytes(said)


def _receive(source: socket.socket, until: float, watch: Watch) -> bytes:
    while True:
        watch.refuse_if_cancelled()
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        source.settimeout(min(left, GLANCE_S) if watch.cancelled is not None else left)
        try:
            return source.recv(_CHUNK)
        except TimeoutError:
            continue


def fork_available() -> bool:
    """Whether this system can run the forking program; elsewhere each file gets a process of its own."""
    return sys.platform == "linux" and hasattr(socket, "send_fds") and hasattr(os, "fork")
