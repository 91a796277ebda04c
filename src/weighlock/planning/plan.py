"""The plan that makes a request fit: an ordered walk over levers and parts, then every step undone that was not needed.

Pure and deterministic: the same media, limits and policy give the same plan. Nothing is carried out here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property

from weighlock.media.facts import ImageFacts
from weighlock.planning.admit import LimitCheck, Verdict
from weighlock.planning.levers import (
    Lever,
    Rung,
    Shaping,
    Target,
    asked_rung,
    is_visual,
    reencode_rung,
    request_levels,
    rungs,
    span_rung,
    sparing_rungs,
    standing,
)
from weighlock.planning.load import Load
from weighlock.planning.moves import Bench, Memory, Move, Why, last_of_each, need, size, total, units
from weighlock.planning.reencode import over as work_over
from weighlock.planning.reencode import too_large
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.telling import told
from weighlock.planning.weigh import Weighed
from weighlock.request import Modality
from weighlock.rules import ModelRules

Judge = Callable[[Load], Verdict]
Bound = Callable[[Load], Sequence[LimitCheck]]
"""What is over."""
HALF = Decimal("0.5")
_PAYS_IN = 9
"""Turns in which a change of what was sent before is to pay for itself."""


def filled_after(cached: Decimal | None) -> Decimal:
    """The share of the room media have under a limit that is filled once what was sent before had to change.

    What is left of it is read anew, at the full price; what went saves `cached` of that in every turn, the price of a
    token read from the cache. The cheaper the cache, the deeper it has to go at once; at a tenth, and where no price is
    known, to half of the room.
    """
    return HALF if cached is None else min(HALF, _PAYS_IN * cached / (1 + (_PAYS_IN - 1) * cached))


def plan(
    parts: Sequence[Weighed],
    rules: ModelRules,
    shaping: Shaping,
    judge: Judge,
    wishes: Sequence[Wish],
    *,
    batch: int = 1,
    kept: Sequence[Move] = (),
    memory: Memory | None = None,
    filled: Decimal = HALF,
) -> Plan:
    """The mildest way within the endpoint's order to hold every limit; where nothing holds them, the lightest there is.

    What was sent in earlier turns changes only where it must: by `batch` media at a time, and until no more than
    `filled` of the room under a limit is taken. `kept` is what was decided in earlier turns, and stays.
    """
    walk = _Walk(Bench(parts, rules, memory), shaping, judge, wishes, batch, kept, filled)
    return walk.result(walk.decided())


def moves_to_keep(
    parts: Sequence[Weighed],
    rules: ModelRules,
    shaping: Shaping,
    judge: Judge,
    wishes: Sequence[Wish],
    *,
    batch: int,
    kept: Sequence[Move],
    memory: Memory,
    filled: Decimal = HALF,
) -> tuple[Move, ...]:
    """What `plan` decides, for the plan of the next turn to keep: without the telling, which is most of the work."""
    walk = _Walk(Bench(parts, rules, memory), shaping, judge, wishes, batch, kept, filled)
    needed = [replace(move, why=Why.KEPT) for move in walk.decided()]
    return tuple(last_of_each([*kept, *needed]))


def always(bench: Bench, shaping: Shaping, wishes: Sequence[Wish]) -> Iterator[Move]:
    """What is set on media whether or not anything is over a limit: asked for by the caller, set by the endpoint, or
    needed for the service to take it."""
    for at, wish in enumerate(wishes):
        if not wish.target.span_asked and (window := asked_rung(bench.given[at], bench.rules, shaping)):
            yield Move(Lever.CLIP, (at,), (window,), why=Why.ASKED)
        if wish.target.span_asked and (asked := span_rung(bench.given[at], bench.rules, shaping, wish.target)):
            yield Move(Lever.CLIP, (at,), (asked,), why=Why.ASKED)
        fat = not wish.pinned and too_large(bench.given[at], bench.rules)
        if fat and (smaller := _taken(bench, at, shaping, wish.target)):
            yield Move(Lever.REENCODE, (at,), (smaller,), why=Why.TAKEN)
        if wish.target.always and not wish.pinned and bench.given[at].error is None:
            for lever, rung in standing(bench.given[at], bench.rules, shaping, wish.target):
                if bench.part(at, {lever: rung}).tokens != bench.given[at].tokens:
                    yield Move(lever, (at,), (rung,), why=Why.ALWAYS)


def _taken(bench: Bench, at: int, shaping: Shaping, target: Target) -> Rung | None:
    """The mildest byte target under which the service takes a picture inline, where the endpoint has that lever."""
    if Lever.REENCODE not in shaping.levers:
        return None
    part = bench.given[at]
    for rung in rungs(Lever.REENCODE, part, bench.rules, shaping, target, tokens_count=False):
        then = bench.part(at, {Lever.REENCODE: rung})
        if not too_large(then, bench.rules) and then.total.high <= part.total.high:
            return rung
    return None


class _Walk:
    def __init__(
        self,
        bench: Bench,
        shaping: Shaping,
        judge: Judge,
        wishes: Sequence[Wish],
        batch: int,
        kept: Sequence[Move],
        filled: Decimal,
    ) -> None:
        self.filled = filled
        self.bench, self.given, self.rules = bench, bench.given, bench.rules
        self.shaping, self.judge, self.wishes = shaping, judge, wishes
        self.units = list(units(self.given, [wish.earlier for wish in wishes], batch))
        self.fixed = [*always(bench, shaping, wishes), *kept]
        self.base_settings = bench.settings(self.fixed)
        self.base = bench.parts(self.fixed)
        self.start()

    def start(self) -> None:
        """Nothing is moved yet."""
        self.moves: list[Move] = []
        self.settings = {at: dict(rungs) for at, rungs in self.base_settings.items()}
        self.now, self.load = list(self.base), Load.of(self.base)

    def decided(self) -> list[Move]:
        """The moves that are needed."""
        self.down(self.units, self.over)
        needed = self.needed(self.over)
        if any(map(self.is_earlier, needed)):
            self.start()
            self.down([unit for unit in self.units if self.was_sent(unit)], self.over_mark)
            self.down(self.units, self.over)
            needed = self.needed(self.over, self.over_mark)
        return needed

    def result(self, needed: Sequence[Move]) -> Plan:
        return told(self.bench, self.shaping, self.judge, self.wishes, self.fixed, needed, self.moves)

    # ---- when is it enough

    def over(self, load: Load) -> tuple[LimitCheck, ...]:
        return self.judge(load).over

    def over_mark(self, load: Load) -> tuple[LimitCheck, ...]:
        return tuple(check for check in self.judge(load).limits if check.high > self._mark(check))

    @cached_property
    def of_text(self) -> dict[str, Decimal]:
        texts = [part for part in self.given if part.examined.modality is Modality.TEXT]
        return {check.name: Decimal(check.high) for check in self.judge(Load.of(texts)).limits}

    def _mark(self, check: LimitCheck) -> Decimal:
        text = min(self.of_text.get(check.name, Decimal(0)), Decimal(check.limit))
        return text + (check.limit - text) * self.filled

    # ---- down, and back where that was not needed

    def down(self, movable: Sequence[tuple[int, ...]], over: Bound) -> None:
        """Moves lever after lever, within one the largest saving first, until nothing is over or nothing is left.

        Before them all goes what costs bytes and nothing else.
        """
        checks = over(self.load)
        if Lever.REENCODE in self.shaping.levers and _of_bytes(checks):
            checks = self._descend(self._sparing_ladders(movable), over, checks)
        moved = -1
        while checks and moved < len(self.moves):
            moved = len(self.moves)
            for lever in self.shaping.levers:
                checks = self._descend(self._ladders(lever, movable, checks), over, checks) if checks else checks
            if not _of_bytes(checks):  # a file that was thinned may have become worth a cut
                break

    def _descend(
        self, offered: Iterator[list[Move]], over: Bound, checks: Sequence[LimitCheck]
    ) -> Sequence[LimitCheck]:
        """One lever's moves, as far as they are needed; what is still over after them.

        What a move saves hangs on the parts it touches and on what is over: ladders touch none of each other's.
        """
        ladders = [ladder for ladder in offered if ladder] if checks else []
        savings = [self._saving(ladder[0], checks) for ladder in ladders]
        while ladders and checks:
            best = max(range(len(ladders)), key=savings.__getitem__)
            if savings[best] <= 0:  # a rung that saves nothing is none; the next one may
                ladders = [rest for ladder in ladders if (rest := ladder[1:])]
                savings = [self._saving(ladder[0], checks) for ladder in ladders]
                continue
            self._move(ladders[best].pop(0))
            was, checks = _names(checks), over(self.load)
            if not ladders[best]:
                del ladders[best], savings[best]
            elif checks:
                savings[best] = self._saving(ladders[best][0], checks)
            if _names(checks) != was and checks:
                savings = [self._saving(ladder[0], checks) for ladder in ladders]
        return checks

    def _move(self, move: Move) -> None:
        before = {at: self.now[at] for at in self.bench.touched(move)}
        for at in before:
            if (rung := self.bench.on(at, move)) is not None:
                self.settings.setdefault(at, {})[move.lever] = rung
            self.now[at] = self.bench.part(at, self.settings.get(at, {}))
        self.moves.append(move)
        self.load = self.load.changed(before.values(), [self.now[at] for at in before])

    def _saving(self, move: Move, checks: Sequence[LimitCheck]) -> int:
        """What a move takes off the broken limit it lowers most; never one that raises the prompt or is refused."""
        pairs = []
        for at in self.bench.touched(move):
            rung, settings = self.bench.on(at, move), self.settings.get(at, {})
            pairs.append((self.now[at], self.bench.part(at, {**settings, move.lever: rung} if rung else settings)))
        before, after = zip(*pairs, strict=True)
        if total(after) > total(before) or _refused(after) > _refused(before):
            return 0
        return max(sum(need(old, check) - need(new, check) for old, new in pairs) for check in checks)

    def needed(self, over: Bound, over_earlier: Bound | None = None) -> list[Move]:
        """The moves without those that can go, the last ones looked at first.

        Where a bound cannot be reached at all, every move stays that lowers something.
        """
        left, now, load, shrinks = dict(enumerate(self.moves)), list(self.now), self.load, True
        touching: dict[int, list[int]] = {}
        for nth, move in left.items():
            for at in self.bench.touched(move):
                touching.setdefault(at, []).append(nth)
        while shrinks:
            shrinks = False
            for nth, move in reversed(tuple(left.items())):
                bound = over_earlier if over_earlier and self.is_earlier(move) else over
                then = {
                    at: self._under(at, [left[other] for other in touching[at] if other in left and other != nth])
                    for at in self.bench.touched(move)
                }
                lighter = load.changed([now[at] for at in then], then.values())
                if _may_go(lighter, load, bound, over):
                    del left[nth]
                    for at, part in then.items():
                        now[at] = part
                    load, shrinks = lighter, True
        return list(left.values())

    def _under(self, at: int, moves: Sequence[Move]) -> Weighed:
        """One part under some of the moves."""
        settings = dict(self.base_settings.get(at, {}))
        settings |= {move.lever: rung for move in moves if (rung := self.bench.on(at, move)) is not None}
        return self.bench.part(at, settings)

    # ---- moves

    def was_sent(self, unit: tuple[int, ...]) -> bool:
        return any(self.wishes[at].earlier is not None for at in unit)

    def is_earlier(self, move: Move) -> bool:
        """Whether it changes what an earlier turn sent."""
        return self.was_sent(move.unit)

    def _ladders(
        self, lever: Lever, movable: Sequence[tuple[int, ...]], checks: Sequence[LimitCheck]
    ) -> Iterator[list[Move]]:
        if lever is Lever.RESOLUTION and not self.rules.honours_part_resolution:
            yield self._request_ladder(movable)
            return
        for unit in movable:
            free = tuple(at for at in unit if not self.wishes[at].pinned)
            if lever is Lever.HISTORY:
                free = tuple(at for at in free if self.wishes[at].removable)
            yield _side_by_side(lever, free, [self._ladder(lever, at, checks) for at in free])

    def _sparing_ladders(self, movable: Sequence[tuple[int, ...]]) -> Iterator[list[Move]]:
        """What brings down the bytes of files and takes nothing from what is sampled of them."""
        for unit in movable:
            free = tuple(at for at in unit if not self.wishes[at].pinned)
            ladders = [list(sparing_rungs(self._sent(at), self.rules, self.shaping)) for at in free]
            yield _side_by_side(Lever.REENCODE, free, ladders)

    def _sent(self, at: int) -> Weighed:
        """A part with all that was decided before on its controls, its bytes as they came: rungs are put on that."""
        given = self.given[at]
        return replace(given, controls=self.bench.controls(at, self.base_settings.get(at, {})))

    def _ladder(self, lever: Lever, at: int, checks: Sequence[LimitCheck]) -> list[Rung]:
        """The rungs that make a part lighter than it is, and than the one before."""
        part, fixed = self.base[at], self.base_settings.get(at, {})
        of_bytes = _of_bytes(checks) or self._is_cut(at, lever)
        if isinstance(part.examined.facts, ImageFacts) and lever is Lever.REENCODE:
            return self._reencodings(at, checks)
        offered = rungs(lever, self._sent(at), self.rules, self.shaping, self.wishes[at].target, bytes_over=of_bytes)
        if of_bytes:  # what each saves hangs on all that is moved besides
            return list(offered)
        lighter, least = list[Rung](), part.total.high
        for rung in offered:
            weighs = self.bench.part(at, {**fixed, lever: rung}).total.high
            if weighs < least or rung.note:
                lighter.append(rung)
                least = weighs
        return lighter

    def _is_cut(self, at: int, lever: Lever) -> bool:
        """Whether its bytes are cut by that lever; then they stay so."""
        found = (self.bench.on(at, move) for move in self.moves if move.lever is lever)
        return any(rung is not None and rung.local for rung in found)

    def _reencodings(self, at: int, checks: Sequence[LimitCheck]) -> list[Rung]:
        """What a picture can be made into, for what counts: tokens where a limit of them is over, bytes with a limit.

        On top of what it was made into in an earlier turn.
        """
        part, fixed = self.base[at], self.base_settings.get(at, {})
        tokens_count = any(check.name not in ("bytes", "media_parts") for check in checks)
        bytes_count = any(check.name == "bytes" for check in self.judge(self.load).limits)
        found, made, target = list[Rung](), fixed.get(Lever.REENCODE), self.wishes[at].target
        for rung in rungs(
            Lever.REENCODE,
            part,
            self.rules,
            self.shaping,
            replace(target, region=None) if made else target,  # a region is of the picture as it came
            tokens_count=tokens_count,
            bytes_count=bytes_count,
        ):
            both = made.work and rung.work and work_over(made.work, rung.work) if made else None
            again = reencode_rung(both) if both else rung
            then = self.bench.part(at, {**fixed, Lever.REENCODE: again})
            tokens, fewer = part.total.high - then.total.high, size([then]) < size([part])
            if tokens > 0 or (tokens == 0 and fewer):
                found.append(again)
        return found

    def _request_ladder(self, movable: Sequence[tuple[int, ...]]) -> list[Move]:
        visual = tuple(at for at, part in enumerate(self.base) if is_visual(part) and part.error is None)
        if any(self.wishes[at].pinned for at in visual) or not {at for unit in movable for at in unit} & {*visual}:
            return []
        levels = request_levels(self.base, self.shaping, [wish.target for wish in self.wishes])
        moves = []
        for level in levels:
            rung = Rung(words=f"the request's resolution {level.value}", changes={"media_resolution": level})
            move = Move(Lever.RESOLUTION, visual, tuple(rung for _ in visual), request_wide=True)
            then = self.bench.parts([*self.fixed, move])
            if all(then[at].total.high <= self.base[at].total.high for at in visual):
                moves.append(move)
        return moves


def _side_by_side(lever: Lever, unit: tuple[int, ...], ladders: Sequence[Sequence[Rung]]) -> list[Move]:
    """The ladders of a unit as one; that of a part which is shorter than another ends on its last rung."""
    return [
        Move(lever, unit, tuple(ladder[min(step, len(ladder) - 1)] if ladder else None for ladder in ladders))
        for step in range(max(map(len, ladders), default=0))
    ]


def _of_bytes(checks: Sequence[LimitCheck]) -> bool:
    return any(check.name == "bytes" for check in checks)


def _may_go(then: Load, now: Load, bound: Bound, over: Bound) -> bool:
    """Whether a request is as good without a move as with it.

    Where a bound is broken anyway: no more tokens, no more bytes where those break it, and nothing else is broken.
    """
    checks = bound(now)
    if not checks:
        return not (bound(then) or over(then))
    if then.total.high > now.total.high or (_of_bytes(checks) and then.size_bytes > now.size_bytes):
        return False
    return _names(bound(then)) <= _names(checks) and (bound is over or _names(over(then)) <= _names(over(now)))


def _names(checks: Sequence[LimitCheck]) -> set[str]:
    return {check.name for check in checks}


def _refused(parts: Sequence[Weighed]) -> int:
    return sum(len(part.refused) for part in parts)
