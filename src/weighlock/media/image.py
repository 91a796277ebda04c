"""Tokens of a still image; of an animation, the service is known to read the first frame only."""

from __future__ import annotations

from dataclasses import dataclass

from weighlock.media.area import Area
from weighlock.media.facts import FactSource, ImageFacts
from weighlock.media.rule import Provenance
from weighlock.media.tokens import TokenRange
from weighlock.request import Modality


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRule:
    """What one image costs at one resolution."""

    area: Area
    provenance: Provenance
    warnings: tuple[str, ...] = ()
    """What its sender should know about a medium under this rule."""


def tokens(facts: ImageFacts, rule: ImageRule) -> TokenRange:
    """Prompt tokens of one image, from its size as displayed."""
    low, likely, high = rule.area.count(
        facts.width_px, facts.height_px, size_known=facts.size_source is not FactSource.ASSUMED
    )
    return rule.provenance.range(Modality.IMAGE, low, likely, high)
