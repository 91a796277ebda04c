"""Where pieces of sound go on a line without gaps. Pure arithmetic on samples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """`silence` samples first, then the piece without its first `skip`, of which `take` are used."""

    silence: int
    skip: int
    take: int


class Clock:
    """Time stamps made fit to be believed.

    Those that stand still while samples go by, or leap back, are a broken clock: the samples go on behind the last
    ones. A leap past `farthest` is one too; a smaller one is a pause.
    """

    def __init__(self, *, leap: int, farthest: int | None) -> None:
        self._leap = leap
        self._farthest = farthest
        self._shift = 0
        self._last: int | None = None
        self._end = 0
        self._count = 0

    def mend(self, at: int | None, count: int) -> int:
        """Where a piece of `count` samples begins that is said to begin at `at`."""
        stands = at is not None and self._last is not None and at - self._last < self._count // 2
        if at is not None:
            self._last = at
            at += self._shift
        mended = self._end if at is None or (self._count and (stands or self._leaps(at))) else at
        if at is not None and abs(mended - at) > self._leap:
            self._shift += mended - at
        self._end, self._count = mended + count, count
        return mended

    def _leaps(self, at: int) -> bool:
        too_far = self._farthest is not None and at > max(self._farthest, self._end + self._leap)
        return too_far or at < self._end - self._leap


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

    def lay(self, at: int, count: int) -> Piece:
        """Where a piece of `count` samples goes that begins at `at`."""
        gap = at - self.next
        if self.next and abs(gap) <= self._slack:
            gap = 0
        silence, skip = max(0, gap), min(count, max(0, -gap))
        if self._end is not None:
            silence = min(silence, max(0, self._end - self.next))
        if skip == count:
            silence = 0
        self.next += silence
        take = count - skip
        if self._end is not None:
            take = min(take, max(0, self._end - self.next))
        self.next += take
        return Piece(silence, skip, take)
