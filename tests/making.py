"""A transform in this process, without worker or limits: for looking into it, and for timing."""

from __future__ import annotations

import hashlib
import io
import mmap
import os
from typing import Any
from unittest.mock import patch

from weighlock.codecs import job
from weighlock.codecs.encoding import Encoding
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.spool import spooled
from weighlock.codecs.window import Window
from weighlock.media.work import AudioWork, VideoWork

BOUNDS = job.Bounds(max_pixels=10**8, max_duration_s=14_400, max_pages=1000, max_frames=10**6, scan_cpu_s=60)


def make_here(data: bytes, mime: str, work: VideoWork | AudioWork, *, thrifty: bool = True) -> tuple[bytes, Outcome]:
    """Not `thrifty` decodes everything and chooses then."""
    from weighlock.codecs import pyav_audio, pyav_video
    from weighlock.codecs.pyav_film import Film

    context = job.Context(mime=mime, bounds=BOUNDS, encoding=Encoding(), progress=lambda _: None)
    out = io.BytesIO()
    with mapped(data) as window:
        if isinstance(work, AudioWork):
            told = pyav_audio.make(window.window, out, work, context)
        elif thrifty:
            told = pyav_video.make(window.window, out, work, context)
        else:
            with Film(window.window, context) as film:
                told = pyav_video._Again(film, out, work, context, thrifty=False).make()
    return out.getvalue(), told


def frames_given(data: bytes, mime: str, work: VideoWork, *, thrifty: bool) -> list[tuple[int, int, str]]:
    """What the encoder is given: (time, until when, digest) of each picture."""
    from weighlock.codecs.pyav_pictures import Encoder

    given: list[tuple[int, int, str]] = []
    encode = Encoder._encode

    def noted(self: Encoder, at: int, frame: Any, *, until: int) -> Any:
        digest = hashlib.sha256()
        for plane in frame.planes:  # what lies behind a row is undefined
            rows, line = memoryview(plane), plane.line_size
            for start in range(0, plane.height * line, line):
                digest.update(rows[start : start + plane.width])
        given.append((at, until, digest.hexdigest()))
        return encode(self, at, frame, until=until)

    with patch.object(Encoder, "_encode", noted):
        make_here(data, mime, work, thrifty=thrifty)
    return given


class mapped:  # noqa: N801 - used like a function
    def __init__(self, data: bytes) -> None:
        fd = spooled(data)
        self._view = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        os.close(fd)
        self.window = Window(self._view)

    def __enter__(self) -> mapped:
        return self

    def __exit__(self, *_: Any) -> None:
        self._view.close()
