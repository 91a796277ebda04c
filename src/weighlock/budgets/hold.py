"""What a store keeps: holds, and counters of what was spent and is held. Whole numbers only.

A hold is set aside before a request is sent and settled after: committed with what was used, released, or charged as it
stands once its time is over. Stores know counters and limits; what a window is, `windows` knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from weighlock.modality import Modality

Amounts = Mapping[str, int]
"""Of each metric so much: `prompt_tokens`, `requests`, `micro_usd` (millionths of a dollar), `tokens.VIDEO` …"""

PROMPT_TOKENS, REQUESTS, MICRO_USD = "prompt_tokens", "requests", "micro_usd"


def tokens_of(modality: Modality) -> str:
    """The metric of a modality's tokens, as sent."""
    return f"tokens.{modality.value}"


MOST = 10**15
"""Of one metric: a billion dollars. The sum of thousands of them is a number every store can add to."""
METRICS = (PROMPT_TOKENS, REQUESTS, MICRO_USD, *map(tokens_of, Modality))
"""All there are."""


def micro_usd(usd: Decimal, *, up: bool) -> int:
    """Millionths of a dollar: of a need `up`, of a limit down, so that no fraction slips through between them."""
    return int((usd * 1_000_000).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))


def amounts(
    *,
    requests: int = 1,
    prompt_tokens: int = 0,
    tokens: Mapping[Modality, int] = MappingProxyType({}),
    cost_usd: Decimal | None = None,
) -> Amounts:
    """What requests need, or used. An unknown cost is none: whether that may be is decided before."""
    given = {REQUESTS: requests, PROMPT_TOKENS: prompt_tokens}
    given |= {tokens_of(modality): count for modality, count in tokens.items()}
    if cost_usd is not None:
        given[MICRO_USD] = micro_usd(cost_usd, up=True)
    return {metric: min(amount, MOST) for metric, amount in given.items() if amount}


class Reach(StrEnum):
    """Who shares a store's counters."""

    PROCESS = "process"
    HOST = "host"
    SHARED = "shared"


class State(StrEnum):
    """Of a hold."""

    HELD = "held"
    COMMITTED = "committed"
    RELEASED = "released"
    EXPIRED = "expired"
    """Charged at what was held; a late commit or release puts that right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """One limit: what some counters hold together of one metric, inclusive."""

    scope: str
    """Whose it is: `endpoint:bug_triage`, `tenant:acme`, `session:…` (hashed), `overall`. Grants name it too."""
    window: str
    """Which of its budgets, for the reader: `day`, `rolling 3600s`, `session`."""
    metric: str
    limit: int
    counters: tuple[str, ...]
    """What is added up: one for a calendar window, the pieces of a rolling one."""
    warn_at: int | None = None
    """From so much on it is told."""
    ends_at: datetime | None = None
    """When its window is over; `None` of one that has no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Where a hold is counted."""

    key: str
    """Unique to scope and window: `endpoint:bug_triage|day|2026-11-30`."""
    keep_until: datetime | None
    """When nobody adds it up any more; `None` keeps it. Of several holds in one counter the latest counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What is set aside for one request, in every counter at once or in none."""

    id: str
    need: Amounts
    counters: tuple[Counter, ...]
    expires_at: datetime
    note: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """For the journal: endpoint, tenant, session (hashed), model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a cap stands after a step."""

    cap: Cap
    spent: int
    held: int
    """With this hold in it, where it was admitted."""
    granted: int = 0
    """On top of the limit, now."""

    @property
    def left(self) -> int:
        return self.cap.limit + self.granted - self.spent - self.held

    @property
    def warns(self) -> bool:
        return self.cap.warn_at is not None and self.spent + self.held >= self.cap.warn_at + self.granted


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a step. Nothing changed where it is not `done`."""

    done: bool
    state: State | None
    """Of the hold after it; `None` where there is none of that id."""
    standings: tuple[Standing, ...] = ()
    """One for each cap, in order."""
    refused: tuple[int, ...] = ()
    """Caps the need does not fit in, by place. A need of nothing fits everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """More of one metric for a while, for every window of a scope."""

    scope: str
    metric: str
    amount: int
    until: datetime
    reason: str
    by: str

    def __post_init__(self) -> None:
        if self.metric not in METRICS or not 0 < self.amount <= MOST:
            raise ValueError(f"a grant is from 1 to {MOST:,} of a metric, not {self.amount:,} {self.metric}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A step in the journal, which only grows. Over all rows, `spent` and `held` of a counter add up to it."""

    seq: int
    at: datetime
    id: str
    """Of the hold; of a grant or a reset its own."""
    kind: str
    """`reserve`, `adjust`, `extend`, `commit`, `release`, `expire`, `grant`, `reset`; `prune` sums up those before."""
    held: Amounts
    """By how much what is held changed, in each of `counters`."""
    spent: Amounts
    counters: tuple[str, ...]
    note: Mapping[str, str]


class Store(Protocol):
    """Holds, counters, grants and the journal. Every step is atomic, and may be repeated: it happens once.

    `now` is the time by which holds expire; holds past theirs are charged before any other step is taken. Thread-safe.

    Raises:
        BudgetStoreUnavailable: from every step, where the store cannot be asked, or did not say what it did.
    """

    reach: Reach
    is_local: bool
    """Whether a step takes microseconds, and may be taken on an event loop."""

    def now(self) -> datetime:
        """The store's own clock, which all who share it see."""
        ...

    def reserve(self, hold: Hold, caps: Sequence[Cap]) -> Outcome:
        """Sets aside, if every cap has room; known already by its id, it is as it was, and nothing is refused."""
        ...

    def adjust(self, hold_id: str, need: Amounts, caps: Sequence[Cap]) -> Outcome:
        """Another need in the place of a held one's. What grows has to fit in the caps."""
        ...

    def extend(self, hold_id: str, expires_at: datetime) -> Outcome:
        """A held one's later end."""
        ...

    def commit(self, hold_id: str, used: Amounts, note: Mapping[str, str] = MappingProxyType({})) -> Outcome:
        """Spent in the place of held, in the windows that reserved it; of an expired one, its charge is put right.

        Again, or after a release, nothing changes. No cap is asked: what was used was used.
        """
        ...

    def release(self, hold_id: str) -> Outcome:
        """Nothing was used, of an expired one neither. Again, or after a commit, nothing changes."""
        ...

    def standings(self, caps: Sequence[Cap]) -> tuple[Standing, ...]:
        """How they stand."""
        ...

    def grant(self, grant: Grant, grant_id: str) -> None: ...

    def grants(self) -> Sequence[Grant]:
        """Those in force."""
        ...

    def reset(self, counters: Sequence[str], reset_id: str, note: Mapping[str, str]) -> Amounts:
        """Nothing spent in these any more; what was. What is held stays held."""
        ...

    def journal(self, since: datetime | None = None) -> Iterable[Row]: ...

    def counters(self) -> Mapping[str, tuple[Amounts, Amounts]]:
        """Every counter: spent and held."""
        ...

    def rebuild(self) -> None:
        """Counters anew from the journal."""
        ...

    def prune(self, before: datetime) -> int:
        """Forgets rows and counters nobody adds up any more; sums of what is forgotten stay true. How many rows."""
        ...

    def close(self) -> None: ...
