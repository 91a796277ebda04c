"""Which figures are in force for a model, and when: the rules as a person reads them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import TypeVar

from weighlock.request import Carrier, MediaResolution, Modality, Placement
from weighlock.rules.entry import Entry, Limit
from weighlock.rules.model import ModelRules
from weighlock.rules.schema import LIMITS
from weighlock.rules.wording import in_words

Way = tuple[MediaResolution, Placement, Carrier]
Same = TypeVar("Same", bound=Hashable)

_EVERY_WAY: tuple[Way, ...] = tuple(product(MediaResolution, Placement, Carrier))
_OUTSIDE_TOOLS = {Carrier.USER, Carrier.MODEL}
_BY_WAY = ("image", "video", "sampling", "sound", "silent_sound", "audio", "document", "part_resolution", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """One figure that holds for some way of sending a medium."""

    name: str
    """The section, and where it has several figures, which: `accepts IMAGE`, `limits images`."""
    when: str
    """Resolution, placement and carrier it holds for; empty where it holds for all."""
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure that differs; `None` where one side has none."""

    name: str
    when: str
    old: str | None
    new: str | None


def in_force(rules: ModelRules) -> tuple[InForce, ...]:
    """Every figure that holds for at least one way of sending a medium, in the order of the sections."""
    return tuple(
        InForce(name=name, when=when, entry=entry)
        for name in _names()
        for entry, when in _grouped({way: _entry(rules, name, way) for way in _EVERY_WAY})
        if entry is not None
    )


def differences(old: ModelRules, new: ModelRules) -> tuple[Difference, ...]:
    """Every figure that is not the same on both sides, with the ways of sending it concerns."""
    found = []
    for name in _names():
        pairs = {way: (_words(old, name, way), _words(new, name, way)) for way in _EVERY_WAY}
        found += [
            Difference(name=name, when=when, old=pair[0], new=pair[1])
            for pair, when in _grouped(pairs)
            if pair[0] != pair[1]
        ]
    return tuple(found)


def _names() -> Iterator[str]:
    yield from _BY_WAY
    yield from (f"accepts {modality}" for modality in Modality)
    yield from (f"limits {limit}" for limit in LIMITS)


def _entry(rules: ModelRules, name: str, way: Way) -> Entry | None:
    section, _, which = name.partition(" ")
    match section:
        case "accepts":
            return rules.accept_entry(Modality(which), way[1], way[2])
        case "limits":
            entries = rules.sections.get(section, ())
            return next((e for e in reversed(entries) if isinstance(e.figure, Limit) and e.figure.limit == which), None)
        case _:
            return rules.pick(section, way)


def _words(rules: ModelRules, name: str, way: Way) -> str | None:
    entry = _entry(rules, name, way)
    return None if entry is None else in_words(entry)


def _grouped(by_way: dict[Way, Same]) -> Iterator[tuple[Same, str]]:
    """Equal values, each once, with the ways they hold for."""
    ways: dict[Same, list[Way]] = {}
    for way, value in by_way.items():
        ways.setdefault(value, []).append(way)
    for value, held in ways.items():
        yield value, _when(held)


def _when(ways: list[Way]) -> str:
    """`low · tool_result · inline`: only what is not true of all ways, carriers that fare alike together."""
    by_carrier: dict[frozenset[tuple[MediaResolution, Placement]], list[Carrier]] = {}
    for carrier in Carrier:
        if held := frozenset((resolution, placement) for resolution, placement, by in ways if by is carrier):
            by_carrier.setdefault(held, []).append(carrier)
    cases = []
    for held, carriers in by_carrier.items():
        resolutions = [one for one in MediaResolution if any(one is resolution for resolution, _ in held)]
        placements = [one for one in Placement if any(one is placement for _, placement in held)]
        by = "outside tool results" if set(carriers) == _OUTSIDE_TOOLS else _unless_all(carriers, Carrier)
        said = [_unless_all(resolutions, MediaResolution), by, _unless_all(placements, Placement)]
        cases.append(" · ".join(filter(None, said)))
    return "; ".join(cases)


def _unless_all(chosen: Sequence[StrEnum], every: type[StrEnum]) -> str:
    return "" if len(chosen) == len(every) else ", ".join(chosen)
