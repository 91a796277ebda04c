"""What a store on this machine does at each step, whatever it keeps things in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from weighlock.budgets.audit import plus, sums_of
from weighlock.budgets.hold import Amounts, Cap, Grant, Hold, Outcome, Reach, Row, Standing, State
from weighlock.budgets.shelf import NOTHING, Kept, Shelf, Sums

_BATCH = 500
"""Rows forgotten in one transaction, so that nobody waits for long."""
_UPKEEP_EVERY = 100
"""Holds between two looks at what can be forgotten."""


class LocalStore(ABC):
    """The rules of holds and counters, over a shelf.

    Args:
        clock: The time, aware; the machine's own where it is left out.
    """

    reach: Reach
    is_local: bool = True

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock or _utc_now
        self._since_upkeep = 0

    @abstractmethod
    def _shelf(self, *, writing: bool) -> AbstractContextManager[Shelf]:
        """All of a step happens, or nothing."""

    @abstractmethod
    def _worth_keeping(self, now: datetime) -> datetime:
        """What is older may be forgotten."""

    def now(self) -> datetime:
        return self._clock()

    # ---- holds

    def reserve(self, hold: Hold, caps: Sequence[Cap]) -> Outcome:
        self._maintain()
        with self._step() as (shelf, now):
            if (known := shelf.hold(hold.id)) is not None:
                return Outcome(done=False, state=known.state, standings=_standings(shelf, caps, now))
            standings = _standings(shelf, caps, now)
            if refused := _refused(standings, hold.need):
                return Outcome(done=False, state=None, standings=standings, refused=refused)
            need = _plain(hold.need)
            kept = Kept(
                id=hold.id,
                state=State.HELD,
                need=need,
                counters=tuple(counter.key for counter in hold.counters),
                expires_at=hold.expires_at,
            )
            _book(shelf, now, kept, "reserve", held=need, note=hold.note)
            for counter in hold.counters:
                shelf.keep_until(counter)
            return Outcome(done=True, state=kept.state, standings=_with(standings, need))

    def adjust(self, hold_id: str, need: Amounts, caps: Sequence[Cap]) -> Outcome:
        with self._step() as (shelf, now):
            kept, standings = shelf.hold(hold_id), _standings(shelf, caps, now)
            if kept is None or kept.state is not State.HELD or _plain(need) == kept.need:
                return Outcome(done=False, state=_state(kept), standings=standings)
            growth = plus(need, kept.need, -1)
            if refused := _refused(standings, growth):
                return Outcome(done=False, state=kept.state, standings=standings, refused=refused)
            _book(shelf, now, replace(kept, need=_plain(need)), "adjust", held=growth)
            return Outcome(done=True, state=kept.state, standings=_with(standings, growth))

    def extend(self, hold_id: str, expires_at: datetime) -> Outcome:
        with self._step() as (shelf, now):
            kept = shelf.hold(hold_id)
            if kept is None or kept.state is not State.HELD or kept.expires_at >= expires_at:
                return Outcome(done=False, state=_state(kept))
            _book(shelf, now, replace(kept, expires_at=expires_at), "extend")
            return Outcome(done=True, state=kept.state)

    def commit(self, hold_id: str, used: Amounts, note: Mapping[str, str] = MappingProxyType({})) -> Outcome:
        return self._settle(hold_id, State.COMMITTED, "commit", used, note)

    def release(self, hold_id: str) -> Outcome:
        return self._settle(hold_id, State.RELEASED, "release", NOTHING)

    def _settle(
        self, hold_id: str, state: State, kind: str, used: Amounts, note: Mapping[str, str] = MappingProxyType({})
    ) -> Outcome:
        with self._step() as (shelf, now):
            kept = shelf.hold(hold_id)
            if kept is None or kept.state not in (State.HELD, State.EXPIRED):
                return Outcome(done=False, state=_state(kept))
            settled = replace(kept, state=state)
            if kept.state is State.HELD:
                _book(shelf, now, settled, kind, held=plus(NOTHING, kept.need, -1), spent=_plain(used), note=note)
            else:
                _book(shelf, now, settled, kind, spent=plus(used, kept.need, -1), note=note)
            return Outcome(done=True, state=state)

    # ---- looking

    def standings(self, caps: Sequence[Cap]) -> tuple[Standing, ...]:
        with self._look() as (shelf, now):
            return _standings(shelf, caps, now)

    def counters(self) -> Mapping[str, tuple[Amounts, Amounts]]:
        with self._look() as (shelf, _):
            return shelf.all_sums()

    def journal(self, since: datetime | None = None) -> Iterable[Row]:
        with self._look() as (shelf, _):
            return tuple(shelf.rows(since))

    # ---- the operator's

    def grant(self, grant: Grant, grant_id: str) -> None:
        note = {"scope": grant.scope, "metric": grant.metric, "amount": str(grant.amount)}
        note |= {"until": grant.until.isoformat(), "reason": grant.reason, "by": grant.by}
        with self._step() as (shelf, now):
            if shelf.add_grant(grant, grant_id):
                shelf.write(_row(now, grant_id, "grant", note=note))

    def grants(self) -> Sequence[Grant]:
        with self._look() as (shelf, now):
            return shelf.grants(now)

    def reset(self, counters: Sequence[str], reset_id: str, note: Mapping[str, str]) -> Amounts:
        with self._step() as (shelf, now):
            if (known := shelf.reset(reset_id)) is not None:
                return known
            total = NOTHING
            for key, sums in shelf.sums(counters).items():
                total, gone = plus(total, sums.spent), plus(NOTHING, sums.spent, -1)
                shelf.add((key,), gone, NOTHING, now)
                shelf.write(_row(now, reset_id, "reset", spent=gone, counters=(key,), note=note))
            shelf.add_reset(reset_id, total, now)
            return total

    def rebuild(self) -> None:
        with self._step() as (shelf, now):
            told, counted = sums_of(shelf.rows(None)), shelf.all_sums()
            for key in {*told, *counted}:
                right, wrong = Sums(*told.get(key, ())), counted.get(key, Sums())
                shelf.add((key,), plus(right.spent, wrong.spent, -1), plus(right.held, wrong.held, -1), now)

    def prune(self, before: datetime) -> int:
        gone = 0
        while batch := self._prune(before):
            gone += batch
        return gone

    def _prune(self, before: datetime) -> int:
        with self._step() as (shelf, _):
            rows = shelf.oldest(before, _BATCH)
            shelf.sum_up(rows, {key: Sums(*found) for key, found in sums_of(rows).items()}, before)
            if len(rows) < _BATCH:
                shelf.forget(before)
            return len(rows)

    def _maintain(self) -> None:
        self._since_upkeep += 1
        if self._since_upkeep >= _UPKEEP_EVERY:
            self._since_upkeep = 0
            self._prune(self._worth_keeping(self.now()))

    @abstractmethod
    def close(self) -> None: ...

    # ---- steps

    @contextmanager
    def _step(self) -> Iterator[tuple[Shelf, datetime]]:
        with self._shelf(writing=True) as shelf:
            now = self.now()
            for kept in shelf.due(now):
                _book(
                    shelf,
                    now,
                    replace(kept, state=State.EXPIRED),
                    "expire",
                    held=plus(NOTHING, kept.need, -1),
                    spent=kept.need,
                )
            yield shelf, now

    @contextmanager
    def _look(self) -> Iterator[tuple[Shelf, datetime]]:
        with self._shelf(writing=False) as shelf:
            now = self.now()
            is_due = bool(shelf.due(now))
            if not is_due:
                yield shelf, now
        if is_due:
            with self._step() as step:
                yield step


def _book(
    shelf: Shelf,
    now: datetime,
    kept: Kept,
    kind: str,
    *,
    held: Amounts = NOTHING,
    spent: Amounts = NOTHING,
    note: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """One step of a hold: into the journal, and the same into every counter of it."""
    shelf.write(_row(now, kept.id, kind, held=held, spent=spent, counters=kept.counters, note=note))
    shelf.keep(kept, now)
    if held or spent or kind == "reserve":
        shelf.add(kept.counters, spent, held, now)


def _row(
    now: datetime,
    row_id: str,
    kind: str,
    *,
    held: Amounts = NOTHING,
    spent: Amounts = NOTHING,
    counters: tuple[str, ...] = (),
    note: Mapping[str, str] = MappingProxyType({}),
) -> Row:
    return Row(seq=0, at=now, id=row_id, kind=kind, held=held, spent=spent, counters=counters, note=note)


def _standings(shelf: Shelf, caps: Sequence[Cap], now: datetime) -> tuple[Standing, ...]:
    if not caps:
        return ()
    known = shelf.sums({key: None for cap in caps for key in cap.counters}, {cap.metric for cap in caps})
    grants = shelf.grants(now)
    return tuple(
        Standing(
            cap=cap,
            spent=sum(known[key].spent.get(cap.metric, 0) for key in cap.counters if key in known),
            held=sum(known[key].held.get(cap.metric, 0) for key in cap.counters if key in known),
            granted=sum(one.amount for one in grants if (one.scope, one.metric) == (cap.scope, cap.metric)),
        )
        for cap in caps
    )


def _refused(standings: Sequence[Standing], need: Amounts) -> tuple[int, ...]:
    needs = (need.get(one.cap.metric, 0) for one in standings)
    return tuple(at for at, (one, needed) in enumerate(zip(standings, needs, strict=True)) if needed > max(0, one.left))


def _with(standings: Sequence[Standing], need: Amounts) -> tuple[Standing, ...]:
    return tuple(
        Standing(cap=one.cap, spent=one.spent, held=one.held + need.get(one.cap.metric, 0), granted=one.granted)
        for one in standings
    )


def _state(kept: Kept | None) -> State | None:
    return None if kept is None else kept.state


def _plain(amounts: Amounts) -> Amounts:
    return {metric: amount for metric, amount in amounts.items() if amount}


def _utc_now() -> datetime:
    return datetime.now(UTC)
