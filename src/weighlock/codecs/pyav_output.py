"""The container that is written. Runs in the confined child, and writes to a file opened before."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import IO, Any

import av
import av.container

from weighlock.codecs import pyav
from weighlock.codecs.pyav_film import BUFFER_BYTES, Film
from weighlock.errors import InputError, MalformedMedia, TransformFailed

_MOST_WAITING = 20_000


@contextlib.contextmanager
def output(out: IO[bytes], form: str, film: Film, *, strip: bool) -> Iterator[av.container.OutputContainer]:
    """A container to mux into, with the file's own tags unless they are to be stripped; finished when left in peace.

    Raises:
        TransformFailed: FFmpeg refuses what it is given to write.
        OSError: the file cannot be written.
    """
    tagless = {"id3v2_version": "0"} if strip and form == "mp3" else {}  # an empty tag is one too
    container = av.open(out, "w", format=form, options={"fflags": "+bitexact", **tagless}, buffer_size=BUFFER_BYTES)
    try:
        if not strip:
            container.metadata.update(film.container.metadata)
        yield container
        container.close()
    except BaseException as error:
        with contextlib.suppress(*pyav.READ_ERRORS):
            container.close()
        if isinstance(error, av.error.FFmpegError) and not isinstance(error, InputError) and not error.errno:
            raise TransformFailed(f"it could not be written: {pyav.words(error)}") from error
        if isinstance(error, av.error.ArgumentError | av.error.InvalidDataError):
            raise TransformFailed(f"it could not be written: {pyav.words(error)}") from error
        raise


class Held:
    """A container whose packets wait until all its streams are set up."""

    def __init__(self, container: av.container.OutputContainer) -> None:
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
