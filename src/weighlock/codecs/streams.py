"""What each stream of a file supports, whoever read it: a header reader, a frame walker, or a scan of every packet."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from weighlock.errors import MalformedMedia

MISMATCH_RATIO = 1.05
MISMATCH_S = 0.2
PACE_SLACK = 1.25
"""How much longer a film's frames may last at their stated pace than by its clock: cameras state what they aim at."""

_LARGE_BYTES = 64 * 1024
_FASTEST_BYTES = 50_000_000
"""A second of 16 channels at 768 kHz and 32 bits: no sound is stored faster."""
_WIDEST_SAMPLE = 8


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Times of one stream.

    `start_s` and `end_s` bound what a player presents; the rest are other claims about its length.
    """

    start_s: float = 0.0
    end_s: float = 0.0
    claims: dict[str, float] = field(default_factory=dict)
    """Seconds by who says so, in words for a person."""
    at_most_s: float = 0.0
    """A length that is no claim but a bound, such as the last frame of sound counted whole."""
    packets: int | None = None
    payload_bytes: int = 0
    """Of all packets, where they were walked."""
    steady: bool | None = None
    pace: float | None = None
    """Frames a second, where they were timed but not counted."""

    @property
    def span_s(self) -> float:
        return max(0.0, self.end_s - self.start_s)

    @property
    def high_s(self) -> float:
        return max(self.span_s, self.at_most_s, *self.claims.values(), 0.0)


def mismatch(presented_s: float, claims: dict[str, float]) -> str | None:
    """What disagrees by more than 5 % and 0.2 s, in one line; `None` when all agree. A claim of 0 is no claim.

    Told is the claim furthest from what would be played.
    """
    said = {name: value for name, value in claims.items() if value > 0}
    values = (presented_s, *said.values())
    low_s, high_s = min(values), max(values)
    if high_s - low_s <= MISMATCH_S or high_s <= low_s * MISMATCH_RATIO:
        return None
    furthest = max(said, key=lambda name: abs(said[name] - presented_s))
    return f"it plays for {presented_s:,.2f} s, by {furthest} for {said[furthest]:,.2f} s"


def refuse_too_dense(payload_bytes: int, high_s: float, *, rate_hz: int = 0, channels: int = 0) -> None:
    """No length that would press more bytes into a second than sound can be, even the widest samples stored plainly.

    Raises:
        MalformedMedia: the payload is large, and next to no time is claimed for it.
    """
    fastest = min(_FASTEST_BYTES, rate_hz * (channels or _WIDEST_SAMPLE) * _WIDEST_SAMPLE or _FASTEST_BYTES)
    if payload_bytes > _LARGE_BYTES and payload_bytes > high_s * fastest:
        raise MalformedMedia(
            f"it makes {payload_bytes:,} bytes of sound last {high_s:.6f} s; no sound is stored that densely",
            payload_bytes=payload_bytes, duration_s=high_s,
        )  # fmt: skip


def steady(deltas: dict[int, int]) -> bool | None:
    """Whether frames come at one pace: 95 % of them within a tenth (or one tick) of the median.

    `None` for fewer than three.
    """
    total = sum(deltas.values())
    if total < 3:
        return None
    seen, median = 0, 0
    for delta in sorted(deltas):
        seen += deltas[delta]
        median = delta
        if seen * 2 >= total:
            break
    slack = max(1, math.ceil(median * 0.1))
    return sum(n for delta, n in deltas.items() if abs(delta - median) <= slack) >= 0.95 * total
