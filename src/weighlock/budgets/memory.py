"""Budgets in this process alone; gone with it."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice, takewhile

from weighlock.budgets.audit import plus
from weighlock.budgets.hold import METRICS, Amounts, Counter, Grant, Reach, Row, State
from weighlock.budgets.local import LocalStore
from weighlock.budgets.shelf import Kept, Shelf, Sums
from weighlock.locks import Lock

_MOST_ROWS = 20_000
"""Past so many the older half is summed up, and repeated steps of holds settled by then find nothing."""


class MemoryStore(LocalStore):
    """The store of one process, for tests and for programs that end soon."""

    reach = Reach.PROCESS

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        super().__init__(clock)
        self._lock = Lock(whole=True)
        self._kept = _Kept()

    @contextmanager
    def _shelf(self, *, writing: bool) -> Iterator[Shelf]:
        with self._lock:
            yield self._kept

    def _worth_keeping(self, now: datetime) -> datetime:
        with self._lock:
            journal = self._kept.journal
            return (
                journal[-_MOST_ROWS // 2].at if len(journal) > _MOST_ROWS else datetime.min.replace(tzinfo=now.tzinfo)
            )

    def close(self) -> None:
        """Nothing to do."""


class _Kept:
    """A shelf of dicts."""

    def __init__(self) -> None:
        self.journal: deque[Row] = deque()
        self._seq = 0
        self._holds: dict[str, tuple[Kept, datetime]] = {}
        self._due: list[tuple[datetime, str]] = []
        self._sums: dict[str, Sums] = {}
        self._until: dict[str, datetime | None] = {}
        self._touched: dict[str, datetime] = {}
        self._summed: dict[str, Row] = {}
        self._grants: dict[str, Grant] = {}
        self._resets: dict[str, tuple[Amounts, datetime]] = {}

    def hold(self, hold_id: str) -> Kept | None:
        found = self._holds.get(hold_id)
        return None if found is None else found[0]

    def due(self, now: datetime) -> Sequence[Kept]:
        over = {}
        while self._due and self._due[0][0] <= now:
            expires_at, hold_id = heapq.heappop(self._due)
            kept = self.hold(hold_id)
            if kept is not None and kept.state is State.HELD and kept.expires_at == expires_at:
                over[hold_id] = kept
        for kept in over.values():  # until they are settled
            heapq.heappush(self._due, (kept.expires_at, kept.id))
        return tuple(over.values())

    def keep(self, kept: Kept, now: datetime) -> None:
        self._holds[kept.id] = (kept, now)
        if kept.state is State.HELD:
            heapq.heappush(self._due, (kept.expires_at, kept.id))

    def sums(self, keys: Iterable[str], metrics: Collection[str] = METRICS) -> Mapping[str, Sums]:
        return {key: self._sums[key] for key in keys if key in self._sums}

    def all_sums(self) -> Mapping[str, Sums]:
        return dict(self._sums)

    def add(self, keys: Sequence[str], spent: Amounts, held: Amounts, now: datetime) -> None:
        for key in keys:
            sums = self._sums.get(key, Sums())
            self._sums[key] = Sums(plus(sums.spent, spent), plus(sums.held, held))
            self._touched[key] = now

    def keep_until(self, counter: Counter) -> None:
        known = self._until.get(counter.key)
        self._until[counter.key] = max(filter(None, (known, counter.keep_until)), default=None)

    def write(self, row: Row) -> None:
        self._seq += 1
        self.journal.append(replace(row, seq=self._seq))

    def rows(self, since: datetime | None) -> Iterator[Row]:
        every = chain(self._summed.values(), self.journal)
        return every if since is None else (row for row in every if row.at >= since)

    def oldest(self, before: datetime, most: int) -> Sequence[Row]:
        return tuple(takewhile(lambda row: row.at < before, islice(self.journal, most)))

    def sum_up(self, rows: Sequence[Row], sums: Mapping[str, Sums], before: datetime) -> None:
        for row in rows:
            self.journal.popleft()
            kept, at = self._holds.get(row.id, (None, before))
            if kept is not None and kept.state is not State.HELD and at < before:
                del self._holds[row.id]
        for key, one in sums.items():
            known = self._summed.get(key)
            self._summed[key] = Row(
                seq=0,
                at=rows[-1].at,
                id=key,
                kind="prune",
                held=plus(one.held, known.held) if known else one.held,
                spent=plus(one.spent, known.spent) if known else one.spent,
                counters=(key,),
                note={},
            )

    def forget(self, before: datetime) -> None:
        for key, until in list(self._until.items()):
            if until is not None and max(until, self._touched[key]) < before and not self._sums[key].held:
                del self._until[key], self._touched[key], self._sums[key]
                self._summed.pop(key, None)
        self._grants = {key: grant for key, grant in self._grants.items() if grant.until >= before}
        self._resets = {key: (spent, at) for key, (spent, at) in self._resets.items() if at >= before}

    def add_grant(self, grant: Grant, grant_id: str) -> bool:
        is_new = grant_id not in self._grants
        self._grants.setdefault(grant_id, grant)
        return is_new

    def grants(self, now: datetime) -> Sequence[Grant]:
        return tuple(grant for grant in self._grants.values() if grant.until > now)

    def reset(self, reset_id: str) -> Amounts | None:
        found = self._resets.get(reset_id)
        return None if found is None else found[0]

    def add_reset(self, reset_id: str, spent: Amounts, now: datetime) -> None:
        self._resets[reset_id] = (spent, now)
