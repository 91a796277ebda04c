"""A movie by its headers: what its tracks hold, and what a player shows of them."""

from __future__ import annotations

from dataclasses import dataclass, field

_UNKNOWN = {0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF}


@dataclass(slots=True, kw_only=True)
class Track:
    """Times are in ticks of `timescale` unless the name says seconds."""

    track_id: int = 0
    kind: bytes = b""
    """Handler: `vide`, `soun`, or another."""
    codec: bytes = b""
    timescale: int = 0
    header_ticks: int = 0
    """`mdhd`: what the track says of itself."""
    samples: int = 0
    sample_bytes: int = 0
    sized_samples: int = 0
    """`stsz`: should equal `samples`, which comes from `stts`."""
    table_ticks: int = 0
    """Sum of `stts`, or of the fragments' runs."""
    deltas: dict[int, int] = field(default_factory=dict)
    """How many samples last how many ticks."""
    edits: list[tuple[int, int]] = field(default_factory=list)
    """(duration in movie ticks, media time in track ticks or -1)."""
    rotation_deg: int = 0
    delay_ticks: int = 0
    """Largest composition offset near either end: with B-frames, pictures are shown later than they are decoded."""

    @property
    def media_s(self) -> float:
        """Everything the track holds, edited out or not."""
        return self.table_ticks / self.timescale if self.timescale else 0.0

    @property
    def header_s(self) -> float:
        if self.timescale == 0 or self.header_ticks in _UNKNOWN:
            return 0.0
        within_delay = self.table_ticks < self.header_ticks <= self.table_ticks + self.delay_ticks
        return (self.table_ticks if within_delay else self.header_ticks) / self.timescale

    def presented_s(self, movie_timescale: int) -> tuple[float, float]:
        """(start, end) of what a player shows of this track, after its edit list, which is what drops AAC priming."""
        start = shown = 0.0
        for duration, media_time in self.edits:
            length = duration / movie_timescale if movie_timescale else 0.0
            if media_time < 0:
                start += length if shown == 0 else 0.0
                shown += length if shown else 0.0
                continue
            if duration:
                left = (self.table_ticks + self.delay_ticks - media_time) / self.timescale if self.timescale else 0.0
                shown += max(0.0, min(length, left))
            else:
                shown += self.media_s
        return (start, start + shown) if shown else (start, start + self.media_s)


@dataclass(slots=True, kw_only=True)
class Movie:
    timescale: int = 0
    header_ticks: int = 0
    fragmented: bool = False
    tracks: list[Track] = field(default_factory=list)
    complete: bool = True
    """False where a box ends after the file does."""

    @property
    def header_s(self) -> float:
        return self.header_ticks / self.timescale if self.timescale and self.header_ticks not in _UNKNOWN else 0.0

    @property
    def samples_bytes(self) -> int:
        """What all samples take together; never more than the file, unless it was cut off."""
        return sum(track.sample_bytes for track in self.tracks)

    def track(self, track_id: int) -> Track | None:
        return next((track for track in self.tracks if track.track_id == track_id), None)
