"""Pictures out of a decoder, upright and of the size asked for, and into an encoder. Runs in the confined child."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import av
import av.filter

from weighlock.codecs import pyav, tally
from weighlock.codecs.encoding import Encoding, Rate
from weighlock.codecs.pyav_output import Held
from weighlock.codecs.timeline import Feed
from weighlock.errors import MalformedMedia

CLOCK = Fraction(1, 90_000)
"""Ticks of what is encoded: whole for every usual rate."""
_SKIPPED_SAFELY = {"h264", "hevc", "mpeg4", "mpeg2video", "mpeg1video"}
"""Codecs in which nothing is learnt from a picture no other leans on; VP8 and VP9 adapt their coding by each."""
_JPEG_RANGE = 2
_LONGEST_SIDE = 16_384


class Decoder:
    """Decodes what it is fed, in this thread. What cannot be decoded is skipped and counted."""

    def __init__(self, stream: Any) -> None:
        self._context = stream.codec_context
        self._context.thread_count = 1
        self._skips = tally.codec_name(stream) in _SKIPPED_SAFELY
        self.failures = 0
        self.last: int | None = None
        """Time stamp of the last picture that came out."""

    def feed(self, packet: Any, feed: int) -> Iterator[Any]:
        skips = self._skips and feed == Feed.IF_OTHERS_LEAN_ON_IT
        self._context.skip_frame = "NONREF" if skips else "DEFAULT"
        yield from self._decoded(packet)

    def flush(self) -> Iterator[Any]:
        """What it still holds; it takes a new run of packets afterwards."""
        self._context.skip_frame = "DEFAULT"
        yield from self._decoded(None)
        self._context.flush_buffers()

    def _decoded(self, packet: Any) -> Iterator[Any]:
        try:
            frames = self._context.decode(packet)
        except MemoryError:
            raise
        except pyav.READ_ERRORS as error:
            pyav.refuse_no_memory(error)
            self.failures += 1
            return
        for frame in frames:
            if frame.width < 1 or frame.height < 1:
                continue
            if frame.pts is not None:
                self.last = frame.pts if self.last is None else max(self.last, frame.pts)
            yield frame


class Shaper:
    """Turns pictures upright, makes their pixels square, and scales them into a frame of even sides."""

    def __init__(self, frame: Any, pixel_shape: Fraction | None, most: tuple[int | None, int | None]) -> None:
        self._turns = _turns(frame)
        width, height = frame.width, frame.height
        if pixel_shape and Fraction(1, 16) <= pixel_shape <= 16:
            width = max(1, round(width * pixel_shape))
        if any(turn.startswith("transpose") for turn in self._turns):
            width, height = height, width
        self.size = _even_size(width, height, most)
        # An odd picture that keeps its size loses its last row rather than its sharpness.
        self._crops = self.size != (width, height) and self.size == (width & ~1, height & ~1) and not pixel_shape
        self._graph: Any = None
        self._graph_for: tuple[int, int, str] | None = None

    def shaped(self, frame: Any, form: str = "yuv420p") -> Any:
        if self._turns or self._crops:
            frame = self._through_graph(frame)
        full = frame.format.name.startswith("yuvj") or (
            frame.color_range == _JPEG_RANGE and not frame.format.name.startswith("yuv")
        )
        return frame.reformat(
            *self.size, format=form, interpolation="BICUBIC", threads=1,
            **({"dst_color_range": 1} if full and form == "yuv420p" else {}),
        )  # fmt: skip

    def _through_graph(self, frame: Any) -> Any:
        kind = (frame.width, frame.height, frame.format.name)
        if self._graph is None or self._graph_for != kind:
            self._graph, self._graph_for = _graph(frame, self._turns, self.size if self._crops else None), kind
        frame.pts, frame.time_base = 0, CLOCK
        self._graph.vpush(frame)
        return self._graph.vpull()


class Encoder:
    """Writes pictures at given times, each lasting until the next."""

    def __init__(self, output: Any, rate: Fraction, encoding: Encoding, bits: Rate | None = None) -> None:
        self._output = output
        self.stream = output.add_stream(encoding.codec, rate=rate, options=encoding.options(bits))
        context = self.stream.codec_context
        context.time_base = CLOCK
        context.thread_count = 1
        context.pix_fmt = "yuv420p"
        self._lasts: dict[int, int] = {}
        self._held: tuple[int, Any] | None = None
        self.written = 0

    def set_up(self, frame: Any) -> None:
        """Take size and colours from the first picture, before anything is written."""
        context = self.stream.codec_context
        context.width, context.height = frame.width, frame.height
        for name in ("color_primaries", "color_trc", "colorspace"):
            setattr(context, name, getattr(frame, name))
        context.color_range = frame.color_range

    def write(self, frame: Any, at_s: Fraction) -> Iterator[Any]:
        """Packets that are ready. Times must rise; a picture at a time already taken is left out."""
        at = round(at_s / CLOCK)
        if self._held is not None:
            if at <= self._held[0]:
                return
            yield from self._encode(*self._held, until=at)
        self._held = (at, frame)

    def finish(self, end_s: Fraction) -> Iterator[Any]:
        """The last picture, which lasts until `end_s`, and all that is left."""
        if self._held is None:
            return
        at, frame = self._held
        until = max(at + 1, round(end_s / CLOCK))
        packets = [*self._encode(at, frame, until=until), *self._timed(self.stream.encode(None))]
        # MP4 takes the length of the whole from the packet stored last, which is seldom the one shown last.
        packets[-1].duration = round((until - at) * CLOCK / packets[-1].time_base)
        self._held = None
        yield from packets

    def _encode(self, at: int, frame: Any, *, until: int) -> Iterator[Any]:
        frame.pts, frame.time_base = at, CLOCK
        frame.pict_type = 0
        self._lasts[at] = until - at
        self.written += 1
        yield from self._timed(self.stream.encode(frame))

    def _timed(self, packets: list[Any]) -> Iterator[Any]:
        for packet in packets:
            lasts = self._lasts.pop(round(packet.pts * packet.time_base / CLOCK), None)
            if lasts is not None:
                packet.duration = round(lasts * CLOCK / packet.time_base)
            yield packet


class PictureTrack:
    """Pictures on their way from a decoder into a container. The first one says what the stream is like."""

    def __init__(
        self, output: Held, source: Any, rate: Fraction, encoding: Encoding, most: tuple[int | None, int | None],
        bits: Rate | None = None,
    ) -> None:  # fmt: skip
        self._output = output
        self._encoder = Encoder(output.container, rate, encoding, bits)
        shape = source.sample_aspect_ratio
        self._shape = None if shape == 1 else shape
        self._most = most
        self._shaper: Shaper | None = None

    def write(self, frame: Any, at_s: Fraction) -> None:
        if self._shaper is None:
            self._shaper = Shaper(frame, self._shape, self._most)
            shaped = self._shaper.shaped(frame)
            self._encoder.set_up(shaped)
            self._output.start()
        else:
            shaped = self._shaper.shaped(frame)
        self._output.mux(self._encoder.write(shaped, at_s))

    def finish(self, end_s: Fraction) -> None:
        """Let the last picture last until `end_s`.

        Raises:
            MalformedMedia: there was none.
        """
        if self._shaper is None:
            raise MalformedMedia("none of its pictures can be decoded")
        self._output.mux(self._encoder.finish(end_s))


def _even_size(width: int, height: int, most: tuple[int | None, int | None]) -> tuple[int, int]:
    if width > _LONGEST_SIDE or height > _LONGEST_SIDE:
        raise MalformedMedia(f"pictures of {width}×{height} pixels", width_px=width, height_px=height)
    scales = [Fraction(bound, side) for bound, side in zip(most, (width, height), strict=True) if bound]
    scale = min([Fraction(1), *scales])
    return max(2, int(width * scale) & ~1), max(2, int(height * scale) & ~1)


def _turns(frame: Any) -> list[str]:
    """Filters that undo the display matrix, mirrored ones included."""
    try:
        matrix = next((bytes(data) for data in frame.side_data if data.type.name == "DISPLAYMATRIX"), b"")
    except ValueError:  # PyAV 18 knows not every kind of side data, and then tells of none
        return {90: ["transpose=cclock"], -90: ["transpose=clock"], 180: ["hflip", "vflip"]}.get(
            (frame.rotation + 180) % 360 - 180 or frame.rotation, []
        )
    if len(matrix) < 36:
        return []
    a, b, _, c, d = struct.unpack_from("=5i", matrix)
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return [*(["hflip"] if a < 0 else []), *(["vflip"] if d < 0 else [])]
    # The picture's columns become rows: `b` says where its right side goes, `c` where its bottom does.
    return [{(1, -1): "transpose=clock", (-1, 1): "transpose=cclock", (1, 1): "transpose=cclock_flip"}.get(
        (_sign(b), _sign(c)), "transpose=clock_flip"
    )]  # fmt: skip


def _sign(value: int) -> int:
    return 1 if value >= 0 else -1


def _graph(frame: Any, turns: list[str], crop: tuple[int, int] | None) -> Any:
    graph = av.filter.Graph()
    graph.threads = 1
    nodes = [graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=CLOCK)]
    for turn in turns:
        name, _, arguments = turn.partition("=")
        nodes.append(graph.add(name, arguments or None))
    if crop is not None:
        nodes.append(graph.add("crop", f"{crop[0]}:{crop[1]}:0:0:exact=1"))
    nodes.append(graph.add("buffersink"))
    graph.link_nodes(*nodes).configure()
    return graph
