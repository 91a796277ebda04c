"""What the prompt cache is worth to a request that carries its history, and what a change of it costs. Pure.

Nobody can promise that the cache answers, so no limit is held against these figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from weighlock.planning.conversation import asked, until
from weighlock.planning.cost import Prices, Unpriced
from weighlock.planning.screen import Screening
from weighlock.planning.steps import Plan
from weighlock.planning.weigh import CostRange, Tally, Weighed, by_modality, cost_of
from weighlock.request import Modality, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What of a request its earlier turns sent: so many media, the first ones, and the text up to there."""

    media: int
    text: Tally
    broken_at: int | None = None
    """The first part that is no longer as it was sent; what stands before it is what the cache still holds."""
    kept_text: Tally
    prices: Prices | Unpriced

    @property
    def kept_media(self) -> int:
        return self.media if self.broken_at is None else self.broken_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """The tokens of what was sent before, and what they cost if the cache holds them."""

    kept: Mapping[Modality, Tally]
    """As they were sent."""
    lost: Mapping[Modality, Tally]
    """From the first change on: read anew, this once."""
    broken_at: int | None
    cost: CostRange | None
    """Of the whole request; `None` where no cached price is known."""
    lost_cost: CostRange | None
    """What it would cost less if nothing had changed."""


def sent_before(
    request: Request,
    screening: Screening,
    plan: Plan,
    weigh_text: Callable[[Request], Weighed],
    prices: Prices | Unpriced,
) -> Sent | None:
    """What the turn before sent of a request; `None` where it is the first that asks the model anything."""
    ends = asked(request)
    if not ends:
        return None
    end = ends[-1]
    turns = [one.place.turn for one in screening.findings if one.is_sent]
    media = sum(turn is None or turn < end for turn in turns)
    changed = [at for step in plan.steps if step.breaks_prefix for at in step.parts if at < media]
    changed += [at for at, one in plan.placements.items() if one.breaks_prefix and at < media]
    broken_at = min(changed, default=None)
    text = weigh_text(until(request, screening, end)).total
    if broken_at is None:
        kept_text = text
    elif (turn := turns[broken_at]) is None:
        kept_text = Tally()
    else:
        kept_text = weigh_text(until(request, screening, turn)).total
    return Sent(media=media, text=text, broken_at=broken_at, kept_text=kept_text, prices=prices)


def cached(parts: Sequence[Weighed], sent: Sent, *, output_tokens: int = 0) -> Cached:
    """What the cache is worth to a request as it is sent; its text is the last of the parts."""
    whole, prices = by_modality(parts), sent.prices
    before = _tokens(parts, sent.media, sent.text)
    kept = _tokens(parts, sent.kept_media, sent.kept_text)
    cost = unbroken = None
    if isinstance(prices, Prices) and prices.base.cached is not None:
        cost = cost_of(whole, prices, output_tokens=output_tokens, cached=kept)
        unbroken = cost_of(whole, prices, output_tokens=output_tokens, cached=before)
    return Cached(
        kept=kept,
        lost={kind: rest for kind in before if (rest := before[kind] - kept.get(kind, Tally())).high},
        broken_at=sent.broken_at,
        cost=cost,
        lost_cost=cost - unbroken if cost is not None and unbroken is not None else None,
    )


def _tokens(parts: Sequence[Weighed], media: int, text: Tally) -> dict[Modality, Tally]:
    """Of the first media, and of so much of the text; never more than there is."""
    *of_media, words = parts
    sums = by_modality(of_media[:media])
    there = words.total
    here = Tally(low=min(text.low, there.low), likely=min(text.likely, there.likely), high=min(text.high, there.high))
    sums[Modality.TEXT] = sums.get(Modality.TEXT, Tally()) + here
    return {kind: tally for kind, tally in sums.items() if tally.high}
