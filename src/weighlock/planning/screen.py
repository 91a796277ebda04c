"""What every carrier of a request may hold, over its whole history: decisions, none of the doing. Pure.

A session that was poisoned once (a WAV in a tool result, answered with 400 ever since) heals only if every turn is
looked at on every request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from weighlock import mime
from weighlock.errors import (
    InputError,
    MalformedMedia,
    MimeMismatch,
    UnknownMediaType,
    UnsupportedMedia,
)
from weighlock.media.facts import TextSizes
from weighlock.media.text import request_tokens
from weighlock.planning import embedded, structure
from weighlock.planning.carrying import Action, Base64InToolText, Code, Decision, ToolMedia, decide
from weighlock.planning.embedded import Embedded
from weighlock.planning.identify import Identified, identify, window_of
from weighlock.request import (
    Backend,
    Carrier,
    Json,
    MediaPart,
    Modality,
    Place,
    Request,
    TextPart,
    ToolResultPart,
    Turn,
)
from weighlock.rules import Controls, ModelRules
from weighlock.written import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What an endpoint wants done."""

    tool_media: ToolMedia = ToolMedia.FILTER
    base64_in_tool_text: Base64InToolText = Base64InToolText.LIFT
    refuse_mislabelled: bool = False


_PLAIN = Controls()


