"""The bounds a probe runs under, and the account of which of them are in force on this machine."""

from __future__ import annotations

import math
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
class MakeLimits:
    """What one transform may use. Times grow with the seconds and pixels that are to be worked on."""

    workers: int = 2
    """Transforms at one time, besides the probes."""
    queue: int = 16
    memory_bytes: int = 768 * 2**20
    """On top of the worker's own size; large frames need dozens of their kind."""
    base_cpu_s: int = 20
    cpu_per_media_s: float = 0.6
    """For sound, and for pictures of up to `pixels_per_cpu_s` a second."""
    pixels_per_cpu_s: float = 12_000_000
    """Pixels a second of CPU time decodes and encodes again on a slow machine."""
    max_cpu_s: int = 4 * 3600
    max_output_bytes: int = 4 * 2**30

    def cpu_s(self, media_s: float, pixels_per_s: float = 0.0) -> int:
        """CPU seconds for `media_s` seconds of the medium."""
        a_second = max(self.cpu_per_media_s, pixels_per_s / self.pixels_per_cpu_s)
        return min(self.max_cpu_s, self.base_cpu_s + math.ceil(media_s * a_second))

    def wall_s(self, cpu_s: int) -> float:
        return 10.0 + 2.0 * cpu_s

    def output_bytes(self, source_bytes: int, media_s: float) -> int:
        return min(self.max_output_bytes, 64 * 2**20 + 2 * source_bytes + math.ceil(media_s * 2_000_000))


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
