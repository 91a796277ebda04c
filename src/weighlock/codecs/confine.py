"""Giving up everything a probe does not need. Runs in the child, before a byte of the medium is looked at."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import sys
from collections.abc import Callable

from weighlock.codecs import seccomp

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_PAGE = mmap.PAGESIZE
_THREAD_STACKS = 64 * 2**20


def limit_resources(*, memory_bytes: int, cpu_s: int, file_bytes: int = 0) -> list[str]:
    """Lower this process's limits; returns the names of those that could be put in force.

    Memory is counted on top of what the process holds now, the mapped medium included, so that a big file is no reason
    to fail.
    """
    if resource is None:
        return []
    address_space, data = _memory_now()
    wanted = [
        ("cpu", "RLIMIT_CPU", cpu_s, cpu_s + 1),
        ("file size", "RLIMIT_FSIZE", file_bytes, file_bytes),
        ("open files", "RLIMIT_NOFILE", 16, 16),
        ("core dumps", "RLIMIT_CORE", 0, 0),
        ("address space", "RLIMIT_AS", address_space + memory_bytes + _THREAD_STACKS, None),
        ("data", "RLIMIT_DATA", data + memory_bytes, None),
    ]
    if address_space == 0:  # no /proc: the present size is unknown, so a bound on the total would be a guess
        wanted = wanted[:4]
    held = []
    for name, constant, soft, hard in wanted:
        with contextlib.suppress(AttributeError, ValueError, OSError):
            which = getattr(resource, constant)
            ceiling = resource.getrlimit(which)[1]
            top = soft if hard is None else hard
            if ceiling != resource.RLIM_INFINITY:
                top = min(top, ceiling)
            resource.setrlimit(which, (min(soft, top), top))
            held.append(name)
    return ["memory" if name == "data" else name for name in held]


def _memory_now() -> tuple[int, int]:
    """Address space and private data of this process in bytes; zeros where the system does not say."""
    try:
        statm = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0, 0
    fields = os.read(statm, 256).split()
    os.close(statm)
    return int(fields[0]) * _PAGE, int(fields[5]) * _PAGE


class Growth:
    """How much address space this process has taken since.

    FFmpeg that is refused memory may carry on and report what it has as if it were all; whoever came near the limit is
    not believed. The descriptor is opened before files are out of reach.
    """

    def __init__(self) -> None:
        try:
            self._status = os.open("/proc/self/status", os.O_RDONLY)
        except OSError:
            self._status = -1
        self._before = self._peak()

    @property
    def descriptor(self) -> int:
        return self._status

    def bytes(self) -> int:
        """Peak since this value was made; 0 where the system does not say."""
        return self._peak() - self._before

    def _peak(self) -> int:
        if self._status < 0:
            return 0
        text = os.pread(self._status, 8192, 0)
        found = text.partition(b"VmPeak:")[2].split(None, 1)
        return 1024 * int(found[0]) if found else 0


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` ends."""
    if sys.platform != "linux":
        return
    seccomp.prctl(seccomp.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def seal() -> bool:
    """Forbid new privileges and every system call off the allow-list; whether both hold."""
    if not seccomp.supported():
        return False
    try:
        seccomp.prctl(seccomp.PR_SET_NO_NEW_PRIVS, 1)
        seccomp.seal()
    except OSError:
        return False
    return True


def close_all_but(*keep: int) -> None:
    """Close every descriptor except the standard three and `keep`."""
    low = 3
    for fd in sorted(keep):
        os.closerange(low, fd)
        low = max(low, fd + 1)
    os.closerange(low, max(low, 4096))


def try_limits(memory_bytes: int) -> list[str]:
    """Try to break each limit from inside; returns the names of those that held.

    `cpu` is read back instead of burnt, because the kernel counts it in whole seconds. The wall limit is tried from
    outside.
    """
    attempts: dict[str, Callable[[], bool]] = {
        "system calls": _cannot_reach_out,
        "memory": lambda: _cannot_allocate(memory_bytes + 2**26),
        "file size": lambda: _limit_is_low("RLIMIT_FSIZE", 0),
        "open files": lambda: _limit_is_low("RLIMIT_NOFILE", 16),
        "core dumps": lambda: _limit_is_low("RLIMIT_CORE", 0),
        "cpu": lambda: _limit_is_low("RLIMIT_CPU", 3600),
    }
    return [name for name, held in attempts.items() if held()]


def _cannot_reach_out() -> bool:
    """A socket, a file, another process, a signal to the parent: the kernel must forbid each."""
    deeds: tuple[Callable[[], None], ...] = (_open_socket, _open_file, _fork_once, _signal_parent)
    return all(_forbidden(deed) for deed in deeds)


def _forbidden(deed: Callable[[], None]) -> bool:
    try:
        deed()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _open_socket() -> None:
    socket.socket().close()


def _open_file() -> None:
    os.close(os.open("/", os.O_RDONLY))


def _fork_once() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _signal_parent() -> None:
    os.kill(os.getppid(), 0)


def _cannot_allocate(size: int) -> bool:
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return True
    return False


def _limit_is_low(constant: str, most: int) -> bool:
    if resource is None:
        return False
    soft = resource.getrlimit(getattr(resource, constant))[0]
    return soft != resource.RLIM_INFINITY and soft <= most
