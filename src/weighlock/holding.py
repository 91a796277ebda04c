"""A weighed request → what is held for it, a bill → what was spent, a window's rest → limits of one request. Pure.

Whole numbers: tokens, and millionths of a dollar, rounded up so that a budget errs towards its owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from types import MappingProxyType

from weighlock.budgets.hold import MICRO_USD, PROMPT_TOKENS, Amounts, Standing, amounts, tokens_of
from weighlock.gemini.usage import Usage
from weighlock.planning.cost import Prices, Unpriced
from weighlock.planning.limits import Limits
from weighlock.report import Report
from weighlock.request import Modality

_MICRO = Decimal(1_000_000)


def need_of(report: Report) -> Amounts:
    """What a request may come to, by the high estimate, its expected answer included; no USD where nobody prices it."""
    tokens = {modality: tally.high for modality, tally in report.tokens.items()}
    cost = report.cost.high if report.cost is not None else None
    return amounts(prompt_tokens=report.total.high, tokens=tokens, cost_usd=cost)


def spent_of(usage: Usage, prices: Prices | Unpriced) -> Amounts:
    """What a call was billed: tokens by modality as sent, and what they cost, cached ones at their rate."""
    prompt = (usage.prompt or 0) + usage.tool_use
    return amounts(prompt_tokens=prompt, tokens=usage.by_modality, cost_usd=usd_of(usage, prices))


def usd_of(usage: Usage, prices: Prices | Unpriced) -> Decimal | None:
    """What a bill comes to; tokens under no modality pay what text does. `None` where nobody prices it."""
    if isinstance(prices, Unpriced):
        return None
    whole, cached = _whole(usage)
    return prices.cost(
        usage.by_modality,
        output_tokens=usage.output,
        prompt_tokens=whole,
        cached_tokens=cached,
        longest=_longest(usage),
    )


def usd_shares(usage: Usage, prices: Prices | Unpriced) -> dict[str, Decimal]:
    """What of a bill each modality of the prompt comes to; empty where nobody prices it. The answer's is not there."""
    if isinstance(prices, Unpriced):
        return {}
    whole, cached = _whole(usage)
    shares = prices.shares(usage.by_modality, prompt_tokens=whole, cached_tokens=cached, longest=_longest(usage))
    return {str(modality): amount for modality, amount in shares.items() if amount}


def _whole(usage: Usage) -> tuple[int, dict[Modality, int]]:
    """Every token of the prompt, the service's own tools' too; and those of a cache, the nameless ones as text."""
    cached = dict(usage.cached_by_modality)
    cached[Modality.TEXT] = cached.get(Modality.TEXT, 0) + max(0, usage.cached - sum(cached.values()))
    return max(usage.prompt or 0, sum(usage.by_modality.values())) + usage.tool_use, cached


def _longest(usage: Usage) -> int | None:
    return None if usage.longest is None else usage.longest + usage.tool_use


def usd(micro: int) -> Decimal:
    return Decimal(micro) / _MICRO


def within(limits: Limits, standings: Iterable[Standing]) -> Limits:
    """The limits of a request that has to fit in what windows and sessions have left too."""
    for one in standings:
        left = max(0, one.left)
        metric = one.cap.metric
        if metric == PROMPT_TOKENS:
            limits = replace(limits, prompt_tokens=_lower(limits.prompt_tokens, left))
        elif metric == MICRO_USD:
            dollars = usd(left).quantize(Decimal("0.000001"), ROUND_FLOOR)
            limits = replace(limits, cost_usd=dollars if limits.cost_usd is None else min(limits.cost_usd, dollars))
        else:
            for modality in Modality:
                if metric == tokens_of(modality):
                    tokens = {**limits.tokens, modality: _lower(limits.tokens.get(modality), left)}
                    limits = replace(limits, tokens=MappingProxyType(tokens))
    return limits


def _lower(limit: int | None, left: int) -> int:
    return left if limit is None else min(limit, left)
