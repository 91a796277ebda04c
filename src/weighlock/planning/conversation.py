"""The plan of a request that carries its history: turn by turn, each keeping what the turns before it decided. Pure.

A model's API has no memory: every request holds the whole conversation, as its author has it and not as it was sent. So
the plans of its earlier turns are made again, in order, from the same values that were there then; what came of them is
what the prompt cache holds, and it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from weighlock.planning.levers import Shaping
from weighlock.planning.moves import Bench, Memory, Move
from weighlock.planning.plan import Judge, always, moves_to_keep, plan
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


def stages(request: Request, screening: Screening, weigh_text: Callable[[Request], Weighed]) -> list[Stage]:
    """Every earlier turn in which the model was asked, oldest first; those with no medium before them are left out."""
    sent = [-1 if one.place.turn is None else one.place.turn for one in screening.findings if one.is_sent]
    if not sent:
        return []
    roles = [turn.role for turn in request.turns]
    asked = (at for at, role in enumerate(roles) if role == "model" and at and roles[at - 1] != "model")
    return [
        Stage(held, lambda end=end: weigh_text(_until(request, screening, end)))  # type: ignore[misc]
        for end in asked
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
    keep: int,
    batch: int,
) -> Plan:
    """The plan of the last turn, under what the earlier ones decided. Its parts are the media, then the text.

    What is `removable` among the wishes may become a note once it is older than the newest `keep` media; `batch` is how
    many earlier ones change together.
    """
    memory: Memory = {}
    bench = Bench(media, rules, memory)
    endpoint_s = list(always(bench, shaping, wishes))

    def wishes_at(held: int, sent: int) -> list[Wish]:
        here = [
            replace(wish, earlier=at if at < sent else None, removable=wish.removable and at < min(sent, held - keep))
            for at, wish in enumerate(wishes[:held])
        ]
        return [*here, Wish()]

    kept: tuple[Move, ...] = ()
    sent = 0
    now = bench.parts(endpoint_s)
    for stage in earlier:
        held = stage.media
        # The text only grew since: where the media fit beside all of it, nothing had to be done.
        if judge([*now[:held], text]).over:
            parts, here = [*media[:held], stage.text()], wishes_at(held, sent)
            kept = moves_to_keep(parts, rules, shaping, judge, here, batch=batch, kept=kept, memory=memory)
            now = bench.parts([*endpoint_s, *kept])
        sent = held
    here = wishes_at(len(media), sent)
    return plan([*media, text], rules, shaping, judge, here, batch=batch, kept=kept, memory=memory)


def _until(request: Request, screening: Screening, end: int) -> Request:
    """The request as it was before a turn, screened as it is now."""

    def then(turn: int | None) -> bool:
        return turn is None or turn < end

    before = replace(
        screening,
        findings=tuple(one for one in screening.findings if then(one.place.turn)),
        changes=tuple(one for one in screening.changes if then(one.place.turn)),
    )
    return rewritten(replace(request, turns=tuple(request.turns[:end])), before)
