"""What screening found and did, told: as JSON values for programs, in words for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weighlock.media.facts import AudioFacts, TextSizes, VideoFacts
from weighlock.media.text import TextRule, request_tokens
from weighlock.media.tokens import TokenRange
from weighlock.planning.carrying import Action, Code
from weighlock.planning.screen import Change, Finding, Repair, Screening
from weighlock.planning.weigh import Weighed
from weighlock.request import Carrier

_REPAIRS = {
    Repair.RESPONSE_WRAPPED: 'wrapped as {"result": …}',
    Repair.REF_AS_TEXT: "sent as JSON text",
    Repair.TEXT_MOVED: "moved behind the tool results",
}


def numbered(screening: Screening) -> Iterator[tuple[Finding, int | None]]:
    """Every medium with its index in the parts of the report; `None` where it is not sent as one."""
    index = 0
    for finding in screening.findings:
        yield finding, index if finding.is_sent else None
        index += finding.is_sent


def as_text_tokens(finding: Finding, rule: TextRule | None) -> TokenRange | None:
    """What a medium hidden in a tool's text costs as text; `None` for others, and where no rule is at hand.

    At the ratio of prose, of which base64 takes more: a lower bound.
    """
    if finding.hidden is None or rule is None:
        return None
    return request_tokens(TextSizes(content_chars=finding.hidden.chars), rule)


def done_in_words(finding: Finding) -> str:
    """What becomes of a medium, and why: `relabel → image/png: labelled image/jpeg; the bytes are image/png`."""
    done, reason = _done(finding), _reason(finding)
    return f"{done}: {reason}" if reason else done


def change_in_words(change: Change) -> str:
    """What was put right beside the media, and why."""
    return f"{_REPAIRS[change.repair]}: {change.reason}"


def is_untouched(finding: Finding) -> bool:
    """Whether the medium leaves as it came."""
    kept = finding.decision.action is Action.KEEP
    return kept and (finding.hidden is None or not finding.is_sent)


def _done(finding: Finding) -> str:
    decision = finding.decision
    hidden = finding.hidden is not None
    match decision.action:
        case Action.KEEP if hidden:
            return "lifted from text" if finding.is_sent else "left as text"
        case Action.KEEP:
            return "keep"
        case Action.RELABEL:
            words = f"relabel → {decision.send_as}"
        case Action.RECODE:
            words = "to UTF-8"
        case Action.CONVERT:
            words = f"convert → {decision.send_as}"
        case Action.RELOCATE:
            words = "moved behind the tool results"
            words += f", convert → {decision.send_as}" if decision.convert else ""
        case Action.REMOVE:
            return "removed from text" if hidden else "removed"
        case Action.REJECT:
            return "refused"
    return f"lifted from text, {words}" if hidden else words


def _reason(finding: Finding) -> str:
    decision = finding.decision
    plainly_taken = decision.action is Action.KEEP and decision.code is Code.ACCEPTED
    if plainly_taken and finding.carrier is not Carrier.MODEL:
        return ""
    return decision.reason


# ---- for programs


def screening_dict(screening: Screening, parts: Sequence[Weighed], rule: TextRule | None) -> dict[str, Any]:
    """The screening as JSON values: places, types, sizes and decisions, never media or where they can be fetched."""
    return {
        "findings": [
            _finding_dict(one, index, None if index is None else parts[index], as_text_tokens(one, rule))
            for one, index in numbered(screening)
        ],
        "changes": [
            {"place": str(one.place), "code": one.repair.value, "reason": one.reason} for one in screening.changes
        ],
        "problems": [
            {"place": one.figures.get("place"), "code": one.code, "message": one.message} for one in screening.problems
        ],
    }


def _finding_dict(one: Finding, index: int | None, part: Weighed | None, as_text: TokenRange | None) -> dict[str, Any]:
    medium, decision, error = one.medium, one.decision, one.error
    return {
        "place": str(one.place),
        "carrier": one.carrier.value,
        "tool": one.tool,
        "call_id": one.call_id,
        "file_id": one.file_id,
        "mime": medium.mime,
        "declared_mime": one.part.declared_mime,
        "size_bytes": medium.size_bytes,
        "seconds": seconds(one, part),
        "action": decision.action.value,
        "code": decision.code.value,
        "reason": decision.reason,
        "send_as": decision.send_as,
        "convert": decision.convert,
        "hidden": one.hidden is not None,
        "as_text_tokens": as_text and {"low": as_text.low, "likely": as_text.likely, "high": as_text.high},
        "error": error and {"code": error.code, "message": error.message},
        "part": index,
    }


def seconds(finding: Finding, part: Weighed | None) -> float | None:
    """How long a medium plays, where anybody looked."""
    facts = None if part is None else part.examined.facts
    return facts.duration_s if isinstance(facts, AudioFacts | VideoFacts) else finding.seconds