class Repair(StrEnum):
    """What is put right beside the media."""

    RESPONSE_WRAPPED = "response_wrapped"
    """A tool's answer that is no object becomes `{"result": …}`, the only form the service takes."""
    REF_AS_TEXT = "ref_as_text"
    """`$ref` in a tool's answer is read as a pointer to its media; JSON that means something else goes as text."""
    TEXT_MOVED = "text_moved"
    """Text beside tool results moves behind them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One repair, and where."""

    place: Place
    repair: Repair
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One medium, and what becomes of it."""

    place: Place
    """Of one hidden in a tool's text: the tool result's."""
    carrier: Carrier
    part: MediaPart
    medium: Identified
    decision: Decision
    tool: str | None = None
    call_id: str | None = None
    file_id: str | None = None
    """What tags and notes call it, where it comes from a tool: `tool-2-1` is the first file of the second result."""
    hidden: Embedded | None = None
    """Where it stood as base64 text."""
    seconds: float | None = None
    """How long it plays, where somebody has looked."""
    shaped: MediaPart | None = None
    """The part with what a plan set on it; `None` where it stays as it is."""
    note: str | None = None
    """What stands in its place, where a plan takes it out of an earlier turn."""

    @property
    def is_sent(self) -> bool:
        """Whether the service sees it as a medium."""
        text = self.hidden is not None and self.decision.code is Code.BASE64_TEXT
        return self.decision.action is not Action.REMOVE and not text

    @property
    def leaves_text(self) -> bool:
        """Whether it stood as base64 text and will not."""
        return self.hidden is not None and (self.is_sent or self.decision.action is Action.REMOVE)

    @property
    def error(self) -> InputError | None:
        """Why the request cannot be sent, where that is the decision."""
        return _error(self) if self.decision.action is Action.REJECT else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """Everything there is to say about what a request carries."""

    findings: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    problems: tuple[InputError, ...] = ()
    """What is wrong with the request as a whole, each with its place."""

    @property
    def errors(self) -> tuple[InputError, ...]:
        """Why it cannot be sent, in the order of their places; empty where it can."""
        return (*(error for one in self.findings if (error := one.error)), *self.problems)

    @property
    def pending(self) -> tuple[Finding, ...]:
        """Media that have to become another format before they can be sent."""
        return tuple(one for one in self.findings if one.decision.convert)

    def demand_sendable(self) -> None:
        """Does nothing where the request can be sent as it now is.

        Raises:
            InputError: the first reason why not, media among them that have to become another format first;
                `figures["others"]` holds the messages of the rest.
        """
        unconverted = (
            UnsupportedMedia(f"{one.place}: {one.decision.reason} first", place=str(one.place), mime=one.medium.mime)
            for one in self.pending
        )
        if errors := (*self.errors, *unconverted):
            errors[0].figures["others"] = [error.message for error in errors[1:]]
            raise errors[0]


def screen(
    request: Request, rules: ModelRules, policy: Policy, identified: Callable[[MediaPart], Identified] = identify
) -> Screening:
    """What each carrier may hold on this model and backend, and what becomes of what it may not.

    `identified` tells what a medium is; the default serves those in memory.
    """
    findings: list[Finding] = []
    changes: list[Change] = []
    results = 0
    call_ids = structure.answered_calls(request)
    for number, turn in request.beyond_text():
        look = _Look(number, turn, rules, policy, identified)
        for index, part in enumerate(turn.parts):
            if isinstance(part, MediaPart):
                findings.append(look.medium(index, part))
            elif isinstance(part, ToolResultPart):
                results += 1
                here = list(look.tool_result(index, part, results, call_ids.get(Place(number, index))))
                findings += here
                changes += _repairs(Place(number, index), part, here, rules.backend)
            elif isinstance(part, TextPart) and look.holds_results:
                reason = "a turn of tool results holds nothing else"
                changes.append(Change(place=Place(number, index), repair=Repair.TEXT_MOVED, reason=reason))
    sent = [(one.place, one.medium) for one in findings if one.is_sent]
    lifted = sum(one.hidden.chars for one in findings if one.hidden and one.leaves_text)
    problems = structure.problems(request, sent, rules, without_chars=lifted)
    return Screening(findings=tuple(findings), changes=tuple(changes), problems=tuple(problems))


class _Look:
    """One turn under the eyes of a model, a backend and an endpoint."""

    def __init__(
        self,
        number: int | None,
        turn: Turn,
        rules: ModelRules,
        policy: Policy,
        identified: Callable[[MediaPart], Identified],
    ) -> None:
        self.number, self.turn, self.rules, self.policy, self.identified = number, turn, rules, policy, identified
        speaks = turn.carrier is not Carrier.MODEL  # a model's words are never put into the user's mouth
        self.holds_results = speaks and any(isinstance(part, ToolResultPart) for part in turn.parts)

    def medium(self, index: int, part: MediaPart) -> Finding:
        """A medium somebody sent, or the model made."""
        medium = self.identified(part)
        decision = self.decide(medium, self.turn.carrier)
        if self.holds_results and decision.action is not Action.REJECT:
            reason = "a turn of tool results holds nothing else"
            decision = replace(decision, action=Action.RELOCATE, code=Code.BESIDE_TOOL_RESULT, reason=reason)
        return Finding(
            place=Place(self.number, index), carrier=self.turn.carrier, part=part, medium=medium, decision=decision
        )

    def tool_result(self, index: int, part: ToolResultPart, ordinal: int, call_id: str | None) -> Iterator[Finding]:
        """The media of the `ordinal`th tool result: those it lists, then those hidden in its text."""
        nested = [(at, medium) for at, medium in enumerate(part.media) if isinstance(medium, MediaPart)]
        for nth, (at, medium) in enumerate(nested, 1):
            known = self.identified(medium)
            yield Finding(
                place=Place(self.number, index, at),
                carrier=Carrier.TOOL_RESULT,
                part=medium,
                medium=known,
                decision=self.decide(known, Carrier.TOOL_RESULT),
                tool=part.name,
                call_id=call_id,
                file_id=f"tool-{ordinal}-{nth}",
            )
        for nth, hidden in enumerate(embedded.find(part.response, self.identified), len(nested) + 1):
            yield Finding(
                place=Place(self.number, index),
                carrier=Carrier.TOOL_RESULT,
                part=hidden.part,
                medium=hidden.medium,
                decision=self.hidden(hidden),
                tool=part.name,
                call_id=call_id,
                file_id=f"tool-{ordinal}-{nth}",
                hidden=hidden,
            )

    def decide(self, medium: Identified, carrier: Carrier) -> Decision:
        strict = self.policy.refuse_mislabelled
        return decide(medium, carrier, self.rules, self.policy.tool_media, strict=strict)

    def hidden(self, hidden: Embedded) -> Decision:
        """What becomes of base64 in a tool's text."""
        match self.policy.base64_in_tool_text:
            case Base64InToolText.KEEP:
                return Decision(action=Action.KEEP, code=Code.BASE64_TEXT, reason="base64_in_tool_text: keep")
            case Base64InToolText.NOTE:
                reason = "base64 text is not passed on here"
                return Decision(action=Action.REMOVE, code=Code.BASE64_TEXT, reason=reason)
            case Base64InToolText.LIFT:
                if self._is_cheaper_as_text(hidden):
                    return Decision(action=Action.KEEP, code=Code.BASE64_TEXT, reason="costs less as text")
                if hidden.cut:
                    words = "the base64 text ends before the medium does"
                    return Decision(action=Action.REMOVE, code=Code.CUT_OFF, reason=words)
                return self.decide(hidden.medium, Carrier.TOOL_RESULT)

    def _is_cheaper_as_text(self, hidden: Embedded) -> bool:
        """Whether a picture within a text, such as an icon of a page, costs more than the characters it takes there."""
        if not hidden.within or hidden.medium.modality is not Modality.IMAGE:
            return False
        size = mime.image_size(window_of(hidden.part), hidden.medium.mime or "")
        if size is None:
            return False
        _, tokens, _ = self.rules.image(_PLAIN).area.count(*size.displayed_px)
        return request_tokens(TextSizes(content_chars=hidden.chars), self.rules.text).high < tokens


