"""Counting a stream while its packets go by. Takes PyAV's streams and packets without importing the library."""

from __future__ import annotations

from typing import Any

from weighlock.codecs.packets import HEAD_BYTES, measure_of
from weighlock.codecs.streams import PACE_SLACK, Evidence, mismatch, steady


class Tally:
    """Times of one stream while its packets go by, in ticks."""

    def __init__(self, stream: Any) -> None:
        self.base = float(stream.time_base) if stream.time_base else 0.0
        self.frame_s = frame_s(stream)
        self.usual = (
            int(1 / stream.average_rate / stream.time_base) if stream.type == "video" and stream.average_rate else 0
        )
        self.dated = stream.type == "audio"
        """Every packet says how long it lasts; pictures' packets often carry a guess."""
        self.packets = self.total = self.bytes = 0
        self.paced = stream.type == "video" and "matroska" in stream.container.format.name
        """The packets' durations are what the track says one of its frames lasts."""
        self.measure = measure_of(stream)
        self.content_s = 0.0
        """Sound in the packets by their own headers."""
        self.known_s = (stream.duration or 0) * self.base if stream.container.format.name == "mpegts" else 0.0
        """In a transport stream the difference of the last and the first time stamp, packets or not."""
        self.first: int | None = None
        self.last = 0
        self.previous: int | None = None
        self.deltas: dict[int, int] = {}

    def add(self, packet: Any) -> None:
        self.packets += 1
        self.bytes += packet.size
        duration = packet.duration or self.usual
        self.dated = self.dated and bool(packet.duration)
        self.total += duration
        if self.measure is not None:
            self.content_s += self.measure(bytes(memoryview(packet)[:HEAD_BYTES]), packet.size)
        at = packet.pts if packet.pts is not None else packet.dts
        if at is None:
            return
        self.first = at if self.first is None else min(self.first, at)
        self.last = max(self.last, at + duration)
        order = packet.dts if packet.dts is not None else at
        if self.previous is not None and len(self.deltas) < 10_000:
            step = max(0, order - self.previous)
            self.deltas[step] = self.deltas.get(step, 0) + 1
        self.previous = order

    def evidence(self) -> Evidence:
        claims = {"its packets": self.total * self.base} if self.dated else {}
        first = max(0, self.first or 0)  # what lies before zero is priming: decoded and dropped
        span_s = max((self.last - first) * self.base, self.known_s, 0.0)
        if self.first is None:
            span_s = self.total * self.base
        evidence = Evidence(
            start_s=first * self.base, end_s=first * self.base + span_s, claims=claims, packets=self.packets,
            payload_bytes=self.bytes, steady=steady(self.deltas),
        )  # fmt: skip
        trust_frames(evidence, self.packets * self.frame_s, clock_s=span_s)
        if self.dated and self.total * self.base > span_s:
            trust_frames(evidence, self.total * self.base, clock_s=span_s)
        trust_content(evidence, self.content_s, clock_s=evidence.span_s)
        if self.paced:
            claim_pace(evidence, self.total * self.base)
        return evidence


def trust_content(evidence: Evidence, content_s: float, *, clock_s: float) -> None:
    """Let the sound in packets of various lengths win over a clock that says less.

    A clock that says more is right: a pause may have no packets.
    """
    if content_s > clock_s:
        trust_frames(evidence, content_s, clock_s=clock_s)


def claim_pace(evidence: Evidence, frames_s: float) -> None:
    """Note how long the frames last at the pace their track states, where that is far longer than its clock says."""
    if frames_s > evidence.span_s * PACE_SLACK and mismatch(evidence.span_s, {"its frames": frames_s}):
        evidence.claims["its frames at their stated pace"] = frames_s


def trust_frames(evidence: Evidence, frames_s: float, *, clock_s: float) -> None:
    """Let counted frames of sound win over a clock that says less: decoders play samples, whatever the time stamps say.

    Where the two agree, the frames are a bound only: the first and the last may be cut.
    """
    if not frames_s:
        return
    evidence.at_most_s = max(evidence.at_most_s, frames_s)
    if mismatch(clock_s, {"its frames": frames_s}):
        evidence.claims["its frames"] = frames_s
        evidence.claims["its clock"] = clock_s
        evidence.end_s = max(evidence.end_s, evidence.start_s + frames_s)


def frame_s(stream: Any) -> float:
    """Seconds of sound in one packet of a codec with frames of one size; 0 for others and for pictures."""
    context = stream.codec_context if stream.type == "audio" else None
    if context is None or context.name.split("_")[0] not in ("aac", "mp3", "mp3float", "mp2", "mp2float", "ac3"):
        return 0.0
    return context.frame_size / context.sample_rate if context.frame_size and context.sample_rate else 0.0


def codec_name(stream: Any) -> str | None:
    """FFmpeg's name of the codec, whichever of its decoders is at work; `None` where it knows no decoder."""
    return stream.codec_context.codec.canonical_name if stream.codec_context is not None else None
