"""The face of this room: bytes behind a descriptor in, facts out, whatever the bytes do."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from weighlock.codecs import answers, kinds, orders, wire
from weighlock.codecs.limits import Confinement, ProbeLimits
from weighlock.codecs.places import Places
from weighlock.codecs.program import GRACE_S, NOBODY, Program, ProgramEnded, Watch, ask_once, fork_available
from weighlock.codecs.spool import spooled
from weighlock.errors import ConfinementUnavailable, MalformedMedia, ProberUnavailable
from weighlock.media.facts import Probed
from weighlock.media.work import Work
from weighlock.modality import Modality

_EVERY_LIMIT = ("memory", "cpu", "wall", "file size", "open files", "core dumps", "system calls")
_TRIAL_WALL_S = 0.05
_NEAR = 0.8
"""A child that died having held this share of its memory limit died of it: C++ libraries abort when refused."""


class Prober:
    """Probes media in confined children of a worker program.

    The program starts with the first probe, is restarted when it dies, and ends with `close`, with the last reference
    to this object, or with the host. One `Prober` serves many threads; a process forked from the host gets a program
    of its own. `supervised` forces the mechanism of systems that cannot fork safely: one process per file.
    """

    def __init__(self, limits: ProbeLimits | None = None, *, supervised: bool = not fork_available()) -> None:
        self.limits = limits or ProbeLimits()
        self._supervised = supervised
        self._confinement: Confinement | None = None
        self._program: Program | None = None
        self._programs: set[Program] = set()
        self._reset()
        _alive.add(self)
        weakref.finalize(self, _end_all, self._programs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker program; nothing of it is left when this returns.

        Probes that run or wait meanwhile are `ProberUnavailable`. One that begins later starts the program anew.
        """
        with self._lock:
            self._closed += 1
            self._program = None
            programs = list(self._programs)
        for program in programs:
            self._end(program)

    def probe(
        self, fd: int, *, size_bytes: int, mime: str, modality: Modality, before: Work | None = None,
        watch: Watch = NOBODY,
    ) -> Probed:  # fmt: skip
        """Facts about the regular file (or memfd) behind `fd`, which stays open and is not moved.

        With `before`, the worker gets ready for the work that is to follow.

        Raises:
            MalformedMedia: broken, or it broke the child; `figures["limit"]` names the limit it ran into, if any.
            UnsupportedMedia: sound, but not something we or the service can take.
            MediaTooLarge: past a bound of `limits`.
            ProberUnavailable: the queue is full, the worker cannot run, or the prober was closed meanwhile.
            ConfinementUnavailable: `limits.required`, and a limit is not in force here.
            Cancelled: `watch` said so.
        """
        self.require_confinement()
        if modality is Modality.TEXT:
            raise ValueError("text is counted by text_facts, not probed")
        kinds.refuse_unknown(mime, modality)
        work = None if before is None else orders.dump(before)
        job = self._job("probe", size_bytes=size_bytes, mime=mime, modality=modality, work=work)
        with self._turn(watch) as era:
            outcome = self._ask(job, fd, era, watch=watch)
        return _verdict(outcome, self.limits)

    def confinement(self) -> Confinement:
        """Which limits hold here, found by trying to break each of them in a child. Tried once, then remembered."""
        with self._turn() as era:
            if self._confinement is None:
                self._confinement = self._try_confinement(era)
            return self._confinement

    def versions(self) -> dict[str, str]:
        """Versions of the codec libraries, by name, as the worker loaded them."""
        with self._turn() as era:
            outcome = self._ask(self._job("versions"), None, era)
        values = _values(outcome)
        return values if isinstance(values, dict) else {}

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._places = Places(self.limits.workers, self.limits.queue, "probes")
        self._program = None
        self._programs.clear()
        self._closed = 0

    @contextmanager
    def _turn(self, watch: Watch = NOBODY) -> Iterator[int]:
        """A place in the queue, then one of the workers. Yields how often the prober had been closed before."""
        era = self._closed
        with self._places.turn(watch):
            yield era

    def _job(
        self,
        task: str,
        *,
        size_bytes: int = 0,
        mime: str = "",
        modality: Modality = Modality.IMAGE,
        work: dict[str, Any] | None = None,
        wall_s: float | None = None,
    ) -> wire.Job:
        limits = self.limits
        return wire.Job(
            task=task,  # type: ignore[arg-type]  # one of four words, all written in this module
            size_bytes=size_bytes, mime=mime, modality=modality, work=work,
            memory_bytes=limits.memory_bytes, cpu_s=limits.cpu_s, wall_s=limits.wall_s if wall_s is None else wall_s,
            max_pixels=limits.max_pixels, max_duration_s=limits.max_duration_s, max_pages=limits.max_pages,
            max_frames=limits.max_frames,
        )  # fmt: skip

    def ask(self, job: wire.Job, medium: int, out: int, *, watch: Watch) -> wire.Outcome:
        """Run one transform on the worker program of the probes. `out` is emptied first.

        Raises:
            ProberUnavailable: the worker cannot run, or the prober was closed meanwhile.
            Cancelled: `watch` said so.
        """
        return self._ask(job, medium, out=out, watch=watch)

    def require_confinement(self) -> None:
        """Nothing, unless `limits.required` and a limit is not in force here.

        Raises:
            ConfinementUnavailable: then.
        """
        if self.limits.required:
            self._require_confinement()

    def _ask(
        self,
        job: wire.Job,
        medium: int | None,
        era: int | None = None,
        *,
        out: int | None = None,
        watch: Watch = NOBODY,
    ) -> wire.Outcome:
        """Run one job, starting the program if need be and once more if it died under it."""
        if self._supervised:
            return self._ask_once(job, medium, out, watch)
        era = self._closed if era is None else era
        for _ in range(2):
            program = self._running(era)
            _empty(out)
            try:
                outcome = program.ask(job, medium, out=out, watch=watch)
            except ProgramEnded:
                self._discard(program)
                continue
            if outcome.trouble:
                raise ProberUnavailable(f"the probing worker cannot run this job: {outcome.trouble}")
            return outcome
        self._refuse_if_closed(era)
        raise ProberUnavailable("the probing worker died twice under the same job")

    def _ask_once(self, job: wire.Job, medium: int | None, out: int | None, watch: Watch) -> wire.Outcome:
        for _ in range(2):
            _empty(out)
            outcome = ask_once(job, medium, out=out, watch=watch)
            if not outcome.says_nothing:
                return outcome
        raise ProberUnavailable("the probing process ended twice without a word")

    def _running(self, era: int) -> Program:
        with self._lock:
            self._refuse_if_closed(era)
            if self._program is None:
                self._program = Program()
                self._programs.add(self._program)
            return self._program

    def _refuse_if_closed(self, era: int) -> None:
        if self._closed != era:
            raise ProberUnavailable("the prober was closed while probing")

    def _discard(self, program: Program) -> None:
        with self._lock:
            if self._program is program:
                self._program = None
        self._end(program, grace_s=0.2)

    def _end(self, program: Program, *, grace_s: float = GRACE_S) -> None:
        program.close(grace_s=grace_s)
        with self._lock:
            self._programs.discard(program)

    def _require_confinement(self) -> None:
        found = self.confinement()
        if not found.complete:
            raise ConfinementUnavailable(
                f"safety.confinement is required, but {found.mechanism} lacks here: {', '.join(found.missing)}",
                missing=list(found.missing), mechanism=found.mechanism,
            )  # fmt: skip

    def _try_confinement(self, era: int) -> Confinement:
        held = set(_values(self._ask(self._job("limits"), None, era)))
        if self._ask(self._job("sleep", wall_s=_TRIAL_WALL_S), None, era).timed_out:
            held.add("wall")
        limits = self.limits
        fork = "fork+seccomp" if "system calls" in held else "fork"
        return Confinement(
            mechanism="supervised process" if self._supervised else fork,
            held=tuple(name for name in _EVERY_LIMIT if name in held),
            missing=tuple(name for name in _EVERY_LIMIT if name not in held),
            memory_bytes=limits.memory_bytes, cpu_s=limits.cpu_s, wall_s=limits.wall_s, workers=limits.workers,
        )  # fmt: skip


