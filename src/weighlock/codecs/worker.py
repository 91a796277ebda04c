"""The worker program: takes jobs from a socket, forks a confined child for each, and tells how each one ended.

It never reads a medium itself, holds no credentials (its environment is empty), and ends when its host does.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import NoReturn

from weighlock.codecs import confine, seccomp, wire
from weighlock.codecs import job as job_module

HELLO = b"ready"
_JOB_BYTES = 64 * 1024


@dataclass(slots=True)
class _Spare:
    """A child forked ahead of its job, so that the host need not wait for the fork. It still serves one job only."""

    pid: int
    answer: int
    inbox: socket.socket


@dataclass(slots=True)
class _Child:
    pid: int
    answer: int
    reply: socket.socket
    deadline: float
    said: bytearray = field(default_factory=bytearray)
    progress: int = -1
    told: bool = False
    """The host has its answer; what is left is to see the child off."""


class Worker:
    """The loop of the program. One thread, no locks: forking is safe because nothing else runs."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, None)
        self._children: dict[int, _Child] = {}
        self._ready: set[str] = set()
        self._spare: _Spare | None = None

    def serve(self) -> None:
        """Work until the host closes its end, then kill what is left."""
        while True:
            events = self._selector.select(0)
            if not events:
                self._fork_ahead()
                events = self._selector.select(self._patience())
            for key, _ in events:
                child: _Child | None = key.data
                if child is None:
                    if not self._take():
                        self._kill_all()
                        return
                elif self._children.get(child.pid) is child:
                    self._listen(child, key.fileobj)
            now = time.monotonic()
            for child in [c for c in self._children.values() if c.deadline <= now]:
                self._end(child, timed_out=True)

    def _patience(self) -> float | None:
        nearest = min((child.deadline for child in self._children.values()), default=None)
        return None if nearest is None else max(0.0, nearest - time.monotonic())

    def _fork_ahead(self) -> None:
        """Have a spare ready once there is something worth inheriting."""
        if self._spare is None and self._ready:
            with contextlib.suppress(OSError):  # no room for another process now: the job will say so, if it still is
                self._spare = self._fork()

    def _take(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, _JOB_BYTES, 3)
        except OSError:
            return False
        if not data:
            return False
        reply = socket.socket(fileno=fds[0])
        media = fds[1:]
        try:
            job = wire.Job.load(data)
            if job_module.prepare(job, self._ready):
                self._drop_spare()
            self._start(job, data, media, reply)
        except Exception as error:  # a missing library or a failed fork is told to the host, not died of
            _send(reply, wire.Outcome(trouble=f"{type(error).__name__}: {error}"[:500]))
        finally:
            for fd in media:
                os.close(fd)
        return True

    def _start(self, job: wire.Job, data: bytes, media: list[int], reply: socket.socket) -> None:
        try:
            spare = self._hand_over(data, media)
        except OSError:  # the child forked ahead was killed while it waited, as when memory ran short
            self._drop_spare()
            spare = self._hand_over(data, media)
        self._spare = None
        child = _Child(spare.pid, spare.answer, reply, time.monotonic() + job.wall_s)
        self._children[child.pid] = child
        self._selector.register(child.answer, selectors.EVENT_READ, child)
        self._selector.register(reply, selectors.EVENT_READ, child)

    def _hand_over(self, data: bytes, media: list[int]) -> _Spare:
        if self._spare is None:
            self._spare = self._fork()
        socket.send_fds(self._spare.inbox, [data], media)
        self._spare.inbox.close()
        return self._spare

    def _fork(self) -> _Spare:
        ours, theirs = os.pipe()
        inbox, outbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            os.close(ours)
            inbox.close()
            raise
        else:
            if pid == 0:
                _live(outbox, theirs, program)
            return _Spare(pid, ours, inbox)
        finally:
            os.close(theirs)
            outbox.close()

    def _drop_spare(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.inbox.close()
            os.close(spare.answer)
            os.kill(spare.pid, signal.SIGKILL)
            os.waitpid(spare.pid, 0)

    def _listen(self, child: _Child, source: object) -> None:
        if source is child.reply:  # the host never speaks here, so this is a host that gave up
            self._end(child)
            return
        chunk = os.read(child.answer, 65536)
        child.said += chunk
        self._pass_on(child)
        if not chunk or len(child.said) > wire.MAX_ANSWER_BYTES:
            self._end(child)
        elif child.said.endswith(wire.END):
            self._tell(child, wire.Outcome(payload=bytes(child.said)))
            # Taking its memory down takes longer than answering did, and nobody waits for that.
            os.kill(child.pid, signal.SIGKILL)

    def _pass_on(self, child: _Child) -> None:
        """Tell the host how far a transform is; each thousandth once, so that a child cannot flood it."""
        while child.said.startswith(wire.PROGRESS_MARK) and wire.END in child.said:
            line, _, rest = child.said.partition(wire.END)
            child.said = rest
            done = wire.progress_of(bytes(line))
            if done is not None and done > child.progress:
                child.progress = done
                with contextlib.suppress(OSError):
                    child.reply.send(wire.dump_progress(done), socket.MSG_DONTWAIT)

    def _end(self, child: _Child, *, timed_out: bool = False, trouble: str = "") -> None:
        """Reap the child, and tell how it ended unless its answer was complete.

        Killing one that has already exited does not change how it exited. With `trouble` the host is told that instead:
        a child that ends because the program does says nothing about its medium.
        """
        os.kill(child.pid, signal.SIGKILL)
        _, status, usage = os.wait4(child.pid, 0)
        self._selector.unregister(child.answer)
        os.close(child.answer)
        del self._children[child.pid]
        if child.told:
            return
        if trouble:
            self._tell(child, wire.Outcome(trouble=trouble))
            return
        too_much = len(child.said) > wire.MAX_ANSWER_BYTES
        outcome = wire.Outcome(
            payload=b"" if too_much else bytes(child.said),
            exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            timed_out=timed_out,
            too_much=too_much,
            cpu_s=round(usage.ru_utime + usage.ru_stime, 3),
            peak_bytes=usage.ru_maxrss * 1024,
        )
        self._tell(child, outcome)

    def _tell(self, child: _Child, outcome: wire.Outcome) -> None:
        self._selector.unregister(child.reply)
        child.told = True
        _send(child.reply, outcome)

    def _kill_all(self) -> None:
        self._drop_spare()
        for child in list(self._children.values()):
            self._end(child, trouble=wire.CLOSING)


def _live(outbox: socket.socket, answer: int, program: int) -> NoReturn:
    """The life of a child: wait for the job, give up every right, do it, end."""
    code = 1
    try:
        gc.disable()
        confine.die_with_parent(program)
        confine.close_all_but(outbox.fileno(), answer)
        seccomp.warm_up()
        data, fds, _, _ = socket.recv_fds(outbox, _JOB_BYTES, 2)
        if data:
            medium, out = (*fds, None, None)[:2]
            job_module.run(wire.Job.load(data), medium, answer, out=out, sealed=True)
        code = 0
    finally:
        os._exit(code)


def _send(reply: socket.socket, outcome: wire.Outcome) -> None:
    with contextlib.suppress(OSError), reply:
        reply.settimeout(1.0)  # a host that stopped reading must not stop the others' answers
        reply.sendall(outcome.dump())


def main() -> None:
    """Entry of the program: its only argument is the descriptor of the control socket."""
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's to answer; the program ends with it
    seccomp.warm_up()
    control.send(HELLO)
    Worker(control).serve()
    os._exit(0)  # nothing is left to do, and Python would take itself down piece by piece


def main_once() -> None:
    """Entry of the one-shot process: job as its argument, medium on standard input, answer on standard output.

    A second argument is the descriptor to write what is made to.
    """
    job = wire.Job.load(sys.argv[1].encode())
    answer = os.dup(1)
    job_module.prepare(job, set())
    out = int(sys.argv[2]) if len(sys.argv) > 2 else None
    job_module.run(job, 0 if job.size_bytes else None, answer, out=out, sealed=False)
