"""One job, from start to answer, inside a process that exists for nothing else."""

from __future__ import annotations

import contextlib
import errno
import gc
import mmap
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import IO, TypeVar

from weighlock.codecs import confine, orders, wire
from weighlock.codecs.encoding import Encoding
from weighlock.codecs.mapped import mapped
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.window import Window
from weighlock.errors import InputError, MalformedMedia, MediaTooLarge, TransformFailed
from weighlock.media.facts import Probed
from weighlock.media.work import AudioWork, DocumentWork, ImageWork, StillsWork, StripWork, VideoWork, Work
from weighlock.modality import Modality

_DOORS = {
    Modality.IMAGE: "weighlock.codecs.pillow",
    Modality.AUDIO: "weighlock.codecs.pyav",
    Modality.VIDEO: "weighlock.codecs.pyav",
    Modality.DOCUMENT: "weighlock.codecs.pdf",
}


_Found = TypeVar("_Found", Probed, Outcome)
_NEAR_LIMIT = 0.9
_TELL_EVERY_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a door checks before it opens or decodes anything."""

    max_pixels: int
    max_duration_s: float
    max_pages: int
    max_frames: int
    scan_cpu_s: float
    """CPU seconds after which a packet scan gives up by itself, with a better word than being killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a transform of sound or pictures is told besides its work."""

    mime: str
    """What the source was recognised as."""
    bounds: Bounds
    encoding: Encoding
    progress: Callable[[float], None]
    """Takes the share done, between 0 and 1; may be called for every packet."""


def prepare(job: wire.Job, ready: set[str]) -> bool:
    """Import what `job` needs while that is still possible, note it in `ready`, and tell whether anything was new.

    What was loaded is frozen, so that children share its pages instead of copying them. No garbage is collected while
    modules load: they leave hardly any, and looking for it takes longer than some of them.
    """
    wanted = _wanted(job) - ready
    gc.disable()
    for path in sorted(wanted):
        module = import_module(path)
        if hasattr(module, "warm_up"):
            module.warm_up()
        ready.add(path)
    if wanted:
        gc.freeze()
    gc.enable()
    return bool(wanted)


def _wanted(job: wire.Job) -> set[str]:
    """The doors it goes through; of a probe also that of the work it is made for."""
    doors = {"probe": {_DOORS[job.modality]}, "versions": set(_DOORS.values())}.get(job.task, set())
    return doors if job.work is None else doors | {orders.door(job.work)}


def run(job: wire.Job, medium: int | None, answer: int, *, out: int | None = None, sealed: bool) -> None:
    """Confine this process, do the job, write the answer to the descriptor `answer` and what is made to `out`.

    The medium is mapped first: its descriptor, which may be open for writing, is gone before its bytes are looked at.
    `sealed` adds the system call filter, where there is one.
    """
    view = mmap.mmap(medium, 0, access=mmap.ACCESS_READ) if medium is not None and os.fstat(medium).st_size else None
    growth = confine.Growth()
    # Opening a file object asks the system what it is, which is forbidden later.
    sink = os.fdopen(out, "wb") if out is not None else None
    confine.close_all_but(*(fd for fd in (answer, growth.descriptor, -1 if out is None else out) if fd >= 0))
    held = confine.limit_resources(memory_bytes=job.memory_bytes, cpu_s=job.cpu_s, file_bytes=job.file_bytes)
    if sealed and confine.seal():
        held.append("system calls")
    _write(answer, _answer(job, view, held, growth, _Deed(job, view, sink, answer)) + wire.END)


def probe(job: wire.Job, view: mmap.mmap | None) -> Probed:
    """Facts about the mapped medium.

    Raises:
        InputError: what is wrong with it.
    """
    view = _whole(job, view)
    probed: Probed = import_module(_DOORS[job.modality]).probe(
        view, mime=job.mime, modality=job.modality, bounds=_bounds(job)
    )
    return probed


def _whole(job: wire.Job, view: mmap.mmap | None) -> mmap.mmap:
    if view is None:
        raise MalformedMedia("the file is empty", size_bytes=0)
    if len(view) != job.size_bytes:
        raise MalformedMedia(
            f"the file changed while it was read: {job.size_bytes:,} bytes, now {len(view):,}",
            size_bytes=job.size_bytes,
        )
    return view


def _bounds(job: wire.Job) -> Bounds:
    return Bounds(
        max_pixels=job.max_pixels, max_duration_s=job.max_duration_s, max_pages=job.max_pages,
        max_frames=job.max_frames,
        scan_cpu_s=job.cpu_s * 0.8,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Deed:
    """A transform, from the mapped medium to the open file."""

    job: wire.Job
    view: mmap.mmap | None
    sink: IO[bytes] | None
    answer: int

    def make(self) -> Outcome:
        """Write what is made.

        Raises:
            InputError: what is wrong with the medium, or with what was asked of it.
        """
        job, sink = self.job, self.sink
        if sink is None or job.work is None:
            raise TransformFailed("no work, or nowhere to write what is made of it")
        try:
            made = self._made(orders.load(job.work), _whole(job, self.view), sink)
            sink.flush()
        except OSError as error:
            _explain(error, job)
            raise
        return made

    def _made(self, work: Work, view: mmap.mmap, sink: IO[bytes]) -> Outcome:
        job, bounds = self.job, _bounds(self.job)
        make: Callable[..., Outcome] = import_module(orders.door(orders.dump(work))).make
        match work:
            case VideoWork() | StillsWork() | AudioWork():
                encoding = Encoding(**(job.encoding or {}))
                context = Context(mime=job.mime, bounds=bounds, encoding=encoding, progress=_Teller(self.answer))
                return make(Window(view), sink, work, context)
            case ImageWork():
                return make(mapped(view), sink, work, mime=job.mime, max_pixels=bounds.max_pixels)
            case DocumentWork():
                return make(mapped(view), sink, work, max_pages=bounds.max_pages)
            case StripWork():
                return make(mapped(view), sink, work, job.mime)


def _explain(error: OSError, job: wire.Job) -> None:
    """Raise the error that tells what a failed write means; nothing for one that is none."""
    if error.errno == errno.ENOMEM:
        raise MemoryError from error
    if error.errno == errno.EFBIG:
        raise MediaTooLarge(
            f"what is made of it takes more than {job.file_bytes // 2**20:,} MiB (safety limit of the worker)",
            limit="file size", file_bytes=job.file_bytes,
        ) from error  # fmt: skip
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise TransformFailed("there is no room left to write what is made of it", limit="disk") from error


class _Teller:
    """Writes now and then how far the work is."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._next = 0.0

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _TELL_EVERY_S
            with contextlib.suppress(OSError):
                _write(self._fd, wire.PROGRESS_MARK + b"%d" % round(1000 * min(1.0, max(0.0, share))) + wire.END)


