"""Why there is no room, and when there will be. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from weighlock.budgets.hold import MICRO_USD, PROMPT_TOKENS, REQUESTS, Amounts, Cap, Outcome, Standing
from weighlock.budgets.windows import Budget, Rolling, Session, Window
from weighlock.errors import WindowExhausted
from weighlock.written import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A cap that a need does not fit in."""

    budget: Budget
    standing: Standing
    need: int
    pieces: tuple[Standing, ...] = ()
    """Of a rolling window, each by itself, the oldest first."""

    def retry_after_s(self, now: datetime) -> int | None:
        """When there is room, should nobody else use any; `None` where there will be none."""
        cap, window = self.standing.cap, self.budget.window
        if isinstance(window, Session) or self.need > cap.limit + self.standing.granted:
            return None
        if isinstance(window.period, Rolling):
            return self._over_s(window.period, now)
        return None if cap.ends_at is None else max(1, math.ceil((cap.ends_at - now).total_seconds()))

    def _over_s(self, period: Rolling, now: datetime) -> int:
        wanting = self.need - self.standing.left
        for piece in self.pieces:
            wanting -= piece.spent + piece.held
            if wanting <= 0:
                return max(1, math.ceil(period.over_at(piece.cap.counters[0]) - now.timestamp()))
        return period.seconds

    @property
    def is_rolling(self) -> bool:
        return isinstance(self.budget.window, Window) and isinstance(self.budget.window.period, Rolling)

    @property
    def piece_caps(self) -> tuple[Cap, ...]:
        """A cap for each piece of a rolling window."""
        cap = self.standing.cap
        return tuple(
            Cap(scope=cap.scope, window=cap.window, metric=cap.metric, limit=cap.limit, counters=(key,))
            for key in cap.counters
        )


def exhausted(short: Sequence[Short], now: datetime, endpoint: str | None) -> WindowExhausted:
    """The refusal, told by the cap that takes longest to have room again."""
    worst = max(short, key=lambda one: _longest(one.retry_after_s(now)))
    standing, retry_after_s = worst.standing, worst.retry_after_s(now)
    return WindowExhausted(
        _words(worst, retry_after_s),
        endpoint=endpoint,
        owner=worst.budget.owner,
        scope=standing.cap.scope,
        window=standing.cap.window,
        metric=standing.cap.metric,
        used=standing.spent,
        held=standing.held,
        need=worst.need,
        limit=standing.cap.limit,
        granted=standing.granted,
        left=max(0, standing.left),
        retry_after_s=retry_after_s,
        knob=worst.budget.knob(standing.cap.metric),
        refused_by=[one.budget.knob(one.standing.cap.metric) for one in short],
    )


def shortages(budgets: Sequence[Budget], outcome: Outcome, need: Amounts) -> list[Short]:
    """The caps that refused, each beside its budget and what was needed of it."""
    return [
        Short(budget=budgets[at], standing=one, need=need.get(one.cap.metric, 0))
        for at, one in enumerate(outcome.standings)
        if at in outcome.refused
    ]


def _longest(retry_after_s: int | None) -> float:
    return math.inf if retry_after_s is None else retry_after_s


def _words(short: Short, retry_after_s: int | None) -> str:
    standing, cap = short.standing, short.standing.cap
    kind, _, name = cap.scope.partition(":")
    granted = f" and {_amount(cap.metric, standing.granted)} granted" if standing.granted else ""
    whose = cap.window if kind == cap.window else f"{plain(f'{kind} {name}'.strip())}, {cap.window}"
    again = "waiting does not help" if retry_after_s is None else f"again in {_lasting(retry_after_s)}"
    owner = f" Owner: {plain(short.budget.owner)}." if short.budget.owner else ""
    need, left, limit, used, held = (
        _amount(cap.metric, amount)
        for amount in (short.need, max(0, standing.left), cap.limit, standing.spent, standing.held)
    )
    return (
        f"{whose}: needs {need}, and {left} of {limit}{granted} are left ({used} used, {held} held); {again}. "
        f"Limit: {short.budget.knob(cap.metric)}.{owner}"
    )


def _amount(metric: str, amount: int) -> str:
    """`$0.0172`, `8,000 prompt tokens`, `2,500 video tokens`, `60 requests`."""
    match metric:
        case _ if metric == MICRO_USD:
            places = 4 if amount % 100 == 0 else 6
            return f"${Decimal(amount) / 1_000_000:,.{places}f}"
        case _ if metric == REQUESTS:
            return f"{amount:,} requests"
        case _ if metric == PROMPT_TOKENS:
            return f"{amount:,} prompt tokens"
        case _:
            return f"{amount:,} {metric.rpartition('.')[2].lower()} tokens"


def _lasting(seconds: int) -> str:
    """`45 s`, `12 min`, `3 h 12 min`, `9 d`. Rounds up."""
    if seconds < 120:
        return f"{seconds} s"
    minutes = -(-seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{-(-hours // 24)} d"
