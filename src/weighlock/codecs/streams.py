"""What each stream of a file supports, whoever read it: a header reader, a frame walker, or a scan of every packet."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

MISMATCH_RATIO = 1.05
MISMATCH_S = 0.2
PACE_SLACK = 1.25
"""How much longer a film's frames may last at their stated pace than by its clock: cameras state what they aim at."""


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
    """What disagrees by more than 5 % and 0.2 s, in one line; `None` when all agree. A claim of 0 is no claim."""
    named = {"shown": presented_s, **{name: value for name, value in claims.items() if value > 0}}
    low, high = min(named, key=named.__getitem__), max(named, key=named.__getitem__)
    if named[high] - named[low] <= MISMATCH_S or named[high] <= named[low] * MISMATCH_RATIO:
        return None
    return f"{low} {named[low]:,.2f} s, {high} {named[high]:,.2f} s"


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
