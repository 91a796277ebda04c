"""The plan that makes a request fit: an ordered walk over levers and parts, then every step undone that was not needed.

Pure and deterministic: the same media, limits and policy give the same plan. Nothing is carried out here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weighlock.media.facts import TextFacts, TextSizes
from weighlock.media.text import request_tokens
from weighlock.planning.admit import LimitCheck, Verdict
from weighlock.planning.levers import Lever, Rung, Shaping, Target, request_levels, rungs
from weighlock.planning.weigh import Tally, Weighed, weigh
from weighlock.rules import ModelRules

_NOTE_CHARS = 160
"""Of the note that stands in for a medium of an earlier turn."""
Judge = Callable[[Sequence[Weighed]], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What holds for one part beside the endpoint's policy."""

    pinned: bool = False
    """The caller wants it as it is."""
    target: Target = field(default_factory=Target)
    earlier: int | None = None
    """Which medium of the conversation it is, from 0, where it was sent in an earlier turn already."""
    removable: bool = False
    """One of earlier turns that may become a note: not among the newest the endpoint keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One lever moved: on one part, on a batch of earlier ones, or (`parts` are all it lowers) on the whole request."""

    lever: Lever
    parts: tuple[int, ...]
    request_wide: bool
    words: str
    before: Tally
    """Of the parts it touches."""
    after: Tally
    local: bool
    """Whether bytes have to be worked on."""

    @property
    def saved(self) -> Tally:
        """What it takes off the prompt."""
        return Tally(
            low=self.before.low - self.after.low,
            likely=self.before.likely - self.after.likely,
            high=self.before.high - self.after.high,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be sent, and how it came to that."""

    parts: tuple[Weighed, ...]
    """Every part as it would be sent; one that became a note holds TEXT tokens only."""
    steps: tuple[Step, ...]
    removed: frozenset[int]
    """Parts of earlier turns that become notes."""
    local: Mapping[int, frozenset[Lever]]
    """Parts whose bytes have to be worked on, and for which levers; all others are fields of the wire."""
    verdict: Verdict
    passed: tuple[Step, ...] = ()
    """Steps that were tried and are not needed."""

    @property
    def fits(self) -> bool:
        return not self.verdict.over


@dataclass(frozen=True, slots=True)
class _Move:
    """A rung for every part of a unit."""

    lever: Lever
    unit: tuple[int, ...]
    rungs: tuple[Rung | None, ...]
    request_wide: bool = False


def plan(
    parts: Sequence[Weighed],
    rules: ModelRules,
    shaping: Shaping,
    judge: Judge,
    wishes: Sequence[Wish],
    *,
    batch: int = 1,
) -> Plan:
    """The mildest way within the endpoint's order to hold every limit; where nothing holds them, the lightest there is.

    `batch` is how many media of earlier turns move together, so that the prompt's prefix breaks rarely.
    """
    walk = _Walk(parts, rules, shaping, judge, wishes, batch)
    for lever in shaping.levers:
        walk.pull(lever)
    needed, passed = walk.undone()
    return walk.result(needed, passed)


class _Walk:
    def __init__(
        self,
        parts: Sequence[Weighed],
        rules: ModelRules,
        shaping: Shaping,
        judge: Judge,
        wishes: Sequence[Wish],
        batch: int,
    ) -> None:
        self.given, self.rules, self.shaping, self.judge, self.wishes = tuple(parts), rules, shaping, judge, wishes
        self.units = tuple(_units(parts, wishes, batch))
        self.moves: list[_Move] = []
        self.now = list(parts)

    def pull(self, lever: Lever) -> None:
        """Moves one lever, the largest saving first, until every limit holds or it has nothing more to give."""
        ladders = {unit: list(self._ladder(lever, unit)) for unit in self._movable(lever)}
        while over := self.judge(self.now).over:
            found = [(self._saving(ladder[0], over), -min(unit), unit) for unit, ladder in ladders.items() if ladder]
            best = max(found, default=(0, 0, ()))
            if best[0] <= 0:
                spent = [unit for unit, ladder in ladders.items() if ladder]
                if not spent:
                    return
                for unit in spent:  # a rung that saves nothing is none; the next one may
                    ladders[unit].pop(0)
                continue
            move = ladders[best[2]].pop(0)
            self.moves.append(move)
            self.now = self._weighed(self.moves)

    def undone(self) -> tuple[list[_Move], list[_Move]]:
        """The moves without those that are not needed, the last ones looked at first; and those."""
        needed, passed = list(self.moves), list[_Move]()
        if self.judge(self.now).over:
            needed = [move for move in needed if self._lowers(needed, move)]
            return needed, passed
        again = True
        while again:
            again = False
            for move in reversed(needed):
                without = [one for one in needed if one is not move]
                if not self.judge(self._weighed(without)).over:
                    needed, again = without, True
                    passed.append(move)
                    break
        return needed, passed

    def result(self, needed: Sequence[_Move], passed: Sequence[_Move]) -> Plan:
        steps, done = [], list[_Move]()
        for move in _last_of_each(needed):
            before = self._weighed(done)
            done.append(move)
            steps.append(self._step(move, before, self._weighed(done)))
        parts = self._weighed(done)
        return Plan(
            parts=tuple(parts),
            steps=tuple(steps),
            removed=frozenset(at for move in done if move.lever is Lever.HISTORY for at in move.unit),
            local={
                at: frozenset(lever for lever, rung in changes.items() if rung.local)
                for at, changes in _settings(done).items()
                if any(rung.local for rung in changes.values())
            },
            verdict=self.judge(parts),
            passed=tuple(self._step(move, self.given, self._weighed([move])) for move in _last_of_each(passed)),
        )

    # ---- moves

    def _movable(self, lever: Lever) -> Iterator[tuple[int, ...]]:
        if lever is Lever.RESOLUTION and not self.rules.honours_part_resolution:
            visual = tuple(range(len(self.given)))
            if not any(self.wishes[at].pinned and _is_visual(self.given[at]) for at in visual):
                yield visual
            return
        yield from (unit for unit in self.units if not any(self.wishes[at].pinned for at in unit))

    def _ladder(self, lever: Lever, unit: tuple[int, ...]) -> Iterator[_Move]:
        if lever is Lever.HISTORY:
            if all(self.wishes[at].removable for at in unit):
                yield _Move(lever, unit, tuple(Rung(words="a note in its place", changes={}) for _ in unit))
            return
        if lever is Lever.RESOLUTION and not self.rules.honours_part_resolution:
            for level in request_levels(self.given, self.shaping):
                rung = Rung(words=f"the request's resolution {level.value}", changes={"media_resolution": level})
                yield _Move(lever, unit, tuple(rung for _ in unit), request_wide=True)
            return
        ladders = [list(rungs(lever, self.given[at], self.rules, self.shaping, self.wishes[at].target)) for at in unit]
        for step in range(max(map(len, ladders), default=0)):
            yield _Move(
                lever, unit, tuple(ladder[min(step, len(ladder) - 1)] if ladder else None for ladder in ladders)
            )

    def _saving(self, move: _Move, over: Sequence[LimitCheck]) -> int:
        """What a move takes off the first broken limit it lowers at all; never one that raises the prompt."""
        after = self._weighed([*self.moves, move])
        if _total(after) > _total(self.now) or _refused(after) > _refused(self.now):
            return 0
        return max(sum(_need(self.now[at], c) - _need(after[at], c) for at in range(len(after))) for c in over)

    def _lowers(self, moves: Sequence[_Move], move: _Move) -> bool:
        return _total(self._weighed([one for one in moves if one is not move])) > _total(self._weighed(moves))

    # ---- weighing

    def _weighed(self, moves: Sequence[_Move]) -> list[Weighed]:
        parts = list(self.given)
        for at, changes in _settings(moves).items():
            given = self.given[at]
            if Lever.HISTORY in changes:
                parts[at] = self._noted(given)
            elif given.examined.facts is not None:
                controls = given.controls
                for rung in changes.values():
                    controls = rung.on(controls)
                parts[at] = weigh(given.examined, controls, self.rules)
        return parts

    def _noted(self, part: Weighed) -> Weighed:
        """The part as a note: what a few words about it cost."""
        note = request_tokens(TextSizes(content_chars=_NOTE_CHARS), self.rules.text)
        return replace(part, tokens=(note,), notes=(), refused=())

    def _step(self, move: _Move, before: Sequence[Weighed], after: Sequence[Weighed]) -> Step:
        touched = [at for at in move.unit if before[at].total != after[at].total] or list(move.unit)
        words = {rung.words for at, rung in zip(move.unit, move.rungs, strict=True) if rung and at in touched}
        return Step(
            lever=move.lever,
            parts=tuple(touched),
            request_wide=move.request_wide,
            words=" / ".join(sorted(words)),
            before=Tally.of(before[at].total for at in touched),
            after=Tally.of(after[at].total for at in touched),
            local=any(rung.local for rung in move.rungs if rung),
        )


def _units(parts: Sequence[Weighed], wishes: Sequence[Wish], batch: int) -> Iterator[tuple[int, ...]]:
    """What moves together: a part of this turn alone, those of earlier turns by the batch."""
    batches: dict[int, list[int]] = {}
    for at, (part, wish) in enumerate(zip(parts, wishes, strict=True)):
        if part.examined.facts is None or isinstance(part.examined.facts, TextFacts | TextSizes):
            continue
        if wish.earlier is None:
            yield (at,)
        else:
            batches.setdefault(wish.earlier // batch, []).append(at)
    yield from map(tuple, batches.values())


def _settings(moves: Sequence[_Move]) -> dict[int, dict[Lever, Rung]]:
    """The last rung of every lever, by part."""
    found: dict[int, dict[Lever, Rung]] = {}
    for move in moves:
        for at, rung in zip(move.unit, move.rungs, strict=True):
            if rung is not None:
                found.setdefault(at, {})[move.lever] = rung
    return found


def _last_of_each(moves: Sequence[_Move]) -> list[_Move]:
    """Of the moves of one lever on one unit only the last: it stands for them all."""
    return list({(move.lever, move.unit): move for move in moves}.values())


def _need(part: Weighed, check: LimitCheck) -> int:
    """What a part takes of what a limit measures."""
    if check.name == "media_parts":
        return int(bool(part.tokens) and not all(tokens.modality.name == "TEXT" for tokens in part.tokens))
    if check.name == "bytes":
        return part.examined.size_bytes or 0 if _need(part, replace(check, name="media_parts")) else 0
    return (part.of(check.modality) if check.modality else part.total).high


def _total(parts: Sequence[Weighed]) -> int:
    return sum(part.total.high for part in parts)


def _refused(parts: Sequence[Weighed]) -> int:
    return sum(len(part.refused) for part in parts)


def _is_visual(part: Weighed) -> bool:
    return part.examined.modality is not None and part.examined.modality.name in ("IMAGE", "VIDEO", "DOCUMENT")