def _verdict(outcome: wire.Outcome, limits: ProbeLimits) -> Probed:
    """The facts, if the child lived to tell them and they make sense."""
    refuse_unless_it_lived(
        outcome, wall_s=limits.wall_s, cpu_s=limits.cpu_s, memory_bytes=limits.memory_bytes, doing="probing"
    )
    try:
        return answers.load_probed(outcome.payload)
    except answers.InconsistentAnswer as error:
        raise MalformedMedia(f"the prober's answer about it makes no sense: {error}", limit="answer") from error


def refuse_unless_it_lived(outcome: wire.Outcome, *, wall_s: float, cpu_s: int, memory_bytes: int, doing: str) -> None:
    """Raises what the end of a child says about its medium, unless it ended by itself with an answer.

    Raises:
        MalformedMedia: it ran into a limit, or died.
    """
    if outcome.timed_out:
        raise _broke("wall", f"{doing} it takes more than {wall_s:g} s")
    if outcome.signal == getattr(signal, "SIGXCPU", 24) or (outcome.signal and outcome.cpu_s >= cpu_s):
        raise _broke("cpu", f"{doing} it takes more than {cpu_s} s of CPU time")
    if outcome.too_much:
        raise _broke("answer", f"the worker said more than {wire.MAX_ANSWER_BYTES // 1024} KiB about it")
    if outcome.signal == getattr(signal, "SIGBUS", 7):
        raise MalformedMedia("the file was cut short while it was read", signal=outcome.signal)
    if outcome.signal and outcome.peak_bytes > _NEAR * memory_bytes:
        raise _broke("memory", f"{doing} it takes more than {memory_bytes // 2**20} MiB of memory")
    if outcome.signal or outcome.exit_code:
        how = f"signal {outcome.signal}" if outcome.signal else f"exit {outcome.exit_code}"
        raise MalformedMedia(
            f"{doing} it killed the worker ({how})", signal=outcome.signal, exit_code=outcome.exit_code
        )


