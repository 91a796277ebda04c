"""Figures in words, for tables and differences."""

from __future__ import annotations

from typing import assert_never

from weighlock.media.area import Area, Dearest, Flat, Grid, Shape, Tiles
from weighlock.media.rule import Rounding
from weighlock.rules.entry import Accepted, Entry, Figure, Limit, PartResolution, Rate, Ratios, Sampling

_DIRECTION = {Rounding.FLOOR: "rounded down", Rounding.ROUND: "rounded to the nearest", Rounding.CEIL: "rounded up"}


def in_words(entry: Entry) -> str:
    """The figure as one line."""
    words = _figure(entry.figure)
    return f"{words}, billed as {entry.billed_as}" if entry.billed_as else words


def _figure(figure: Figure) -> str:
    match figure:
        case Area():
            bounds = [
                f"{word} {_shape(shape)}" for word, shape in (("low", figure.low), ("high", figure.high)) if shape
            ]
            return "; ".join((_shape(figure.likely), *bounds))
        case Sampling():
            return f"{figure.default_fps:g} fps, frames {_DIRECTION[figure.rounding]}, at most {figure.max_fps:g} fps"
        case Rate():
            unit = "whole seconds " if figure.whole_seconds else ""
            return f"{figure.tokens_per_s} a second, {unit}{_DIRECTION[figure.rounding]}"
        case Ratios():
            return (
                f"{figure.per_char:g} a character ({figure.per_non_ascii_char:g} beyond ASCII), tools "
                f"{figure.per_tools_json_char:g}, signatures {figure.per_signature_char:g}, "
                f"{figure.per_function_call:g} a call; low × {figure.low_factor:g} − {figure.low_margin:g}, "
                f"high × {figure.high_factor:g} + {figure.high_margin:g}"
            )
        case PartResolution():
            return "counts" if figure.honoured else "does not count"
        case Accepted():
            return ", ".join(figure.mimes) or "nothing"
        case Limit():
            return f"{figure.value:,}"
    assert_never(figure)


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
