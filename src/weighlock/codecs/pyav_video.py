"""Clips and thins out films. Runs in the confined child; its door for the worker is `make`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import IO, Any

from weighlock.codecs import pyav
from weighlock.codecs.allotted import Allotment, fewer, too_many
from weighlock.codecs.encoding import TRIES
from weighlock.codecs.job import Context
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pyav_film import Film, exact
from weighlock.codecs.pyav_output import Held, counted, output
from weighlock.codecs.pyav_pictures import PictureTrack
from weighlock.codecs.pyav_remux import copy_film, may_copy
from weighlock.codecs.pyav_shown import Incomplete, Pictures, pictures
from weighlock.codecs.pyav_sound import AAC, SoundCopier, SoundEncoder
from weighlock.codecs.tally import codec_name
from weighlock.codecs.window import Window
from weighlock.errors import MalformedMedia
from weighlock.media.work import VideoWork

_COPIED_SOUND = {"aac", "mp3"}
_LOST_S = 0.5
_LAST_FRAME_S = Fraction(1, 20)
"""By so much a probe, which counts the last frame of sound whole, may find a film longer than its container does."""
_OVERSHOT = 1.08
"""What AAC was seen to take of its bit rate at most, by noise (2026-12-01)."""


def warm_up() -> None:
    """Import what PyAV imports on first use."""
    pyav.warm_up()


def make(window: Window, out: IO[bytes], work: VideoWork, context: Context) -> Outcome:
    """Write the film `work` asks for.

    Raises:
        InputError: it cannot be read, or nothing of it can be saved.
    """
    most = work.max_bytes
    with Film(window, context) as film:
        if may_copy(film, work):
            told = copy_film(film, out, work, context)
            if most is None or _emptied_if_above(most, out) is None:
                return told
    if most is None:
        return _again(window, out, work, context)
    aim, tried = most, list[int]()
    for _ in range(TRIES):
        told = _again(window, out, replace(work, max_bytes=aim), context)
        came = _emptied_if_above(most, out)
        if came is None:
            return told
        tried.append(came)
        aim = fewer(most, aim, came)
    raise too_many(most, min(tried))


def _emptied_if_above(max_bytes: int, out: IO[bytes]) -> int | None:
    """How many bytes there were, if they were too many; then they are gone."""
    if (came := out.seek(0, os.SEEK_END)) <= max_bytes:
        return None
    out.seek(0)
    out.truncate()
    return came


def _again(window: Window, out: IO[bytes], work: VideoWork, context: Context) -> Outcome:
    """The film encoded again."""
    try:
        with Film(window, context) as film:
            return _Again(film, out, work, context, thrifty=True).make()
    except Incomplete:
        pass
    # A picture was not where the packets said: decode everything instead.
    out.seek(0)
    out.truncate()
    with Film(window, context) as film:
        return _Again(film, out, work, context, thrifty=False).make()


class _Again:
    """A film encoded again."""

    def __init__(self, film: Film, out: IO[bytes], work: VideoWork, context: Context, *, thrifty: bool) -> None:
        self._film, self._out, self._work, self._context = film, out, work, context
        self._thrifty = thrifty
        self._start_s = exact(work.start_s or 0.0)
        self._end_s = None if work.end_s is None else exact(work.end_s)
        self._most = (work.max_width_px, work.max_height_px)
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
        stream = film.container.streams[self._index]
        span_s = (self._start_s, self._end_s)
        found = pictures(film, stream, timeline, span_s, self._work.fps, thrifty=self._thrifty)
        sounds = [] if self._sound_index is None else [film.container.streams[self._sound_index]]
        with output(self._out, "mp4", film, strip=self._work.strip_metadata, copied=sounds) as written:
            last_s = self._write(Held(written), found)
        return Outcome(mime="video/mp4", notes=(*self._notes, *self._losses(found, last_s)))

    def _write(self, written: Held, found: Pictures) -> Fraction:
        """Everything, in the order it is stored; returns where the pictures end, from the start of the clip."""
        film = self._film
        stream = film.container.streams[self._index]
        allotted = self._allotted(found)
        sound, sound_bits = self._sound(written.container, allotted)
        bits = None if allotted is None else allotted.rate(sound_bits)
        track = PictureTrack(written, stream, found.rate(), self._context.encoding, self._most, bits)
        first = film.ticks(self._start_s, stream)
        last = first if found.end_s is None else film.ticks(found.end_s, stream)
        for packet in film.packets():
            if packet.stream_index == self._index:
                if packet.pts is not None and last > first:
                    self._context.progress((packet.pts - first) / (last - first))
                for at_s, frame in found.feed(packet):
                    track.write(frame, at_s)
            elif sound is not None and not sound.done:
                written.mux(sound.feed(packet))
            if found.done and (sound is None or sound.done):
                break
        for at_s, frame in found.finish():
            track.write(frame, at_s)
        last_s = found.last_s()
        track.finish(last_s if sound is None else max(last_s, self._stands_until_s(found)))
        if sound is not None:
            written.mux(sound.finish())
            if sound.failures:
                lost = f"{counted(sound.failures, 'packet')} of its sound could not be decoded"
                self._notes = (*self._notes, lost)
        return last_s

    def _stands_until_s(self, found: Pictures) -> Fraction:
        """Where sound goes on behind the pictures, the last of them stands until the end that was asked for."""
        if self._end_s is None or found.decoder.failures or self._film.damage:
            return Fraction(0)
        lasts_s = Fraction(self._film.container.duration or 0, 1_000_000)
        return (self._end_s if self._end_s <= lasts_s + _LAST_FRAME_S else lasts_s) - self._start_s

    def _allotted(self, found: Pictures) -> Allotment | None:
        """The bits there are, where bytes are counted."""
        if self._work.max_bytes is None:
            return None
        end_s = found.end_s or self._end_s or Fraction(self._film.container.duration or 0, 1_000_000)
        span_s = max(Fraction(1, 10), end_s - self._start_s)
        return Allotment(self._work.max_bytes, span_s, int(span_s * found.rate()) + 1)

    def _sound(self, output: Any, allotted: Allotment | None) -> tuple[SoundEncoder | SoundCopier | None, float]:
        """The sound, and what bits it takes a second where that is asked."""
        if self._sound_index is None:
            return None, 0.0
        stream = self._film.container.streams[self._sound_index]
        takes, most = float(stream.bit_rate or math.inf), math.inf if allotted is None else allotted.sound_bits_per_s
        if self._is_whole(stream) and codec_name(stream) in _COPIED_SOUND and (allotted is None or takes <= most):
            return SoundCopier(output, self._film, stream, self._start_s, self._whole_packets(stream)), takes
        channels = stream.codec_context.layout.nb_channels
        voice = AAC.at(self._context.encoding.sound_bits_per_channel).within(most, channels)
        held = allotted is not None
        sound = SoundEncoder(output, self._film, stream, voice, self._start_s, self._end_s, held=held)
        return sound, voice.bits_per_s(channels) * _OVERSHOT

    def _whole_packets(self, stream: Any) -> Fraction | None:
        """Where a copy ends so that no packet goes beyond the end that is asked for."""
        if self._end_s is None:
            return None
        voice = replace(AAC, codec="libmp3lame") if codec_name(stream) == "mp3" else AAC
        return voice.fits(self._end_s, stream.codec_context.sample_rate or 48_000)

    def _is_whole(self, stream: Any) -> bool:
        """Whether nothing of the sound is cut off, but for what goes beyond an end it is held to."""
        if self._start_s or self._end_s is None:
            return not self._start_s
        return self._work.max_bytes is not None and 0 < self._film.promised_s(stream) <= self._end_s

    def _losses(self, found: Pictures, last_s: Fraction) -> Iterator[str]:
        film = self._film
        if found.note:
            yield found.note
        failures = found.decoder.failures
        promised_s = film.promised_s(film.container.streams[self._index])
        wanted_s = min(promised_s, float(self._end_s)) if self._end_s is not None else promised_s
        missing_s = wanted_s - float(self._start_s + last_s)
        if found.end_s is not None:
            missing_s = max(missing_s, float(found.end_s - self._start_s - last_s))
        if missing_s > _LOST_S or (missing_s > 0.05 and (failures or film.damage)):
            yield f"the last {missing_s:,.1f} s could not be decoded"
        elif failures or film.damage:
            what = (
                f"{counted(failures, 'packet')} of its pictures could not be decoded"
                if failures
                else "its end is damaged"
            )
            yield what
