"""What every rule carries besides its figures, and how seconds become whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from weighlock.media.tokens import Confidence, TokenRange
from weighlock.request import Modality

# Seconds come from container ticks; 0.1 s × 30 fps must be 3 frames although the product is 3.0000000000000004.
_TICK = 1e-6


class Rounding(StrEnum):
    """Which way the service was seen to round."""

    FLOOR = "floor"
    ROUND = "round"
    CEIL = "ceil"

    def whole(self, amount: float) -> int:
        """`amount` (≥ 0) as a whole number; one millionth off a whole number counts as that number."""
        match self:
            case Rounding.FLOOR:
                return math.floor(amount + _TICK)
            case Rounding.ROUND:
                return math.floor(amount + 0.5 + _TICK)
            case Rounding.CEIL:
                return max(0, math.ceil(amount - _TICK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a rule's figures come from and under which name Google bills them."""

    rule_id: str
    confidence: Confidence
    billed_as: Modality

    def range(self, modality: Modality, low: int, likely: int, high: int) -> TokenRange:
        """A range of these figures, widened where the bounds fall inside the likely figure."""
        return TokenRange(
            low=min(low, likely),
            likely=likely,
            high=max(high, likely),
            modality=modality,
            billed_as=self.billed_as,
            rule_id=self.rule_id,
            confidence=self.confidence,
        )
