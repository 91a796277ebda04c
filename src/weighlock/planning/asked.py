"""Whether what the caller wants of a medium can be had: a refusal with its reason beats a wish ignored. Pure."""

from __future__ import annotations

from weighlock.errors import InputError, UnsupportedMedia
from weighlock.media.facts import AudioFacts, Facts, FactSource, ImageFacts, VideoFacts
from weighlock.planning.levers import Shaping, Target, clip_way
from weighlock.planning.weigh import Weighed
from weighlock.request import Box, MediaPart
from weighlock.rules import ModelRules


def demand_possible(part: MediaPart, weighed: Weighed, target: Target, rules: ModelRules, shaping: Shaping) -> None:
    """Does nothing where the caller wants nothing that cannot be had.

    Raises:
        InputError: a clip of no recording, or behind its end; a content of no film; a region beside its picture.
        UnsupportedMedia: the model knows no such clip, and no work on the bytes is allowed.
    """
    facts, label, mime = weighed.examined.facts, weighed.examined.label, weighed.examined.mime
    if facts is None:
        return
    if part.region is not None:
        _demand_inside(part.region, facts, mime, label)
        if not weighed.examined.here:
            raise UnsupportedMedia(f"{label}: a file at the service is not cropped; crop it beforehand", part=label)
    if part.content is not None and not isinstance(facts, VideoFacts):
        raise InputError(f"{label}: {part.content} is said of films; this is {mime}", part=label)
    if not isinstance(facts, VideoFacts | AudioFacts):
        if part.clip is not None:
            raise InputError(f"{label}: a clip is of video and audio; this is {mime}", part=label)
        return
    if not target.span_asked or target.span_s is None:
        return
    start_s, end_s = target.span_s
    if start_s >= end_s:
        raise InputError(f"{label}: the clip begins behind its end at {facts.duration_s:.2f} s", part=label)
    if clip_way(weighed, rules, shaping) is None and end_s - start_s < facts.duration_s:
        raise UnsupportedMedia(
            f"{label}: {rules.model} is not known to take a clip of it, and local_work is {shaping.local_work}; "
            "allow the work, or clip it beforehand",
            part=label,
        )


def _demand_inside(region: Box, facts: Facts, mime: str | None, label: str) -> None:
    if not isinstance(facts, ImageFacts):
        raise InputError(f"{label}: a crop is of pictures; this is {mime}", part=label)
    if facts.size_source is FactSource.ASSUMED:
        raise InputError(f"{label}: a crop needs the size of the picture, and its header does not tell it", part=label)
    width, height = facts.width_px, facts.height_px
    if not (0 <= region.left < region.right <= width and 0 <= region.top < region.bottom <= height):
        raise InputError(f"{label}: the region {region} is not within its {width}×{height} pixels", part=label)
