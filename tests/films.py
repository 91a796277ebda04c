"""Films that say in every picture which one it is, and beep on every whole second: what was done to them shows.

A picture holds its number in sixteen stripes, black or white. Sound is silent but for a beep from each whole second on.
"""

from __future__ import annotations

import io
import math
import struct
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import av

_BITS = 16
_RATE = 48_000
_BEEP_S = 0.06


def film(
    seconds: float = 6.0, form: str = "mp4", *, fps: int = 20, size: tuple[int, int] = (160, 96),
    codec: str = "libx264", gop: int = 40, b_frames: int = 2,
    sound_codec: str | None = "aac", tracks: int = 1, default_track: int = 0,
    rotation: int = 0, times_ms: Sequence[int] | None = None, picture_delay_s: float = 0.0, sound_delay_s: float = 0.0,
    pixel_shape: Fraction | None = None, pixel_format: str = "yuv420p", corner: bool = False,
    options: dict[str, str] | None = None, container_options: dict[str, str] | None = None,
) -> bytes:  # fmt: skip
    """A film of numbered pictures. With `times_ms` each has its own time. `corner` draws a white corner instead."""
    written = io.BytesIO()
    x264 = {"g": str(gop), "bf": str(b_frames), "sc_threshold": "0"} if codec == "libx264" else {"g": str(gop)}
    with av.open(written, "w", format=form, options=container_options or {}) as container:
        stream: Any = container.add_stream(codec, rate=fps, options={**x264, **(options or {})})
        stream.width, stream.height, stream.pix_fmt = *size, pixel_format
        base = Fraction(1, fps)
        if times_ms is not None:
            base = stream.codec_context.time_base = Fraction(1, 1000)
        if pixel_shape is not None:
            stream.codec_context.sample_aspect_ratio = pixel_shape
        if rotation:
            stream.set_display_rotation(-rotation)
        sounds: list[Any] = (
            [container.add_stream(sound_codec, rate=_RATE) for _ in range(tracks)] if sound_codec else []
        )
        for number, sound in enumerate(sounds):
            sound.codec_context.layout = "mono"
            if tracks > 1:
                sound.disposition = av.stream.Disposition(number == default_track)
        times = times_ms if times_ms is not None else range(round(seconds * fps))
        late = round(picture_delay_s / base)
        packets = []
        for number, at in enumerate(times):
            frame = _corner(size, pixel_format) if corner else _stripes(size, number, pixel_format)
            frame.pts, frame.time_base = at + late, base
            packets += stream.encode(frame)
        packets += stream.encode(None)
        for number, sound in enumerate(sounds):
            packets += _beeps(sound, seconds, sound_delay_s, pitch_hz=1000 + 1000 * number)
        for packet in sorted(packets, key=lambda packet: (packet.dts * packet.time_base, packet.stream_index)):
            container.mux(packet)
    return written.getvalue()


def beeps(seconds: float, codec: str, form: str, *, delay_s: float = 0.0) -> bytes:
    """Sound alone, with a beep on every whole second."""
    written = io.BytesIO()
    with av.open(written, "w", format=form) as container:
        stream: Any = container.add_stream(codec, rate=_RATE)
        stream.codec_context.layout = "mono"
        for packet in _beeps(stream, seconds, delay_s, pitch_hz=1000):
            container.mux(packet)
    return written.getvalue()