def _empty(out: int | None) -> None:
    """Make an output what a first attempt finds."""
    if out is not None:
        os.ftruncate(out, 0)
        os.lseek(out, 0, os.SEEK_SET)


def _broke(limit: str, what: str) -> MalformedMedia:
    return MalformedMedia(f"{what} (safety limit of the worker)", limit=limit)


def _values(outcome: wire.Outcome) -> dict[str, str] | list[str]:
    try:
        return answers.load_values(outcome.payload)
    except answers.InconsistentAnswer as error:
        raise ProberUnavailable(f"the probing worker failed its own test: {error}") from error


def versions() -> dict[str, str]:
    """Versions of the codec libraries, by name, asked of a worker: this process loads none of them."""
    with Prober() as prober:
        return prober.versions()


@contextmanager
def descriptor_of(data: bytes | bytearray | memoryview) -> Iterator[int]:
    """A descriptor of a nameless file that holds `data`."""
    fd = spooled(data)
    try:
        yield fd
    finally:
        os.close(fd)


def probe_bytes(prober: Prober, data: bytes | bytearray | memoryview, *, mime: str, modality: Modality) -> Probed:
    """`Prober.probe` of bytes held in memory."""
    with descriptor_of(data) as fd:
        return prober.probe(fd, size_bytes=len(data), mime=mime, modality=modality)


_alive: weakref.WeakSet[Prober] = weakref.WeakSet()


def _end_all(programs: set[Program]) -> None:
    """What is left of a prober nobody closed: when it is collected, and when the host ends."""
    while programs:
        programs.pop().close(grace_s=0.5)


def _after_fork() -> None:
    """In a process forked from the host: the programs and the locks belong to the parent."""
    for prober in list(_alive):
        programs = list(prober._programs)
        prober._reset()
        for program in programs:
            program.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
