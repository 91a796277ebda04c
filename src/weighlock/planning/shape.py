"""A plan set on the parts of a request: fields of the wire, notes for what was taken out, the work left to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weighlock.errors import InputError, MediaTooLarge
from weighlock.media.facts import AudioFacts
from weighlock.media.work import AudioWork, DocumentWork, ImageWork, VideoWork, Work
from weighlock.planning.cutting import copy_of
from weighlock.planning.levers import Target
from weighlock.planning.load import Load
from weighlock.planning.placement import refused_inline
from weighlock.planning.plan import Judge
from weighlock.planning.screen import Finding
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Examined, Weighed
from weighlock.request import NOTHING, Json, MediaPart, MediaResolution, Request
from weighlock.rules import Controls, ModelRules, WireControl
from weighlock.written import plain

_LEVEL = "MEDIA_RESOLUTION_"
_WRITTEN = ("audio/flac", "audio/mpeg", "audio/wav")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """One medium as a plan has it."""

    finding: Finding
    work: Work | None = None
    """What is to be done to its bytes before it is sent."""


def shaped(findings: Sequence[Finding], before: Sequence[Weighed], plan: Plan, rules: ModelRules) -> list[Shaped]:
    """Every medium that is sent, with the plan's settings. `before` is how each was weighed without it."""
    media = [_one(finding, before[at], plan.parts[at], at, plan) for at, finding in enumerate(findings)]
    return [_said_whole(one, at, plan, rules) for at, one in enumerate(media)]


def copied(
    media: Sequence[Shaped], before: Sequence[Weighed], plan: Plan, rules: ModelRules, judge: Judge
) -> tuple[list[Shaped], Plan]:
    """The media, with films copied that are only cut to a window, and the plan with what that may weigh at most.

    None that would break a limit so. `before` is how each was weighed without the plan.
    """
    copies, parts, verdict = list(media), list(plan.parts), plan.verdict
    for at, one in enumerate(media):
        found = copy_of(before[at], one.work, rules) if isinstance(one.work, VideoWork) else None
        if found is None:
            continue
        work, longest = found
        pairs = zip(parts[at].tokens, longest.tokens, strict=True)
        tokens = tuple(replace(now, high=max(now.high, most.high)) for now, most in pairs)
        heavier = [*parts[:at], replace(parts[at], tokens=tokens), *parts[at + 1 :]]
        then = judge(Load.of(heavier))
        if {check.name for check in then.over} <= {check.name for check in verdict.over}:
            copies[at], parts, verdict = replace(one, work=work), heavier, then
    return copies, replace(plan, parts=tuple(parts), verdict=verdict)


def wishes_of(
    findings: Sequence[Finding], parts: Sequence[Weighed], target: Callable[[Examined, MediaPart], Target]
) -> list[Wish]:
    """What holds for each medium beside the policy: pinned, and how far to take it at once."""
    return [
        Wish(
            pinned=one.part.pinned,
            target=target(part.examined, one.part),
            removable=one.place.turn is not None,
            tool=one.tool,
        )
        for one, part in zip(findings, parts, strict=True)
    ]


def still_wrong(
    problems: Sequence[InputError], findings: Sequence[Finding], plan: Plan, rules: ModelRules
) -> tuple[InputError, ...]:
    """What keeps a request from being sent, without what was too large inline and no longer will be."""
    cured = {str(findings[at].place) for at in (*plan.works, *plan.placements) if not plan.parts[at].refused}
    room = not refused_inline(plan.parts, rules)

    def is_cured(one: InputError) -> bool:
        together = one.figures.get("together")
        return isinstance(one, MediaTooLarge) and (room if together else one.figures.get("place") in cured)

    return tuple(one for one in problems if not is_cured(one))


def with_resolution(request: Request, level: MediaResolution) -> Request:
    """The request asking for another resolution of all its media; the same object where it asks for that already."""
    config = request.carried.get("generationConfig") or {}
    wanted = f"{_LEVEL}{level.name}"
    if level is MediaResolution.UNSPECIFIED or config.get("mediaResolution") == wanted:
        return request
    return replace(request, carried={**request.carried, "generationConfig": {**config, "mediaResolution": wanted}})


def _one(finding: Finding, before: Weighed, after: Weighed, at: int, plan: Plan) -> Shaped:
    if at in plan.removed:
        return Shaped(finding=replace(finding, note=_note(finding, before)))
    convert, planned = _conversion(finding), plan.works.get(at)
    asked = before.examined.asked or before.controls
    wire = _on_the_wire(asked, after)
    if not wire and planned is None:
        return Shaped(finding=finding, work=convert)
    part = finding.part
    carried = dict(part.carried)
    for name, fields in wire.items():
        carried[name] = {**_object(carried.get(name)), **fields}
    for name, cut in _cut_away(planned, after.controls).items():
        if left := {key: value for key, value in _object(carried.get(name)).items() if key not in cut}:
            carried[name] = left
        else:
            carried.pop(name, None)
    work = convert if planned is None else _in_format(planned, finding.decision.send_as)
    return Shaped(finding=replace(finding, shaped=replace(part, carried=carried or NOTHING, clip=None)), work=work)


