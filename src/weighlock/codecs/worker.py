"""The worker program: takes jobs from a socket, forks a confined child for each, and tells how each one ended.

It never reads a medium itself, holds no credentials (its environment is empty), and ends when its host does.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field

from weighlock.codecs import job as job_module
from weighlock.codecs import wire

HELLO = b"ready"
_JOB_BYTES = 64 * 1024


@dataclass(slots=True)
class _Child:
    pid: int
    answer: int
    reply: socket.socket
    deadline: float
    said: bytearray = field(default_factory=bytearray)


class Worker:
    """The loop of the program. One thread, no locks: forking is safe because nothing else runs."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, None)
        self._children: dict[int, _Child] = {}
        self._ready: set[str] = set()

    def serve(self) -> None:
        """Work until the host closes its end, then kill what is left."""
        while True:
            now = time.monotonic()
            nearest = min((child.deadline for child in self._children.values()), default=None)
            for key, _ in self._selector.select(None if nearest is None else max(0.0, nearest - now)):
                if key.data is None:
                    if not self._take():
                        self._kill_all()
                        return
                elif key.data.pid in self._children:
                    self._listen(key.data, key.fileobj)
            now = time.monotonic()
            for child in [c for c in self._children.values() if c.deadline <= now]:
                self._end(child, timed_out=True)

    def _take(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, _JOB_BYTES, 2)
        except OSError:
            return False
        if not data:
            return False
        reply = socket.socket(fileno=fds[0])
        medium = fds[1] if len(fds) > 1 else None
        try:
            job = wire.Job.load(data)
            job_module.prepare(job, self._ready)
            self._start(job, medium, reply)
        except Exception as error:  # noqa: BLE001 - a missing library or a failed fork is told to the host, not died of
            _tell(reply, wire.Outcome(trouble=f"{type(error).__name__}: {error}"[:500]))
        finally:
            if medium is not None:
                os.close(medium)
        return True

    def _start(self, job: wire.Job, medium: int | None, reply: socket.socket) -> None:
        ours, theirs = os.pipe()
        program = os.getpid()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                job_module.run(job, medium, theirs, parent=program)
                code = 0
            finally:
                os._exit(code)
        os.close(theirs)
        child = _Child(pid, ours, reply, time.monotonic() + job.wall_s)
        self._children[pid] = child
        self._selector.register(ours, selectors.EVENT_READ, child)
        self._selector.register(reply, selectors.EVENT_READ, child)

    def _listen(self, child: _Child, source: object) -> None:
        if source is child.reply:  # the host never speaks here, so this is a host that gave up
            self._end(child)
            return
        chunk = os.read(child.answer, 65536)
        child.said += chunk
        if not chunk or len(child.said) > wire.MAX_ANSWER_BYTES:
            self._end(child)

    def _end(self, child: _Child, *, timed_out: bool = False) -> None:
        """Reap the child. Killing one that has already exited does not change how it exited."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        _, status, usage = os.wait4(child.pid, 0)
        self._selector.unregister(child.answer)
        self._selector.unregister(child.reply)
        os.close(child.answer)
        del self._children[child.pid]
        too_much = len(child.said) > wire.MAX_ANSWER_BYTES
        outcome = wire.Outcome(
            payload=b"" if too_much else bytes(child.said),
            exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            timed_out=timed_out,
            too_much=too_much,
            cpu_s=round(usage.ru_utime + usage.ru_stime, 3),
        )
        _tell(child.reply, outcome)

    def _kill_all(self) -> None:
        for child in list(self._children.values()):
            self._end(child)


def _tell(reply: socket.socket, outcome: wire.Outcome) -> None:
    with contextlib.suppress(OSError), reply:
        reply.settimeout(1.0)  # a host that stopped reading must not stop the others' answers
        reply.sendall(outcome.dump())


def main() -> None:
    """Entry of the program: its only argument is the descriptor of the control socket."""
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's to answer; the program ends with it
    control.send(HELLO)
    Worker(control).serve()


def main_once() -> None:
    """Entry of the one-shot process: the job as its only argument, the medium on standard input, the answer on standard output."""
    job = wire.Job.load(sys.argv[1].encode())
    answer = os.dup(1)
    job_module.prepare(job, set())
    job_module.run(job, 0 if job.size_bytes else None, answer, parent=None)
