"""A screened request made to fit its endpoint: plan, shape, write back. Pure but for the scales it is weighed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from weighlock.fitted import Fitted
from weighlock.planning.asked import demand_possible
from weighlock.planning.cached import sent_before
from weighlock.planning.carrying import Action
from weighlock.planning.conversation import plan_conversation, stages
from weighlock.planning.cost import Prices
from weighlock.planning.levers import CutBy, LocalWork, Shaping, is_visual
from weighlock.planning.obstacles import untaken
from weighlock.planning.placement import Placements, place, put
from weighlock.planning.plan import filled_after
from weighlock.planning.rewrite import rewritten
from weighlock.planning.said import request_resolution, request_text
from weighlock.planning.screen import Finding, Screening
from weighlock.planning.shape import Shaped, copied, shaped, still_wrong, wishes_of, with_resolution
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.stripping import without_metadata
from weighlock.planning.weigh import Examined, Tally, Weighed
from weighlock.report import Report
from weighlock.request import NOTHING, MediaPart, MediaResolution, Request, ToolResultPart, Uri
from weighlock.scales import Scales


def fit(
    request: Request,
    screened: Request,
    screening: Screening,
    examined: Sequence[Examined],
    scales: Scales,
    confinement: Mapping[str, Any] | None,
    shaping: Shaping | None = None,
    told: Report | None = None,
) -> Fitted:
    """The mildest way to hold the limits. `examined` are the media that are sent, in the order of their findings.

    `shaping` is what levers may do, where that is not all the endpoint allows; `told` the receipt with a count in it,
    where the service was asked.

    Raises:
        InputError: what the caller wants of a medium cannot be had.
    """
    shaping = shaping or scales.shaping
    sent = [one for one in screening.findings if one.is_sent]
    *media, text = as_told([*scales.parts(examined, standing=False), _text(screened, scales)], told)
    if not media and not (report := scales.report((text,))).verdict.over:
        return _of_text(request, screened, screening, replace(report, counted=told.counted if told else None), scales)
    plan = _planned(request, screening, sent, media, text, scales, shaping)
    screened_so = replace(screening, problems=still_wrong(screening.problems, sent, plan, scales.rules))
    parts = shaped(sent, media, plan, scales.rules)
    if parts and scales.shaping.local_work is LocalWork.NEVER:
        parts = [replace(one, work=None) for one in parts]
    if parts and shaping.cut is CutBy.COPY:
        parts, plan = copied(parts, media, plan, scales.rules, scales.judge)
    traced: tuple[int, ...] = ()
    if parts and scales.endpoint.strip_metadata:
        parts, traced = without_metadata(parts, scales.shaping.local_work)
    count = told.counted if told is not None else None
    changed = any(new.finding is not old for new, old in zip(parts, sent, strict=True))
    to_send = _written(request, screening, sent, parts) if changed else screened
    level = next((p.controls.media_resolution for p in plan.parts if is_visual(p)), MediaResolution.UNSPECIFIED)
    given = (*media, text)
    before = replace(scales.report(given), screening=screened_so, confinement=confinement, counted=count)
    same = all(new is old for new, old in zip(plan.parts, given, strict=True))
    after = before if same else _retold(scales.report(plan.parts), before)
    return Fitted(
        request=with_resolution(to_send, level),
        before=before,
        after=after,
        plan=plan,
        works={at: one.work for at, one in enumerate(parts) if one.work is not None},
        look_further=partial(untaken, plan, scales.rules, shaping),
        shaped=tuple(parts),
        original=request,
        screening=screening,
        traced=traced,
        to_upload=plan.placements,
        sent=sent_before(request, screening, plan, lambda asked: _text(asked, scales), scales.prices),
    )


def _of_text(request: Request, screened: Request, screening: Screening, report: Report, scales: Scales) -> Fitted:
    """Text alone that fits: nothing is to be planned, as of nearly every request there is."""
    report = replace(report, screening=screening)
    parts, verdict = report.parts, report.verdict
    plan = Plan(parts=parts, steps=(), removed=frozenset(), verdict=verdict, wishes=(Wish(),))
    sent = sent_before(request, screening, plan, lambda asked: _text(asked, scales), scales.prices)
    return Fitted(
        request=screened,
        before=report,
        after=report,
        plan=plan,
        works={},
        original=request,
        screening=screening,
        sent=sent,
    )


def _retold(report: Report, like: Report) -> Report:
    """With all that the parts do not tell."""
    return replace(report, screening=like.screening, confinement=like.confinement, counted=like.counted)


def as_told(parts: Sequence[Weighed], told: Report | None) -> list[Weighed]:
    """The parts with what a count told: of the same text, and of media nobody here can see."""
    if told is None:
        return list(parts)
    unseen = {part.examined.label: part for part in told.parts[:-1] if part.examined.error is not None}
    *media, text = parts
    words = told.parts[-1]
    return [
        *(unseen.get(part.examined.label, part) if part.error is not None else part for part in media),
        replace(text, tokens=words.tokens) if text.examined.facts == words.examined.facts else text,
    ]


def wire_only(fitted: Fitted, scales: Scales) -> Fitted:
    """The request made to fit once more, without a lever that needs work on bytes.

    What is no lever's stays to be done: formats the service takes, metadata the endpoint wants out.
    """
    screened = rewritten(fitted.original, fitted.screening)
    examined = [part.examined for part in fitted.before.parts[:-1]]
    shaping = replace(scales.shaping, local_work=LocalWork.NEVER)
    told = fitted.before if fitted.before.counted is not None else None
    confinement = fitted.before.confinement
    wire = fit(fitted.original, screened, fitted.screening, examined, scales, confinement, shaping, told)
    return replace(wire, look_further=partial(untaken, wire.plan, scales.rules, scales.shaping))


def worked_on(fitted: Fitted, screening: Screening, made: Mapping[int, MediaPart]) -> Request:
    """The request with what came of the works, by part."""
    sent = [one for one in screening.findings if one.is_sent]
    done = [
        replace(one, finding=replace(one.finding, shaped=made[at])) if at in made else one
        for at, one in enumerate(fitted.shaped)
    ]
    request = _written(fitted.original, screening, sent, done)
    return with_resolution(request, request_resolution(fitted.request))


def as_made(report: Report, fitted: Fitted, scales: Scales) -> tuple[Report, Placements]:
    """The report of what was made, by the parts, names and placements of the plan, and what is to be uploaded.

    The plan's placements stay, since the next turn's plan, which cannot know what came of the works, finds them again.
    A part that became a note weighs what its words do, which the text of the request is told without.
    """
    told = fitted.before if fitted.before.counted is not None else None
    found = dict(zip(_order(fitted), report.parts, strict=True))
    found |= _notes(report.parts[-1], fitted.plan)
    parts = as_told([_named(found[at], before.examined.label) for at, before in enumerate(fitted.before.parts)], told)
    placed = place(parts, scales.rules, scales.inline_below, kept=fitted.to_upload, sent=len(parts))
    after = scales.report(put(parts, placed, scales.rules))
    earlier = {at for at, wish in enumerate(fitted.plan.wishes) if wish.earlier is not None}
    to_upload = {
        at: fitted.to_upload.get(at) or replace(one, breaks_prefix=at in earlier) for at, one in placed.items()
    }
    return replace(_retold(after, report), counted=fitted.before.counted), to_upload


def _order(fitted: Fitted) -> list[int]:
    """The parts of a plan that are no notes, in the order in which they stand in the request: what moved out of tool
    results comes behind the last of them, and the text at the end."""
    turns = fitted.original.turns

    def stands(at: int) -> float:
        finding = fitted.shaped[at].finding
        turn = finding.place.turn
        if turn is None or finding.decision.action is not Action.RELOCATE:
            return -1 if turn is None else turn
        while turn < len(turns) and any(isinstance(part, ToolResultPart) for part in turns[turn].parts):
            turn += 1
        return turn - 0.5

    media = range(len(fitted.before.parts) - 1)
    return [*sorted((at for at in media if at not in fitted.plan.removed), key=stands), len(media)]


def _notes(text: Weighed, plan: Plan) -> dict[int, Weighed]:
    """The notes of a plan with their shares of the text they stand in, and that text without them."""
    if not plan.removed:
        return {}
    words = plan.parts[-1]
    shares = _shared(text.total - words.total, len(plan.removed))
    notes = {at: _note(plan.parts[at], share) for at, share in zip(sorted(plan.removed), shares, strict=True)}
    return {**notes, len(plan.parts) - 1: words}


def _shared(tokens: Tally, count: int) -> Iterator[Tally]:
    """Tokens in about equal shares that add up."""
    bounds = [divmod(max(0, bound), count) for bound in (tokens.low, tokens.likely, tokens.high)]
    for nth in range(count):
        low, likely, high = (share + (nth < left) for share, left in bounds)
        yield Tally(low=low, likely=likely, high=high)


def _note(part: Weighed, share: Tally) -> Weighed:
    (tokens,) = part.tokens
    return replace(part, tokens=(replace(tokens, low=share.low, likely=share.likely, high=share.high),))


def _named(part: Weighed, label: str) -> Weighed:
    return replace(part, examined=replace(part.examined, label=label))


def as_sent(fitted: Fitted, at: int) -> MediaPart:
    """A part with the bytes that go, declared as what they are."""
    finding, part = fitted.shaped[at].finding, fitted.plan.parts[at]
    mime = fitted.made[at].mime if at in fitted.made else part.send_as or part.examined.mime
    medium = replace(finding.shaped or finding.part, declared_mime=mime)
    return replace(medium, source=fitted.files[at]) if at in fitted.files else medium


def referred(fitted: Fitted, uris: Mapping[int, str]) -> Fitted:
    """The request with media named by where they are now, by part: those need no upload any more."""
    screening = fitted.before.screening
    if not uris or screening is None:
        return fitted
    sources: dict[int, MediaPart] = {}
    for at in {*fitted.files, *uris}:
        medium = as_sent(fitted, at)
        sources[at] = _by_name(medium, uris[at]) if at in uris else medium
    left = {at: one for at, one in fitted.to_upload.items() if at not in uris}
    return replace(fitted, request=worked_on(fitted, screening, sources), to_upload=left)


def _by_name(part: MediaPart, uri: str) -> MediaPart:
    carried = {"fileData" if key == "inlineData" else key: value for key, value in part.carried.items()}
    return replace(part, source=Uri(uri), carried=carried or NOTHING)


def _planned(
    request: Request,
    screening: Screening,
    sent: Sequence[Finding],
    media: Sequence[Weighed],
    text: Weighed,
    scales: Scales,
    shaping: Shaping,
) -> Plan:
    history, wishes = scales.endpoint.history, wishes_of(sent, media, scales.target)
    for one, part, wish in zip(sent, media, wishes, strict=True):
        demand_possible(one.part, part, wish.target, scales.rules, shaping)
    return plan_conversation(
        media,
        text,
        stages(request, screening, lambda asked: _text(asked, scales)),
        scales.rules,
        shaping,
        scales.judge,
        wishes,
        below=scales.inline_below,
        keep=history.keep_media,
        per_tool=history.per_tool,
        batch=history.batch,
        filled=filled_after(scales.prices.base.cached_share if isinstance(scales.prices, Prices) else None),
    )


def _text(request: Request, scales: Scales) -> Weighed:
    return scales.parts([request_text(request)], standing=False)[0]


def _written(request: Request, screening: Screening, sent: Sequence[Finding], parts: Sequence[Shaped]) -> Request:
    """The request with its media as they are shaped."""
    of = {id(one): new.finding for one, new in zip(sent, parts, strict=True)}
    return rewritten(request, replace(screening, findings=tuple(of.get(id(one), one) for one in screening.findings)))
