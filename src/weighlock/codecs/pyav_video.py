"""Clips and thins out films. Runs in the confined child; its door for the worker is `make`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import IO, Any

import av

from weighlock.codecs import pyav
from weighlock.codecs.job import Context
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pyav_film import BUFFER_BYTES, Film
from weighlock.codecs.pyav_pictures import Decoder, Encoder, Shaper
from weighlock.codecs.pyav_remux import copy_film, may_copy
from weighlock.codecs.pyav_sound import AAC, SoundCopier, SoundEncoder
from weighlock.codecs.tally import codec_name
from weighlock.codecs.timeline import NO_TIME, Choice, Feed, Timeline, choose, choose_all, shown_at
from weighlock.codecs.window import Window
from weighlock.errors import MalformedMedia, TransformFailed
from weighlock.media.work import VideoWork

_SURE = {"mov", "matroska", "mpegts"}
"""Containers in which decoding only what is needed was shown equal to decoding everything."""
_ROUNDING_S = Fraction(1, 1000)
"""Matroska rounds times to this; a picture a little late still counts as shown at its instant."""
_COPIED_SOUND = {"aac", "mp3"}
_LOST_S = 0.5
_FASTEST_FPS = 240


def warm_up() -> None:
    """Import what PyAV imports on first use."""
    pyav.warm_up()


def make(window: Window, out: IO[bytes], work: VideoWork, context: Context) -> Outcome:
    """Write the film `work` asks for.

    Raises:
        InputError: it cannot be read, or nothing of it can be saved.
    """
    with Film(window, context) as film:
        if may_copy(film, work):
            return copy_film(film, out, work, context)
    for sure in (True, False):
        with Film(window, context) as film:
            again = _Again(film, out, work, context, thrifty=sure)
            try:
                return again.make()
            except _Incomplete:
                # A picture was not where the packets said: decode everything instead.
                out.seek(0)
                out.truncate()
    raise AssertionError("a full decode is never incomplete")


class _Incomplete(Exception):
    """Decoding only what is needed did not give every picture that was wanted."""


class _Again:
    """A film encoded again."""

    def __init__(self, film: Film, out: IO[bytes], work: VideoWork, context: Context, *, thrifty: bool) -> None:
        self._film, self._out, self._work, self._context = film, out, work, context
        self._thrifty = thrifty
        self._start_s = Fraction(max(0.0, work.start_s or 0.0))
        self._end_s = None if work.end_s is None else Fraction(work.end_s)
        self._index = film.picture().index
        sound, self._notes = film.sound()
        self._sound_index = sound.index if sound is not None and work.keep_sound else None
        if not work.keep_sound:
            self._notes = ()

    def make(self) -> Outcome:
        film = self._film
        timeline, begin_s = film.timeline(self._index, self._start_s, self._end_s)
        if not len(timeline):
            raise MalformedMedia("it holds no picture between the places asked for")
        film.keep(*(film.container.streams[i] for i in (self._index, self._sound_index) if i is not None))
        film.rewind(begin_s, stream=film.container.streams[self._index])
        pictures = self._pictures(timeline)
        with _output(self._out, film, strip=self._work.strip_metadata) as output:
            last_s = self._write(output, pictures)
        return Outcome(mime="video/mp4", notes=(*self._notes, *self._losses(pictures, last_s)))

    def _pictures(self, timeline: Timeline) -> _Pictures:
        film, work = self._film, self._work
        stream = film.container.streams[self._index]
        if not timeline.reliable:
            return _Pictures(film, stream, timeline, self._start_s, self._end_s, work.fps)
        end_s = film.seconds(timeline.end(), stream)
        if self._end_s is not None:
            end_s = min(end_s, self._end_s)
        if work.fps is None:
            return _Every(film, stream, timeline, self._start_s, end_s, None)
        if self._thrifty and film.format in _SURE and not film.fragmented:
            return _Needed(film, stream, timeline, self._start_s, end_s, work.fps)
        return _Shown(film, stream, timeline, self._start_s, end_s, work.fps)

    def _write(self, output: Any, pictures: _Pictures) -> Fraction:
        """Everything, in the order it is stored; returns where the pictures end, from the start of the clip."""
        film, work = self._film, self._work
        stream = film.container.streams[self._index]
        encoder = Encoder(output, pictures.rate(), self._context.encoding)
        sound = self._sound(output)
        shaper: Shaper | None = None
        waiting: list[Any] = []
        done_s = Fraction(0)
        until_s = self._end_s or Fraction(pictures.end_s or 0)

        def written(found: Iterator[tuple[Fraction, Any]]) -> None:
            nonlocal shaper
            for at_s, frame in found:
                if shaper is None:
                    shape = stream.sample_aspect_ratio
                    shaper = Shaper(frame, shape if shape != 1 else None, (work.max_width_px, work.max_height_px))
                    shaped = shaper.shaped(frame)
                    encoder.set_up(shaped, shaper.size)
                    output.start_encoding()
                    for packet in waiting:
                        output.mux(packet)
                    waiting.clear()
                else:
                    shaped = shaper.shaped(frame)
                for packet in encoder.write(shaped, at_s):
                    output.mux(packet)

        for packet in film.packets():
            if packet.stream_index == self._index:
                if packet.pts is not None:
                    done_s = max(done_s, film.seconds(packet.pts, stream) - self._start_s)
                    self._context.progress(float(done_s / (until_s - self._start_s)) if until_s > self._start_s else 0)
                written(pictures.feed(packet))
            elif sound is not None and not sound.done:
                for ready in sound.feed(packet):
                    if shaper is None:
                        waiting.append(ready)
                    else:
                        output.mux(ready)
            if pictures.done and (sound is None or sound.done):
                break
            if len(waiting) > 20_000:
                raise MalformedMedia("its sound goes on without a picture that can be decoded")
        written(pictures.finish())
        if shaper is None:
            raise MalformedMedia("none of its pictures can be decoded")
        last_s = pictures.last_s()
        for packet in encoder.finish(last_s):
            output.mux(packet)
        if sound is not None:
            for packet in sound.finish():
                output.mux(packet)
            if sound.failures:
                self._notes = (*self._notes, f"{sound.failures:,} packets of its sound could not be decoded")
        return last_s

    def _sound(self, output: Any) -> SoundEncoder | SoundCopier | None:
        if self._sound_index is None:
            return None
        stream = self._film.container.streams[self._sound_index]
        if self._start_s == 0 and self._end_s is None and codec_name(stream) in _COPIED_SOUND:
            return SoundCopier(output, self._film, stream, self._start_s, None)
        return SoundEncoder(output, self._film, stream, AAC, self._start_s, self._end_s)

    def _losses(self, pictures: _Pictures, last_s: Fraction) -> Iterator[str]:
        film = self._film
        if pictures.note:
            yield pictures.note
        failures = pictures.decoder.failures
        promised_s = film.promised_s(film.container.streams[self._index])
        wanted_s = min(promised_s, float(self._end_s)) if self._end_s is not None else promised_s
        missing_s = wanted_s - float(self._start_s + last_s)
        if pictures.end_s is not None:
            missing_s = max(missing_s, float(pictures.end_s - self._start_s - last_s))
        if missing_s > _LOST_S or (missing_s > 0.05 and (failures or film.damage)):
            yield f"the last {missing_s:,.1f} s could not be decoded"
        elif failures or film.damage:
            what = f"{failures:,} packets of its pictures could not be decoded" if failures else "its end is damaged"
            yield what


class _Pictures:
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
        if self._held is not None and not self.done:
            yield from self._until(*self._held, self.last_s())
        self._held = None

    def _until(self, at_s: Fraction, frame: Any, next_s: Fraction) -> Iterator[tuple[Fraction, Any]]:
        """A picture shown from `at_s` to `next_s`, at every instant between; without a rate, once."""
        if self.end_s is not None:
            next_s = min(next_s, self.end_s - self.start_s)
        if next_s <= 0 or next_s <= at_s:
            return
        if self.fps is None:
            self.emitted_s = max(Fraction(0), at_s)
            yield self.emitted_s, frame
            return
        while (instant := self._next / self.fps) < next_s - _ROUNDING_S or self._next == 0:
            self._next += 1
            self.emitted_s = instant
            yield instant, frame


class _Shown(_Pictures):
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
        usual = max(self.timeline.last_duration * base, 1 / self.rate() if self.fps is None else Fraction(0))
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


class _Every(_Shown):
    """Every picture, the one already shown at the start included."""


class _Needed(_Shown):
    """Only the pictures that are wanted, and of the others only what those lean on."""

    def _choose(self) -> Choice:
        assert self.end_s is not None and self.fps is not None  # noqa: S101 - only made so
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
            raise _Incomplete
        return iter(())


def _output(out: IO[bytes], film: Film, *, strip: bool) -> Any:
    output = av.open(out, "w", format="mp4", options={"fflags": "+bitexact"}, buffer_size=BUFFER_BYTES)
    if not strip:
        output.metadata.update({k: v for k, v in film.container.metadata.items() if k in _KEPT_TAGS})
    return output


_KEPT_TAGS = ("title", "artist", "album", "comment", "creation_time", "date", "location")


def refuse_mux_error(error: Exception) -> TransformFailed:
    return TransformFailed(f"it could not be written: {pyav.words(error)}", cause=type(error).__name__)
