"""What came of the walk over levers and parts, as a plan: each step with what it saved, and those that were not needed.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weighlock.planning.admit import Verdict
from weighlock.planning.levers import RESOLUTIONS, Lever, Rung, Shaping
from weighlock.planning.load import Load
from weighlock.planning.moves import Bench, Move, Why, is_noted, last_of_each, size
from weighlock.planning.steps import Plan, Step, Wish
from weighlock.planning.weigh import Tally, Weighed
from weighlock.request import Modality


def told(
    bench: Bench,
    shaping: Shaping,
    judge: Callable[[Load], Verdict],
    wishes: Sequence[Wish],
    fixed: Sequence[Move],
    needed: Sequence[Move],
    tried: Sequence[Move],
) -> Plan:
    """The plan of moves that hold anyway (`fixed`) and those that are needed of all that were tried, in their order."""
    again = {at for move in (*fixed, *needed) if move.why is not Why.TAKEN for at in _encoded(move)}
    stay = [move for move in fixed if move.why is not Why.TAKEN or not again.issuperset(move.unit)]
    moves = last_of_each([*stay, *needed])
    verdict = judge(Load.of(bench.given))
    counts_bytes = any(check.name == "bytes" for check in verdict.limits)
    walk = _Telling(bench, shaping, wishes, (), counts_bytes=counts_bytes)
    steps = tuple(map(walk.step, moves))
    base = _Telling(bench, shaping, wishes, fixed, counts_bytes=counts_bytes)
    return Plan(
        parts=tuple(walk.parts),
        steps=steps,
        removed=frozenset(at for at, changes in walk.settings.items() if is_noted(changes)),
        works={at: work for at, changes in sorted(walk.settings.items()) if (work := bench.work(at, changes))},
        verdict=judge(Load.of(walk.parts)) if moves else verdict,
        passed=tuple(map(base.alone, last_of_each(_harsher(needed, tried)))),
        wishes=tuple(wishes),
        moves=tuple(moves),
    )


class _Telling:
    """The parts while one move after the other is put on them."""

    def __init__(
        self, bench: Bench, shaping: Shaping, wishes: Sequence[Wish], moves: Sequence[Move], *, counts_bytes: bool
    ) -> None:
        self.bench, self.shaping, self.wishes, self.counts_bytes = bench, shaping, wishes, counts_bytes
        self.settings, self.parts = bench.settings(moves), bench.parts(moves)

    def step(self, move: Move) -> Step:
        """The next move, which stays on the parts."""
        before = {at: self.parts[at] for at in self.bench.touched(move)}
        for at in before:
            self.settings[at] = self._with(at, move)
            self.parts[at] = self.bench.part(at, self.settings[at])
        return self._step(move, before, {at: self.parts[at] for at in before})

    def alone(self, move: Move) -> Step:
        """What a move would do to the parts as they are."""
        touched = self.bench.touched(move)
        after = {at: self.bench.part(at, self._with(at, move)) for at in touched}
        return self._step(move, {at: self.parts[at] for at in touched}, after)

    def _with(self, at: int, move: Move) -> dict[Lever, Rung]:
        rung = self.bench.on(at, move)
        return {**self.settings.get(at, {}), **({move.lever: rung} if rung else {})}

    def _step(self, move: Move, before: Mapping[int, Weighed], after: Mapping[int, Weighed]) -> Step:
        touched = [at for at in before if before[at].total != after[at].total] or list(move.unit)
        words = {
            _in_words(rung, before[at], after[at], counted=self.counts_bytes)
            for at in touched
            if (rung := self.bench.on(at, move))
        }
        return Step(
            lever=move.lever,
            parts=tuple(touched),
            request_wide=move.request_wide,
            words=" / ".join(sorted(words)),
            before=Tally.of(before[at].total for at in touched),
            after=Tally.of(after[at].total for at in touched),
            local=any(rung.local for rung in move.rungs if rung),
            why=move.why,
            breaks_prefix=move.why is Why.NEEDED and any(self.wishes[at].earlier is not None for at in move.unit),
            saved_bytes=size(before[at] for at in touched) - size(after[at] for at in touched),
            beside=self._beside(move, touched) if move.request_wide else "",
        )

    def _beside(self, move: Move, touched: Sequence[int]) -> str:
        """What a level of the whole request lowers, and whose floor does not hold under it."""
        level = next(rung for rung in move.rungs if rung).changes["media_resolution"]
        given = [self.bench.given[at].examined for at in touched]
        names = ", ".join(one.label for one in given)
        below = [
            one.label
            for one in given
            if RESOLUTIONS.index(self.shaping.floor(one.modality).resolution) < RESOLUTIONS.index(level)
        ]
        floors = f"; {', '.join(below)} below its floor, for the model knows no resolution of a part" if below else ""
        return f"lowers {names}{floors}"


def _harsher(needed: Sequence[Move], tried: Sequence[Move]) -> list[Move]:
    """The moves that are not needed, but for milder ones of a lever and unit of which one is."""
    order = {id(move): nth for nth, move in enumerate(tried)}
    last = {(move.lever, move.unit): order[id(move)] for move in needed}
    return [move for nth, move in enumerate(tried) if nth > last.get((move.lever, move.unit), -1)]


def _encoded(move: Move) -> tuple[int, ...]:
    return move.unit if move.lever is Lever.REENCODE else ()


def _in_words(rung: Rung, before: Weighed, after: Weighed, *, counted: bool) -> str:
    """With the bytes a file is cut to, where there is a limit of them: of a PDF a guess."""
    then = after.examined
    if not counted or rung.work is not None or not rung.local or size([after]) >= size([before]):
        return rung.words
    return f"{rung.words}, {'about' if then.modality is Modality.DOCUMENT else 'at most'} {then.size_bytes:,} bytes"