def _said_whole(one: Shaped, at: int, plan: Plan, rules: ModelRules) -> Shaped:
    """A file cut to what the endpoint always sends says that it begins at its beginning, where that is needed.

    Else the endpoint's window would be cut out of what is left of it, once the request comes again.
    """
    target, sound = plan.wishes[at].target, isinstance(one.work, AudioWork)
    cut = isinstance(one.work, VideoWork | AudioWork) and not plan.parts[at].controls.clipped
    control, name = WireControl.VIDEO_OFFSETS, "videoMetadata"
    if sound:
        control, name = WireControl.AUDIO_OFFSETS, "audioMetadata"
    if not (cut and target.always and target.recut and rules.honours(control)):
        return one
    part = one.finding.shaped or one.finding.part
    carried = {**part.carried, name: {**_object(part.carried.get(name)), "startOffset": "0s"}}
    return replace(one, finding=replace(one.finding, shaped=replace(part, carried=carried)))


def _on_the_wire(before: Controls, weighed: Weighed) -> dict[str, dict[str, Any]]:
    """The fields that differ, in the words of the wire; of what the bytes are cut to, there are none."""
    fields: dict[str, dict[str, Any]] = {}
    after = weighed.controls
    if after.fps != before.fps and after.fps is not None:
        fields.setdefault("videoMetadata", {})["fps"] = after.fps
    if after.drop_sound and not before.drop_sound:
        fields.setdefault("videoMetadata", {})["contentLayers"] = ["FRAMES"]
    if after.part_resolution not in (None, before.part_resolution):
        fields["mediaResolution"] = {"level": f"{_LEVEL}{after.part_resolution.name}"}
    pages = after.first_page, after.last_page
    if pages not in ((None, None), (before.first_page, before.last_page)):
        fields["documentMetadata"] = {"startPage": after.first_page or 1, "endPage": after.last_page}
    if after.clipped and _span(after) != _span(before):
        name = "audioMetadata" if isinstance(weighed.examined.facts, AudioFacts) else "videoMetadata"
        told = {"startOffset": after.start_offset_s, "endOffset": after.end_offset_s}
        offsets = {key: _duration(seconds) for key, seconds in told.items() if seconds is not None}
        fields[name] = {**fields.get(name, {}), **offsets}
    return fields


def _span(controls: Controls) -> tuple[float | None, float | None]:
    return controls.start_offset_s, controls.end_offset_s


def _cut_away(work: Work | None, after: Controls) -> dict[str, tuple[str, ...]]:
    """Fields of the wire that go: a clipped file carries no offsets, and one of some pages no range of them."""
    match work:
        case VideoWork() | AudioWork() if not after.clipped:
            return dict.fromkeys(("videoMetadata", "audioMetadata"), ("startOffset", "endOffset"))
        case DocumentWork():
            return {"documentMetadata": ("startPage", "endPage")}
        case _:
            return {}


def _duration(seconds: float) -> str:
    """As JSON has it: decimal digits, nine of them at most behind the point."""
    return f"{f'{seconds:.9f}'.rstrip('0').rstrip('.')}s"


def _conversion(finding: Finding) -> Work | None:
    """What makes a medium a format the service takes, where screening decided so."""
    target = finding.decision.send_as
    if not finding.decision.convert or target is None:
        return None
    match target.partition("/")[0]:
        case "image":
            return ImageWork(mime=target)
        case "audio":
            return AudioWork(mime=target)
        case _:
            return VideoWork()


def _in_format(work: Work, target: str | None) -> Work:
    """In the format screening wants where it wants another: a film comes out as MP4 anyway."""
    if isinstance(work, AudioWork) and work.mime is None and target in _WRITTEN:
        return replace(work, mime=target)
    return work


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _note(finding: Finding, before: Weighed) -> str:
    """Which tool, which turn, what it was, how large, what it cost."""
    size = finding.medium.size_bytes
    told = [
        finding.medium.mime or "a file",
        None if size is None else f"{size:,} bytes",
        f"{before.total.likely:,} tokens",
    ]
    turn = "" if finding.place.turn is None else f" in turn {finding.place.turn + 1}"
    tool = f" from tool {plain(finding.tool, 40)}" if finding.tool else ""
    return f"{', '.join(word for word in told if word)}{tool}{turn}: no longer sent, to make room for newer media"
