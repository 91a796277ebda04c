"""MP4 made of FFmpeg's fragments says what FFmpeg's own says, box by box, but for how samples lie in chunks."""

from __future__ import annotations

import io
import struct
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import av
import pytest

import films
from weighlock.codecs import flat
from weighlock.errors import TransformFailed

_UNEVEN_MS = [0, 33, 90, 100, 400, 410, 600, 1200, 1300, 1310, 1320, 2000, 2100, 2900, 3000, 3005, 4000]
_KINDS: dict[str, dict[str, Any]] = {
    "pictures that lean on later ones": {},
    "an uneven pace": {"times_ms": _UNEVEN_MS},
    "sound that begins late": {"sound_delay_s": 1.3},
    "sound that begins after many fragments": {"seconds": 6, "sound_delay_s": 4.5},
    "pictures that begin late": {"picture_delay_s": 0.9},
    "turned on its side": {"rotation": 90},
    "no sound": {"sound_codec": None},
    "two tracks of sound": {"tracks": 2},
    "every picture by itself": {"codec": "mpeg4", "b_frames": 0},
    "one picture": {"times_ms": [0], "sound_codec": None},
}
_DIFFER = {"stsc", "stco", "mdhd"}
"""How samples are gathered, and how long samples last that an edit list may cut."""


@pytest.mark.parametrize("kind", _KINDS)
def test_its_boxes_are_those_ffmpeg_writes(kind: str) -> None:
    source = films.film(**{"seconds": 3, **_KINDS[kind]})

    ordinary, flattened = _ordinary(source), _flattened(source)

    assert _compared(flattened) == _compared(ordinary)
    assert _packets(flattened) == _packets(ordinary)


def test_samples_behind_four_gigabytes_are_found() -> None:
    track = flat.Track()
    for number in range(2):
        track.add(number, number, 1, key=True)
        track.lay(number << 33, array("I", [5]))

    tables = b"".join(map(bytes, track.tables()))

    assert struct.pack(">4s4xIQQ", b"co64", 2, 0, 1 << 33) in tables


def test_a_track_of_more_ticks_than_32_bits_says_its_length_in_64() -> None:
    out = io.BytesIO()
    movie = _remuxed(films.film(1, b_frames=0), flat.Flattened(out), stretched=1 << 22)

    movie.finish()

    with av.open(io.BytesIO(out.getvalue())) as container:
        stream = container.streams.video[0]
        assert stream.duration is not None
        assert stream.duration > 1 << 32


def test_packets_that_are_hours_apart_in_fine_ticks_are_an_error() -> None:
    track = flat.Track()
    track.add(0, 0, 1, key=True)

    with pytest.raises(TransformFailed, match="4,294,967,296 ticks between packets"):
        track.add(1 << 32, 1 << 32, 1, key=True)


def test_packets_that_never_came_out_of_ffmpeg_are_an_error() -> None:
    movie = _remuxed(films.film(1), flat.Flattened(io.BytesIO()))
    movie.tracks[1].add(1 << 20, 1 << 20, 1, key=False)

    with pytest.raises(TransformFailed, match="do not hold what was given"):
        movie.finish()


def test_what_arrives_byte_by_byte_comes_out_the_same() -> None:
    source, out = films.film(1), io.BytesIO()
    whole = _flattened(source)
    pieces = flat.Flattened(out)
    written = pieces.write

    def drop_by_drop(data: bytes) -> int:
        return sum(written(bytes(data)[at : at + 1]) for at in range(len(data)))

    pieces.write = drop_by_drop  # type: ignore[method-assign]  # as FFmpeg's buffer may cut anywhere
    _remuxed(source, pieces).finish()

    assert out.getvalue() == whole


def _ordinary(source: bytes) -> bytes:
    out = io.BytesIO()
    _mux(source, out, {}, lambda *_: None)
    return out.getvalue()


def _flattened(source: bytes) -> bytes:
    out = io.BytesIO()
    _remuxed(source, flat.Flattened(out)).finish()
    return out.getvalue()


def _remuxed(source: bytes, movie: flat.Flattened, *, stretched: int = 1) -> flat.Flattened:
    def note(number: int, packet: Any) -> None:
        times = (packet.pts * stretched, packet.dts * stretched) if number == 1 else (packet.pts, packet.dts)
        movie.tracks[number].add(*times, packet.duration, key=packet.is_keyframe)

    _mux(source, movie, flat.OPTIONS, note)
    return movie


def _mux(source: bytes, out: Any, options: dict[str, str], note: Callable[[int, Any], None]) -> None:
    written = av.open(out, "w", format="mp4", options={"fflags": "+bitexact", **options})
    with av.open(io.BytesIO(source), "r") as read, written:
        targets = [written.add_stream_from_template(stream, opaque=True) for stream in read.streams]
        for packet in read.demux():
            if packet.size:
                packet.stream = targets[packet.stream_index]
                written.mux(packet)
                note(packet.stream_index + 1, packet)


def _compared(movie: bytes) -> list[tuple[str, bytes]]:
    top = dict(_top(movie))
    return [(path, body) for path, body in _leaves(top[b"moov"]) if path.rpartition("/")[2] not in _DIFFER]


def _top(movie: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at < len(movie):
        size, kind, long = struct.unpack_from(">I4sQ", movie.ljust(at + 16, b"\0"), at)
        size = long if size == 1 else size
        yield kind, movie[at + 8 : at + size]
        at += size


def _leaves(body: bytes, path: str = "") -> Iterator[tuple[str, bytes]]:
    for kind, content in flat.boxes(body):
        name = f"{path}/{kind.decode('latin-1')}"
        if kind in {b"trak", b"mdia", b"minf", b"stbl", b"edts"}:
            yield from _leaves(content, name)
        else:
            yield name, content


def _packets(movie: bytes) -> list[tuple[Any, ...]]:
    with av.open(io.BytesIO(movie), "r") as container:
        found = [p for p in container.demux() if p.size]
        return sorted((p.stream_index, p.dts, p.pts, p.duration, p.is_keyframe, bytes(p)) for p in found)
