"""Who holds a lease: a flow of a process. That a process died can be told on its own host, and only there."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

_PROC = Path("/proc")


def new_owner() -> str:
    """A flow of this process, told apart from every other."""
    return f"{_place()} {os.getpid()} {_started(os.getpid())} {uuid.uuid4().hex}"


def is_dead(owner: str) -> bool:
    """Whether the owner's process surely is no more. One of another host or container may be alive."""
    place, _, rest = owner.partition(" ")
    pid, _, rest = rest.partition(" ")
    if place != _place() or place == "-" or not pid.isdigit():
        return False
    return _started(int(pid)) != rest.partition(" ")[0]


def _place() -> str:
    """What process ids are relative to: this start of this machine, and the container."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return "-"


def _started(pid: int) -> str:
    """When a process began, in ticks since the machine did; `-` where there is none, or it only waits to be reaped."""
    try:
        state, *fields = (
            (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except (OSError, ValueError):
        return "-"
    return "-" if state in "ZX" or len(fields) < 19 else fields[18]
