"""A picture encoded again: in fewer pixels where that crosses the edge of a tile, in fewer bytes where those count.

Pure: says what is to be made of it and what can be told of the outcome beforehand, never too low.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from weighlock.media.area import Area
from weighlock.media.facts import FactSource, ImageFacts
from weighlock.media.image_sizes import EXACT_FROM, lighter_sizes, made_size
from weighlock.media.work import ImageWork
from weighlock.planning.weigh import Examined, Weighed, weigh
from weighlock.request import Box, MediaResolution, Placement
from weighlock.rules import Controls, ModelRules

_KEPT = ("image/png", "image/webp")
_PHOTOGRAPHS = {"image/jpeg": "image/jpeg", "image/heic": "image/jpeg", "image/heif": "image/jpeg"}
"""Formats without transparency, or whose pictures have none in practice."""
_WEBP_SIDE_PX = 16_383
_LEAST_BYTES = 50_000
"""No target is below: a picture of so few bytes is not what a limit of bytes is about."""
_BYTES_A_PIXEL = 4
"""At most, in any format written here: colours and transparency as they are."""


def works(
    part: Weighed,
    rules: ModelRules,
    *,
    floor: MediaResolution,
    fewer_pixels: bool,
    fewer_bytes: bool,
    region: Box | None = None,
) -> Iterator[ImageWork]:
    """What can be made of a picture, mild to harsh: every byte target at one size, then at the next smaller one.

    A crop to the region that matters to the caller first, as nothing is lost by it, and the rest on top of that.
    Fewer pixels only on a model that is known to bill tiles, and never for less than the floor's level costs. A target
    only where no size that it can end at costs more, at whatever level: what lowers bytes must not raise tokens.
    """
    examined, facts = part.examined, part.examined.facts
    ours = examined.here and part.controls.placement is not Placement.URI
    if not isinstance(facts, ImageFacts) or not ours or part.error is not None:
        return
    if region is not None and (cut := _cut(part, facts, region, rules)):
        if cut.total.high < part.total.high:
            yield ImageWork(mime=_drawn(part, rules), crop=region)
        on_top = works(cut, rules, floor=floor, fewer_pixels=fewer_pixels, fewer_bytes=fewer_bytes)
        yield from (replace(work, crop=region) for work in on_top)
    sizes = list(_sizes(part, facts, rules, floor)) if fewer_pixels else []
    drawn, packed = _drawn(part, rules), _packed(part, facts, rules) if fewer_bytes else None
    for width, height in (None, None), *sizes:
        if drawn is not None and width is not None:
            yield ImageWork(mime=drawn, max_width_px=width, max_height_px=height)
        size = (width or facts.width_px, height or facts.height_px)
        takes = max(examined.size_bytes or 0, _uncompressed(*size) if width else 0)
        for target in _targets(takes) if packed is not None else ():
            if _keeps_tokens(size, target, part.controls, rules):
                yield ImageWork(mime=packed, max_width_px=width, max_height_px=height, max_bytes=target)


def too_large(part: Weighed, rules: ModelRules) -> bool:
    """Whether it is a picture of more bytes than the service takes of one inline."""
    limit, inline = rules.limits.inline_image_bytes, part.controls.placement is Placement.INLINE
    picture = isinstance(part.examined.facts, ImageFacts) and part.error is None
    return limit is not None and inline and picture and (part.examined.size_bytes or 0) > limit


def over(earlier: ImageWork, later: ImageWork) -> ImageWork:
    """Both at once: what the later one says nothing of stays."""
    return replace(
        later,
        crop=later.crop or earlier.crop,
        max_width_px=later.max_width_px or earlier.max_width_px,
        max_height_px=later.max_height_px or earlier.max_height_px,
        max_bytes=later.max_bytes or earlier.max_bytes,
    )


def in_words(work: ImageWork) -> str:
    """`cropped to 800×450, scaled to 512×288, at most 200,000 bytes`."""
    told = []
    if work.crop:
        told.append("cropped to {}×{}".format(*work.crop.size))
    if work.max_width_px and work.max_height_px:
        told.append(f"scaled to {work.max_width_px}×{work.max_height_px}")
    if work.max_bytes:
        told.append(f"at most {work.max_bytes:,} bytes")
    return ", ".join(told)


def weigh_made(examined: Examined, work: ImageWork, controls: Controls, rules: ModelRules) -> Weighed:
    """What a picture will weigh once the work is done.

    Its bytes are the target; without one, what its pixels take uncompressed where that is more than the file has. Under
    a target pixels may have to go too, and their tokens are those of the dearest size that can come of that.
    """
    facts = examined.facts
    if not isinstance(facts, ImageFacts):
        return weigh(examined, controls, rules)
    width, height = made_size((facts.width_px, facts.height_px), work)
    drawn = replace(facts, width_px=width, height_px=height, orientation=1, frames=1)
    size = work.max_bytes or max(examined.size_bytes or 0, _uncompressed(width, height))
    made = weigh(
        replace(examined, facts=drawn, mime=work.mime or examined.mime, declared_mime=work.mime, size_bytes=size),
        controls,
        rules,
    )
    if work.max_bytes is None:
        return made
    dearest = _dearest(width, height, work.max_bytes, rules.image(controls).area)
    return replace(made, tokens=tuple(replace(one, high=max(one.high, dearest)) for one in made.tokens))


def _cut(part: Weighed, facts: ImageFacts, region: Box, rules: ModelRules) -> Weighed | None:
    """The picture as its region alone, in the bytes that may take; `None` where that would cost more."""
    if _drawn(part, rules) is None:
        return None
    width, height = region.size
    drawn, size = replace(facts, width_px=width, height_px=height), _uncompressed(width, height)
    cut = weigh(
        replace(part.examined, facts=drawn, size_bytes=max(part.examined.size_bytes or 0, size)), part.controls, rules
    )
    return cut if cut.total.high <= part.total.high else None


def _sizes(part: Weighed, facts: ImageFacts, rules: ModelRules, floor: MediaResolution) -> Iterator[tuple[int, int]]:
    """Sizes that cost less by the high estimate, which decides, largest first."""
    if not rules.known or facts.size_source is FactSource.ASSUMED:
        return
    area = rules.image(part.controls).area
    at_floor = replace(part.controls, media_resolution=floor, part_resolution=None)
    least = rules.image(at_floor).area.likely.count(facts.width_px, facts.height_px)
    for width, height, tokens in _lighter(facts.width_px, facts.height_px, Area(likely=area.high or area.likely)):
        if tokens >= least:
            yield width, height


@lru_cache(maxsize=256)
def _lighter(width: int, height: int, area: Area) -> tuple[tuple[int, int, int], ...]:
    return tuple(lighter_sizes(width, height, area))


def _targets(size_bytes: int) -> Iterator[int]:
    """Halves of it."""
    while (size_bytes := size_bytes // 2) >= _LEAST_BYTES:
        yield size_bytes


def _keeps_tokens(size: tuple[int, int], max_bytes: int, controls: Controls, rules: ModelRules) -> bool:
    for level in MediaResolution:
        if level is not MediaResolution.ULTRA_HIGH:
            area = rules.image(replace(controls, media_resolution=level, part_resolution=None)).area
            if _dearest(*size, max_bytes, area) > (area.high or area.likely).count(*size):
                return False
    return True


def _drawn(part: Weighed, rules: ModelRules) -> str | None:
    """The format it keeps, or that loses nothing of it; `None` where the carrier takes none such."""
    mime = part.examined.mime or ""
    return _taken(_PHOTOGRAPHS.get(mime) or (mime if mime in _KEPT else "image/png"), part, rules)


def _packed(part: Weighed, facts: ImageFacts, rules: ModelRules) -> str | None:
    """The format that takes the fewest bytes and loses no transparency; `None` where the carrier takes none such."""
    mime = part.examined.mime or ""
    if mime in _PHOTOGRAPHS:
        return _taken("image/jpeg", part, rules)
    small = _taken("image/webp", part, rules) if max(facts.width_px, facts.height_px) <= _WEBP_SIDE_PX else None
    return small or _taken("image/png", part, rules)


def _taken(mime: str, part: Weighed, rules: ModelRules) -> str | None:
    return mime if rules.accepts(mime, part.controls.carrier, part.controls.placement) else None


def _uncompressed(width: int, height: int) -> int:
    """Bytes no file of so many pixels exceeds, its header and the marks of a packing that packs nothing included."""
    pixels = width * height * _BYTES_A_PIXEL
    return pixels + pixels // 100 + height + 4_096


@lru_cache(maxsize=1024)
def _dearest(width: int, height: int, max_bytes: int, area: Area) -> int:
    """Tokens of the dearest size a byte target can end at."""
    shape = area.high or area.likely
    return max(shape.count(*size) for size in _smaller(width, height, max_bytes))


def _smaller(width: int, height: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Every size `image_sizes.reduced` can come to on the way to a byte target, largest first.

    Where it rounds, either way. A file over its target has at least a quarter as many pixels as the target bytes, and
    is scaled to seven tenths of them, or to nine tenths of what fits by its bytes a pixel: never to less than a sixth.
    """
    yield width, height
    common = math.gcd(width, height)
    if common >= EXACT_FROM:
        yield from ((width // common * steps, height // common * steps) for steps in range(common - 1, 0, -1))
        return
    longest, shortest = max(width, height), min(width, height)
    for side in range(longest, 0, -1):
        exact = side * shortest / longest
        if side * exact * 6 < max_bytes:
            return
        for short in {max(1, math.ceil(exact)), max(1, math.floor(exact))}:
            yield (side, short) if width >= height else (short, side)
