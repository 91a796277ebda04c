"""Would a count change the verdict? Pure; asking is `gemini/count.py`'s, what one tells `recount.py`'s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from weighlock.errors import UnreadableSource
from weighlock.planning.admit import LimitCheck, Verdict
from weighlock.planning.weigh import Tally, Weighed
from weighlock.request import Modality

_TOKEN_LIMITS = ("prompt_tokens", "tokens.", "cost_usd")


class When(StrEnum):
    """When a request is counted before it is sent."""

    AUTO = "auto"
    """When it can change the verdict: a count is a round trip in front of the user's request."""
    ALWAYS = "always"
    OFF = "off"


class OnCountFailure(StrEnum):
    """What happens when the service does not say."""

    ESTIMATE = "estimate"
    REJECT = "reject"


class Form(StrEnum):
    """What is put before `countTokens`, and so what its answer covers."""

    TEXT = "text"
    """All but the media; a short text stands in the place of each."""
    WHOLE = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPolicy:
    """An endpoint's wish."""

    when: When = When.AUTO
    timeout_s: float = 2.0
    on_failure: OnCountFailure = OnCountFailure.ESTIMATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What `countTokens` said. Not the bill: see the rules' `counts`."""

    total: int
    covers: Form
    model: str
    by_modality: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Google's buckets under Google's names; empty where it gave none."""
    cached: int = 0
    """Of `total`, in a named cache."""
    stand_ins: int = 0
    """Short texts in the place of media, a token each."""


def form_wanted(parts: Sequence[Weighed], verdict: Verdict, policy: CountPolicy, *, known_model: bool) -> Form | None:
    """What to count before deciding; `None` where no answer would change the verdict."""
    if policy.when is When.OFF:
        return None
    blind = not known_model or any(map(is_unseen, parts))
    if policy.when is When.AUTO and not blind and not any(check.a_count_would_settle for check in verdict.limits):
        return None
    broken = any(part.error is not None and not is_unseen(part) for part in parts)
    if policy.when is When.ALWAYS:
        return Form.WHOLE if blind and not broken else Form.TEXT
    limits = [check for check in verdict.limits if check.name.startswith(_TOKEN_LIMITS)]
    if broken or verdict.reasons or any(check.low > check.limit for check in verdict.limits):
        return None
    if blind:
        return Form.WHOLE if limits else None
    text = Tally.of(part.of(Modality.TEXT) for part in parts)
    return Form.TEXT if any(_a_text_count_admits(check, text) for check in limits) else None


def is_unseen(part: Weighed) -> bool:
    """Whether only the service can see it: https, gs://, YouTube, a file of the Files API that is not ours."""
    return isinstance(part.error, UnreadableSource) and part.error.figures.get("reference") is True


def _a_text_count_admits(check: LimitCheck, text: Tally) -> bool:
    """Whether the request fits if its text turns out as short as it may be: it is the only part a count settles."""
    if not check.a_count_would_settle or text.high == text.low:
        return False
    if check.modality not in (None, Modality.TEXT):
        return False
    return check.name == "cost_usd" or check.high - (text.high - text.low) <= check.limit
