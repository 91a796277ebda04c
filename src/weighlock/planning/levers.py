"""What can be done to make one medium lighter on this model and backend: ladders of settings, mild to harsh. Pure.

A lever moves a setting the model is known to honour on the wire; where it is not, and local work is allowed, the medium
itself is cut. Resampling never is a way to fewer tokens: the service samples by time, whatever frames a file has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from weighlock.media.facts import AudioFacts, DocumentFacts, ImageFacts, VideoFacts
from weighlock.media.work import ImageWork
from weighlock.planning import cutting, reencode
from weighlock.planning.weigh import Weighed
from weighlock.request import Box, Content, MediaResolution, Modality, about
from weighlock.rules import Controls, ModelRules, WireControl

RESOLUTIONS = (MediaResolution.ULTRA_HIGH, MediaResolution.HIGH, MediaResolution.MEDIUM, MediaResolution.LOW)
"""From the finest."""
AT_ONCE_FPS = {Content.SCREEN: 0.5, Content.TALK: 0.2}
"""How far the frame rate goes at once, by what a film shows. Our own figures, none of Gemini's: a click or a page shows
for two seconds or more, a slide for five, and between 1 and these nothing new is seen."""
LEAST_FPS = {Content.MOTION: 1.0}
"""Below this what happens falls between two frames, and no floor of the endpoint's is lower."""
_FPS = (12, 5, 2, 1, 0.5, 0.2, 0.1)
_SECONDS = (600, 300, 120, 60, 30, 20, 10)
_PAGES = (800, 500, 300, 200, 150, 100, 70, 50, 30, 20, 15, 10, 7, 5, 4, 3, 2, 1)


class Lever(StrEnum):
    """In the words of `media.levers`."""

    RESOLUTION = "resolution"
    FPS = "fps"
    CLIP = "clip"
    DROP_AUDIO = "drop_audio"
    PAGES = "pages"
    HISTORY = "history"
    REENCODE = "reencode"


EVERY_LEVER = tuple(Lever)
"""The order where an endpoint names none: what is lost least comes first."""


class LocalWork(StrEnum):
    """What may be done to the bytes of a medium."""

    NEVER = "never"
    BYTES_ONLY = "bytes_only"
    """Only where it is too big to send."""
    ALLOWED = "allowed"


class Older(StrEnum):
    """What the history lever makes of media of earlier turns, past the newest ones."""

    NOTE = "note"
    """A few words in their place."""
    LOW = "low"
    """They stay, at the lowest resolution their floor allows; what has none is left alone."""


class CutBy(StrEnum):
    """How a film is cut to a window, where nothing else is done to its bytes."""

    EXACT = "exact"
    COPY = "copy"
    """From the key frame at or before the start on, which is sent too: nothing is encoded again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Below this no lever goes."""

    resolution: MediaResolution = MediaResolution.LOW
    fps: float = 0.1
    seconds: float = 10.0
    pages: int = 1


NO_FLOOR = Floor()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How far a lever goes at once, where an endpoint says so (`media.video: {clip: last 60s, fps: 0.5}`)."""

    fps: float | None = None
    content: Content | None = None
    """Where no `fps` is named it says how far to go, and where to stop."""
    span_s: tuple[float, float] | None = None
    """Start and end, of this very medium."""
    around_s: float | None = None
    """What the span lies around, and narrows down to; else to its end."""
    region: Box | None = None
    """What of a picture matters to the caller: cropping it to that is asked for, and no work beyond `bytes_only`."""
    span_asked: bool = False
    """Whether the caller wants the span sent, whatever the limits."""
    recut: bool = False
    """Whether the endpoint's words for the span would take more off a file that holds no more than it."""
    perhaps_cut: bool = False
    """Whether it is no longer than the endpoint's window: then it may be what an earlier run cut to it."""
    resolution: MediaResolution | None = None
    always: bool = False
    """Whether it is sent so always, or only once a request is over its limits."""

    @property
    def at_once_fps(self) -> float | None:
        return self.fps or (AT_ONCE_FPS.get(self.content) if self.content else None)

    @property
    def least_fps(self) -> float:
        """What the content asks for; 0 where it asks for nothing, or the rate is named."""
        return LEAST_FPS.get(self.content, 0.0) if self.content and not self.fps else 0.0


