"""Why a plan goes no further: what each lever stops at, part by part, or that it was not called upon. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weighlock.media.facts import AudioFacts, DocumentFacts, ImageFacts, VideoFacts
from weighlock.media.work import ImageWork
from weighlock.planning.levers import Floor, Lever, LocalWork, Older, Shaping, is_visual, rungs
from weighlock.planning.moves import Bench, size
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Weighed
from weighlock.request import Modality
from weighlock.rules import ModelRules, WireControl

_FREE = Shaping(local_work=LocalWork.ALLOWED)
_ON_BYTES = (Lever.CLIP, Lever.DROP_AUDIO, Lever.PAGES, Lever.REENCODE)
"""Levers that make a file smaller; the others are fields of the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One lever that gives nothing more on one part, and what it stops at."""

    part: int
    lever: Lever | None
    """`None` where no lever may touch it."""
    words: str
    knob: str | None = None
    """The endpoint's setting that stands in the way; `None` where it is the model or the media."""
    idle: bool = False
    """Whether nothing stands in the way of it: it was not needed, or is of no use to what is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """Of what too much is sent."""

    tokens: bool
    bytes: bool


def obstacles(plan: Plan, rules: ModelRules, shaping: Shaping) -> tuple[Obstacle, ...]:
    """What keeps each medium, as the plan has it, from becoming lighter."""
    return tuple(one for one in untaken(plan, rules, shaping) if not one.idle)


def untaken(plan: Plan, rules: ModelRules, shaping: Shaping) -> tuple[Obstacle, ...]:
    """Of each medium, as the plan has it, why each lever that means something to it goes no further, or not at all."""
    found: list[Obstacle] = []
    wishes = [_cut(wish) if isinstance(plan.works.get(at), ImageWork) else wish for at, wish in enumerate(plan.wishes)]
    pairs = list(zip(plan.parts, wishes, strict=True))
    held = any(wish.pinned and is_visual(part) for part, wish in pairs)
    over = {check.name for check in plan.verdict.over}
    of_bytes, of_tokens = "bytes" in over, bool(over - {"bytes", "media_parts"})
    told = {(step.lever, at) for step in (*plan.steps, *plan.passed) for at in step.parts}
    for at, (part, wish) in enumerate(pairs):
        if part.error is not None or part.examined.modality in (None, Modality.TEXT):
            continue
        if wish.pinned:
            found.append(Obstacle(part=at, lever=None, words="pinned"))
            continue
        count = _Count(tokens=of_tokens or not of_bytes, bytes=of_bytes)
        for lever in Lever:
            applies = _applies(lever, part, wish, rules, count)
            if applies and not _gives(lever, part, rules, shaping, wish, count):
                words, knob = _stop(lever, part, wish, rules, shaping, count, request_held=held)
                found += [Obstacle(part=at, lever=lever, words=words, knob=knob)] if words else []
            elif (lever, at) not in told and (words := _idle(lever, part, shaping, count, applies=applies)):
                found.append(Obstacle(part=at, lever=lever, words=words, idle=True))
    return tuple(found)


def _idle(lever: Lever, part: Weighed, shaping: Shaping, count: _Count, *, applies: bool) -> str:
    """Why a lever that could be moved is not, or that it would be of no use; no words where it means nothing."""
    if applies:
        return "not needed"
    if lever in (Lever.RESOLUTION, Lever.FPS) and not count.tokens:
        means = is_visual(part) if lever is Lever.RESOLUTION else isinstance(part.examined.facts, VideoFacts)
        return "saves no bytes" if means else ""
    if lever is not Lever.REENCODE or lever not in shaping.levers:
        return ""
    return (
        "saves nothing" if count.bytes or isinstance(part.examined.facts, ImageFacts) else "no limit of bytes is over"
    )


def _cut(wish: Wish) -> Wish:
    """Without the region, which is of the picture as it came."""
    return replace(wish, target=replace(wish.target, region=None))


def _stop(
    lever: Lever, part: Weighed, wish: Wish, rules: ModelRules, shaping: Shaping, count: _Count, *, request_held: bool
) -> tuple[str, str | None]:
    """What a lever stops at, and the setting behind it; no words where it has simply done its work."""
    if lever not in shaping.levers:
        return "not among the endpoint's levers", "media.levers"
    if count.bytes and lever in _ON_BYTES and shaping.local_work is LocalWork.NEVER:
        return f"local_work is {shaping.local_work}", "local_work"
    control = _control(lever, part)
    if control is not None and not rules.honours(control):
        if lever is Lever.FPS:
            return f"{rules.model} is not known to take a frame rate", None
        if shaping.local_work is not LocalWork.ALLOWED:
            return f"{rules.model} is not known to do it, and local_work is {shaping.local_work}", "local_work"
    if lever is Lever.REENCODE and shaping.local_work is not LocalWork.ALLOWED:
        return f"local_work is {shaping.local_work}", "local_work"
    if lever is Lever.RESOLUTION and not rules.honours_part_resolution and request_held:
        return "only the whole request has a resolution, and another part is pinned", None
    if lever is Lever.HISTORY:
        return _stop_of_history(part, wish, rules, shaping)
    floor = shaping.floor(part.examined.modality)
    if lever is Lever.FPS and wish.target.least_fps > floor.fps:
        return f"{wish.target.content} keeps {wish.target.least_fps:g} fps", "content"
    return _floor(lever, part, floor)


def _stop_of_history(part: Weighed, wish: Wish, rules: ModelRules, shaping: Shaping) -> tuple[str, str | None]:
    if not wish.removable:
        return "among the newest media, which are kept", "history.keep_media"
    if shaping.older is Older.NOTE:
        return "", None
    if not is_visual(part):
        return "it has no resolution that could be lowered", "history.older"
    if not rules.honours_part_resolution:
        return f"{rules.model} knows no resolution of a part", "history.older"
    return "it stays, at its lowest resolution", "history.older"


def _applies(lever: Lever, part: Weighed, wish: Wish, rules: ModelRules, count: _Count) -> bool:
    """Whether the lever means anything to the part and to what is over, and is not at its end already."""
    facts, now = part.examined.facts, part.controls
    if not count.tokens and lever in (Lever.RESOLUTION, Lever.FPS):
        return False
    match lever:
        case Lever.RESOLUTION:
            return is_visual(part)
        case Lever.FPS:
            return isinstance(facts, VideoFacts)
        case Lever.CLIP:
            return isinstance(facts, VideoFacts | AudioFacts)
        case Lever.DROP_AUDIO:
            return isinstance(facts, VideoFacts) and bool(facts.audio_tracks) and not now.drop_sound
        case Lever.PAGES:
            return isinstance(facts, DocumentFacts) and facts.pages > 1
        case Lever.HISTORY:
            return wish.earlier is not None
        case Lever.REENCODE:  # where fewer pixels save nothing, nothing stands in their way
            return _gives(lever, part, rules, _FREE, wish, count)


def _gives(lever: Lever, part: Weighed, rules: ModelRules, shaping: Shaping, wish: Wish, count: _Count) -> bool:
    """Whether it could go further: then it was not needed, and nothing stands in its way."""
    if lever not in shaping.levers or (lever is Lever.HISTORY and not wish.removable):
        return False
    bench, tokens, stored = Bench([part], rules), part.total.high, size([part])
    offered = rungs(
        lever,
        part,
        rules,
        shaping,
        wish.target,
        tokens_count=count.tokens,
        bytes_count=count.bytes,
        bytes_over=count.bytes,
    )
    lighter = (bench.part(0, {lever: rung}) for rung in offered)
    return any((count.tokens and one.total.high < tokens) or (count.bytes and size([one]) < stored) for one in lighter)


def _control(lever: Lever, part: Weighed) -> WireControl | None:
    match lever:
        case Lever.FPS:
            return WireControl.VIDEO_FPS
        case Lever.CLIP:
            film = isinstance(part.examined.facts, VideoFacts)
            return WireControl.VIDEO_OFFSETS if film else WireControl.AUDIO_OFFSETS
        case Lever.DROP_AUDIO:
            return WireControl.CONTENT_LAYERS
        case Lever.PAGES:
            return WireControl.DOCUMENT_PAGES
        case _:
            return None


def _floor(lever: Lever, part: Weighed, floor: Floor) -> tuple[str, str | None]:
    kind = part.examined.modality.lower() if part.examined.modality else ""
    if lever in (Lever.RESOLUTION, Lever.REENCODE):
        knob = f"media.{kind}.floor"
        if floor.resolution.value == "low":
            return "a lower resolution saves nothing", None
        if isinstance(part.examined.facts, ImageFacts | DocumentFacts):
            return f"floor {floor.resolution}", knob
        return f"floor {floor.resolution}", f"{knob}.resolution"
    value = {Lever.FPS: f"{floor.fps:g} fps", Lever.CLIP: f"{floor.seconds:g} s", Lever.PAGES: f"{floor.pages} pages"}
    name = {Lever.FPS: "fps", Lever.CLIP: "seconds", Lever.PAGES: "pages"}
    return f"floor {value.get(lever, '')}", f"media.{kind}.floor.{name[lever]}" if lever in name else None
