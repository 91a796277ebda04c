"""What a call was billed: read from its answer, priced, and put beside what it was expected to cost. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from weighlock.budgets.hold import Amounts
from weighlock.errors import ServiceRefused, ServiceUnreachable, WeighlockError
from weighlock.gemini.errors import refusal
from weighlock.gemini.usage import Usage, billed, last_usage
from weighlock.holding import spent_of, usd_shares
from weighlock.media.tokens import TokenRange
from weighlock.planning.cost import ServiceTier
from weighlock.planning.weigh import Weighed, weigh
from weighlock.report import Report
from weighlock.request import MediaResolution
from weighlock.scales import Scales

_TIERS = {"FLEX": ServiceTier.FLEX, "PRIORITY": ServiceTier.PRIORITY}


def usage_in(answer: Any) -> Mapping[str, Any] | None:
    """The `usageMetadata` of an answer; `None` where it says none.

    `answer` is what `generate_content` returns, a body of the REST API as a dict, the usage itself, or the chunks of a
    stream in order: those count cumulatively, so the last word counts.
    """
    if answer is None:
        return None
    if isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        return last_usage([found for one in answer if (found := usage_in(one))]) or None
    if not isinstance(answer, Mapping):
        answer = getattr(answer, "usage_metadata", answer)
        dump = getattr(answer, "model_dump", None)
        answer = dump(exclude_none=True) if callable(dump) else None
    if not isinstance(answer, Mapping):
        return None
    for key in ("usageMetadata", "usage_metadata"):
        if key in answer:
            return usage_in(answer[key])
    return answer if any("oken" in str(key) for key in answer) else None


def _billed(said: Mapping[str, Any], sent: Report, scales: Scales) -> Usage | None:
    """The bill of a call; `None` where its usage does not tell what the prompt cost."""
    found = billed(
        [said],
        [tokens for part in sent.parts for tokens in part.tokens],
        unasked=_unasked(sent, scales),
        context_tokens=scales.rules.limits.context_tokens,
    )
    return None if found.prompt is None else found


def _tier(said: Mapping[str, Any]) -> ServiceTier | None:
    """The tier a call was served at, where its usage says so: `trafficType`."""
    traffic = said.get("trafficType", said.get("traffic_type"))
    words = str(getattr(traffic, "value", traffic or ""))
    return next((tier for word, tier in _TIERS.items() if words.endswith(word)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What is committed, and how it is told."""

    spent: Amounts
    usage: Usage
    estimated: bool
    shares: Mapping[str, Decimal] = field(default_factory=lambda: MappingProxyType({}))
    """USD of each modality of the prompt; empty where nobody says what it cost, or what it is priced at."""


def bill_of(answer: Any, sent: Report, scales: Scales, held: Amounts, *, partial: bool = False) -> Bill:
    """What a call cost; what was held for it where its answer does not say.

    Where a stream was broken off (`partial`) the answer is at least as long as was expected: it may have gone on.
    """
    said = usage_in(answer)
    usage = None if said is None else _billed(said, sent, scales)
    if said is None or usage is None:
        return Bill(spent=held, usage=Usage(prompt=None), estimated=True)
    if partial:
        usage = replace(usage, answer=max(usage.answer, scales.output_tokens - usage.thoughts))
    prices = scales.prices_at(_tier(said))
    return Bill(spent=spent_of(usage, prices), usage=usage, estimated=partial, shares=usd_shares(usage, prices))


def costs_nothing(error: BaseException) -> bool:
    """Whether a call that failed so was not billed: nothing was sent, or the service answered with a refusal."""
    if isinstance(error, WeighlockError):
        return bool(error.figures.get("unsent")) if isinstance(error, ServiceUnreachable) else True
    status = getattr(error, "code", None)  # of the SDK's `APIError`
    return isinstance(status, int) and 400 <= status < 600


def refusal_in(error: BaseException, now: datetime) -> ServiceRefused | None:
    """What the service said, in an error of ours or of the SDK's; `None` where it is no word of the service."""
    if isinstance(error, ServiceRefused):
        return error
    status, details = getattr(error, "code", None), getattr(error, "details", None)
    if not isinstance(status, int) or details is None:
        return None
    return refusal(status, {}, json.dumps(details, default=str).encode(), now)


def _unasked(sent: Report, scales: Scales) -> Iterator[TokenRange]:
    """What the request would cost had it asked for no resolution; nothing where it did not."""
    if not any(map(_asks_resolution, sent.parts)):
        return
    for part in sent.parts:
        if part.error is None:
            plain = replace(part.controls, part_resolution=None, media_resolution=MediaResolution.UNSPECIFIED)
            yield from weigh(part.examined, plain, scales.rules).tokens


def _asks_resolution(part: Weighed) -> bool:
    controls = part.controls
    return controls.part_resolution is not None or controls.media_resolution is not MediaResolution.UNSPECIFIED
