"""The container that is written. Runs in the confined child, and writes to a file opened before."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import IO, Any

import av
import av.container

from weighlock.codecs import flat, pyav
from weighlock.codecs.pyav_film import BUFFER_BYTES, Film
from weighlock.codecs.tally import codec_name
from weighlock.errors import InputError, MalformedMedia, TransformFailed

_MOST_WAITING = 20_000
_DESCRIBED = {"aac", "av1", "h264", "hevc", "mpeg4"}
"""Codecs of which an MP4 holds a description beside the packets."""


class Output:
    """A container to mux into, whose packets FFmpeg need not remember where `movie` does."""

    def __init__(self, container: av.container.OutputContainer, movie: flat.Flattened | None) -> None:
        self._container = container
        self._movie = movie
        self._unnoted: list[Any] = []
        self.add_stream = container.add_stream
        self.add_stream_from_template = container.add_stream_from_template
        self.start_encoding = container.start_encoding

    def mux(self, packets: Any) -> None:
        """Write a packet, or some."""
        for packet in [packets] if isinstance(packets, av.Packet) else packets:
            self._container.mux(packet)
            if self._movie is not None:
                self._note(packet, self._movie)

    def _note(self, packet: Any, movie: flat.Flattened) -> None:
        """PyAV holds back packets until the header is written; then all of them have the times of their streams."""
        self._unnoted.append(packet)
        if not movie.header:
            return
        for noted in self._unnoted:
            dts = noted.pts if noted.dts is None else noted.dts
            movie.tracks[noted.stream_index + 1].add(noted.pts, dts, noted.duration or 0, key=noted.is_keyframe)
        self._unnoted.clear()


@contextlib.contextmanager
def output(out: IO[bytes], form: str, film: Film, *, strip: bool, copied: Iterable[Any] = ()) -> Iterator[Output]:
    """A container to mux into, with the file's own tags unless they are to be stripped; finished when left in peace.

    `copied` are the streams whose packets may go into it as they are.

    Raises:
        TransformFailed: FFmpeg refuses what it is given to write.
        OSError: the file cannot be written.
    """
    movie = flat.Flattened(out) if form == "mp4" and all(map(_known_ahead, copied)) else None
    options = {"fflags": "+bitexact", **(flat.OPTIONS if movie is not None else {})}
    if strip and form == "mp3":
        options["id3v2_version"] = "0"  # an empty tag is one too
    container = av.open(movie or out, "w", format=form, options=options, buffer_size=BUFFER_BYTES)
    try:
        if not strip:
            container.metadata.update(film.container.metadata)
        yield Output(container, movie)
        container.close()
        if movie is not None:
            movie.finish()
    except BaseException as error:
        with contextlib.suppress(*pyav.READ_ERRORS):
            container.close()
        if isinstance(error, av.error.FFmpegError) and not isinstance(error, InputError) and not error.errno:
            raise TransformFailed(f"it could not be written: {pyav.words(error)}") from error
        if isinstance(error, av.error.ArgumentError | av.error.InvalidDataError):
            raise TransformFailed(f"it could not be written: {pyav.words(error)}") from error
        raise


def _known_ahead(stream: Any) -> bool:
    """Whether an MP4 can tell what a stream is before its first packet.

    FFmpeg learns of VP9, and of what says so in its packets alone (AAC of MPEG-TS), from these, and without fragments.
    """
    name = codec_name(stream)
    return name != "vp9" and (name not in _DESCRIBED or bool(stream.codec_context.extradata))


class Held:
    """A container whose packets wait until all its streams are set up."""

    def __init__(self, container: Output) -> None:
        self.container = container
        self._waiting: list[Any] | None = []

    def start(self) -> None:
        """All is set up: write what has waited."""
        waiting, self._waiting = self._waiting, None
        self.container.start_encoding()
        self.mux(waiting or ())

    def mux(self, packets: Iterable[Any]) -> None:
        for packet in packets:
            if self._waiting is None:
                self.container.mux(packet)
                continue
            self._waiting.append(packet)
            if len(self._waiting) > _MOST_WAITING:
                raise MalformedMedia("its sound goes on without a picture that can be decoded")


def counted(number: int, what: str) -> str:
    """`1 packet`, `1,234 packets`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