def _answer(job: wire.Job, view: mmap.mmap | None, held: list[str], growth: confine.Growth, deed: _Deed) -> bytes:
    tasks: dict[str, Callable[[], bytes]] = {
        "probe": lambda: wire.dump_probed(_believable(job, probe(job, view), growth)),
        "make": lambda: wire.dump_made(_believable(job, deed.make(), growth)),
        "limits": lambda: wire.dump_values([name for name in confine.try_limits(job.memory_bytes) if name in held]),
        "sleep": lambda: _sleep(60),
        "versions": lambda: wire.dump_values(_versions()),
    }
    try:
        return tasks[job.task]()
    except InputError as error:
        return wire.dump_failure(error)
    except MemoryError:
        return _out_of_memory(job)
    except Exception as error:
        if growth.bytes() > _NEAR_LIMIT * job.memory_bytes:  # libraries that were refused memory do not all say so
            return _out_of_memory(job)
        who = "transform" if job.task == "make" else "prober"
        return wire.dump_failure(
            MalformedMedia(f"the {who} failed on it: {type(error).__name__}", cause=type(error).__name__)
        )


def _out_of_memory(job: wire.Job) -> bytes:
    deeds = "transforming" if job.task == "make" else "probing"
    return wire.dump_failure(
        MalformedMedia(
            f"{deeds} it takes more than {job.memory_bytes // 2**20} MiB of memory (safety limit of the worker)",
            limit="memory",
            memory_bytes=job.memory_bytes,
        )
    )


def _believable(job: wire.Job, found: _Found, growth: confine.Growth) -> _Found:
    if growth.bytes() > _NEAR_LIMIT * job.memory_bytes:
        raise MemoryError
    return found


def _versions() -> dict[str, str]:
    return {k: v for path in dict.fromkeys(_DOORS.values()) for k, v in import_module(path).versions().items()}


def _sleep(seconds: float) -> bytes:
    time.sleep(seconds)
    return wire.dump_values([])


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
