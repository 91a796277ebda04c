"""Budgets over time: into which counters a moment falls, and what may be in them. Pure.

A calendar window begins where its time zone says, so that a day has 23, 24 or 25 hours. A rolling one is counted in
pieces, and a piece that is partly over still counts: the limit is never overshot, and what was used weighs up to one
piece (a 59th of the window, at least a second) longer than it should.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from zoneinfo import ZoneInfo

from weighlock.budgets.hold import MICRO_USD, PROMPT_TOKENS, REQUESTS, Amounts, Cap, Counter, micro_usd, tokens_of
from weighlock.modality import Modality

_MOST_PIECES = 60
_SESSION_KEPT = timedelta(days=30)
"""A session in which nothing was sent for so long may begin anew."""


class Period(StrEnum):
    """Calendar windows."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True, order=True)
class Rolling:
    """The last so many seconds, at any moment."""

    seconds: int

    @property
    def value(self) -> str:
        """As the settings name it."""
        return f"rolling {self.seconds}s"

    @property
    def piece_s(self) -> int:
        """Length of what is counted together, and the most by which a use weighs too long."""
        return -(-self.seconds // (_MOST_PIECES - 1))

    def over_at(self, key: str) -> int:
        """When the piece of this counter counts no more, as a Unix time."""
        return int(key.rpartition("|")[2]) + self.piece_s + self.seconds


@dataclass(frozen=True, kw_only=True)
class Window:
    """What may be used in a period, inclusive. `None` is no limit."""

    period: Period | Rolling
    cost_usd: Decimal | None = None
    prompt_tokens: int | None = None
    tokens: Mapping[Modality, int] = field(default_factory=lambda: MappingProxyType({}))
    """By modality as sent."""
    requests: int | None = None
    timezone: str = "UTC"
    """IANA name; where a calendar period begins."""
    warn_at: Decimal | None = None
    """Fraction of the budget, 0 < warn_at ≤ 1."""

    @property
    def name(self) -> str:
        return self.period.value

    limits: Amounts = field(init=False, repr=False, compare=False)
    """The same by metric."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", _limits(self.cost_usd, self.prompt_tokens, self.requests, self.tokens))


@dataclass(frozen=True, kw_only=True)
class Session:
    """What one session may use: a run of an agent, however long. `None` is no limit."""

    cost_usd: Decimal | None = None
    prompt_tokens: int | None = None
    warn_at: Decimal | None = None
    """Fraction of the budget, 0 < warn_at ≤ 1."""

    @property
    def name(self) -> str:
        return "session"

    limits: Amounts = field(init=False, repr=False, compare=False)
    """The same by metric."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", _limits(self.cost_usd, self.prompt_tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A window or session of somebody."""

    scope: str
    """As `Cap.scope`."""
    window: Window | Session
    of: str
    """Whose settings say so: `bug_triage`, `tenants.acme`."""
    owner: str | None = None
    """Whom a refusal names."""

    def knob(self, metric: str) -> str:
        """The setting of one of its limits: `windows.day.cost_usd of bug_triage`."""
        place = "session" if isinstance(self.window, Session) else f"windows.{self.window.name}"
        return f"{place}.{'cost_usd' if metric == MICRO_USD else metric.lower()} of {self.of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where a request is counted, and what it has to fit in."""

    counters: tuple[Counter, ...]
    caps: tuple[Cap, ...]
    budgets: tuple[Budget, ...]
    """Of each cap."""


def placed(budgets: Sequence[Budget], now: datetime, reserved_at: datetime | None = None) -> Placed:
    """The place of a request counted at `reserved_at`, or now: its caps budget by budget, limit by limit."""
    slots = [(budget, _slot(budget, now, now if reserved_at is None else reserved_at)) for budget in budgets]
    pairs = [(budget, cap) for budget, slot in slots for cap in _caps(budget, slot)]
    return Placed(
        counters=tuple({slot.counter.key: slot.counter for _, slot in slots}.values()),
        caps=tuple(cap for _, cap in pairs),
        budgets=tuple(budget for budget, _ in pairs),
    )


def counters(budgets: Sequence[Budget], now: datetime) -> tuple[Counter, ...]:
    """Where a request of this moment is counted."""
    return placed(budgets, now).counters


def caps(budgets: Sequence[Budget], now: datetime, reserved_at: datetime | None = None) -> tuple[Cap, ...]:
    """What a request counted at `reserved_at`, or now, has to fit in."""
    return placed(budgets, now, reserved_at).caps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """A moment in a window."""

    counter: Counter
    added_up: tuple[str, ...]
    ends_at: datetime | None


def _caps(budget: Budget, slot: _Slot) -> list[Cap]:
    warn_at = budget.window.warn_at
    return [
        Cap(
            scope=budget.scope,
            window=budget.window.name,
            metric=metric,
            limit=limit,
            counters=slot.added_up,
            warn_at=None if warn_at is None else int((limit * warn_at).to_integral_value(ROUND_CEILING)),
            ends_at=slot.ends_at,
        )
        for metric, limit in budget.window.limits.items()
    ]


def _slot(budget: Budget, now: datetime, reserved_at: datetime) -> _Slot:
    window, name = budget.window, f"{budget.scope}|{budget.window.name}"
    if isinstance(window, Session):
        return _Slot(counter=Counter(key=name, keep_until=now + _SESSION_KEPT), added_up=(name,), ends_at=None)
    if isinstance(window.period, Rolling):
        return _rolling(name, window.period, now, reserved_at)
    key, ends_at = _calendar(window.period, window.timezone, int(reserved_at.timestamp()) // 60)
    key = f"{name}|{key}"
    return _Slot(counter=Counter(key=key, keep_until=ends_at), added_up=(key,), ends_at=ends_at)


@lru_cache(maxsize=256)
def _calendar(period: Period, zone: str, minute: int) -> tuple[str, datetime]:
    """What a period is called, unlike any other of its kind, and when it is over. Clocks are set on the minute."""
    local = datetime.fromtimestamp(minute * 60, ZoneInfo(zone))
    match period:
        case Period.MONTH:
            return f"{local:%Y-%m}", _midnight((local.replace(day=1, hour=12) + timedelta(days=31)).replace(day=1))
        case Period.DAY:
            return f"{local:%Y-%m-%d}", _midnight(local + timedelta(days=1))
        case Period.HOUR:
            begun, length = _at_its_offset(local).replace(minute=0, second=0, microsecond=0), timedelta(hours=1)
        case Period.MINUTE:
            begun, length = _at_its_offset(local).replace(second=0, microsecond=0), timedelta(minutes=1)
    return begun.isoformat(timespec="minutes"), (begun + length).astimezone(UTC)


def _at_its_offset(local: datetime) -> datetime:
    """The offset belongs to an hour's name: in autumn one of them comes twice."""
    return local.replace(tzinfo=timezone(local.utcoffset() or timedelta()))


def _midnight(local: datetime) -> datetime:
    """The moment a local day begins, also where the clock is set at midnight: of two the first."""
    return local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0).astimezone(UTC)


def _rolling(name: str, period: Rolling, now: datetime, reserved_at: datetime) -> _Slot:
    piece_s = period.piece_s
    last, own = (int(at.timestamp()) // piece_s for at in (now, reserved_at))
    first = (int(now.timestamp()) - period.seconds) // piece_s
    # What is counted in a piece that is over is in no window any more; it has to fit in somewhere all the same.
    pieces = sorted({own, *range(first, last + 1)})
    over = datetime.fromtimestamp((own + 1) * piece_s + period.seconds, UTC)
    return _Slot(
        counter=Counter(key=f"{name}|{own * piece_s}", keep_until=over),
        added_up=tuple(f"{name}|{piece * piece_s}" for piece in pieces),
        ends_at=None,
    )


def _limits(
    cost_usd: Decimal | None,
    prompt_tokens: int | None,
    requests: int | None = None,
    tokens: Mapping[Modality, int] = MappingProxyType({}),
) -> Amounts:
    given = {
        MICRO_USD: None if cost_usd is None else micro_usd(cost_usd, up=False),
        PROMPT_TOKENS: prompt_tokens,
        REQUESTS: requests,
        **{tokens_of(modality): limit for modality, limit in tokens.items()},
    }
    return {metric: limit for metric, limit in given.items() if limit is not None}
