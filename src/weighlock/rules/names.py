"""Model names as people write them → the name a rule file lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

# models/X · publishers/google/models/X · projects/P/locations/L/publishers/google/models/X · google/X
_PATH = re.compile(r"^(?:(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/google/)?models/|google/)", re.IGNORECASE)
_SUFFIX = re.compile(
    r"(?:@(?:default|latest|\d{3})|-latest|-\d{3}|-preview|-exp"
    r"|-\d{2}-(?:\d{2}|\d{4})"  # -05-20 and -09-2025, after -preview
    r")$"
)


class Match(StrEnum):
    """How a model's name was understood."""

    EXACT = "exact"
    ALIAS = "alias"
    """A path, a version, `-latest` or a dated preview of a listed model."""
    UNKNOWN = "unknown"
    """No rule file lists it: tuned, newer than the rules, or misspelt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """What a model's name stands for."""

    asked: str
    model: str
    """The listed name; what was asked, without its path, when unknown."""
    generation: str
    """`fallback` when unknown."""
    match: Match
    note: str | None = None
    """One line for a person, when the name was not taken as it stands."""


def bare(name: str) -> str:
    """The name without its path, in lower case."""
    return _PATH.sub("", name.strip()).lower()


def candidates(name: str) -> Iterator[str]:
    """`bare(name)`, then the same with one version suffix less each time."""
    current = bare(name)
    while current:
        yield current
        shorter = _SUFFIX.sub("", current)
        if shorter == current:
            return
        current = shorter
