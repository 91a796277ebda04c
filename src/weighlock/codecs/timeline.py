"""When the pictures of a film are shown, and which of them must be decoded to see some. Pure: times and flags only.

Times are in ticks of the stream; a picture is known by its number in file order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate, pairwise
from operator import eq


class Feed(IntEnum):
    """What the decoder is given of a packet."""

    NOTHING = 0
    IF_OTHERS_LEAN_ON_IT = 1
    EVERYTHING = 2


@dataclass(slots=True)
class Timeline:
    """The pictures between two places of a file, in file order. `None` times are kept as gaps."""

    pts: array[int] = field(default_factory=lambda: array("q"))
    dts: array[int] = field(default_factory=lambda: array("q"))
    flags: bytearray = field(default_factory=bytearray)
    gaps: int = 0
    """Pictures without a time of their own."""
    last_duration: int = 0

    KEY = 1
    HIDDEN = 2

    def add(self, pts: int | None, dts: int | None, duration: int, *, key: bool, hidden: bool) -> None:
        """Note the next packet. `hidden` ones are decoded but not shown, as an edit list says."""
        if pts is None:
            self.gaps += 1
        self.pts.append(NO_TIME if pts is None else pts)
        self.dts.append(NO_TIME if dts is None else dts)
        self.flags.append((self.KEY if key else 0) | (self.HIDDEN if hidden else 0))
        if duration > 0:
            self.last_duration = duration

    def __len__(self) -> int:
        return len(self.pts)

    def is_key(self, number: int) -> bool:
        return bool(self.flags[number] & self.KEY)

    def is_shown(self, number: int) -> bool:
        return not self.flags[number] & self.HIDDEN

    def shown(self) -> Iterator[tuple[int, int]]:
        """(time, number) of the pictures that are shown, in file order."""
        return ((at, n) for n, at in enumerate(self.pts) if self.is_shown(n))

    @property
    def reliable(self) -> bool:
        """Every picture has a time that tells it from others.

        Two may share one: of these the first is only leant on, as VP9 does it.
        """
        if not self.pts or self.gaps:
            return False
        times = array("q", sorted(self.pts))  # a set of them would weigh four times as much
        same = sum(map(eq, times, times[1:]))
        return bool(same * 2 < len(times))

    def end(self, *, usual: int = 1) -> int:
        """When the last picture ceases to be shown, which lasts `usual` ticks if nothing says how long."""
        last = max(self.shown(), default=None)
        if last is None:
            return 0
        before = max((at for at, n in self.shown() if n != last[1]), default=last[0])
        return last[0] + (self.last_duration or last[0] - before or usual)

    def decode_times(self) -> Sequence[int]:
        """A decode time for every packet, rising and never behind its picture's time, whatever the file says."""
        rising = all(a < b for a, b in pairwise(self.dts))
        if rising and NO_TIME not in self.dts and all(d <= p for d, p in zip(self.dts, self.pts, strict=True)):
            return self.dts
        times = array("q", sorted(self.pts))
        delay = max((time - shown for time, shown in zip(times, self.pts, strict=True)), default=0)
        return array("q", (time - delay for time in times))


NO_TIME = -(1 << 63)


@dataclass(slots=True)
class Choice:
    """Which pictures are wanted, and what the decoder must be given to have them."""

    wanted: list[tuple[int, int]]
    """(time of the picture that is shown, index of the instant it is shown at), by instant."""
    feed: bytearray
    """A `Feed` for every packet."""
    ends: set[int] = field(default_factory=set)
    """Packets after which the decoder is emptied and starts anew."""


def shown_at(timeline: Timeline, instants: Sequence[int]) -> list[int]:
    """For each instant, in ticks and rising, the number of the picture shown then; before the first, the first.

    A picture is noted at the first instant that sees it, the latest of those noted there stays, and is shown until a
    later one is: what this takes depends on the instants, not on how long the film is.
    """
    newest: list[tuple[int, int] | None] = [None] * len(instants)
    for picture in timeline.shown():
        place = bisect_left(instants, picture[0])
        if place < len(instants):
            newest[place] = max(picture, newest[place] or picture)
    first = min(timeline.shown())
    return [number for _, number in accumulate((seen or first for seen in newest), max)]


def choose(timeline: Timeline, targets: Sequence[int]) -> Choice:
    """The least that shows the pictures `targets` (numbers, by instant): runs from a picture that stands alone.

    A picture shown before its group's first but stored behind it leans on the group before, so the run begins there.
    """
    groups = _groups(timeline)
    wanted = {timeline.pts[n] for n in targets}
    choice = Choice([(timeline.pts[n], i) for i, n in enumerate(targets)], bytearray(len(timeline)))
    runs: list[tuple[int, int]] = []
    for index, (first, end) in enumerate(groups):
        mine = [n for n in range(first, end) if timeline.pts[n] in wanted]
        if not mine:
            continue
        begin = first
        if index and any(timeline.pts[n] < timeline.pts[first] for n in mine):
            begin = groups[index - 1][0]
        if runs and begin <= runs[-1][1]:
            runs[-1] = (runs[-1][0], mine[-1])
        else:
            runs.append((begin, mine[-1]))
    for begin, last in runs:
        for n in range(begin, last + 1):
            choice.feed[n] = Feed.EVERYTHING if timeline.pts[n] in wanted else Feed.IF_OTHERS_LEAN_ON_IT
        choice.ends.add(last)
    return choice


def choose_all(timeline: Timeline, targets: Sequence[int]) -> Choice:
    """A full decode from the start of the window."""
    wanted = [(timeline.pts[n], i) for i, n in enumerate(targets)]
    return Choice(wanted, bytearray([Feed.EVERYTHING]) * len(timeline))


def _groups(timeline: Timeline) -> list[tuple[int, int]]:
    """(first, behind the last) packet of each group that begins with a picture that stands alone."""
    starts = [n for n in range(len(timeline)) if timeline.is_key(n)] or [0]
    return list(zip(starts, [*starts[1:], len(timeline)], strict=True))
