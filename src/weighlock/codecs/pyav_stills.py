"""Frames of a film, chosen as the service samples it, side by side in one picture. Runs in the confined child."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import IO, Any

from PIL import Image

from weighlock.codecs import pyav
from weighlock.codecs.job import Context
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pyav_film import Film, exact
from weighlock.codecs.pyav_pictures import Shaper
from weighlock.codecs.pyav_shown import Incomplete, pictures
from weighlock.codecs.window import Window
from weighlock.errors import MalformedMedia, MediaTooLarge
from weighlock.media.work import StillsWork

_QUALITY = 95
_FULL_COLOUR = 0
"""No chroma subsampling: what small coloured writing loses has to be lost by the size alone."""
_LONGEST_SIDE = 65_535


def warm_up() -> None:
    """Import what PyAV and Pillow import on first use, and have the encoder in memory."""
    pyav.warm_up()
    _save(Image.new("RGB", (8, 8)), io.BytesIO())


def make(window: Window, out: IO[bytes], work: StillsWork, context: Context) -> Outcome:
    """Write the sheet `work` asks for.

    Raises:
        InputError: it cannot be read, or not one of its frames be shown.
    """
    try:
        sheet = _drawn(window, work, context, thrifty=True)
    except Incomplete:  # a picture was not where the packets said
        sheet = _drawn(window, work, context, thrifty=False)
    return Outcome(mime="image/jpeg", notes=sheet.save(out))


def _drawn(window: Window, work: StillsWork, context: Context, *, thrifty: bool) -> _Sheet:
    start_s, end_s = exact(work.start_s or 0.0), None if work.end_s is None else exact(work.end_s)
    with Film(window, context) as film:
        index = film.picture().index
        timeline, begin_s = film.timeline(index, start_s, end_s)
        if not len(timeline):
            raise MalformedMedia("it holds no picture between the places asked for")
        film.keep(film.container.streams[index])
        film.rewind(begin_s, stream=film.container.streams[index])
        stream = film.container.streams[index]
        found = pictures(film, stream, timeline, (start_s, end_s), work.fps, thrifty=thrifty)
        shape = stream.sample_aspect_ratio
        sheet = _Sheet(work, None if shape == 1 else shape, context.bounds.max_pixels)
        for packet in film.packets():
            for _, frame in found.feed(packet):
                sheet.add(frame)
            context.progress(sheet.held / work.frames)
            if found.done or sheet.full:
                break
        if not sheet.full:
            for _, frame in found.finish():
                sheet.add(frame)
        return sheet


class _Sheet:
    """Frames of one size, row by row. The first one says how large they are."""

    def __init__(self, work: StillsWork, pixel_shape: Fraction | None, max_pixels: int) -> None:
        self._work, self._pixel_shape, self._max_pixels = work, pixel_shape, max_pixels
        self._drawn: tuple[Shaper, Image.Image] | None = None
        self.held = 0

    @property
    def full(self) -> bool:
        return self.held >= self._work.frames

    def add(self, frame: Any) -> None:
        if self.full:
            return
        shaper, sheet = self._drawn or self._begun(frame)
        row, column = divmod(self.held, self._work.columns)
        width, height = shaper.size
        sheet.paste(shaper.shaped(frame, "rgb24").to_image(), (column * width, row * height))
        self.held += 1

    def _begun(self, frame: Any) -> tuple[Shaper, Image.Image]:
        work = self._work
        shaper = Shaper(frame, self._pixel_shape, (work.max_width_px, work.max_height_px))
        width, height = shaper.size[0] * work.columns, shaper.size[1] * work.rows
        if width * height > self._max_pixels or max(width, height) > _LONGEST_SIDE:
            raise MediaTooLarge(f"{width}×{height} pixels for {work.frames:,} frames", width_px=width, height_px=height)
        self._drawn = shaper, Image.new("RGB", (width, height))
        return self._drawn

    def save(self, out: IO[bytes]) -> tuple[str, ...]:
        """Write it, and tell what is missing.

        Raises:
            MalformedMedia: all of it.
        """
        if self._drawn is None:
            raise MalformedMedia("none of its pictures can be decoded")
        _save(self._drawn[1], out)
        if self.full:
            return ()
        return (f"{self.held:,} of {self._work.frames:,} frames could be decoded",)


def _save(sheet: Image.Image, out: IO[bytes]) -> None:
    drawn = io.BytesIO()  # Pillow asks a real file for its descriptor
    sheet.save(drawn, "JPEG", quality=_QUALITY, subsampling=_FULL_COLOUR)
    out.write(drawn.getvalue())
