"""The plan of a request that carries its history: turn by turn, each keeping what the turns before it decided. Pure.

A model's API has no memory: every request holds the whole conversation, as its author has it and not as it was sent. So
the plans of its earlier turns are made again, in order, from the same values that were there then; what came of them is
what the prompt cache holds, and it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from weighlock.planning.levers import Shaping
from weighlock.planning.load import Load
from weighlock.planning.moves import Bench, Memory, Move, Why, size
from weighlock.planning.placement import INLINE_ALL, InlineBelow, Placements, by_files, place, stays_inline
from weighlock.planning.plan import HALF, Judge, always, moves_to_keep, plan
from weighlock.planning.rewrite import rewritten
from weighlock.planning.screen import Screening
from weighlock.planning.steps import Plan, Wish
from weighlock.planning.weigh import Weighed
from weighlock.request import Request
from weighlock.rules import ModelRules


@dataclass(frozen=True, slots=True)
class Stage:
    """The request as it was when the model was asked in an earlier turn."""

    media: int
    """How many media it held, of those sent now."""
    text: Callable[[], Weighed]
    """All its text, weighed when somebody asks."""


def asked(request: Request) -> list[int]:
    """The turns in which the model answered: what stands before each was sent by then."""
    roles = [turn.role for turn in request.turns]
    return [at for at, role in enumerate(roles) if role == "model" and at and roles[at - 1] != "model"]


def stages(request: Request, screening: Screening, weigh_text: Callable[[Request], Weighed]) -> list[Stage]:
    """Every earlier turn in which the model was asked, oldest first; those with no medium before them are left out."""
    sent = [-1 if one.place.turn is None else one.place.turn for one in screening.findings if one.is_sent]
    if not sent:
        return []
    return [
        Stage(held, lambda end=end: weigh_text(until(request, screening, end)))  # type: ignore[misc]
        for end in asked(request)
        if (held := sum(turn < end for turn in sent))
    ]


def plan_conversation(
    media: Sequence[Weighed],
    text: Weighed,
    earlier: Sequence[Stage],
    rules: ModelRules,
    shaping: Shaping,
    judge: Judge,
    wishes: Sequence[Wish],
    *,
    below: InlineBelow,
    keep: int,
    per_tool: bool = False,
    batch: int,
    filled: Decimal = HALF,
) -> Plan:
    """The plan of the last turn, under what the earlier ones decided. Its parts are the media, then the text.

    The history lever may move what is `removable` among the wishes once it is older than the newest `keep` media, of
    all or of each tool; `batch` is how many earlier ones change together, and `filled` how much of the room they leave
    taken (`plan.filled_after`). What is too many bytes to go inline is placed first: it can change what a film costs,
    and an upload loses nothing, where encoding a picture again does.
    """
    memory: Memory = {}
    bench = Bench(media, rules, memory)
    placing = _Placing(bench, text, judge, below)
    # A picture is encoded again for the service to take it only where it cannot be uploaded as it is.
    endpoint_s = [move for move in always(bench, shaping, wishes) if move.why is not Why.TAKEN]

    def wishes_at(held: int, sent: int) -> list[Wish]:
        newest = _newest(wishes[:held], keep, per_tool=per_tool)
        here = [
            replace(
                wish, earlier=at if at < sent else None, removable=wish.removable and at < sent and at not in newest
            )
            for at, wish in enumerate(wishes[:held])
        ]
        return [*here, Wish()]

    kept: tuple[Move, ...] = ()
    placed, sent = INLINE_ALL, 0
    stored, now = placing.stored(endpoint_s), placing.parts(placed, endpoint_s)
    for stage in earlier:
        held = stage.media
        # The text only grew since: where the media fit beside all of it, nothing had to be done.
        first = placing.first([*stored[:held], text], sent, placed)
        if first != placed or judge(Load.of([*now[:held], text])).over:
            said = stage.text()
            first = placing.first([*stored[:held], said], sent, placed)
            now = placing.parts(first, [*endpoint_s, *kept])
            if judge(Load.of([*now[:held], said])).over:
                parts, here = [*placing.parts(first, [])[:held], said], wishes_at(held, sent)
                kept = moves_to_keep(
                    parts, rules, shaping, judge, here, batch=batch, kept=kept, memory=memory, filled=filled
                )
                stored = placing.stored([*endpoint_s, *kept])
                first = placing.settled(first, [*stored[:held], said], sent, [*endpoint_s, *kept], placed)
                now = placing.parts(first, [*endpoint_s, *kept])
            placed = first
        sent = held
    first = placing.first([*stored, text], sent, placed)
    parts, here = [*placing.parts(first, []), text], wishes_at(len(media), sent)
    found = plan(parts, rules, shaping, judge, here, batch=batch, kept=kept, memory=memory, filled=filled)
    last = placing.settled(first, [*placing.stored(found.moves), text], sent, found.moves, placed)
    if last != first:
        parts = [*placing.parts(last, found.moves), text]
        found = replace(found, parts=tuple(parts), verdict=judge(Load.of(parts)))
    return replace(found, placements=last, stays_inline=stays_inline(found.parts, rules, below))


class _Placing:
    """How the media travel, turn by turn: decided on what came, settled on what the moves leave of it."""

    def __init__(self, bench: Bench, text: Weighed, judge: Judge, below: InlineBelow) -> None:
        self.bench, self.judge, self.below = bench, judge, below
        # Earlier turns held less, and moves only make it less still.
        self.needed = bool(place([*bench.given, text], bench.rules, below))
        self._uploaded: dict[int, Weighed] = {}

    def first(self, stored: Sequence[Weighed], sent: int, kept: Placements) -> Placements:
        """What goes by the Files API in a turn, by what is known before it is planned."""
        return place(stored, self.bench.rules, self.below, kept=kept, sent=sent) if self.needed else kept

    def settled(
        self, first: Placements, stored: Sequence[Weighed], sent: int, moves: Sequence[Move], kept: Placements
    ) -> Placements:
        """The same once it is planned: what became small enough goes inline, unless that would break a limit."""
        last = self.first(stored, sent, kept)
        if last == first:
            return first
        *media, text = stored
        over, then = (
            {check.name for check in self.judge(Load.of([*self.parts(placed, moves)[: len(media)], text])).over}
            for placed in (first, last)
        )
        return last if then <= over else first

    def stored(self, moves: Sequence[Move]) -> list[Weighed]:
        """The media by the bytes they take. What a work may come to at most is no more than what it is made of."""
        pairs = zip(self.bench.given, self.bench.parts(moves), strict=True)
        return [old if size([new]) > size([old]) else new for old, new in pairs]

    def parts(self, placed: Placements, moves: Sequence[Move]) -> list[Weighed]:
        """The media as they weigh, placed and moved."""
        bench = self.bench
        for at in placed.keys() - self._uploaded.keys():
            self._uploaded[at] = by_files(bench.given[at], bench.rules)
        given = [self._uploaded[at] if at in placed else part for at, part in enumerate(bench.given)]
        return Bench(given, bench.rules, bench.memory).parts(moves)


def _newest(wishes: Sequence[Wish], keep: int, *, per_tool: bool) -> frozenset[int]:
    """The media that stay. What no tool returned counts as if one tool had."""
    if not per_tool:
        return frozenset(range(max(0, len(wishes) - keep), len(wishes)))
    of: dict[str | None, list[int]] = {}
    for at, wish in enumerate(wishes):
        of.setdefault(wish.tool, []).append(at)
    return frozenset(at for media in of.values() for at in media[max(0, len(media) - keep) :])


def until(request: Request, screening: Screening, end: int) -> Request:
    """The request as it was before a turn, screened as it is now."""

    def then(turn: int | None) -> bool:
        return turn is None or turn < end

    before = replace(
        screening,
        findings=tuple(one for one in screening.findings if then(one.place.turn)),
        changes=tuple(one for one in screening.changes if then(one.place.turn)),
    )
    return rewritten(replace(request, turns=tuple(request.turns[:end])), before)
