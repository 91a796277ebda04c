"""Which figures are in force for a model, and when: the rules as a person reads them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from itertools import product
from typing import TypeVar

from weighlock.request import Carrier, MediaResolution, Modality, Placement
from weighlock.rules.entry import Entry, Limit, WireControl
from weighlock.rules.model import ModelRules
from weighlock.rules.schema import LIMITS
from weighlock.rules.wording import in_words

Way = tuple[MediaResolution, Placement, Carrier]
Same = TypeVar("Same", bound=Hashable)

_EVERY_CARRIER = tuple(Carrier)
_OUTSIDE_TOOLS = (Carrier.USER, Carrier.MODEL)
_INSIDE_TOOLS = (Carrier.TOOL_RESULT,)
_BY_WAY = (
    "image",
    "video",
    "sampling",
    "sound",
    "silent_sound",
    "audio",
    "document",
    "sight",
    "part_resolution",
    "text",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """One figure that holds for some way of sending a medium."""

    name: str
    """The section, and where it has several figures, which: `accepts IMAGE`, `limits images`."""
    when: str
    """Resolution, placement and carrier it holds for; empty where it holds for all."""
    entry: Entry
    inside_tools: bool = False
    """Whether it is what a tool result is held to instead of what holds outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure that differs; `None` where one side has none."""

    name: str
    when: str
    old: str | None
    new: str | None


def in_force(rules: ModelRules) -> tuple[InForce, ...]:
    """Every figure that holds for at least one way of sending a medium, in the order of the sections.

    First what holds outside tool results, then what is different inside them.
    """
    outside = [
        InForce(name=name, when=when, entry=entry)
        for name in _names()
        for entry, when in _grouped({way: _entry(rules, name, way) for way in _ways(_OUTSIDE_TOOLS)}, _OUTSIDE_TOOLS)
        if entry is not None
    ]
    inside = [
        InForce(name=name, when=when, entry=entry, inside_tools=True)
        for name in _names()
        for entry, when in _grouped(_only_in_tools(rules, name), _INSIDE_TOOLS)
        if entry is not None
    ]
    return (*outside, *inside)


def younger(figures: Sequence[InForce], day: date) -> tuple[InForce, ...]:
    """Figures that stand in for what held on a day: nothing so old is known."""
    return tuple(one for one in figures if one.entry.since > day)


def differences(old: ModelRules, new: ModelRules) -> tuple[Difference, ...]:
    """Every figure that is not the same on both sides, with the ways of sending it concerns."""
    found = []
    for name in _names():
        pairs = {way: (_words(old, name, way), _words(new, name, way)) for way in _ways(_EVERY_CARRIER)}
        found += [
            Difference(name=name, when=when, old=pair[0], new=pair[1])
            for pair, when in _grouped(pairs, _EVERY_CARRIER)
            if pair[0] != pair[1]
        ]
    return tuple(found)


def _ways(carriers: Sequence[Carrier]) -> Iterator[Way]:
    return product(MediaResolution, Placement, carriers)


def _only_in_tools(rules: ModelRules, name: str) -> dict[Way, Entry | None]:
    found = {way: _entry(rules, name, way) for way in _ways(_INSIDE_TOOLS)}
    return {way: entry for way, entry in found.items() if entry is not _entry(rules, name, (*way[:2], Carrier.USER))}


def _names() -> Iterator[str]:
    yield from _BY_WAY
    yield from (f"honours {control}" for control in WireControl)
    yield from (f"counts {modality}" for modality in Modality)
    yield from (f"accepts {modality}" for modality in Modality)
    yield from (f"limits {limit}" for limit in LIMITS)


def _entry(rules: ModelRules, name: str, way: Way) -> Entry | None:
    section, _, which = name.partition(" ")
    match section:
        case "counts":
            return rules.count_entry(Modality(which))
        case "accepts":
            return rules.accept_entry(Modality(which), way[1], way[2])
        case "honours":
            return rules.honoured_entry(WireControl(which))
        case "limits":
            entries = rules.sections.get(section, ())
            return next((e for e in reversed(entries) if isinstance(e.figure, Limit) and e.figure.limit == which), None)
        case _:
            return rules.pick(section, way)


def _words(rules: ModelRules, name: str, way: Way) -> str | None:
    entry = _entry(rules, name, way)
    return None if entry is None else in_words(entry)


def _grouped(by_way: dict[Way, Same], carriers: Sequence[Carrier]) -> Iterator[tuple[Same, str]]:
    """Equal values, each once, with the ways they hold for, of all that these carriers have."""
    ways: dict[Same, list[Way]] = {}
    for way, value in by_way.items():
        ways.setdefault(value, []).append(way)
    for value, held in ways.items():
        yield value, _when(held, carriers)


def _when(ways: list[Way], among: Sequence[Carrier]) -> str:
    """`low · tool_result · inline`: only what is not true of all ways, carriers that fare alike together."""
    by_carrier: dict[frozenset[tuple[MediaResolution, Placement]], list[Carrier]] = {}
    for carrier in Carrier:
        if held := frozenset((resolution, placement) for resolution, placement, by in ways if by is carrier):
            by_carrier.setdefault(held, []).append(carrier)
    cases = []
    for held, carriers in by_carrier.items():
        resolutions = [one for one in MediaResolution if any(one is resolution for resolution, _ in held)]
        placements = [one for one in Placement if any(one is placement for _, placement in held)]
        outside = len(among) > len(_OUTSIDE_TOOLS) and tuple(carriers) == _OUTSIDE_TOOLS
        by = "outside tool results" if outside else _unless_all(carriers, among)
        said = [_unless_all(resolutions, tuple(MediaResolution)), by, _unless_all(placements, tuple(Placement))]
        cases.append(" · ".join(filter(None, said)))
    return "; ".join(cases)


def _unless_all(chosen: Sequence[StrEnum], every: Sequence[StrEnum]) -> str:
    return "" if len(chosen) == len(every) else ", ".join(chosen)
