"""Stores of budgets on a clock that a test moves, and requests to hold against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from fake_io import FakeClock
from weighlock.budgets.hold import Amounts, Cap, Counter, Hold, Store
from weighlock.budgets.memory import MemoryStore
from weighlock.budgets.sqlite import SqliteStore

StoreFactory = Callable[[Path, Callable[[], datetime]], Store]
"""A store of its own in this folder, by this clock."""

STORES: Mapping[str, StoreFactory] = {
    "memory": lambda _, clock: MemoryStore(clock),
    "sqlite": lambda folder, clock: SqliteStore(folder / "budgets.db", clock=clock),
}
"""Every store there is; what the contract says is asked of each."""

DAY = "endpoint:e|day|2026-11-30"
TENANT = "tenant:t|day|2026-11-30"


def cap(limit: int, metric: str = "requests", *counters: str, scope: str = "endpoint:e") -> Cap:
    return Cap(scope=scope, window="day", metric=metric, limit=limit, counters=counters or (DAY,))


def hold(
    name: str,
    clock: FakeClock,
    *counters: str,
    need: Amounts | None = None,
    lasts_s: float = 60,
    keep_until: datetime | None = None,
    note: Mapping[str, str] | None = None,
) -> Hold:
    return Hold(
        id=name,
        need={"requests": 1} if need is None else need,
        counters=tuple(Counter(key=key, keep_until=keep_until) for key in counters or (DAY,)),
        expires_at=clock.now() + timedelta(seconds=lasts_s),
        note=note or {},
    )