def _stripes(size: tuple[int, int], number: int, pixel_format: str) -> Any:
    width = size[0]
    row = bytes(235 if number >> (x * _BITS // width) & 1 else 16 for x in range(width))
    return _frame(size, pixel_format, lambda _: row)


def _corner(size: tuple[int, int], pixel_format: str) -> Any:
    """White in the upper left quarter."""
    width, height = size
    top, rest = b"\xeb" * (width // 2) + b"\x10" * (width - width // 2), b"\x10" * width
    return _frame(size, pixel_format, lambda y: top if y < height // 2 else rest)


def _frame(size: tuple[int, int], pixel_format: str, row: Any) -> Any:
    frame = av.VideoFrame(*size, "yuv420p")
    luma = frame.planes[0]
    luma.update(b"".join(row(y).ljust(luma.line_size, b"\x10") for y in range(size[1])).ljust(luma.buffer_size, b"\0"))
    for plane in frame.planes[1:]:
        plane.update(b"\x80" * plane.buffer_size)
    return frame if pixel_format == "yuv420p" else frame.reformat(format=pixel_format)


def _beeps(stream: Any, seconds: float, delay_s: float, *, pitch_hz: int) -> list[Any]:
    total, packets = round(seconds * _RATE), []
    length = round(_BEEP_S * _RATE)
    late = round(delay_s * _RATE)
    tone = [int(12000 * math.sin(2 * math.pi * pitch_hz * i / _RATE)) for i in range(length)]
    second = struct.pack(f"<{_RATE}h", *tone, *([0] * (_RATE - length)))
    # What comes late leaves out its beginning: its beeps stay on the whole seconds.
    samples = (second * (int(seconds) + 1))[2 * late : 2 * total]
    resampler = av.AudioResampler(
        format=stream.codec_context.format or "s16", layout="mono", rate=_RATE,
        frame_size=stream.codec_context.frame_size or None,
    )  # fmt: skip
    for at in range(0, len(samples) // 2, 4800):
        piece = samples[2 * at : 2 * (at + 4800)]
        frame = av.AudioFrame(format="s16", layout="mono", samples=len(piece) // 2)
        frame.planes[0].update(piece.ljust(frame.planes[0].buffer_size, b"\0"))
        frame.sample_rate, frame.pts, frame.time_base = _RATE, at + late, Fraction(1, _RATE)
        for ready in resampler.resample(frame):
            packets += stream.encode(ready)
    for ready in resampler.resample(None):
        packets += stream.encode(ready)
    return [*packets, *stream.encode(None)]


def pictures(data: bytes) -> list[tuple[float, int]]:
    """(time, number) of every picture as a player shows them, from the start of the file."""
    container: Any
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        start_s = _start_s(container)
        return [(float(frame.pts * stream.time_base) - start_s, number_of(frame)) for frame in container.decode(stream)]


def _start_s(container: Any) -> float:
    """The start of a file is where its first stream begins, as players have it."""
    return max(
        0.0,
        min((float(s.start_time * s.time_base) for s in container.streams if s.start_time is not None), default=0.0),
    )


def number_of(frame: Any) -> int:
    grey = frame.reformat(format="gray")
    line = grey.planes[0].line_size
    row = bytes(grey.planes[0])[line * (frame.height // 2) :]
    return sum(1 << bit for bit in range(_BITS) if row[int((bit + 0.5) * frame.width / _BITS)] > 125)


def white_corner(data: bytes) -> str:
    """Where the white corner of the first picture stands: `upper left`, …"""
    container: Any
    with av.open(io.BytesIO(data)) as container:
        grey = next(container.decode(video=0)).reformat(format="gray")
        line, pixels = grey.planes[0].line_size, bytes(grey.planes[0])
        white = [
            f"{up} {side}"
            for up, y in (("upper", grey.height // 4), ("lower", grey.height * 3 // 4))
            for side, x in (("left", grey.width // 4), ("right", grey.width * 3 // 4))
            if pixels[y * line + x] > 125
        ]
    return ", ".join(white)


def size_of(data: bytes) -> tuple[int, int]:
    container: Any
    with av.open(io.BytesIO(data)) as container:
        return container.streams.video[0].width, container.streams.video[0].height


def key_times(data: bytes) -> list[float]:
    """When the pictures that stand alone are shown."""
    container: Any
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        return [float(p.pts * stream.time_base) for p in container.demux(stream) if p.is_keyframe and p.pts is not None]


def sound(data: bytes) -> tuple[list[float], float, int]:
    """(when each beep begins, when the sound ends, its pitch in Hz)."""
    loud: list[float] = []
    end, crossings, positive = 0.0, 0, False
    container: Any
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.audio[0]
        resampler = av.AudioResampler(format="s16", layout="mono", rate=_RATE)
        offset = _start_s(container)
        for frame in container.decode(stream):
            begin = end if frame.pts is None else float(frame.pts * frame.time_base) - offset
            for ready in resampler.resample(frame):
                samples = struct.unpack(f"<{ready.samples}h", bytes(ready.planes[0])[: 2 * ready.samples])
                loud += [begin + i / _RATE for i, sample in enumerate(samples) if abs(sample) > 4000]
                for sample in samples:
                    if abs(sample) > 4000 and (sample > 0) != positive:
                        positive, crossings = not positive, crossings + 1
                end = begin + ready.samples / _RATE
    onsets = [at for i, at in enumerate(loud) if i == 0 or at - loud[i - 1] > 0.2]
    return onsets, end, round(crossings / 2 / max(1e-9, len(onsets) * _BEEP_S))


def offsets_s(data: bytes, fps: float, *, times_ms: Sequence[int] | None = None) -> list[float]:
    """For each beep how far the picture shown with it is from the whole second it belongs to; the sync of the film."""
    shown = pictures(data)
    times = [at for at, _ in shown]
    found = []
    for beep in sound(data)[0]:
        at, number = shown[max(0, bisect_right(times, beep + 0.001) - 1)]
        source_s = times_ms[number] / 1000 if times_ms is not None else number / fps
        moment = source_s + (beep - at)
        found.append(moment - round(moment))
    return found
