"""A request as its screening decided: values in, values out. Whatever was not touched stays the same object.

The number, order, names and ids of function responses never change, and none becomes empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from html import escape

from weighlock.encoded import Base64, encode
from weighlock.errors import MalformedRequest
from weighlock.planning.carrying import Action, Code
from weighlock.planning.embedded import replaced
from weighlock.planning.screen import Change, Finding, Repair, Screening
from weighlock.request import (
    NOTHING,
    Json,
    MediaPart,
    OpaquePart,
    Part,
    Place,
    Request,
    TextPart,
    ToolResultPart,
    Turn,
    Uri,
)
from weighlock.written import escaped, plain

NOTE_KEY = "media_note"
"""Where a tool's answer says what became of its media."""
_TAG = "tool_file"
_LONGEST_NAME = 200
_QUOTES = str.maketrans({'"': "'", "\\": "/", "\n": " ", "\r": " "})
_LEAVING = frozenset({Action.RELOCATE, Action.REMOVE})


def rewritten(request: Request, screening: Screening) -> Request:
    """The request with every decision carried out that needs no codec. The same object where nothing was decided.

    What has to be converted or refused is left as it is: `Screening.pending` and `Screening.errors` list it.
    """
    acting = [one for one in screening.findings if _acts(one)]
    if not acting and not screening.changes:
        return request
    by_part: dict[Place, list[Finding]] = {}
    for one in acting:
        by_part.setdefault(one.place._replace(medium=None), []).append(one)
    repairs: dict[Place, list[Change]] = {}
    for change in screening.changes:
        repairs.setdefault(change.place, []).append(change)
    writer = _Rewriter(by_part, repairs)
    return replace(
        request,
        system_instruction=request.system_instruction and writer.system(request.system_instruction),
        turns=tuple(writer.turns(request.turns)),
    )


def _acts(finding: Finding) -> bool:
    if finding.shaped is not None or finding.note is not None:
        return True
    if finding.decision.action is Action.KEEP:
        return finding.hidden is not None and (finding.is_sent or finding.hidden.raw)
    if finding.decision.action is Action.CONVERT:
        return finding.hidden is not None
    return finding.decision.action is not Action.REJECT