# ---- a tool's answer


def _repairs(place: Place, part: ToolResultPart, findings: list[Finding], backend: Backend) -> Iterator[Change]:
    response = part.response
    if not isinstance(response, dict):
        reason = "a function response is an object"
        yield Change(place=place, repair=Repair.RESPONSE_WRAPPED, reason=reason)
    if not isinstance(response, dict | list):
        return
    names = list(_ref_names(response))
    once = len(names) == len(set(names))  # the service takes each name once
    if names and not (backend is Backend.VERTEX and once and set(names) <= _names_of_nested(part, findings)):
        reason = "`$ref` would be read as a pointer to a file of this result"
        yield Change(place=place, repair=Repair.REF_AS_TEXT, reason=reason)


def _ref_names(response: Json) -> Iterator[Json]:
    """What every `$ref` within a response names; anything but a text names nothing."""
    waiting = [response]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"] if isinstance(value["$ref"], str) else None
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _names_of_nested(part: ToolResultPart, findings: list[Finding]) -> set[Json]:
    """`displayName` of the media that stay in the tool result."""
    leaving = {one.place.medium for one in findings if one.decision.action in (Action.REMOVE, Action.RELOCATE)}
    return {
        name
        for at, medium in enumerate(part.media)
        if isinstance(medium, MediaPart) and at not in leaving
        for kind in ("inlineData", "fileData")
        if isinstance(name := (medium.carried.get(kind) or {}).get("displayName"), str)
    }


def _error(finding: Finding) -> InputError:
    place, medium, reason = str(finding.place), finding.medium, finding.decision.reason
    kinds: dict[Code, type[InputError]] = {
        Code.MALFORMED_MEDIA: type(medium.error) if isinstance(medium.error, InputError) else MalformedMedia,
        Code.UNKNOWN_MEDIA_TYPE: UnknownMediaType,
        Code.MIME_MISMATCH: MimeMismatch,
    }
    kind = kinds.get(finding.decision.code, UnsupportedMedia)
    declared = medium.declared_mime and plain(medium.declared_mime)
    return kind(f"{place}: {reason}", place=place, mime=medium.mime, declared=declared)
