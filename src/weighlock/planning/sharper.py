"""A request again with some of its media sharper than they were sent: the ways to that, the sharpest first. Pure.

For an answer that could not read something. What is asked for sharper is pinned, so that room for it is made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from weighlock.media.controls import Controls
from weighlock.media.facts import AudioFacts, DocumentFacts, ImageFacts, VideoFacts
from weighlock.planning.weigh import Weighed
from weighlock.request import Clip, MediaPart, MediaResolution, Place, Request, ToolResultPart
from weighlock.rules import ModelRules

_FINEST = (MediaResolution.ULTRA_HIGH, MediaResolution.HIGH, MediaResolution.MEDIUM)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsSent:
    """One medium: as the caller has it, and as it was sent."""

    part: MediaPart
    weighed: Weighed


def sharper(request: Request, media: Mapping[Place, AsSent], rules: ModelRules) -> Iterator[Request]:
    """The request with each of these media as sharp as it goes, then milder. Whether that is sharper, and fits, is for
    the reader to find: a way may come to what was sent.
    """
    ways = {place: list(_ways(one, rules)) for place, one in media.items()}
    for step in range(max((len(found) for found in ways.values()), default=0)):
        yield _with(request, {place: found[min(step, len(found) - 1)] for place, found in ways.items()})


def _ways(sent: AsSent, rules: ModelRules) -> Iterator[MediaPart]:
    """Sharpest first: the whole of it as fine as the model reads it; as it came; what was sent of it, finer."""
    part, facts, controls = replace(sent.part, pinned=True), sent.weighed.examined.facts, sent.weighed.controls
    per_part = rules.honours_part_resolution
    if isinstance(facts, ImageFacts | DocumentFacts):
        yield from (_at(part, level) for level in _FINEST if per_part)
        yield part
        return
    yield part
    if not isinstance(facts, VideoFacts | AudioFacts) or not controls.clipped:
        windowed = part
    else:
        end_s = facts.duration_s if controls.end_offset_s is None else controls.end_offset_s
        windowed = replace(part, clip=Clip(start_s=controls.start_offset_s or 0.0, end_s=end_s))
    if isinstance(facts, AudioFacts):
        yield windowed
        return
    for level in _FINEST[1:] if per_part else ():
        yield _at(windowed, level)
        yield _as_often(_at(windowed, level), controls)
    yield windowed
    yield _as_often(windowed, controls)


def _at(part: MediaPart, level: MediaResolution) -> MediaPart:
    return replace(part, carried={**part.carried, "mediaResolution": {"level": f"MEDIA_RESOLUTION_{level.name}"}})


def _as_often(part: MediaPart, controls: Controls) -> MediaPart:
    """Looked at as often as it was."""
    if controls.fps is None:
        return part
    said = part.carried.get("videoMetadata")
    return replace(part, carried={**part.carried, "videoMetadata": {**(said or {}), "fps": controls.fps}})


def _with(request: Request, media: Mapping[Place, MediaPart]) -> Request:
    turns = list(request.turns)
    system = request.system_instruction
    for place, medium in media.items():
        turn = system if place.turn is None else turns[place.turn]
        if turn is None or place.part is None:
            continue
        parts = list(turn.parts)
        holder = parts[place.part]
        if place.medium is None:
            parts[place.part] = medium
        elif isinstance(holder, ToolResultPart):
            inside = list(holder.media)
            inside[place.medium] = medium
            parts[place.part] = replace(holder, media=tuple(inside))
        turn = replace(turn, parts=tuple(parts))
        if place.turn is None:
            system = turn
        else:
            turns[place.turn] = turn
    return replace(request, turns=tuple(turns), system_instruction=system)
