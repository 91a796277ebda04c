"""Sizes a picture can be brought to: what a piece of work makes of it, and where fewer pixels save tokens."""

from __future__ import annotations

from math import ceil, floor, gcd

from weighlock.errors import UnsupportedMedia
from weighlock.media.area import Area, Dearest, Tiles
from weighlock.media.work import ImageWork
from weighlock.region import Box

Size = tuple[int, int]
EXACT_FROM = 32
"""Common measure of two sides from which on a picture is reduced in its steps."""


def fitted(size: Size, max_width_px: int | None, max_height_px: int | None) -> Size:
    """The largest size of the same aspect within both bounds, never larger than it was and never below one pixel.

    The side that hits its bound is exact; the other is rounded to the nearest pixel.
    """
    width, height = size
    widest = min(width, max(1, max_width_px or width))
    highest = min(height, max(1, max_height_px or height))
    if widest * height <= highest * width:
        return widest, max(1, min(highest, (2 * height * widest + width) // (2 * width)))
    return max(1, min(widest, (2 * width * highest + height) // (2 * height))), highest


def reduced(size: Size, scale: float) -> Size:
    """Both sides by a factor of at most 1; the same aspect exactly where the sides have a large common measure.

    That of a photograph (4032×3024) and of a screen is; a pixel more on one side can cost a row of the grid. Zero
    where nothing is left.
    """
    width, height = size
    common = gcd(width, height)
    if common < EXACT_FROM:
        return max(1, round(width * scale)), max(1, round(height * scale))
    steps = floor(common * scale)
    return width // common * steps, height // common * steps


def within(box: Box, size: Size) -> Box:
    """The part of `box` that lies on a picture of this size.

    Raises:
        UnsupportedMedia: nothing of it does.
    """
    width, height = size
    cut = Box(
        left=max(0, box.left), top=max(0, box.top), right=min(width, box.right), bottom=min(height, box.bottom)
    )  # fmt: skip
    if cut.left >= cut.right or cut.top >= cut.bottom:
        raise UnsupportedMedia(
            f"nothing to crop: {box.left},{box.top} to {box.right},{box.bottom} of {width}×{height} pixels",
            width_px=width, height_px=height,
        )  # fmt: skip
    return cut


def made_size(size: Size, work: ImageWork) -> Size:
    """What `work` makes of an upright picture of this size, as long as no byte target asks for less.

    Raises:
        UnsupportedMedia: the crop lies beside the picture.
    """
    if work.crop is not None:
        cut = within(work.crop, size)
        size = (cut.right - cut.left, cut.bottom - cut.top)
    return fitted(size, work.max_width_px, work.max_height_px)


def lighter_sizes(width_px: int, height_px: int, area: Area) -> list[tuple[int, int, int]]:
    """`(width, height, tokens)` of each size that costs less than every larger one of the same aspect, largest first.

    Empty where the size does not matter: one figure for all, or a grid that only looks at the aspect. Each is the
    largest for its tokens, so scaling down to anything between two of them saves nothing.
    """
    tiles = _tiles(area)
    if not tiles:
        return []
    found: list[tuple[int, int, int]] = []
    least, longest = area.likely.count(width_px, height_px), max(width_px, height_px)
    while (longest := _next(fitted((width_px, height_px), longest, longest), tiles)) >= min(t.whole_px for t in tiles):
        width, height = fitted((width_px, height_px), longest, longest)
        tokens = area.likely.count(width, height)
        if tokens < least:
            found.append((width, height, tokens))
            least = tokens
    return found


def _tiles(area: Area) -> list[Tiles]:
    shapes = area.likely.shapes if isinstance(area.likely, Dearest) else (area.likely,)
    return [shape for shape in shapes if isinstance(shape, Tiles)]


def _next(size: Size, tiles: list[Tiles]) -> int:
    """The next longer side worth a look: where tiles are as large as they get, only their edges matter."""
    longest, shortest = max(size), min(size)
    if any(shortest * 2 // 3 <= tile.max_side_px + 1 for tile in tiles):
        return longest - 1
    kept = max((ceil(side / t.max_side_px) - 1) * t.max_side_px / side for side in size for t in tiles)
    return min(longest - 1, floor(longest * kept) + 2)
