"""The bounds a probe runs under, and the account of which of them are in force on this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLimits:
    """What one probe may use. All bounds are inclusive."""

    workers: int = 2
    """Children at one time."""
    queue: int = 64
    """Probes that may wait for a child; one more is refused with `ProberUnavailable`."""
    max_pixels: int = 100_000_000
    """Of one image or one video frame, as stored."""
    max_duration_s: float = 14_400
    max_pages: int = 1000
    max_frames: int = 1_000_000
    """Video frames in a file."""
    memory_bytes: int = 512 * 2**20
    """What a child may allocate on top of the worker's own size. The file itself is mapped and does not count."""
    cpu_s: int = 5
    wall_s: float = 10.0
    required: bool = False
    """Refuse to probe at all where one of the limits cannot be put in force."""

    def __post_init__(self) -> None:
        if self.workers < 1 or self.queue < 0:
            raise ValueError(f"workers must be at least 1 and queue at least 0, not {self.workers} and {self.queue}")
        if min(self.memory_bytes, self.cpu_s, self.wall_s) <= 0:
            raise ValueError("memory_bytes, cpu_s and wall_s must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Which limits hold for a probe here. Each name in `held` was tried against a live child, not assumed."""

    mechanism: str
    """`fork+seccomp`, `fork` (no system call filter here), or `supervised process`."""
    held: tuple[str, ...]
    missing: tuple[str, ...]
    memory_bytes: int
    cpu_s: int
    wall_s: float
    workers: int

    @property
    def complete(self) -> bool:
        return not self.missing

    @property
    def seccomp(self) -> bool:
        return "system calls" in self.held

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "held": list(self.held), "missing": list(self.missing), "complete": self.complete}
