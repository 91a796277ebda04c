"""Where pieces of sound go on a line without gaps. Pure arithmetic on samples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """`silence` samples first, then the piece without its first `skip`, of which `take` are used."""

    silence: int
    skip: int
    take: int


class Line:
    """Puts pieces one behind the other, and mends what drifts by more than `slack` samples."""

    def __init__(self, *, slack: int, end: int | None) -> None:
        self.next = 0
        """Samples laid so far."""
        self._slack = slack
        self._end = end

    @property
    def full(self) -> bool:
        return self._end is not None and self.next >= self._end

    def lay(self, at: int | None, count: int) -> Piece:
        """Where a piece of `count` samples goes that says it begins at `at`; `None` goes where the last one ended."""
        gap = 0 if at is None else at - self.next
        if self.next and abs(gap) <= self._slack:
            gap = 0
        silence, skip = max(0, gap), min(count, max(0, -gap))
        if self._end is not None:
            silence = min(silence, max(0, self._end - self.next))
        self.next += silence
        take = count - skip
        if self._end is not None:
            take = min(take, max(0, self._end - self.next))
        self.next += take
        return Piece(silence, skip, take)
