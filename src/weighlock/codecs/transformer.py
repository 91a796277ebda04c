"""The other face of this room: bytes behind a descriptor in, other bytes out, made by a plan and checked against it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from weighlock.codecs import answers, orders, promises, wire
from weighlock.codecs.encoding import TRIES, Encoding
from weighlock.codecs.limits import MakeLimits
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.places import Places
from weighlock.codecs.prober import Prober, refuse_unless_it_lived
from weighlock.codecs.program import Watch
from weighlock.codecs.spool import spooled
from weighlock.errors import InputError, TransformFailed
from weighlock.media.facts import AudioFacts, Probed, VideoFacts
from weighlock.media.work import AudioWork, DocumentWork, ImageWork, Made, StillsWork, VideoWork, Work
from weighlock.modality import Modality

Progress = Callable[[float], None]
Cancelled = Callable[[], bool]


class Transformer:
    """Makes lighter media in confined children, one at a time each, on the worker program of a `Prober`.

    Serves many threads. Without a `prober` it has one of its own, which `close` ends.
    """

    def __init__(
        self, prober: Prober | None = None, limits: MakeLimits | None = None, encoding: Encoding | None = None
    ) -> None:
        self.limits = limits or MakeLimits()
        self.encoding = encoding or Encoding()
        self._prober = prober or Prober()
        self._owns_prober = prober is None
        self._reset()
        _alive.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker program, if it is this object's own, and with it whatever runs."""
        if self._owns_prober:
            self._prober.close()

    def make(
        self,
        fd: int,
        *,
        size_bytes: int,
        mime: str,
        work: Work,
        out: int,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> Made:
        """Do `work` on the regular file behind `fd`; what is made goes to `out`, an open file that is emptied first.

        `progress` is called in this thread with the share done; `cancelled` is asked twenty times a second. What an
        error leaves in `out` is of no use.

        Raises:
            MalformedMedia: broken, or it broke the child; `figures["limit"]` names the limit it ran into, if any.
            UnsupportedMedia: sound, but not something that can be read or written here.
            MediaTooLarge: past a bound of the limits, before or after.
            TransformFailed: what came out is not what was asked for, or nothing can.
            Cancelled: `cancelled` said so.
            ProberUnavailable: the queue is full, or the worker cannot run.
        """
        watch, silent = Watch(progress=progress, cancelled=cancelled), Watch(cancelled=cancelled)
        modality = _modality(mime, work)
        with self._places.turn(silent):
            watch.refuse_if_cancelled()
            source = self._prober.probe(
                fd, size_bytes=size_bytes, mime=mime, modality=modality, before=work, watch=silent
            )
            promises.refuse_impossible(work, source)
            told = self._done(fd, out, self._job(size_bytes, mime, modality, work, source), watch)
        made = self._looked_at(out, told, work, silent)
        promises.refuse_unkept(work, source, made)
        if progress is not None:
            progress(1.0)
        return made

    def _done(self, fd: int, out: int, job: wire.Job, watch: Watch) -> Outcome:
        self._prober.require_confinement()
        outcome = self._prober.ask(job, fd, out, watch=watch)
        refuse_unless_it_lived(
            outcome, wall_s=job.wall_s, cpu_s=job.cpu_s, memory_bytes=job.memory_bytes, doing="transforming"
        )
        try:
            return answers.load_made(outcome.payload)
        except answers.InconsistentAnswer as error:
            raise TransformFailed(f"the worker's account of it makes no sense: {error}", limit="answer") from error

    def _looked_at(self, out: int, told: Outcome, work: Work, watch: Watch) -> Made:
        size_bytes, modality = os.fstat(out).st_size, _modality(told.mime, work)
        try:
            probed = self._prober.probe(out, size_bytes=size_bytes, mime=told.mime, modality=modality, watch=watch)
        except InputError as error:
            raise TransformFailed(f"what came out cannot be read: {error.message}", mime=told.mime) from error
        return Made(
            mime=told.mime, size_bytes=size_bytes, probed=probed, actual_start_s=told.actual_start_s, notes=told.notes
        )

    def _job(self, size_bytes: int, mime: str, modality: Modality, work: Work, source: Probed) -> wire.Job:
        limits, bounds = self.limits, self._prober.limits
        media_s, pixels_per_s = _load(work, source)
        cpu_s = limits.cpu_s(media_s, pixels_per_s)
        return wire.Job(
            task="make", size_bytes=size_bytes, mime=mime, modality=modality, work=orders.dump(work),
            encoding=asdict(self.encoding),
            memory_bytes=limits.memory_bytes, cpu_s=cpu_s, wall_s=limits.wall_s(cpu_s),
            file_bytes=limits.output_bytes(size_bytes, media_s),
            max_pixels=bounds.max_pixels, max_duration_s=bounds.max_duration_s, max_pages=bounds.max_pages,
            max_frames=bounds.max_frames,
        )  # fmt: skip

    def _reset(self) -> None:
        self._places = Places(self.limits.workers, self.limits.queue, "transforms")


def _modality(mime: str, work: Work) -> Modality:
    match work:
        case ImageWork():
            return Modality.IMAGE
        case DocumentWork():
            return Modality.DOCUMENT
        case VideoWork():
            return Modality.VIDEO
        case StillsWork():
            return Modality.IMAGE if mime.startswith("image/") else Modality.VIDEO
        case AudioWork():
            return Modality.VIDEO if mime.startswith("video/") else Modality.AUDIO
        case _:
            kind = mime.partition("/")[0]
            return {"image": Modality.IMAGE, "video": Modality.VIDEO, "audio": Modality.AUDIO}.get(
                kind, Modality.DOCUMENT
            )


def _load(work: Work, source: Probed) -> tuple[float, float]:
    """Seconds of the medium that are to be worked on, and pixels in each."""
    facts = source.facts
    if not isinstance(facts, AudioFacts | VideoFacts):
        return 0.0, 0.0
    start_s, end_s = promises.window(work, facts.duration_high_s)
    # What lies before the clip may have to be decoded too, from the last picture that stands alone.
    media_s = max(0.0, end_s - start_s) + start_s / 4
    if isinstance(work, VideoWork | AudioWork) and work.max_bytes is not None:
        media_s *= TRIES
    if isinstance(facts, AudioFacts) or isinstance(work, AudioWork):
        return media_s, 0.0
    return media_s, facts.width_px * facts.height_px * min(facts.average_fps or 60.0, 240.0)


def make_bytes(
    transformer: Transformer,
    data: bytes | bytearray | memoryview,
    *,
    mime: str,
    work: Work,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> tuple[bytes, Made]:
    """`Transformer.make` of bytes held in memory: the new bytes, and what they are."""
    with _nameless(data) as source, _nameless() as out:
        made = transformer.make(
            source, size_bytes=len(data), mime=mime, work=work, out=out, progress=progress, cancelled=cancelled
        )
        return os.pread(out, made.size_bytes, 0), made


def make_file(
    transformer: Transformer,
    source: Path,
    target: Path,
    *,
    mime: str,
    work: Work,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Made:
    """`Transformer.make` from one file to another; `target` appears when it is whole, or not at all.

    Raises:
        OSError: one of the two cannot be opened or written.
    """
    # In the folder it will stand in, so that the renaming is one step.
    beside = target.parent / f".weighlock-{os.urandom(8).hex()}"
    with source.open("rb") as file, beside.open("x+b") as made_here:
        try:
            made = transformer.make(
                file.fileno(), size_bytes=os.fstat(file.fileno()).st_size, mime=mime, work=work,
                out=made_here.fileno(), progress=progress, cancelled=cancelled,
            )  # fmt: skip
            beside.replace(target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    return made


@contextmanager
def _nameless(data: bytes | bytearray | memoryview = b"") -> Iterator[int]:
    fd = spooled(data)
    try:
        yield fd
    finally:
        os.close(fd)


_alive: weakref.WeakSet[Transformer] = weakref.WeakSet()


def _after_fork() -> None:
    for transformer in list(_alive):
        transformer._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
