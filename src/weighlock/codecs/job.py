"""One job, from start to answer, inside a process that exists for nothing else."""

from __future__ import annotations

import gc
import mmap
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from weighlock.codecs import confine, wire
from weighlock.errors import InputError, MalformedMedia
from weighlock.media.facts import Probed
from weighlock.request import Modality

_DOORS = {
    Modality.IMAGE: "weighlock.codecs.pillow",
    Modality.AUDIO: "weighlock.codecs.pyav",
    Modality.VIDEO: "weighlock.codecs.pyav",
    Modality.DOCUMENT: "weighlock.codecs.pdf",
}


_NEAR_LIMIT = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a door checks before it opens or decodes anything."""

    max_pixels: int
    max_duration_s: float
    max_pages: int
    max_frames: int
    scan_cpu_s: float
    """CPU seconds after which a packet scan gives up by itself, with a better word than being killed."""


def prepare(job: wire.Job, ready: set[str]) -> bool:
    """Import what `job` needs while that is still possible, note it in `ready`, and tell whether anything was new.

    Collected and frozen after each new import, so that children share the pages instead of copying them.
    """
    wanted = {"probe": {_DOORS[job.modality]}, "versions": set(_DOORS.values())}.get(job.task, set()) - ready
    for path in sorted(wanted):
        import_module(path).warm_up()
        ready.add(path)
    if wanted:
        gc.collect()
        gc.freeze()
    return bool(wanted)


def run(job: wire.Job, medium: int | None, answer: int, *, sealed: bool) -> None:
    """Confine this process, do the job, write the answer to the descriptor `answer`.

    The medium is mapped first: its descriptor, which may be open for writing, is gone before its bytes are looked at.
    `sealed` adds the system call filter, where there is one.
    """
    view = mmap.mmap(medium, 0, access=mmap.ACCESS_READ) if medium is not None and os.fstat(medium).st_size else None
    growth = confine.Growth()
    confine.close_all_but(*(fd for fd in (answer, growth.descriptor) if fd >= 0))
    held = confine.limit_resources(memory_bytes=job.memory_bytes, cpu_s=job.cpu_s)
    if sealed and confine.seal():
        held.append("system calls")
    _write(answer, _answer(job, view, held, growth) + wire.END)


def probe(job: wire.Job, view: mmap.mmap | None) -> Probed:
    """Facts about the mapped medium.

    Raises:
        InputError: what is wrong with it.
    """
    if view is None:
        raise MalformedMedia("the file is empty", size_bytes=0)
    if len(view) != job.size_bytes:
        raise MalformedMedia(
            f"the file changed while it was read: {job.size_bytes:,} bytes, now {len(view):,}",
            size_bytes=job.size_bytes,
        )
    bounds = Bounds(
        max_pixels=job.max_pixels, max_duration_s=job.max_duration_s, max_pages=job.max_pages,
        max_frames=job.max_frames,
        scan_cpu_s=job.cpu_s * 0.8,
    )  # fmt: skip
    probed: Probed = import_module(_DOORS[job.modality]).probe(
        view, mime=job.mime, modality=job.modality, bounds=bounds
    )
    return probed


def _answer(job: wire.Job, view: mmap.mmap | None, held: list[str], growth: confine.Growth) -> bytes:
    tasks: dict[str, Callable[[], bytes]] = {
        "probe": lambda: wire.dump_probed(_believable(job, probe(job, view), growth)),
        "limits": lambda: wire.dump_values([name for name in confine.try_limits(job.memory_bytes) if name in held]),
        "sleep": lambda: _sleep(60),
        "versions": lambda: wire.dump_values(_versions()),
    }
    try:
        return tasks[job.task]()
    except InputError as error:
        return wire.dump_failure(error)
    except MemoryError:
        return wire.dump_failure(
            MalformedMedia(
                f"probing it takes more than {job.memory_bytes // 2**20} MiB of memory (safety limit of the worker)",
                limit="memory",
                memory_bytes=job.memory_bytes,
            )
        )
    except Exception as error:
        return wire.dump_failure(
            MalformedMedia(f"the prober failed on it: {type(error).__name__}", cause=type(error).__name__)
        )


def _believable(job: wire.Job, probed: Probed, growth: confine.Growth) -> Probed:
    if growth.bytes() > _NEAR_LIMIT * job.memory_bytes:
        raise MemoryError
    return probed


def _versions() -> dict[str, str]:
    return {k: v for path in dict.fromkeys(_DOORS.values()) for k, v in import_module(path).versions().items()}


def _sleep(seconds: float) -> bytes:
    time.sleep(seconds)
    return wire.dump_values([])


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
