"""Which pictures of a film come out, and when: those shown at some instants, or all between two places.

Runs in the confined child.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from weighlock.codecs.pyav_film import Film
from weighlock.codecs.pyav_pictures import Decoder
from weighlock.codecs.timeline import NO_TIME, Choice, Feed, Timeline, choose, choose_all, shown_at

_SURE = {"mov", "matroska", "mpegts"}
"""Containers in which decoding only what is needed was shown equal to decoding everything."""
_ROUNDING_S = Fraction(1, 1000)
"""Matroska rounds times to this; a picture a little late still counts as shown at its instant."""
_FASTEST_FPS = 240


class Incomplete(Exception):
    """Decoding only what is needed did not give every picture that was wanted."""


def pictures(
    film: Film, stream: Any, timeline: Timeline, span_s: tuple[Fraction, Fraction | None], fps: float | None, *,
    thrifty: bool,
) -> Pictures:  # fmt: skip
    """The way to choose that suits this film; `thrifty` allows to leave out what is not needed.

    `span_s` is where the clip begins and ends (`None`: with the film).
    """
    start_s, end_s = span_s
    if not timeline.reliable:
        return Pictures(film, stream, timeline, start_s, end_s, fps)
    ends_s = film.seconds(timeline.end(usual=_usual_ticks(stream)), stream)
    ends_s = ends_s if end_s is None else min(ends_s, end_s)
    if fps is not None and thrifty and film.format in _SURE and not film.fragmented:
        return Needed(film, stream, timeline, start_s, ends_s, fps)
    return Shown(film, stream, timeline, start_s, ends_s, fps)


class Pictures:
    """Pictures as they arrive, for films whose packets do not say when they are shown: an even pace is assumed."""

    note = "its pictures carry no usable times; an even pace was assumed"

    def __init__(
        self, film: Film, stream: Any, timeline: Timeline, start_s: Fraction, end_s: Fraction | None, fps: float | None
    ) -> None:
        self.film, self.stream, self.timeline = film, stream, timeline
        self.decoder = Decoder(stream)
        self.start_s, self.end_s = start_s, end_s
        self.fps = None if fps is None else Fraction(fps).limit_denominator(1000)
        self.done = False
        self.arrived = 0
        self.emitted_s = Fraction(0)
        self._held: tuple[Fraction, Any] | None = None
        self._next = 0
        self._emitted = False
        self._at = 0

    def rate(self) -> Fraction:
        """Frames a second, for the encoder's rate control."""
        rate = self.fps or self.stream.average_rate or self.stream.guessed_rate or Fraction(25)
        return min(max(Fraction(rate), Fraction(1, 1000)), Fraction(_FASTEST_FPS))

    def _pace(self) -> Fraction:
        return Fraction(self.stream.average_rate or self.stream.guessed_rate or 25)

    def feed(self, packet: Any) -> Iterator[tuple[Fraction, Any]]:
        for frame in self.decoder.feed(packet, Feed.EVERYTHING):
            yield from self._arrive(frame)

    def finish(self) -> Iterator[tuple[Fraction, Any]]:
        for frame in self.decoder.flush():
            yield from self._arrive(frame)
        yield from self._rest()

    def last_s(self) -> Fraction:
        """Where the pictures end, from the start of the clip."""
        end_s = self.arrived / self._pace() - self.start_s
        return max(self.emitted_s, end_s if self.end_s is None else min(end_s, self.end_s - self.start_s))

    def _arrive(self, frame: Any) -> Iterator[tuple[Fraction, Any]]:
        at_s = self.arrived / self._pace() - self.start_s
        self.arrived += 1
        yield from self._show(at_s, frame)

    def _show(self, at_s: Fraction, frame: Any) -> Iterator[tuple[Fraction, Any]]:
        """The picture before, now that it is known how long it is shown."""
        if self.end_s is not None and at_s >= self.end_s - self.start_s:
            self.done = True
        if self._held is not None:
            yield from self._until(*self._held, at_s)
        self._held = (at_s, frame)

    def _rest(self) -> Iterator[tuple[Fraction, Any]]:
        if self._held is None:
            return
        shown = False
        if not self.done:
            for at_s, frame in self._until(*self._held, self.last_s()):
                shown = True
                yield at_s, frame
        if not shown and not self._emitted:
            # All pictures end before the clip begins: a player goes on showing the last.
            yield Fraction(0), self._held[1]
        self._held = None

    def _until(self, at_s: Fraction, frame: Any, next_s: Fraction) -> Iterator[tuple[Fraction, Any]]:
        """A picture shown from `at_s` to `next_s`, at every instant between; without a rate, once."""
        if self.end_s is not None:
            next_s = min(next_s, self.end_s - self.start_s)
        if next_s <= _ROUNDING_S or next_s <= at_s:
            return
        self._emitted = True
        if self.fps is None:
            self.emitted_s = max(Fraction(0), at_s)
            yield self.emitted_s, frame
            return
        while (instant := self._next / self.fps) < next_s - _ROUNDING_S:
            self._next += 1
            self.emitted_s = instant
            yield instant, frame


