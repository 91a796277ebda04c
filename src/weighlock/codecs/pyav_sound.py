"""Sound out of a decoder, cut to the sample, without gaps, and into an encoder. Runs in the confined child."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import av

from weighlock.codecs import pyav, tally
from weighlock.codecs.pcm import Clock, Line
from weighlock.codecs.pyav_film import Film

_SLACK_S = Fraction(1, 50)
"""Time stamps may be off by this much before samples are dropped or silence is put in."""
_LEAP_S = Fraction(1, 4)
"""A jump of the time stamps past this is no drift."""
_PIECE = 4096
_RATES = {
    "aac": (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000),
    "libmp3lame": (48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000),
    "libopus": (48000, 24000, 16000, 12000, 8000),
}
_PADDING = {"aac": (1024, 1024), "libmp3lame": (1152, 1105), "libopus": (960, 312)}
"""Samples of a packet, and those an encoder puts before the first."""
_MPEG_1_HZ, _OPUS_HZ = 32_000, 48_000
_MONO = ((64_000, None), (48_000, None), (32_000, 24_000), (24_000, 16_000), (16_000, 16_000))
"""(bits a second, sample rate at most) where bytes count. Gemini hears 16 Kbps of one channel (`facts/gemini.md`)."""


@dataclass(frozen=True, slots=True)
class Voice:
    """An encoder of sound, and what it is given."""

    codec: str
    sample_format: str
    """Packed, in which pieces are cut; the encoder's own is its business."""
    most_channels: int = 2
    bits_per_channel: int = 0
    most_hz: int | None = None

    def at(self, bits_per_channel: int | None) -> Voice:
        """The same at another rate of bits, if it has one."""
        return replace(self, bits_per_channel=bits_per_channel) if self.bits_per_channel and bits_per_channel else self

    def rate(self, wanted: int) -> int:
        wanted = min(wanted, self.most_hz or wanted)
        known = _RATES.get(self.codec)
        if known is None:
            return max(1, wanted)
        return min(known, key=lambda rate: (rate < wanted, abs(rate - wanted)))

    def bits_per_s(self, channels: int) -> int:
        return self.bits_per_channel * min(channels, self.most_channels)

    def within(self, bits_per_s: float, channels: int) -> Voice:
        """The fullest one that takes so much; the thinnest where all take more, itself where it has no rate."""
        if not self.bits_per_channel or self.bits_per_s(channels) <= bits_per_s:
            return self
        thinner = (replace(self, most_channels=1, bits_per_channel=bits, most_hz=hz) for bits, hz in _MONO)
        return next((one for one in thinner if one.bits_per_channel <= bits_per_s), self.thinnest)

    @property
    def thinnest(self) -> Voice:
        bits, hz = _MONO[-1]
        return replace(self, most_channels=1, bits_per_channel=bits, most_hz=hz)

    def fits(self, span_s: Fraction, rate: int) -> Fraction:
        """Seconds of sound that fill no more than `span_s` once the encoder has put its own before and behind them."""
        whole, before = _PADDING.get(self.codec, (0, 0))
        if not whole:
            return span_s
        if self.codec == "libmp3lame":  # whose header is a packet of its own
            whole //= 2 if rate < _MPEG_1_HZ else 1
            before += whole
        if self.codec == "libopus":
            whole, before = whole * rate // _OPUS_HZ, before * rate // _OPUS_HZ
        return Fraction(max(whole, int(span_s * rate) // whole * whole) - before, rate)


AAC = Voice("aac", "flt", 2, 64_000)


class SoundEncoder:
    """Decodes one stream and encodes what lies between two places of it, its first sample at time zero.

    A stream that begins later is preceded by silence; a gap in it is filled. Where it is `held` to its end, that is not
    even passed by the last packet: a clip of ten seconds would else be billed for eleven.
    """

    def __init__(
        self, output: Any, film: Film, stream: Any, voice: Voice, start_s: Fraction, end_s: Fraction | None, *,
        held: bool = False,
    ) -> None:  # fmt: skip
        decoder = stream.codec_context
        self._decoder = decoder
        self._film = film
        self._start_s = start_s
        self._rate = decoder.sample_rate or 48_000
        channels = max(1, decoder.layout.nb_channels)
        fits = channels <= voice.most_channels
        self._channels = channels if fits else min(2, voice.most_channels)
        self._layout = decoder.layout.name if fits and channels > 2 else ("mono" if self._channels == 1 else "stereo")
        self._format = voice.sample_format
        self._sample_bytes = self._channels * av.AudioFormat(voice.sample_format).bytes
        asked_s, end_s = end_s, film.end_s(stream, end_s)
        if held and asked_s is not None and end_s is not None:
            end_s = min(end_s, start_s + voice.fits(asked_s - start_s, voice.rate(self._rate)))
        end = None if end_s is None else max(0, round((end_s - start_s) * self._rate))
        lasts_s = Fraction(film.container.duration or 0, 1_000_000)
        self._line = Line(slack=int(_SLACK_S * self._rate), end=end)
        self._clock = Clock(
            leap=int(_LEAP_S * self._rate), farthest=end or max(1, round((lasts_s - start_s + 1) * self._rate))
        )
        self._packing: Any = None
        self.stream = output.add_stream(voice.codec, rate=voice.rate(self._rate))
        self.stream.codec_context.layout = self._layout
        if voice.bits_per_channel:
            self.stream.codec_context.bit_rate = voice.bits_per_channel * self._channels
        self._base = stream.time_base
        self.failures = 0
        self._given = 0
        self.pending = bytearray()

    @property
    def done(self) -> bool:
        return self._line.full

    @property
    def seconds(self) -> Fraction:
        """Sound laid so far."""
        return Fraction(self._line.next, self._rate)

    def feed(self, packet: Any) -> Iterator[Any]:
        """Packets that are ready."""
        for frame in self._decoded(packet):
            if not self.done:
                yield from self._take(frame)

    def finish(self) -> Iterator[Any]:
        for frame in self._decoded(None):
            if not self.done:
                yield from self._take(frame)
        yield from self._encode(last=True)
        yield from self.stream.encode(None)

    def _decoded(self, packet: Any) -> list[Any]:
        try:
            return list(self._decoder.decode(packet))
        except MemoryError:
            raise
        except pyav.READ_ERRORS as error:
            pyav.refuse_no_memory(error)
            self.failures += 1
            return []

    def _take(self, frame: Any) -> Iterator[Any]:
        base = frame.time_base or self._base
        at = None
        if frame.pts is not None and base:
            at = round((frame.pts * base - self._film.start - self._start_s) * self._rate)
        for packed in self._packed(frame):
            piece = self._line.lay(self._clock.mend(at, packed.samples), packed.samples)
            yield from self._silence(piece.silence)
            first = piece.skip * self._sample_bytes
            # The plane may be longer than its samples.
            self.pending += memoryview(packed.planes[0])[first : first + piece.take * self._sample_bytes]
            at = None
        yield from self._encode(last=False)

    def _packed(self, frame: Any) -> list[Any]:
        try:
            if self._packing is None:
                self._packing = av.AudioResampler(format=self._format, layout=self._layout, rate=self._rate)
            return list(self._packing.resample(frame))
        except MemoryError:
            raise
        except (*pyav.READ_ERRORS, AttributeError):
            pass
        # Another layout or rate than before: begin anew.
        try:
            self._packing = av.AudioResampler(format=self._format, layout=self._layout, rate=self._rate)
            return list(self._packing.resample(frame))
        except (*pyav.READ_ERRORS, AttributeError):
            self.failures += 1
            return []

    def _silence(self, samples: int) -> Iterator[Any]:
        while samples > 0:
            some = min(samples, 1 << 16)
            self.pending += bytes(some * self._sample_bytes)
            samples -= some
            yield from self._encode(last=False)

    def _encode(self, *, last: bool) -> Iterator[Any]:
        piece_bytes = _PIECE * self._sample_bytes
        while len(self.pending) >= piece_bytes or (last and self.pending):
            piece = bytes(self.pending[:piece_bytes])
            del self.pending[:piece_bytes]
            samples = len(piece) // self._sample_bytes
            frame = av.AudioFrame(format=self._format, layout=self._layout, samples=samples)
            frame.planes[0].update(piece.ljust(frame.planes[0].buffer_size, b"\0"))
            frame.sample_rate, frame.pts, frame.time_base = self._rate, self._given, Fraction(1, self._rate)
            self._given += samples
            yield from self.stream.encode(frame)


class SoundCopier:
    """Passes packets on, with the file's start at time zero, from `start_s` until `end_s`."""

    def __init__(self, output: Any, film: Film, stream: Any, start_s: Fraction, end_s: Fraction | None) -> None:
        self.failures = 0
        self._film = film
        self._source = stream
        self.stream = output.add_stream_from_template(stream, opaque=True)
        self._first = film.ticks(start_s, stream)
        end_s = film.end_s(stream, end_s)
        self._end = None if end_s is None else film.ticks(end_s, stream)
        self._from_start = start_s == 0
        self._last: int | None = None
        self._frame = round(Fraction(tally.frame_s(stream)) / stream.time_base)
        self._clock = Clock(leap=int(_LEAP_S / stream.time_base), farthest=None)
        self.done = False
        self._laid = 0

    @property
    def seconds(self) -> Fraction:
        """Sound passed on so far."""
        return self._laid * Fraction(self._source.time_base)

    def feed(self, packet: Any) -> Iterator[Any]:
        if packet.is_corrupt or _is_cut(packet):
            self.failures += 1
            return
        at = packet.pts if packet.pts is not None else packet.dts
        if at is None and self._last is None:
            at = self._first
        lasts = max(1, self._frame or packet.duration or 1)
        at = self._clock.mend(at, lasts)
        if self._end is not None and at >= self._end:
            self.done = True
            return
        # What lies before the start of the file is what its decoder needs to settle.
        if at + lasts <= self._first and not self._from_start:
            return
        if self._last is not None and at <= self._last:
            return
        self._last = at
        lasts = lasts if self._end is None else min(lasts, self._end - at)
        packet.pts = packet.dts = at - self._first
        packet.duration = lasts
        self._laid = at - self._first + lasts
        packet.stream = self.stream
        yield packet

    def finish(self) -> Iterator[Any]:
        return iter(())


def _is_cut(packet: Any) -> bool:
    """Whether a frame of bare AAC says that it is longer than what there is of it, as at the end of a cut stream."""
    head = bytes(memoryview(packet)[:6])
    if len(head) < 6 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0 or packet.stream.codec_context.name != "aac":
        return False
    return bool(((head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5) > packet.size)
