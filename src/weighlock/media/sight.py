"""How small the model sees a picture: what tiles and grids leave of its pixels. Pure.

Google says what a picture costs, not at how many pixels it is looked at. Here a token stands for a square of `cell_px`
pixels, an assumption of the rules (`sight`): a grid of c × r tokens is the picture brought to c·cell × r·cell pixels, a
flat figure the largest square of tokens in it, a tile a square of its own. What is enlarged gains nothing that can be
read, so no size is larger than the picture's.
"""

from __future__ import annotations

from math import isqrt
from typing import assert_never

from weighlock.media.area import Dearest, Flat, Grid, Shape, Tiles
from weighlock.media.image_sizes import Size, fitted


def seen_size(size: Size, shape: Shape, cell_px: int) -> Size:
    """Pixels of the picture the model has to go by, in the picture's own aspect. Of several shapes, the fewest."""
    width, height = size
    match shape:
        case Grid():
            columns, rows = shape.cells(width, height)
            return fitted(size, columns * cell_px, rows * cell_px)
        case Flat():
            side_px = _square(shape.tokens) * cell_px
            return fitted(size, side_px, side_px)
        case Tiles():
            side_px, tile_px = _square(shape.tokens) * cell_px, shape.side_px(width, height)
            return fitted(size, width * side_px // tile_px, height * side_px // tile_px)
        case Dearest():
            return min((seen_size(size, one, cell_px) for one in shape.shapes), key=lambda seen: seen[0] * seen[1])
    assert_never(shape)


def stride(frames: int, most: int) -> int:
    """Every how many frames one is shown, so that at most `most` are, evenly."""
    return max(1, -(-frames // most))


def _square(tokens: int) -> int:
    return max(1, isqrt(tokens))
