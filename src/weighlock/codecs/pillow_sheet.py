"""Pictures of one size, side by side and row by row, as one JPEG. Runs in the confined child."""

from __future__ import annotations

import io
from typing import IO

from PIL import Image

from weighlock.errors import MediaTooLarge

_QUALITY = 95
_FULL_COLOUR = 0
"""No chroma subsampling: what small coloured writing loses has to be lost by its size alone."""
_LONGEST_SIDE = 65_535


def warm_up() -> None:
    """Have the encoder in memory."""
    Sheet((8, 8), columns=1, rows=1, max_pixels=64).save(io.BytesIO())


class Sheet:
    """Black where nothing was put.

    Raises:
        MediaTooLarge: more than `max_pixels`, or a side no JPEG can have.
    """

    def __init__(self, cell: tuple[int, int], *, columns: int, rows: int, max_pixels: int) -> None:
        self._cell, self._columns = cell, columns
        width, height = cell[0] * columns, cell[1] * rows
        if width * height > max_pixels or max(width, height) > _LONGEST_SIDE:
            raise MediaTooLarge(f"a sheet of {width}×{height} pixels", width_px=width, height_px=height)
        self._sheet = Image.new("RGB", (width, height))

    def put(self, number: int, picture: Image.Image) -> None:
        """Into one cell, counted from 0."""
        row, column = divmod(number, self._columns)
        self._sheet.paste(picture, (column * self._cell[0], row * self._cell[1]))

    def save(self, out: IO[bytes]) -> None:
        drawn = io.BytesIO()  # Pillow asks a real file for its descriptor
        self._sheet.save(drawn, "JPEG", quality=_QUALITY, subsampling=_FULL_COLOUR)
        out.write(drawn.getvalue())
