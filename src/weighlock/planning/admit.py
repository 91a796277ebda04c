"""May the endpoint's limits pay for it? Pure, inclusive (need ≤ limit admits), decided on the high estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from weighlock.planning.limits import Limits
from weighlock.planning.weigh import CostRange, Tally, Weighed, by_modality
from weighlock.request import Modality


class Decision(StrEnum):
    ADMIT = "admit"
    REJECT = "reject"
    UNKNOWN = "unknown"
    """Nothing is over, but a part could not be weighed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitCheck:
    """One limit of the endpoint against what the request needs. USD are Decimals, all else whole numbers."""

    name: str
    """As in the settings: `prompt_tokens`, `tokens.video`, `cost_usd`, `media_parts`, `bytes`."""
    limit: int | Decimal
    low: int | Decimal
    likely: int | Decimal
    high: int | Decimal

    @property
    def over(self) -> bool:
        return self.high > self.limit

    @property
    def a_count_would_settle(self) -> bool:
        """The range straddles the limit: over by the high estimate, and perhaps not in truth."""
        return self.low <= self.limit < self.high

    @property
    def modality(self) -> Modality | None:
        _, _, name = self.name.partition("tokens.")
        return Modality(name.upper()) if name else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    decision: Decision
    limits: tuple[LimitCheck, ...]
    reasons: tuple[str, ...] = ()
    """Refusals that no limit explains: an unknown model or an unknown price, where the policy says reject."""

    @property
    def over(self) -> tuple[LimitCheck, ...]:
        return tuple(check for check in self.limits if check.over)


def admit(
    parts: Sequence[Weighed], limits: Limits, cost: CostRange | None, *, reasons: tuple[str, ...] = ()
) -> Verdict:
    """Holds every limit the endpoint has against the request.

    An unknown cost is not checked here: whether that refuses is policy, and comes in as a reason.
    """
    checks = tuple(_checks(parts, limits, cost))
    if reasons or any(check.over for check in checks):
        decision = Decision.REJECT
    elif any(part.error for part in parts):
        decision = Decision.UNKNOWN
    else:
        decision = Decision.ADMIT
    return Verdict(decision=decision, limits=checks, reasons=reasons)


def _checks(parts: Sequence[Weighed], limits: Limits, cost: CostRange | None) -> Iterator[LimitCheck]:
    needs = by_modality(parts)
    if needs or not parts:  # where nothing could be weighed, nothing is known to hold against a limit of tokens
        for modality, limit in limits.tokens.items():
            yield _of_tally(f"tokens.{modality.lower()}", limit, needs.get(modality, Tally()))
        if limits.prompt_tokens is not None:
            yield _of_tally("prompt_tokens", limits.prompt_tokens, _total(needs))
    if limits.cost_usd is not None and cost is not None:
        yield LimitCheck(name="cost_usd", limit=limits.cost_usd, low=cost.low, likely=cost.likely, high=cost.high)
    media = [part for part in parts if part.examined.modality is not Modality.TEXT]
    if limits.media_parts is not None:
        yield _exact("media_parts", limits.media_parts, len(media))
    if limits.bytes is not None:
        yield _exact("bytes", limits.bytes, sum(part.examined.size_bytes or 0 for part in media))


def _total(needs: Mapping[Modality, Tally]) -> Tally:
    return Tally.of(needs.values())


def _of_tally(name: str, limit: int, need: Tally) -> LimitCheck:
    return LimitCheck(name=name, limit=limit, low=need.low, likely=need.likely, high=need.high)


def _exact(name: str, limit: int, need: int) -> LimitCheck:
    return LimitCheck(name=name, limit=limit, low=need, likely=need, high=need)
