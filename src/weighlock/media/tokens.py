"""What a medium costs, as a range that says where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from weighlock.request import Modality


class Confidence(StrEnum):
    """How well a figure is founded."""

    MEASURED = "measured"
    """Published bills agree with it."""
    DOCUMENTED = "documented"
    """Google's pages say so; no published bill confirms it."""
    ASSUMED = "assumed"
    """Carried over from a neighbour, or chosen high on purpose."""


def weakest(found: Iterable[Confidence]) -> Confidence:
    """How a sum or a product is founded: as its least founded figure. Nothing at all is `MEASURED`."""
    return max(found, key=list(Confidence).index, default=Confidence.MEASURED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRange:
    """Prompt tokens of one modality of one medium. `low ≤ likely ≤ high`; nothing billed is expected above `high`."""

    low: int
    likely: int
    high: int
    modality: Modality
    """As sent: frames are VIDEO, sound is AUDIO (also a film's), PDF pages are DOCUMENT."""
    billed_as: Modality
    """Google's own bucket in `promptTokensDetails`."""
    rule_id: str
    confidence: Confidence

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.likely <= self.high:
            raise ValueError(f"{self.rule_id}: tokens out of order: {self.low}, {self.likely}, {self.high}")
