"""Frames of a film, chosen as the service samples it, side by side in one picture. Runs in the confined child."""

from __future__ import annotations

from fractions import Fraction
from typing import IO, Any

from weighlock.codecs import pillow_sheet, pyav
from weighlock.codecs.job import Context
from weighlock.codecs.outcome import Outcome
from weighlock.codecs.pillow_sheet import Sheet
from weighlock.codecs.pyav_film import Film, exact
from weighlock.codecs.pyav_pictures import Shaper
from weighlock.codecs.pyav_shown import Incomplete, pictures
from weighlock.codecs.window import Window
from weighlock.errors import MalformedMedia
from weighlock.media.work import StillsWork


def warm_up() -> None:
    """Import what PyAV and Pillow import on first use."""
    pyav.warm_up()
    pillow_sheet.warm_up()


def make(window: Window, out: IO[bytes], work: StillsWork, context: Context) -> Outcome:
    """Write the sheet `work` asks for.

    Raises:
        InputError: it cannot be read, or not one frame of it be shown.
    """
    try:
        frames = _drawn(window, work, context, thrifty=True)
    except Incomplete:  # a picture was not where the packets said
        frames = _drawn(window, work, context, thrifty=False)
    return Outcome(mime="image/jpeg", notes=frames.save(out))


def _drawn(window: Window, work: StillsWork, context: Context, *, thrifty: bool) -> _Frames:
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
        frames = _Frames(work, None if shape == 1 else shape, context.bounds.max_pixels)
        for packet in film.packets():
            for _, frame in found.feed(packet):
                frames.add(frame)
            context.progress(frames.held / work.frames)
            if found.done or frames.full:
                break
        if not frames.full:
            for _, frame in found.finish():
                frames.add(frame)
        return frames


class _Frames:
    """Frames on their way from a decoder onto a sheet. The first one says how large they are."""

    def __init__(self, work: StillsWork, pixel_shape: Fraction | None, max_pixels: int) -> None:
        self._work, self._pixel_shape, self._max_pixels = work, pixel_shape, max_pixels
        self._begun: tuple[Shaper, Sheet] | None = None
        self.held = 0

    @property
    def full(self) -> bool:
        return self.held >= self._work.frames

    def add(self, frame: Any) -> None:
        if self.full:
            return
        if self._begun is None:
            self._begun = self._begin(frame)
        shaper, sheet = self._begun
        sheet.put(self.held, shaper.shaped(frame, "rgb24").to_image())
        self.held += 1

    def _begin(self, frame: Any) -> tuple[Shaper, Sheet]:
        work = self._work
        shaper = Shaper(frame, self._pixel_shape, (work.max_width_px, work.max_height_px))
        return shaper, Sheet(shaper.size, columns=work.columns, rows=work.rows, max_pixels=self._max_pixels)

    def save(self, out: IO[bytes]) -> tuple[str, ...]:
        """Write the sheet, and tell what is missing.

        Raises:
            MalformedMedia: all of it.
        """
        if self._begun is None:
            raise MalformedMedia("none of its pictures can be decoded")
        self._begun[1].save(out)
        return () if self.full else (f"{self.held:,} of {self._work.frames:,} frames could be decoded",)
