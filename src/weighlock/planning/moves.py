"""What a plan is made of: rungs put on parts, and what the parts weigh under them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from weighlock.media.facts import TextSizes
from weighlock.media.text import request_tokens
from weighlock.media.work import ImageWork, Work
from weighlock.planning.admit import LimitCheck
from weighlock.planning.cutting import NO_CUT, Cut, weigh_cut, work_of
from weighlock.planning.levers import Lever, Rung, is_visual
from weighlock.planning.reencode import weigh_made
from weighlock.planning.weigh import Weighed, weigh
from weighlock.request import Modality
from weighlock.rules import Controls, ModelRules

_NOTE_CHARS = 200
"""Of the note that stands in for a medium of an earlier turn."""
Settings = Mapping[int, Mapping[Lever, Rung]]
"""The rung of every lever that is moved, by part."""


Memory = dict[tuple[int, Controls, ImageWork | None, Cut], Weighed]
"""What a part weighs under some controls, as it is or made into something else."""


class Why(StrEnum):
    """What a step is there for."""

    ASKED = "asked"
    """The caller wants it sent so."""

    ALWAYS = "always"
    """The endpoint sends such media so, whether or not anything is over a limit."""
    KEPT = "kept"
    """It was sent so in an earlier turn, and the prompt cache holds it so."""
    TAKEN = "taken"
    """The service takes no picture of so many bytes inline."""
    NEEDED = "needed"
    """A limit would be broken without it."""


@dataclass(frozen=True, slots=True)
class Move:
    """A rung for every part of a unit, or one for the whole request."""

    lever: Lever
    unit: tuple[int, ...]
    rungs: tuple[Rung | None, ...]
    request_wide: bool = False
    why: Why = Why.NEEDED


class Bench:
    """The parts of a request under any moves. Remembers what it has weighed; several plans may share the memory."""

    def __init__(self, given: Sequence[Weighed], rules: ModelRules, memory: Memory | None = None) -> None:
        self.given, self.rules = tuple(given), rules
        self.memory: Memory = {} if memory is None else memory
        self._visual = tuple(at for at, part in enumerate(self.given) if is_visual(part))

    def touched(self, move: Move) -> tuple[int, ...]:
        """The parts a move is about: of one for the whole request all that have a resolution, newer ones too."""
        return self._visual if move.request_wide else move.unit

    def on(self, at: int, move: Move) -> Rung | None:
        """What a move does to one part."""
        if self.given[at].error is not None:
            return None
        if move.request_wide:
            return move.rungs[0] if at in self._visual else None
        return move.rungs[move.unit.index(at)] if at in move.unit else None

    def parts(self, moves: Iterable[Move]) -> list[Weighed]:
        """Every part as it weighs under the moves."""
        parts = list(self.given)
        for at, changes in self.settings(moves).items():
            parts[at] = self.part(at, changes)
        return parts

    def settings(self, moves: Iterable[Move]) -> dict[int, dict[Lever, Rung]]:
        """The last rung of every lever, by part."""
        found: dict[int, dict[Lever, Rung]] = {}
        for move in moves:
            for at in self.touched(move):
                if (rung := self.on(at, move)) is not None:
                    found.setdefault(at, {})[move.lever] = rung
        return found

    def part(self, at: int, changes: Mapping[Lever, Rung]) -> Weighed:
        """One part under some rungs."""
        given = self.given[at]
        if is_noted(changes):
            return self._noted(given)
        controls, picture, cut = self.controls(at, changes), _picture(changes), _cut(changes)
        if controls == given.controls and picture is None and cut == NO_CUT:
            return given
        found = self.memory.get((at, controls, picture, cut))
        if found is None:
            examined, rules = given.examined, self.rules
            if picture is not None:
                found = weigh_made(examined, picture, controls, rules)
            elif cut != NO_CUT:
                found = weigh_cut(given, controls, cut, rules)
            else:
                found = weigh(examined, controls, rules)
            self.memory[at, controls, picture, cut] = found
        return found

    def controls(self, at: int, changes: Mapping[Lever, Rung]) -> Controls:
        """What one part is sent as under some rungs, whether that is said on the wire or its bytes are made so."""
        controls, older = self.given[at].controls, changes.get(Lever.HISTORY)
        for rung in (*changes.values(), older) if older else changes.values():  # what is older is at its lowest
            controls = rung.on(controls)
        return controls

    def work(self, at: int, changes: Mapping[Lever, Rung]) -> Work | None:
        """What is to be done to the bytes of one part under some rungs."""
        if is_noted(changes):
            return None
        cut = _cut(changes)
        made = None if cut == NO_CUT else work_of(self.given[at], self.controls(at, changes), cut, self.rules)
        return _picture(changes) or made

    def _noted(self, part: Weighed) -> Weighed:
        """The part as a note: what a few words about it cost."""
        facts = TextSizes(content_chars=_NOTE_CHARS)
        note = replace(
            part.examined, size_bytes=_NOTE_CHARS, mime="text/plain", modality=Modality.TEXT, facts=facts, anomalies=()
        )
        tokens = (request_tokens(facts, self.rules.text),)
        return Weighed(examined=note, controls=part.controls, tokens=tokens, send_as="text/plain")


def is_noted(changes: Mapping[Lever, Rung]) -> bool:
    """Whether words stand in the place of the part."""
    return Lever.HISTORY in changes and changes[Lever.HISTORY].note


def _picture(changes: Mapping[Lever, Rung]) -> ImageWork | None:
    return next((rung.work for rung in changes.values() if rung.work), None)


def _cut(changes: Mapping[Lever, Rung]) -> Cut:
    """What of a part's bytes is cut."""
    local = {lever for lever, rung in changes.items() if rung.local}
    thin = changes.get(Lever.REENCODE)
    return Cut(
        span=Lever.CLIP in local,
        sound=Lever.DROP_AUDIO in local,
        pages=Lever.PAGES in local,
        thinned=thin.thinned if thin else None,
    )


def last_of_each(moves: Iterable[Move]) -> list[Move]:
    """Of the moves of one lever on one unit only the last, in its place: it stands for them all."""
    found: dict[tuple[Lever, tuple[int, ...], Why], Move] = {}
    for move in moves:
        key = move.lever, move.unit, move.why
        found.pop(key, None)
        found[key] = move
    return list(found.values())


def units(parts: Sequence[Weighed], earlier: Sequence[int | None], batch: int) -> Iterator[tuple[int, ...]]:
    """What moves together: a part of this turn alone, those of earlier turns by the batch."""
    batches: dict[int, list[int]] = {}
    for at, (part, nth) in enumerate(zip(parts, earlier, strict=True)):
        if part.error is not None or part.examined.facts is None or part.examined.modality is Modality.TEXT:
            continue
        if nth is None:
            yield (at,)
        else:
            batches.setdefault(nth // batch, []).append(at)
    yield from map(tuple, batches.values())


def need(part: Weighed, check: LimitCheck) -> int:
    """What a part takes of what a limit measures; of USD, in tokens."""
    if check.name in ("media_parts", "bytes"):
        sent = part.examined.modality is not Modality.TEXT
        return int(sent and (1 if check.name == "media_parts" else part.examined.size_bytes or 0))
    return (part.of(check.modality) if check.modality else part.total).high


def size(parts: Iterable[Weighed]) -> int:
    """Bytes of the media."""
    return sum(part.examined.size_bytes or 0 for part in parts if part.examined.modality is not Modality.TEXT)


def total(parts: Iterable[Weighed]) -> int:
    """Tokens by the high estimate, which decides."""
    return sum(part.total.high for part in parts)
