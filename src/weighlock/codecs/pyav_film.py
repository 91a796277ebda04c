"""An open film or song to be transformed: its streams, where its time begins, and its packets between two places.

Runs in the confined child. Edit lists are applied, after their tables were found to be small.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import av
import av.container
import av.stream

from weighlock.codecs import kinds, mp4, pyav
from weighlock.codecs.job import Context
from weighlock.codecs.movie import Movie
from weighlock.codecs.timeline import Timeline
from weighlock.codecs.window import Window
from weighlock.errors import MalformedMedia, MediaTooLarge

BUFFER_BYTES = 1 << 18
_MAX_EDITS = 256
_MAX_EDITED_SAMPLES = 20_000_000
"""Edits times samples: FFmpeg walks the samples once for each edit."""
_SEEKABLE = {"mov", "matroska", "mpegts"}
_EARLIER_S = (2, 12, 62)
"""How far before a place to look for a picture that stands alone; sound belonging to it may be stored before it."""
_NEAR_S = 6
_BAD_READS = 64


def exact(at_s: float) -> Fraction:
    """A time as it was written: 3.3 is not 3.29999…"""
    return Fraction(max(0.0, at_s)).limit_denominator(1_000_000)


class Film:
    """Times are in seconds from the first thing a player presents, as everywhere outside this room."""

    def __init__(self, window: Window, context: Context) -> None:
        self._window = window
        self._context = context
        self.demuxers = kinds.demuxers(context.mime)
        self.movie = mp4.read_movie(window.view) if self.demuxers == kinds.MOV else None
        _refuse_many_edits(self.movie)
        self.damage: str | None = None
        """What ended reading before the end of the file."""
        self._open()

    def __enter__(self) -> Film:
        return self

    def __exit__(self, *_: object) -> None:
        self.container.close()

    def _open(self) -> None:
        self._window.seek(0)
        self.container = pyav.open_medium(self._window, self.demuxers, edit_lists=True, buffer_bytes=BUFFER_BYTES)
        played = [stream for stream in self.container.streams if pyav.is_played(stream)]
        self.pictures = [s for s in played if s.type == "video" and s.codec_context is not None]
        self.sounds = [s for s in played if s.type == "audio" and s.codec_context is not None]
        starts = [s.start_time * s.time_base for s in played if s.start_time is not None and s.time_base]
        self.start = max(Fraction(0), min(starts, default=Fraction(0)))
        self._kept: list[Any] = []
        self._fresh = True

    @property
    def format(self) -> str:
        return str(self.container.format.name.split(",")[0])

    @property
    def fragmented(self) -> bool:
        return self.movie is not None and self.movie.fragmented

    def picture(self) -> Any:
        """The stream of pictures that is shown: the largest.

        Raises:
            MalformedMedia: none can be decoded.
        """
        if not self.pictures:
            raise MalformedMedia("it holds no moving pictures that can be decoded")
        return max(self.pictures, key=pyav.area)

    def sound(self) -> tuple[Any | None, tuple[str, ...]]:
        """The stream of sound that is heard, and what to say of the choice."""
        if not self.sounds:
            return None, ()
        default = av.stream.Disposition.default
        heard = next((s for s in self.sounds if s.disposition & default), self.sounds[0])
        if len(self.sounds) == 1:
            return heard, ()
        number, language = self.sounds.index(heard) + 1, str(heard.metadata.get("language", "und"))[:16]
        which = f"track {number}" + ("" if language == "und" else f" ({language})")
        return heard, (f"of {len(self.sounds)} tracks of sound the default one was kept, {which}",)

    def keep(self, *streams: Any) -> None:
        """Read only these from now on; FFmpeg then skips over the samples of the others."""
        self._kept = [stream for stream in streams if stream is not None]
        kept = {stream.index for stream in self._kept}
        for stream in self.container.streams:
            if hasattr(stream, "discard"):
                discard = av.stream.Discard
                stream.discard = discard.default if stream.index in kept else discard.all

    def rewind(self, start_s: Fraction, *, stream: Any) -> None:
        """Stand before `start_s`, far enough that all of it follows; at the very start where seeking is not safe."""
        if self.format not in _SEEKABLE or self.fragmented or start_s <= _NEAR_S:
            self._reopen()
            return
        place = self.start + start_s
        self._fresh = False
        try:
            self.container.seek(int(place / stream.time_base), stream=stream, backward=True, any_frame=False)
        except pyav.READ_ERRORS:
            self._reopen()

    def _reopen(self) -> None:
        """The container at its start, with the same streams kept: not every format can be wound back.

        Streams taken from it before are of no use afterwards.
        """
        if self._fresh:
            return
        kept = [stream.index for stream in self._kept]
        self.container.close()
        self._open()
        self.keep(*(self.container.streams[index] for index in kept))

    def packets(self) -> Iterator[Any]:
        """What follows of the kept streams. Damage ends it quietly, and is noted."""
        self.damage, self._fresh = None, False
        bad = 0
        packets = self.container.demux([self.container.streams[s.index] for s in self._kept])
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except MemoryError:
                raise
            except pyav.READ_ERRORS as error:
                pyav.refuse_no_memory(error)
                bad += 1
                self.damage = pyav.words(error)
                if bad > _BAD_READS or isinstance(error, EOFError):
                    return
                packets = self.container.demux([self.container.streams[s.index] for s in self._kept])
                continue
            if packet.size:
                yield packet

    def ticks(self, at_s: Fraction, stream: Any) -> int:
        """A place as a time stamp of the stream."""
        return int((self.start + at_s) / stream.time_base)

    def seconds(self, ticks: int, stream: Any) -> Fraction:
        return Fraction(ticks * stream.time_base - self.start)

    def promised_s(self, stream: Any) -> float:
        """How long the header says the stream goes on; 0 where it does not."""
        track = self.movie.track(stream.id) if self.movie is not None else None
        if track is not None and not self.fragmented and not track.edits:
            return track.media_s
        if stream.duration and stream.time_base and self.movie is not None:
            return float(((stream.start_time or 0) + stream.duration) * stream.time_base - self.start)
        return 0.0

    def end_s(self, stream: Any, asked_s: Fraction | None) -> Fraction | None:
        """Where the stream is to end: at `asked_s`, or before that where its edit list ends it.

        The last frame of AAC is longer than what there was to encode; FFmpeg decodes all of it.
        """
        track = self.movie.track(stream.id) if self.movie is not None else None
        if self.movie is None or track is None or self.fragmented or not track.edits:
            return asked_s
        shown_s = exact(track.presented_s(self.movie.timescale)[1]) - self.start
        return shown_s if asked_s is None else min(shown_s, asked_s)

    def timeline(self, index: int, start_s: Fraction, end_s: Fraction | None) -> tuple[Timeline, Fraction]:
        """The pictures from the last that stands alone before `start_s` until `end_s`, and from where they were read.

        Raises:
            MediaTooLarge: more pictures than the bounds allow, or too long to walk.
        """
        for earlier_s in _EARLIER_S:
            begin_s = max(Fraction(0), start_s - earlier_s)
            found = self._walk(index, begin_s, start_s, end_s)
            stream = self.container.streams[index]
            first = next((found.pts[n] for n in range(len(found)) if found.is_key(n)), None)
            if begin_s <= _NEAR_S or (first is not None and self.seconds(first, stream) <= start_s):
                return found, begin_s
        return self._walk(index, Fraction(0), start_s, end_s), Fraction(0)

    def _walk(self, index: int, begin_s: Fraction, start_s: Fraction, end_s: Fraction | None) -> Timeline:
        """Drops what lies before the last group that begins before `start_s`, but one."""
        self.keep(self.container.streams[index])
        self.rewind(begin_s, stream=self.container.streams[index])
        stream = self.container.streams[index]
        last = None if end_s is None else self.ticks(end_s, stream)
        give_up = time.process_time() + self._context.bounds.scan_cpu_s
        timeline, beyond = Timeline(), 0
        for packet in self.packets():
            timeline.add(packet.pts, packet.dts, packet.duration or 0, key=packet.is_keyframe, hidden=packet.is_discard)
            if last is not None and packet.pts is not None:
                # Later pictures may be stored before earlier ones, so go on for a while.
                beyond = beyond + 1 if packet.pts > last else 0
                if beyond > 32:
                    break
            if len(timeline) % 4096 == 0:
                self._refuse_long_walk(len(timeline), give_up)
        return timeline

    def _refuse_long_walk(self, pictures: int, give_up: float) -> None:
        bounds = self._context.bounds
        if pictures > bounds.max_frames:
            raise MediaTooLarge(
                f"more than {bounds.max_frames:,} frames (safety.max.frames)", max_frames=bounds.max_frames
            )
        if time.process_time() > give_up:
            raise MediaTooLarge(f"its packets take over {bounds.scan_cpu_s:g} s of CPU", limit="cpu", packets=pictures)


def _refuse_many_edits(movie: Movie | None) -> None:
    for track in movie.tracks if movie is not None else ():
        edits = len(track.edits)
        if edits > _MAX_EDITS or edits * track.samples > _MAX_EDITED_SAMPLES:
            raise MalformedMedia(
                f"an edit list of {edits:,} entries over {track.samples:,} samples", edits=edits, samples=track.samples
            )
