"""What a transform tells of its work, besides the bytes it wrote."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a piece of work ended well."""

    mime: str
    actual_start_s: float | None = None
    """Where a copied clip really begins in the source."""
    notes: tuple[str, ...] = ()
    """What a person should know: `the last 3 s could not be decoded`."""
