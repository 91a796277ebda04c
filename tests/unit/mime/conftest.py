"""Media drawn on the spot: one recipe for anything PyAV muxes, and the few boxes and pages it will not write."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any, Protocol

import av
import pytest


class Mux(Protocol):
    def __call__(
        self, container: str, *, picture: str | None = None, sound: str | None = None, **options: str
    ) -> bytes: ...


def _mux(container: str, *, picture: str | None = None, sound: str | None = None, **options: str) -> bytes:
    target = io.BytesIO()
    with av.open(target, "w", format=container, options=options) as output:
        streams: list[tuple[Any, Any]] = []
        if picture:
            video = output.add_stream(picture, rate=10)
            assert isinstance(video, av.VideoStream)
            video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
            streams.append((video, _frames()))
        if sound:
            streams.append((output.add_stream(sound, rate=48000 if "opus" in sound else 44100), _samples(sound)))
        for stream, frames in streams:
            for frame in frames:
                output.mux(stream.encode(frame))
            output.mux(stream.encode(None))
    return target.getvalue()


def _frames() -> list[av.VideoFrame]:
    frames = []
    for number in range(2):
        frame = av.VideoFrame(64, 48, "yuv420p")
        for plane in frame.planes:
            plane.update(bytes([40 + 50 * number]) * plane.buffer_size)
        frame.pts, frame.time_base = number, Fraction(1, 10)
        frames.append(frame)
    return frames


def _samples(sound: str) -> list[av.AudioFrame]:
    rate = 48000 if "opus" in sound else 44100
    frame = av.AudioFrame("s16", "mono", rate // 4)
    size = frame.planes[0].buffer_size
    frame.planes[0].update((bytes(range(256)) * (size // 256 + 1))[:size])
    frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
    return [frame]


@pytest.fixture(scope="session")
def mux() -> Mux:
    """`mux("mp4", picture="libx264", sound="aac")` → the bytes of a quarter of a second."""
    return _mux
