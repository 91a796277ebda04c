"""Tokens for a rectangle: an image, a video frame, a PDF page. Whole-number arithmetic throughout.

Widths and heights are in any unit, as long as it is the same for both and, for tiles, pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True, slots=True)
class Flat:
    """The same for every size."""

    tokens: int

    def count(self, width: int, height: int) -> int:
        return self.tokens

    def least(self, width: int, height: int) -> int:
        return self.count(width, height)

    def most(self) -> int | None:
        return self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Square tiles two thirds of the shorter side long, and one overview of the whole; small images are one tile.

    The side is clamped to `min_side_px`…`max_side_px`. An image of at most `whole_px` on both sides is not cut.
    """

    tokens: int
    whole_px: int
    min_side_px: int
    max_side_px: int

    def count(self, width: int, height: int) -> int:
        if max(width, height) <= self.whole_px:
            return self.tokens
        side = self.side_px(width, height)
        return self.tokens * (-(-width // side) * -(-height // side) + 1)

    def side_px(self, width: int, height: int) -> int:
        """Of one tile; the longer side where the image is not cut."""
        if max(width, height) <= self.whole_px:
            return max(width, height)
        return min(max(min(width, height) * 2 // 3, self.min_side_px), self.max_side_px)

    def least(self, width: int, height: int) -> int:
        return self.count(width, height)

    def most(self) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class Grid:
    """The largest grid of square cells with the rectangle's aspect that fits the budget.

    Only the aspect counts: small rectangles are scaled up. `floor(√(budget·w/h)) × floor(√(budget·h/w))`,
    and a single row or column where one side would vanish.
    """

    budget: int

    def count(self, width: int, height: int) -> int:
        columns, rows = self.cells(width, height)
        return columns * rows

    def cells(self, width: int, height: int) -> tuple[int, int]:
        """Columns and rows."""
        columns = isqrt(self.budget * width // height)
        rows = isqrt(self.budget * height // width)
        if not rows:
            return min(width // height, self.budget), 1
        if not columns:
            return 1, min(height // width, self.budget)
        return columns, rows

    def least(self, width: int, height: int) -> int:
        """`count`, or one cell row and column less where a root is exact and the service's floats may fall below it."""
        columns, rows = isqrt(self.budget * width // height), isqrt(self.budget * height // width)
        if not columns or not rows:
            return self.count(width, height)
        exact_columns = columns * columns * height == self.budget * width
        exact_rows = rows * rows * width == self.budget * height
        return max(1, columns - exact_columns) * max(1, rows - exact_rows)

    def most(self) -> int | None:
        return self.budget


@dataclass(frozen=True, slots=True)
class Dearest:
    """Whichever of several shapes costs most; for models nothing is known of."""

    shapes: tuple[Flat | Tiles | Grid, ...]

    def count(self, width: int, height: int) -> int:
        return max(shape.count(width, height) for shape in self.shapes)

    def least(self, width: int, height: int) -> int:
        return min(shape.least(width, height) for shape in self.shapes)

    def most(self) -> int | None:
        known = [shape.most() for shape in self.shapes]
        return None if None in known else max(most for most in known if most is not None)


Shape = Flat | Tiles | Grid | Dearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """What a rectangle is expected to cost, and between which bounds. A bound left out is the expected figure."""

    likely: Shape
    low: Shape | None = None
    high: Shape | None = None

    def count(self, width: int, height: int, *, size_known: bool = True) -> tuple[int, int, int]:
        """`(low, likely, high)`. A size that was only guessed is not trusted for `high` where the shape has a most."""
        likely = self.likely.count(width, height)
        low = (self.low or self.likely).least(width, height)
        high = likely if self.high is None else self.high.count(width, height)
        if not size_known:
            high = max(high, (self.high or self.likely).most() or 0)
        return min(low, likely), likely, max(high, likely)