class Shown(Pictures):
    """A full decode that chooses the picture shown at each instant, by the times the packets carry."""

    note = ""

    def __init__(
        self, film: Film, stream: Any, timeline: Timeline, start_s: Fraction, end_s: Fraction | None, fps: float | None
    ) -> None:
        super().__init__(film, stream, timeline, start_s, end_s, fps)
        self.choice = self._choose()
        self._fed = 0
        self._last_fed = max((n for n, feed in enumerate(self.choice.feed) if feed), default=-1)

    def _choose(self) -> Choice:
        first = shown_at(self.timeline, [self.film.ticks(self.start_s + _ROUNDING_S, self.stream)])
        choice = choose_all(self.timeline, [])
        begin = max((n for n in range(first[0] + 1) if self.timeline.is_key(n)), default=0)
        if self.timeline.pts[first[0]] < self.timeline.pts[begin]:
            begin = max((n for n in range(begin) if self.timeline.is_key(n)), default=0)
        choice.feed[:begin] = bytes(begin)
        return choice

    def feed(self, packet: Any) -> Iterator[tuple[Fraction, Any]]:
        number = self._number(packet)
        if number is None or self.choice.feed[number] == Feed.NOTHING:
            return
        for frame in self.decoder.feed(packet, self.choice.feed[number]):
            yield from self._arrive(frame)
        if number in self.choice.ends:
            for frame in self.decoder.flush():
                yield from self._arrive(frame)
        if number >= self._last_fed and self.choice.ends:
            self.done = True

    def last_s(self) -> Fraction:
        """The end of the last picture that could be decoded, if not of all."""
        assert self.end_s is not None  # noqa: S101 - the timeline says it
        end_s = self.end_s - self.start_s
        last = self.decoder.last
        if last is None or not (self.decoder.failures or self.film.damage):
            return end_s
        base = self.stream.time_base
        usual: Fraction = max(self.timeline.last_duration * base, 1 / self.rate() if self.fps is None else Fraction(0))
        return min(end_s, max(self.emitted_s, self.film.seconds(last, self.stream) - self.start_s + usual))

    def _number(self, packet: Any) -> int | None:
        """Which of the timeline's pictures this packet is; they come in the same order."""
        pts = packet.pts if packet.pts is not None else NO_TIME
        times = self.timeline.pts
        for number in range(self._fed, min(self._fed + 256, len(times))):
            if times[number] == pts:
                self._fed = number + 1
                return number
        return None

    def _arrive(self, frame: Any) -> Iterator[tuple[Fraction, Any]]:
        if frame.pts is None:
            return
        yield from self._show(self.film.seconds(frame.pts, self.stream) - self.start_s, frame)


class Needed(Shown):
    """Only the pictures that are wanted, and of the others only what those lean on."""

    def _choose(self) -> Choice:
        assert self.end_s is not None  # noqa: S101 - only made so
        assert self.fps is not None  # noqa: S101 - only made so
        # What `_until` would choose, said beforehand.
        count = max(1, -int(-(self.end_s - self.start_s - _ROUNDING_S) * self.fps // 1))
        instants = [
            self.film.ticks(self.start_s + number / self.fps + _ROUNDING_S, self.stream) for number in range(count)
        ]
        choice = choose(self.timeline, shown_at(self.timeline, instants))
        self._left: dict[int, list[int]] = {}
        for pts, number in choice.wanted:
            self._left.setdefault(pts, []).append(number)
        return choice

    def _arrive(self, frame: Any) -> Iterator[tuple[Fraction, Any]]:
        assert self.fps is not None  # noqa: S101 - only made so
        for number in self._left.pop(frame.pts, ()):
            self.emitted_s = number / self.fps
            yield self.emitted_s, frame

    def _rest(self) -> Iterator[tuple[Fraction, Any]]:
        if self._left:
            raise Incomplete  # also where the pictures end before the clip begins
        return iter(())


def _usual_ticks(stream: Any) -> int:
    """How long a picture lasts of which nothing else is known."""
    pace = Fraction(stream.average_rate or stream.guessed_rate or 25)
    return max(1, round(1 / pace / Fraction(stream.time_base)))