class _Rewriter:
    def __init__(self, by_part: Mapping[Place, list[Finding]], repairs: Mapping[Place, list[Change]]) -> None:
        self.by_part, self.repairs = by_part, repairs
        self.moved: list[Part] = []
        """What leaves the tool results of the run that is being read."""

    def turns(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """The turns; what left tool results stands in a user turn behind the last one of its run."""
        for number, turn in enumerate(turns):
            if self.moved and not any(isinstance(part, ToolResultPart) for part in turn.parts):
                yield self._relocated()
            yield self.turn(number, turn)
        if self.moved:
            yield self._relocated()

    def system(self, turn: Turn) -> Turn:
        """The system instruction; nothing can stand behind it, so what would move stays at its end."""
        kept = self.turn(None, turn)
        moved, self.moved = tuple(self.moved), []
        return replace(kept, parts=(*kept.parts, *moved)) if moved else kept

    def turn(self, number: int | None, turn: Turn) -> Turn:
        kept = [
            new for index, part in enumerate(turn.parts) if (new := self.part(Place(number, index), part)) is not None
        ]
        same = len(kept) == len(turn.parts) and all(new is old for new, old in zip(kept, turn.parts, strict=True))
        return turn if same else replace(turn, parts=tuple(kept))

    def part(self, place: Place, part: Part) -> Part | None:
        """The part as it stays; `None` where it moves."""
        findings, repairs = self.by_part.get(place, []), self.repairs.get(place, [])
        match part:
            case ToolResultPart() if findings or repairs:
                return self._tool_result(part, findings, {change.repair for change in repairs})
            case MediaPart() if findings:
                (one,) = findings
                if one.note is not None:
                    return TextPart(text=one.note)
                if one.decision.action is not Action.RELOCATE:
                    return _relabelled(one)
                self.moved.append(_relabelled(one))
                return None
            case TextPart() if repairs:
                self.moved.append(part)
                return None
        return part

    def _tool_result(self, part: ToolResultPart, findings: list[Finding], repairs: set[Repair]) -> ToolResultPart:
        listed = {one.place.medium: one for one in findings if one.hidden is None}
        lifted = [one for one in findings if one.hidden is not None]
        media: list[MediaPart | OpaquePart] = []
        notes: list[str] = []
        for at, medium in enumerate(part.media):
            one = listed.get(at)
            if one is not None and one.note is not None:
                notes.append(one.note)
                continue
            if one is None or one.decision.action not in _LEAVING:
                media.append(medium if one is None else _relabelled(one))
                continue
            notes.append(f"{_what(one)}: {_becomes(one)}")
            self._move(one)
        for one in lifted:
            if _stays(one):
                media.append(_relabelled(one))
            self._move(one)
        response = replaced(part.response, [(one.hidden, _placeholder(one)) for one in lifted if one.hidden])
        response = _repaired(response, repairs, findings[0].place if findings else None)
        return replace(part, media=tuple(media), response=_noted(response, notes) if notes else response)

    def _move(self, one: Finding) -> None:
        if one.decision.action is Action.RELOCATE and one.note is None:
            part, shown = _without_display_name(_relabelled(one))
            names = {"tool": one.tool, "call_id": one.call_id, "file": one.file_id, "name": shown}
            said = "".join(f' {key}="{escape(escaped(name[:_LONGEST_NAME]))}"' for key, name in names.items() if name)
            self.moved += [TextPart(text=f"<{_TAG}{said}>"), part, TextPart(text=f"</{_TAG}>")]

    def _relocated(self) -> Turn:
        parts, self.moved = tuple(self.moved), []
        return Turn(role="user", parts=parts)


def _stays(one: Finding) -> bool:
    """Whether what was hidden in the text becomes a medium of the same tool result."""
    return one.is_sent and one.decision.action is not Action.RELOCATE and one.note is None


def _relabelled(one: Finding) -> MediaPart:
    """The part under its right name, and text as UTF-8. One that is to be converted keeps its own name until then."""
    part = one.shaped or one.part
    if one.medium.utf8 is not None:
        return replace(part, source=one.medium.utf8, declared_mime=one.decision.send_as or "text/plain")
    if part.source is not one.part.source:  # made anew, and named by whoever made it
        return part
    name = one.medium.mime if one.decision.convert else one.decision.send_as
    return replace(part, declared_mime=name or one.medium.mime or part.declared_mime)


def _without_display_name(part: MediaPart) -> tuple[MediaPart, str | None]:
    """The part without the name a `$ref` could point to, and that name: one backend refuses it in a user turn."""
    kind = "fileData" if isinstance(part.source, Uri) else "inlineData"
    beside = dict(part.carried.get(kind) or {})
    shown = beside.pop("displayName", None)
    if shown is None:
        return part, None
    carried = {key: value for key, value in part.carried.items() if key != kind}
    if beside:
        carried[kind] = beside
    return replace(part, carried=carried or NOTHING), shown if isinstance(shown, str) else None


# ---- words in a tool's answer


def _what(one: Finding) -> str:
    """`audio/wav, 96,044 bytes, 3 s`."""
    size, mime = one.medium.size_bytes, one.medium.mime or one.medium.declared_mime
    told = (
        plain(mime, 120) if mime else "a file of unknown type",
        None if size is None else f"{size:,} bytes",
        None if one.seconds is None else f"{one.seconds:.3g} s",
    )
    return ", ".join(word for word in told if word)


def _becomes(one: Finding) -> str:
    if one.decision.action is Action.RELOCATE:
        return f"see file {one.file_id} in the next message"
    return f"removed, because {one.decision.reason}"


def _placeholder(one: Finding) -> Json:
    """What stands in the text for a medium. No quotes in it: the text may be JSON."""
    if one.decision.action is Action.KEEP and one.decision.code is Code.BASE64_TEXT:
        return _as_the_sdk_sends(one.part)
    if one.note is not None:
        return f"[{one.note}]"
    become = "attached to this result" if _stays(one) else _becomes(one)
    return f"[{_what(one)}: {become}]".translate(_QUOTES)


def _as_the_sdk_sends(part: MediaPart) -> Json:
    """A medium a tool returned raw, and that is to stay where it is."""
    match part.source:
        case Base64(text=text):
            return text
        case Uri(text=uri):
            return {"file_uri": uri, **({"mime_type": part.declared_mime} if part.declared_mime else {})}
        case bytes() as data:
            return encode(data).replace("+", "-").replace("/", "_")
        case _:  # a file nobody has read: whoever writes the request does
            return part


def _repaired(response: Json, repairs: set[Repair], place: Place | None) -> Json:
    if Repair.REF_AS_TEXT not in repairs:
        return {"result": response} if Repair.RESPONSE_WRAPPED in repairs else response
    try:
        text = json.dumps(response, ensure_ascii=False, allow_nan=False, default=lambda _: "[a file]")
    except (RecursionError, ValueError, TypeError) as error:
        where = str(place) if place else "a tool's answer"
        raise MalformedRequest(f"{where}: a `$ref` beside what JSON cannot say", place=where) from error
    return {"output": text}


def _noted(response: Json, notes: list[str]) -> Json:
    """The answer with what became of its media, under a key of its own: what the tool said stays as it is."""
    response = {} if response is None else response
    key, nth = NOTE_KEY, 1
    while key in response:
        nth += 1
        key = f"{NOTE_KEY}_{nth}"
    return {**response, key: "; ".join(notes)}
