"""Tokens and USD as tables tell them: what is exact, what is estimated, and what is only a bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from weighlock.media.tokens import Confidence, TokenRange, weakest
from weighlock.planning.weigh import CostRange, Tally, Weighed
from weighlock.request import Modality

_WORTH_TELLING, _WORTH_TELLING_TOKENS = 1.5, 100
"""From this ratio and difference on the high estimate, which decides, is shown beside the likely one."""


def tokens_in_words(parts: Sequence[Weighed], among: Confidence = Confidence.MEASURED) -> str:
    """A line a modality, and their sum. `among` is the least founded of the figures they stand among."""
    lines = _in_words(marked_by_modality(parts), among)
    return "\n".join(lines) or "-"


def sum_in_words(sums: Sequence[tuple[Modality, Tally, Confidence]]) -> str:
    """`image 1,100 · video ~15,840 = ~16,940`."""
    *parts, total = _in_words(sums)
    if not parts:
        return f"{sums[0][0].lower()} {total}"
    return f"{' · '.join(parts)} {total}"


def _in_words(sums: Sequence[tuple[Modality, Tally, Confidence]], among: Confidence = Confidence.MEASURED) -> list[str]:
    """Every figure, and last their sum; they add up: where one is a bound, all are."""
    worst = weakest([among, *(confidence for _, _, confidence in sums)])
    bound = worst is Confidence.ASSUMED
    words = [figure(tally, worst if bound else confidence) for _, tally, confidence in sums]
    if len(words) < 2:
        return words
    total = figure(Tally.of(tally for _, tally, _ in sums), worst)
    named = [f"{modality.lower()} {word}" for (modality, _, _), word in zip(sums, words, strict=True)]
    return [*named, f"= {total}"]


def marked_by_modality(parts: Iterable[Weighed]) -> list[tuple[Modality, Tally, Confidence]]:
    found: dict[Modality, list[TokenRange]] = {}
    for part in parts:
        for tokens in part.tokens:
            found.setdefault(tokens.modality, []).append(tokens)
    return [(m, Tally.of(found[m]), weakest(t.confidence for t in found[m])) for m in Modality if m in found]


def confidence_of(parts: Iterable[Weighed]) -> Confidence:
    """The least founded figure in a sum decides how the sum is marked."""
    return weakest(tokens.confidence for part in parts for tokens in part.tokens)


def figure(tally: Tally, confidence: Confidence) -> str:
    """`1,100` measured and exact · `~532` estimated · `≤1,120` a bound where nothing was measured."""
    if confidence is Confidence.ASSUMED:
        return f"≤{tally.high:,}"
    if tally.low == tally.likely == tally.high and confidence is Confidence.MEASURED:
        return f"{tally.likely:,}"
    if tally.high > _WORTH_TELLING * tally.likely and tally.high - tally.likely > _WORTH_TELLING_TOKENS:
        return f"~{tally.likely:,} (≤{tally.high:,})"
    return f"~{tally.likely:,}"


def dollars(cost: CostRange, confidence: Confidence) -> str:
    """USD of the likely tokens, or of the bound where nothing was measured."""
    return f"≤{usd(cost.high)}" if confidence is Confidence.ASSUMED else usd(cost.likely)


def usd(amount: Decimal) -> str:
    """`$0.0172`, and as many decimals more as it takes for a small amount not to read as nothing."""
    places = max(4, -amount.adjusted()) if amount else 4
    return f"${amount:,.{places}f}"


def dollars_per_thousand(cost: CostRange | None, confidence: Confidence) -> str:
    """USD of a thousand such requests: of the likely tokens, or of the bound where nothing was measured."""
    if cost is None:
        return "-"
    return f"≤{cost.high * 1000:,.2f}" if confidence is Confidence.ASSUMED else f"{cost.likely * 1000:,.2f}"
