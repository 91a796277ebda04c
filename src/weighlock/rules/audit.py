"""What is wrong or getting old in rule files that can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

from weighlock.errors import ConfigError
from weighlock.rules.book import RuleBook, load, packaged_sources
from weighlock.rules.entry import Entry, Generation
from weighlock.rules.schema import nearest
from weighlock.written import quoted

STALE_AFTER_DAYS = 90
"""Gemini's figures have changed about once a quarter."""


def file_mistakes(path: Path) -> tuple[str, ...]:
    """Everything wrong with a rule file, by itself and once it lies over the packaged ones."""
    try:
        generation = load(path)
    except ConfigError as error:
        return tuple(error.figures.get("mistakes", [error.message]))
    try:
        RuleBook.packaged().with_overlay(path)
    except ConfigError as error:
        return (*mistakes(generation), error.message)
    return mistakes(generation)


def mistakes(generation: Generation) -> tuple[str, ...]:
    """What a file says that cannot be right: sources nobody knows, dates out of order, a model listed twice."""
    known = {**packaged_sources(), **generation.sources}
    return (*_doubled(generation), *(line for entry in _placed(generation) for line in _wrong(*entry, known)))


def doubly_listed(generations: Iterable[Generation]) -> tuple[str, ...]:
    """Models more than one generation claims."""
    owners: dict[str, list[str]] = {}
    for generation in generations:
        for model in generation.models:
            owners.setdefault(model, []).append(generation.name)
    return tuple(f"models: {model} is listed by {' and '.join(by)}" for model, by in owners.items() if len(by) > 1)


def stale(generation: Generation, today: date) -> str | None:
    """A line when the figures were last compared with their sources too long ago."""
    age_days = (today - generation.checked_on).days
    if age_days <= STALE_AFTER_DAYS:
        return None
    return f"{generation.name}: checked on {generation.checked_on}, {age_days} days ago; look for a newer release"


def _doubled(generation: Generation) -> Iterator[str]:
    for model, times in Counter(generation.models).items():
        if times > 1:
            yield f"models: {model} is listed {times} times"


def _placed(generation: Generation) -> Iterator[tuple[str, Entry]]:
    counts: Counter[str] = Counter()
    for entry in generation.entries:
        counts[entry.section] += 1
        yield f"{entry.section}[{counts[entry.section]}]", entry


def _wrong(where: str, entry: Entry, known: Mapping[str, object]) -> Iterator[str]:
    for source in entry.sources:
        if source not in known and "://" not in source:
            yield f"{where}.source: no source {quoted(source)}{nearest(source, known)}"
    if entry.since > entry.checked_on:
        yield f"{where}: holds since {entry.since}, after it was checked on {entry.checked_on}"
