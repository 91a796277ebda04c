"""How one thing stands right now, as a value: what a scrape tells beside what was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from weighlock.observe.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value of a gauge."""

    metric: Metric
    value: float
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """By the metric's own label names."""
