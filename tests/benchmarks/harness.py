"""Interleaved, shuffled timing. Every round runs every operation once, in a new order, so that drift hits all alike."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Operations = dict[str, Callable[[], object]]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Medians of one task done in several ways. `baseline` is what the ratios divide by."""

    task: str
    unit: str
    baseline: str
    medians: Mapping[str, float]
    goals: Mapping[str, float] = field(default_factory=dict)
    """By operation: the ratio to the baseline that is aimed at."""
    notes: tuple[str, ...] = ()

    def ratio(self, operation: str) -> float:
        return self.medians[operation] / self.medians[self.baseline]

    def as_dict(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "unit": self.unit,
            "baseline": self.baseline,
            "medians": {name: round(value, 4) for name, value in self.medians.items()},
            "ratios": {name: round(self.ratio(name), 4) for name in self.medians},
            "goals": dict(self.goals),
            "notes": list(self.notes),
        }


def as_installed() -> dict[str, str]:
    """The environment of a program that may keep its bytecode, as an installed one does."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(operations: Operations, *, rounds: int, seed: int = 7) -> dict[str, list[float]]:
    """Seconds of each operation in each round; one round in front is thrown away."""
    order = list(operations)
    shuffle = random.Random(seed)
    samples: dict[str, list[float]] = {name: [] for name in order}
    for number in range(rounds + 1):
        shuffle.shuffle(order)
        for name in order:
            begin = time.perf_counter()
            operations[name]()
            elapsed = time.perf_counter() - begin
            if number:
                samples[name].append(elapsed)
    return samples


def medians(samples: Mapping[str, list[float]], *, scale: float) -> dict[str, float]:
    """Median of each operation's rounds, times `scale`."""
    return {name: statistics.median(values) * scale for name, values in samples.items()}


def as_table(comparison: Comparison) -> str:
    width = max(map(len, comparison.medians))
    lines = [f"\n{comparison.task} [{comparison.unit}, ratio to {comparison.baseline}]"]
    for name, value in comparison.medians.items():
        goal = comparison.goals.get(name)
        aim = "" if goal is None else f"   goal ≤ {goal:g}: {'met' if comparison.ratio(name) <= goal else 'MISSED'}"
        lines.append(f"  {name:<{width}}  {value:>10.3f}  {comparison.ratio(name):>8.3f}{aim}")
    lines += [f"  {note}" for note in comparison.notes]
    return "\n".join(lines)