NO_TARGET = Target()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaping:
    """What an endpoint allows to be done, and in which order."""

    levers: tuple[Lever, ...] = EVERY_LEVER
    floors: Mapping[Modality, Floor] = field(default_factory=lambda: MappingProxyType({}))
    local_work: LocalWork = LocalWork.BYTES_ONLY
    older: Older = Older.NOTE
    cut: CutBy = CutBy.EXACT

    def floor(self, modality: Modality | None) -> Floor:
        """What holds for a modality; next to nothing where the endpoint says nothing."""
        return NO_FLOOR if modality is None else self.floors.get(modality, NO_FLOOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One setting of one lever on one part."""

    words: str
    changes: Mapping[str, Any]
    """To the part's `Controls`."""
    local: bool = False
    """Carried out on the bytes, since the model is not known to honour it on the wire."""
    work: ImageWork | None = None
    """What is made of a picture; beside it nothing changes."""
    note: bool = False
    """Words stand in its place."""
    thinned: int | None = None
    """How many steps a film, a sound or a document is taken towards fewer bytes a second."""

    def on(self, controls: Controls) -> Controls:
        return replace(controls, **self.changes)


def rungs(
    lever: Lever,
    part: Weighed,
    rules: ModelRules,
    shaping: Shaping,
    target: Target,
    *,
    tokens_count: bool = True,
    bytes_count: bool = True,
    bytes_over: bool = False,
) -> Iterator[Rung]:
    """A lever's settings for one part, mild to harsh, none below the floor, none finer than what is set.

    What a picture is encoded again for is told by what counts: there is no sense in fewer bytes where no limit asks.
    Other media are cut for their bytes only where those are over: the first rung is then what is sent of them anyway.
    """
    facts, floor = part.examined.facts, shaping.floor(part.examined.modality)
    cut = bytes_over and shaping.local_work is not LocalWork.NEVER and cutting.may_be_cut(part)
    match lever, facts:
        case Lever.RESOLUTION, ImageFacts() | VideoFacts() | DocumentFacts() if rules.honours_part_resolution:
            yield from _levels(part, rules, floor, target)
        case Lever.FPS, VideoFacts() if rules.honours(WireControl.VIDEO_FPS):
            yield from _rates(part.controls.fps or rules.video(part.controls).default_fps, floor, target)
        case Lever.CLIP, VideoFacts() | AudioFacts():
            way = cut or clip_way(part, rules, shaping)
            yield from _clips(facts.duration_s, part.controls, floor, target, way, cut=cut)
        case Lever.DROP_AUDIO, VideoFacts(audio_tracks=tracks) if tracks and (cut or not part.controls.drop_sound):
            local = cut or _way(WireControl.CONTENT_LAYERS, part, rules, shaping)
            if local is not None:
                yield Rung(words="without its sound", changes={"drop_sound": True}, local=local)
        case Lever.PAGES, DocumentFacts(pages=pages):
            way = cut or _way(WireControl.DOCUMENT_PAGES, part, rules, shaping)
            yield from _pages(pages, part.controls, floor, way, cut=cut)
        case Lever.REENCODE, ImageFacts() if shaping.local_work is not LocalWork.NEVER:
            fewer_pixels = tokens_count and shaping.local_work is LocalWork.ALLOWED
            for work in reencode.works(
                part,
                rules,
                floor=floor.resolution,
                fewer_pixels=fewer_pixels,
                fewer_bytes=bytes_count,
                region=target.region,
            ):
                yield reencode_rung(work)
        case Lever.REENCODE, _ if cut:
            yield from (_thinned_rung(part, thinned, rules) for thinned in cutting.thinnings(part, rules))
        case Lever.HISTORY, _ if shaping.older is Older.NOTE:
            yield Rung(words="a note in its place", changes={}, note=True)
        case Lever.HISTORY, ImageFacts() | VideoFacts() | DocumentFacts() if rules.honours_part_resolution:
            yield from list(_levels(part, rules, floor, NO_TARGET))[-1:]
        case _:
            return


def sparing_rungs(part: Weighed, rules: ModelRules, shaping: Shaping) -> Iterator[Rung]:
    """Fewer bytes of a film, a sound or a document, at no loss of what the service samples of it."""
    if shaping.local_work is not LocalWork.NEVER and cutting.may_be_cut(part):
        for thinned in cutting.thinnings(part, rules):
            if cutting.spares(part, thinned, rules):
                yield _thinned_rung(part, thinned, rules)


def request_levels(parts: Sequence[Weighed], shaping: Shaping, targets: Sequence[Target]) -> Iterator[MediaResolution]:
    """Levels of the whole request, finest first, on a model that knows none of a part.

    One lowers every visual part, so the finest floor among them holds, unless the endpoint names a lower level for some
    medium (`media.video: {resolution: low}`): that is its wish, and pinning is what keeps another medium out of it.
    """
    visual = [at for at, part in enumerate(parts) if is_visual(part)]
    if not visual:
        return
    finest_floor = min(RESOLUTIONS.index(shaping.floor(parts[at].examined.modality).resolution) for at in visual)
    named = [RESOLUTIONS.index(level) for at in visual if (level := targets[at].resolution)]
    now = parts[visual[0]].controls.media_resolution
    finest = 0 if now is MediaResolution.UNSPECIFIED else RESOLUTIONS.index(now)
    yield from RESOLUTIONS[max(finest + 1, *named, 0) : max(finest_floor, *named, 0) + 1]


def is_visual(part: Weighed) -> bool:
    """Whether a resolution means something to it."""
    return isinstance(part.examined.facts, ImageFacts | VideoFacts | DocumentFacts)


def standing(part: Weighed, rules: ModelRules, shaping: Shaping, target: Target) -> Iterator[tuple[Lever, Rung]]:
    """What the endpoint sets on every part of a modality (`apply: always`), where the caller is silent.

    A resolution only where the model knows one of a part: of a whole request it is moved where that is needed.
    """
    facts, now = part.examined.facts, part.controls
    silent = now.part_resolution is None and now.media_resolution is MediaResolution.UNSPECIFIED
    if target.resolution and silent and rules.honours_part_resolution and is_visual(part):
        yield Lever.RESOLUTION, resolution_rung(target.resolution)
    if target.fps and now.fps is None and isinstance(facts, VideoFacts) and rules.honours(WireControl.VIDEO_FPS):
        yield Lever.FPS, fps_rung(target.fps)
    # Where the model reads no offsets nothing marks a file as cut: one that may be so is not cut once more.
    done = target.perhaps_cut and not rules.honours(_offsets(part))
    if not target.span_asked and not done and not now.clipped and (rung := span_rung(part, rules, shaping, target)):
        yield Lever.CLIP, rung


def span_rung(part: Weighed, rules: ModelRules, shaping: Shaping, target: Target) -> Rung | None:
    """The target's span, where it is less than the recording and can be had."""
    facts = part.examined.facts
    if target.span_s is None or not isinstance(facts, VideoFacts | AudioFacts):
        return None
    local, (start_s, end_s) = clip_way(part, rules, shaping), target.span_s
    if local is None or not 0 < end_s - start_s < facts.duration_s:
        return None
    return clip_rung(start_s, end_s, facts.duration_s, local=local)


def asked_rung(part: Weighed, rules: ModelRules, shaping: Shaping) -> Rung | None:
    """The window the request asks for, of what becomes another format anyway: so much of it is made."""
    facts, now = part.examined.facts, part.controls
    if not (isinstance(facts, VideoFacts | AudioFacts) and now.clipped and _is_made(part, rules, shaping)):
        return None
    start_s, end_s = now.start_offset_s or 0.0, facts.duration_s
    if now.end_offset_s is not None:
        end_s = min(now.end_offset_s, end_s)
    return clip_rung(start_s, end_s, facts.duration_s, local=True) if 0 < end_s - start_s < facts.duration_s else None


def clip_way(part: Weighed, rules: ModelRules, shaping: Shaping) -> bool | None:
    """Whether a clip is local work, as of what becomes another format anyway: `None` where it cannot be had."""
    if _is_made(part, rules, shaping):
        return True
    return _way(_offsets(part), part, rules, shaping)


def _offsets(part: Weighed) -> WireControl:
    return WireControl.VIDEO_OFFSETS if isinstance(part.examined.facts, VideoFacts) else WireControl.AUDIO_OFFSETS


def _is_made(part: Weighed, rules: ModelRules, shaping: Shaping) -> bool:
    """Whether it is made into another format, for the service takes none such."""
    return shaping.local_work is not LocalWork.NEVER and cutting.becomes(part, rules) is not None


def _way(control: WireControl, part: Weighed, rules: ModelRules, shaping: Shaping) -> bool | None:
    """Whether it is local work: False on the wire, True where only the bytes can be cut, `None` where nothing may."""
    if rules.honours(control):
        return False
    return True if shaping.local_work is LocalWork.ALLOWED and cutting.may_be_cut(part) else None


def _levels(part: Weighed, rules: ModelRules, floor: Floor, target: Target) -> Iterator[Rung]:
    now, last = rules.resolution(part.controls), RESOLUTIONS.index(floor.resolution)
    first = 0 if now is MediaResolution.UNSPECIFIED else RESOLUTIONS.index(now) + 1
    if target.resolution is not None:
        first = max(first, min(RESOLUTIONS.index(target.resolution), last))
    for level in RESOLUTIONS[first : last + 1]:
        yield resolution_rung(level)


def resolution_rung(level: MediaResolution) -> Rung:
    return Rung(words=f"resolution {level.value}", changes={"part_resolution": level})


def reencode_rung(work: ImageWork) -> Rung:
    return Rung(words=reencode.in_words(work), changes={}, local=True, work=work)


def _thinned_rung(part: Weighed, thinned: int, rules: ModelRules) -> Rung:
    return Rung(words=cutting.in_words(part, thinned, rules), changes={}, local=True, thinned=thinned)


def _rates(now: float, floor: Floor, target: Target) -> Iterator[Rung]:
    least, most = max(floor.fps, target.least_fps), target.at_once_fps
    if most is not None and not target.fps:  # a hint gives way to a floor
        most = max(most, least)
    wanted = sorted({*_FPS, *([most] if most else []), least}, reverse=True)
    if most is not None:
        wanted = [fps for fps in wanted if fps <= most]
    for fps in wanted:
        if least <= fps < now:
            yield fps_rung(fps)


def fps_rung(fps: float) -> Rung:
    return Rung(words=f"fps {fps:g}", changes={"fps": fps})


def _clips(
    seconds: float, now: Controls, floor: Floor, target: Target, local: bool | None, *, cut: bool
) -> Iterator[Rung]:
    """Ever less of what is sent now: its end, or what lies around the target's instant; the target's span first."""
    if local is None:
        return
    begin_s = now.start_offset_s or 0.0
    end_s = seconds if now.end_offset_s is None else min(now.end_offset_s, seconds)
    if cut and 0 < end_s - begin_s < seconds:
        yield clip_rung(begin_s, end_s, seconds, local=True)
    if target.span_s is not None and begin_s <= target.span_s[0] < target.span_s[1] <= end_s:
        start_s, stop_s = target.span_s
        if floor.seconds <= stop_s - start_s < end_s - begin_s:
            begin_s, end_s = start_s, stop_s
            yield clip_rung(begin_s, end_s, seconds, local=local)
    instant_s = end_s if target.around_s is None or not begin_s <= target.around_s <= end_s else target.around_s
    for length in _SECONDS:
        if floor.seconds <= length < end_s - begin_s:
            yield clip_rung(*about(instant_s, length, begin_s, end_s), seconds, local=local)


def clip_rung(start_s: float, end_s: float, seconds: float, *, local: bool) -> Rung:
    length = end_s - start_s
    words = f"last {length:g}s" if math.isclose(end_s, seconds) else f"{start_s:g}s-{end_s:g}s"
    return Rung(words=f"clip {words}", changes={"start_offset_s": start_s, "end_offset_s": end_s}, local=local)


def _pages(pages: int, now: Controls, floor: Floor, local: bool | None, *, cut: bool) -> Iterator[Rung]:
    if local is None:
        return
    first = now.first_page or 1
    left = min(pages, now.last_page or pages) - first + 1
    counts = [count for count in _PAGES if floor.pages <= count < left]
    for count in [left, *counts] if cut and 0 < left < pages else counts:
        words = f"its first {count} pages" if count > 1 else "its first page"
        if first > 1:
            words = f"pages {first}-{first + count - 1}" if count > 1 else f"page {first}"
        changes = {"first_page": first, "last_page": first + count - 1}
        yield Rung(words=words, changes=changes, local=local)
