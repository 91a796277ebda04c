"""Figures in words, for tables and differences, and how such words are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isqrt
from typing import assert_never

from weighlock.media.area import Area, Dearest, Flat, Grid, Shape, Tiles
from weighlock.media.counted import CountRule
from weighlock.media.rule import Rounding
from weighlock.media.text import TextRatios
from weighlock.media.tokens import Confidence
from weighlock.rules.entry import Accepted, Entry, Figure, Honoured, Limit, PartResolution, Rate, Sampling, Sight

_EXAMPLE_PX = (1920, 1080)
_FOUNDED = {
    Confidence.MEASURED: "published bills agree with it",
    Confidence.DOCUMENTED: "Google's pages say so; no published bill confirms it",
    Confidence.ASSUMED: "carried over from a neighbour, or chosen high on purpose",
}
_DIRECTION = {Rounding.FLOOR: "rounded down", Rounding.ROUND: "rounded to the nearest", Rounding.CEIL: "rounded up"}


def in_words(entry: Entry) -> str:
    """The figure as one line."""
    words = _figure(entry.figure)
    return f"{words}, billed as {entry.billed_as}" if entry.billed_as else words


def legend(entries: Iterable[Entry]) -> tuple[tuple[str, str], ...]:
    """What the words of these figures mean, as pairs of a term and its explanation, worked for 1920 × 1080."""
    shapes = [shape for entry in entries if isinstance(entry.figure, Area) for shape in _shapes(entry.figure)]
    grids, tiles = [s for s in shapes if isinstance(s, Grid)], [s for s in shapes if isinstance(s, Tiles)]
    lines = [
        ("before a colon", "when it holds: media resolution (unspecified: none is set) · carrier · placement"),
        ("image, video, document", "prompt tokens of one image, one frame of a video, one page"),
    ]
    if grids:
        lines.append(
            ("grid within B", f"floor(√(B·w/h)) × floor(√(B·h/w)), whatever the size\n{_worked_grid(grids[0])}")
        )
    if tiles:
        lines.append(
            ("a tile of a…b px", f"squares two thirds of the shorter side, within a…b\n{_worked_tiles(tiles[0])}")
        )
    if any(isinstance(shape, Flat) for shape in shapes):
        lines.append(("a number alone", "the same for every size"))
    lines += [
        ("at least, at most", "bounds of the bill, where they are not the figure itself"),
        *((str(confidence), meaning) for confidence, meaning in _FOUNDED.items()),
    ]
    return tuple(lines)


def _shapes(area: Area) -> Iterator[Shape]:
    for shape in (area.likely, area.low, area.high):
        yield from shape.shapes if isinstance(shape, Dearest) else filter(None, [shape])


def _worked_grid(grid: Grid) -> str:
    width, height = _EXAMPLE_PX
    columns, rows = isqrt(grid.budget * width // height), isqrt(grid.budget * height // width)
    return f"{width} × {height} within {grid.budget:,}: {columns} × {rows} = {grid.count(width, height):,}"


def _worked_tiles(tiles: Tiles) -> str:
    width, height = _EXAMPLE_PX
    total = tiles.count(width, height)
    return f"{width} × {height}: {total // tiles.tokens - 1} tiles and the overview, × {tiles.tokens} = {total:,}"


def _figure(figure: Figure) -> str:
    match figure:
        case Area():
            bounds = [
                f"{word} {_shape(shape)}"
                for word, shape in (("at least", figure.low), ("at most", figure.high))
                if shape
            ]
            return "; ".join((_shape(figure.likely), *bounds))
        case Sampling():
            return f"{figure.default_fps:g} fps, frames {_DIRECTION[figure.rounding]}, at most {figure.max_fps:g} fps"
        case Rate():
            unit = "whole seconds " if figure.whole_seconds else ""
            return f"{figure.tokens_per_s} a second, {unit}{_DIRECTION[figure.rounding]}"
        case Sight():
            return f"{figure.cell_px} × {figure.cell_px} pixels a token"
        case TextRatios():
            return (
                f"{figure.per_char:g} a character ({figure.per_non_ascii_char:g} beyond ASCII), tools "
                f"{figure.per_tools_json_char:g}, signatures {figure.per_signature_char:g}, "
                f"{figure.per_function_call:g} a call; at least × {figure.low_factor:g} − {figure.low_margin:g}, "
                f"at most × {figure.high_factor:g} + {figure.high_margin:g}"
            )
        case PartResolution() | Honoured():
            return "counts" if figure.honoured else "does not count"
        case CountRule():
            return _count(figure)
        case Accepted():
            return ", ".join(figure.mimes) or "nothing"
        case Limit():
            return f"{figure.value:,}"
    assert_never(figure)


def _count(rule: CountRule) -> str:
    said = []
    if rule.each is not None:
        said.append(" + ".join([_shape(rule.each), *([f"{rule.plus}"] if rule.plus else [])]))
    elif rule.plus:
        said.append(f"{rule.plus} beside media alone")
    if rule.tokens_per_s:
        more = f" and one more every {rule.one_more_every_s} s" if rule.one_more_every_s else ""
        said.append(f"{rule.tokens_per_s} a second of sound{more}")
    if rule.bill_over:
        said.append(f"{rule.bill_over} more is billed")
    return ", ".join(said) or "nothing"


def _shape(shape: Shape) -> str:
    match shape:
        case Flat():
            return f"{shape.tokens:,}"
        case Grid():
            return f"grid within {shape.budget:,}"
        case Tiles():
            return (
                f"{shape.tokens:,} a tile of {shape.min_side_px}…{shape.max_side_px} px and one overview; "
                f"{shape.tokens:,} up to {shape.whole_px} px"
            )
        case Dearest():
            return f"the dearest of ({'), ('.join(map(_shape, shape.shapes))})"
    assert_never(shape)
