"""What the service was asked before the verdict, and how far its answer is to be trusted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from weighlock.errors import ServiceError
from weighlock.media.tokens import Confidence, weakest
from weighlock.planning.counting import Count, Form
from weighlock.request import Modality
from weighlock.rules import ModelRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """How counts of one modality stand to the bill."""

    modality: Modality
    note: str
    confidence: Confidence
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One question to `countTokens`. Its answer is not the bill: the parts hold what was made of it."""

    form: Form
    """What it covers: the request whole, or all but its media."""
    count: Count | None = None
    failure: ServiceError | None = None
    """Why there is no count."""
    biases: tuple[Bias, ...] = ()

    @property
    def confidence(self) -> Confidence:
        return weakest(bias.confidence for bias in self.biases)


def biases(covered: Iterable[Modality], rules: ModelRules) -> Iterator[Bias]:
    """What is known of counts of each modality."""
    for modality in covered:
        entry = rules.count_entry(modality)
        if entry is None:
            unknown = f"nobody has measured what counts of {rules.model} leave out"
            yield Bias(modality=modality, note=unknown, confidence=Confidence.ASSUMED)
        else:
            yield Bias(
                modality=modality,
                note=entry.note or "",
                confidence=entry.confidence,
                sources=entry.sources,
            )


def biases_list(known: Iterable[Bias]) -> list[dict[str, Any]]:
    """As JSON values."""
    return [
        {
            "modality": bias.modality.value,
            "note": bias.note,
            "confidence": bias.confidence.value,
            "sources": list(bias.sources),
        }
        for bias in known
    ]


def counted_dict(counted: Counted) -> dict[str, Any]:
    count, failure = counted.count, counted.failure
    return {
        "covers": counted.form.value,
        "total": count and count.total,
        "by_modality": {**count.by_modality} if count else {},
        "cached": count and count.cached,
        "stand_ins": count and count.stand_ins,
        "confidence": counted.confidence.value,
        "biases": biases_list(counted.biases),
        "error": {"code": failure.code, "message": failure.message} if failure else None,
    }
