"""May the endpoint's limits pay for it? Pure, inclusive (need ≤ limit admits), decided on the high estimate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from weighlock.planning.limits import Limits
from weighlock.planning.load import Load
from weighlock.planning.weigh import CostRange, Tally
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


def admit(load: Load, limits: Limits, cost: CostRange | None, *, reasons: tuple[str, ...] = ()) -> Verdict:
    """Holds every limit the endpoint has against the request.

    An unknown cost is not checked here: whether that refuses is policy, and comes in as a reason.
    """
    checks = tuple(_checks(load, limits, cost))
    if reasons or any(check.over for check in checks):
        decision = Decision.REJECT
    elif load.unknown:
        decision = Decision.UNKNOWN
    else:
        decision = Decision.ADMIT
    return Verdict(decision=decision, limits=checks, reasons=reasons)


def _checks(load: Load, limits: Limits, cost: CostRange | None) -> Iterator[LimitCheck]:
    if load.weighed or not load.parts:  # where nothing could be weighed, nothing is known to hold against tokens
        for modality, limit in limits.tokens.items():
            yield _of_tally(f"tokens.{modality.lower()}", limit, load.tokens.get(modality, Tally()))
        if limits.prompt_tokens is not None:
            yield _of_tally("prompt_tokens", limits.prompt_tokens, load.total)
    if limits.cost_usd is not None and cost is not None:
        yield LimitCheck(name="cost_usd", limit=limits.cost_usd, low=cost.low, likely=cost.likely, high=cost.high)
    if limits.media_parts is not None:
        yield _exact("media_parts", limits.media_parts, load.media)
    if limits.bytes is not None:
        yield _exact("bytes", limits.bytes, load.size_bytes)


def _of_tally(name: str, limit: int, need: Tally) -> LimitCheck:
    return LimitCheck(name=name, limit=limit, low=need.low, likely=need.likely, high=need.high)


def _exact(name: str, limit: int, need: int) -> LimitCheck:
    return LimitCheck(name=name, limit=limit, low=need, likely=need, high=need)
