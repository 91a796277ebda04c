"""Set aside before, put right after: what a request may cost is held in all its windows, and settled by its bill.

Over the `Io` that is handed in. A store on this machine is asked where we stand, others beside the event loop. Where a
caller leaves while a hold is being made, it is given back; what could not be settled is settled with the next step.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TypeVar

from weighlock.budgets.hold import METRICS, MOST, Amounts, Cap, Hold, Outcome, Standing, State, Store
from weighlock.budgets.refusal import exhausted, shortages
from weighlock.budgets.reservation import OnStoreFailure, Reservation, Settled
from weighlock.budgets.windows import Budget, Placed, caps, placed
from weighlock.errors import BudgetError, BudgetStoreUnavailable, WindowExhausted
from weighlock.io import Io, run
from weighlock.locks import Lock

T = TypeVar("T")
Step = Callable[[], Outcome]

_PAUSE_S = 0.5
"""A store that did not answer is not asked again for so long: nobody waits for it in vain."""
_CLOCK_GOOD_FOR_S = 60.0
_MOST_OWED, _PAID_AT_ONCE = 10_000, 20
_SETTLED, _LEFT = "settled", "left"
_NO_NOTE: Mapping[str, str] = MappingProxyType({})


class Ledger:
    """The budgets of all requests. Thread-safe; an id is one request's, and in one hand at a time.

    Args:
        io: What waits.
        store: What keeps holds and counters.
        on_failure: What becomes of a request while the store cannot be asked.
    """

    def __init__(self, io: Io, store: Store, *, on_failure: OnStoreFailure = OnStoreFailure.REJECT) -> None:
        self._io = io
        self._store = store
        self._on_failure = on_failure
        self._lock = Lock()
        self.unverified = 0
        """Requests admitted without asking the store."""
        self._owed: dict[tuple[str, str], Step] = {}
        """Why and of which hold: settlements, and the giving back of what nobody took."""
        self._is_closed = False
        self._asked_again_at = float("-inf")
        self._why = ""
        self._measured: tuple[datetime, float] | None = None

    async def reserve(
        self,
        hold_id: str,
        need: Amounts,
        budgets: Sequence[Budget],
        *,
        lasts_s: float,
        note: Mapping[str, str] = _NO_NOTE,
        binding: bool = True,
    ) -> Reservation:
        """Holds a need in all budgets at once. Known already by its id, the hold stays as it is. Without budgets no
        store is asked.

        Args:
            hold_id: Unique to the request.
            need: The most it may use.
            budgets: What it has to fit in.
            lasts_s: Until it is charged unsettled: the request's deadline and a while.
            note: For the journal: endpoint, tenant, session (hashed), model.
            binding: Otherwise nothing refuses it: what is over shows in its `standings`.

        Raises:
            WindowExhausted: a budget has no room; nothing is held.
            BudgetStoreUnavailable: the store cannot be asked, and the policy is to refuse.
            ValueError: a need that is none, or the id of a request that is settled.
        """
        _demand_whole(need)
        self._is_closed = False
        lasts, now = timedelta(seconds=lasts_s), self._io.now()

        def reservation(state: State | None, standings: tuple[Standing, ...] = ()) -> Reservation:
            return Reservation(
                id=hold_id,
                need=need,
                budgets=tuple(budgets),
                reserved_at=now,
                expires_at=now + lasts,
                state=state,
                standings=standings,
                note=note,
                binding=binding,
            )

        if not budgets:
            return reservation(State.HELD)
        try:
            now = await self._now()
            with self._lock:
                self._owed.pop((_LEFT, hold_id), None)  # asked for again, it is not given back
            await self._pay()
            place = placed(budgets, now)
            hold = Hold(id=hold_id, need=need, counters=place.counters, expires_at=now + lasts, note=note)
            outcome = await self._held(hold, place.caps if binding else ())
            standings = outcome.standings if binding else await self._ask(self._store.standings, place.caps)
        except BudgetStoreUnavailable as error:
            return self._unverified(reservation(None), error)
        if outcome.refused:
            raise await self._exhausted(place, outcome, need, now, note.get("endpoint"))
        if outcome.state is not State.HELD:
            raise ValueError(f"the request {hold_id!r} is {outcome.state} already; another one needs another id")
        return reservation(outcome.state, standings)

    async def adjust(self, reservation: Reservation, need: Amounts) -> Reservation:
        """Another need in the place of what is held. What grows has to fit; refused, the hold stays as it was.

        Raises:
            WindowExhausted: it does not fit.
            BudgetStoreUnavailable: as of `reserve`.
            BudgetError: the time of the hold is over.
        """
        _demand_whole(need)
        wanted = replace(reservation, need=need)
        if reservation.unverified or not reservation.budgets:
            return wanted
        try:
            now = await self._now()
            place = placed(reservation.budgets, now, reservation.reserved_at)
            held_by = place.caps if reservation.binding else ()
            outcome = await self._ask(self._store.adjust, reservation.id, need, held_by)
        except BudgetStoreUnavailable as error:
            return self._unverified(wanted, error)
        if outcome.refused:
            growth = {metric: amount - reservation.need.get(metric, 0) for metric, amount in need.items()}
            raise await self._exhausted(place, outcome, growth, now, reservation.note.get("endpoint"))
        if outcome.state is not State.HELD:
            raise BudgetError("the hold of this request was over before it was sent", state=outcome.state)
        return replace(wanted, standings=outcome.standings or reservation.standings)

    async def extend(self, reservation: Reservation, lasts_s: float) -> Reservation:
        """The hold for so long from now, where it is not over. Where the store cannot be asked it ends as it would."""
        if reservation.unverified or not reservation.budgets:
            return reservation
        try:
            expires_at = await self._now() + timedelta(seconds=lasts_s)
            outcome = await self._ask(self._store.extend, reservation.id, expires_at)
        except BudgetStoreUnavailable:
            return reservation
        if outcome.state is not State.HELD:
            return replace(reservation, state=outcome.state)
        return replace(reservation, expires_at=max(expires_at, reservation.expires_at))

    async def commit(self, reservation: Reservation, used: Amounts, *, note: Mapping[str, str] = _NO_NOTE) -> Settled:
        """What was used, in the windows that reserved it, in the place of what was held. May be repeated."""
        _demand_whole(used)

        def book() -> Outcome:
            outcome = self._store.commit(reservation.id, used, note)
            if outcome.state is not None:
                return outcome
            # Admitted unverified, or held where another store or file stands now: what was used was used.
            self._store.reserve(reservation.hold, ())
            return self._store.commit(reservation.id, used, note)

        return await self._settled(reservation, book, used)

    async def release(self, reservation: Reservation) -> Settled:
        """Nothing was used. May be repeated."""
        return await self._settled(reservation, lambda: self._store.release(reservation.id), {})

    async def standings(self, budgets: Sequence[Budget]) -> tuple[Standing, ...]:
        """How the caps of these budgets stand now.

        Raises:
            BudgetStoreUnavailable: the store cannot be asked.
        """
        now = await self._now()
        await self._pay()
        return await self._ask(self._store.standings, caps(budgets, now))

    def close(self) -> None:
        """Settles what is owed, in this thread, where the store can be asked, and closes it."""
        self._is_closed = True
        try:
            with suppress(BudgetStoreUnavailable):
                run(self._pay(_MOST_OWED, asked=_here))
        finally:
            self._store.close()

    # ---- what is owed

    async def _settled(self, reservation: Reservation, book: Step, used: Amounts) -> Settled:
        owed, state = False, None
        try:
            state = (await self._ask(book)).state if reservation.budgets else None
        except BudgetStoreUnavailable:
            owed = True
        except BaseException:  # the caller leaves; the bill stays
            self._owe(_SETTLED, reservation.id, book)
            if self._is_closed:  # nobody comes after: a stream that its loop itself had to end
                self.close()
            raise
        if owed:
            self._owe(_SETTLED, reservation.id, book)
        return Settled(
            id=reservation.id,
            state=state,
            used=used,
            underestimated=reservation.over(used),
            owed=owed,
        )

    def _owe(self, why: str, hold_id: str, step: Step) -> None:
        with self._lock:
            self._owed[why, hold_id] = step
            while len(self._owed) > _MOST_OWED:
                del self._owed[next(iter(self._owed))]

    async def _pay(
        self, most: int = _PAID_AT_ONCE, *, asked: Callable[[Step], Awaitable[Outcome]] | None = None
    ) -> None:
        for _ in range(min(most, len(self._owed))):
            with self._lock:
                if not self._owed:
                    return
                key, step = self._owed.popitem()
            try:
                await (asked or self._ask)(step)
            except BaseException:
                with self._lock:
                    self._owed.setdefault(key, step)
                raise

    # ---- the store

    async def _held(self, hold: Hold, caps: tuple[Cap, ...]) -> Outcome:
        deed = _Reserving(self._store, hold, caps)
        try:
            return await self._ask(deed)
        except BaseException as error:
            deed.leave()
            # It may have been made all the same, and answered to nobody. One that is admitted is booked later.
            admitted = self._on_failure is OnStoreFailure.ADMIT and isinstance(error, BudgetStoreUnavailable)
            if deed.begun and not admitted:
                self._owe(_LEFT, hold.id, lambda: self._store.release(hold.id))
            raise

    async def _ask(self, step: Callable[..., T], *args: object) -> T:
        if self._io.monotonic() < self._asked_again_at:
            raise BudgetStoreUnavailable(self._why, retry_after_s=_PAUSE_S)
        try:
            return step(*args) if self._store.is_local else await self._io.call(step, *args)
        except BudgetStoreUnavailable as error:
            self._why = error.message
            self._asked_again_at = self._io.monotonic() + _PAUSE_S
            raise

    async def _now(self) -> datetime:
        """By the store's clock. Another host's is read once a minute."""
        if self._store.is_local:
            return self._store.now()
        if self._measured is None or self._io.monotonic() - self._measured[1] > _CLOCK_GOOD_FOR_S:
            self._measured = (await self._ask(self._store.now), self._io.monotonic())
        read, at = self._measured
        return read + timedelta(seconds=self._io.monotonic() - at)

    def _unverified(self, wanted: Reservation, error: BudgetStoreUnavailable) -> Reservation:
        if wanted.binding and self._on_failure is OnStoreFailure.REJECT:
            raise error
        with self._lock:
            self.unverified += 1
        return replace(wanted, state=None, standings=(), unverified=True)

    async def _exhausted(
        self, place: Placed, outcome: Outcome, need: Amounts, now: datetime, endpoint: str | None
    ) -> WindowExhausted:
        short = []
        for one in shortages(place.budgets, outcome, need):
            pieces: tuple[Standing, ...] = ()
            if one.is_rolling:
                with suppress(BudgetStoreUnavailable):
                    pieces = await self._ask(self._store.standings, one.piece_caps)
            short.append(replace(one, pieces=pieces))
        return exhausted(short, now, endpoint)


async def _here(step: Step) -> Outcome:
    return step()


class _Reserving:
    """A hold being made, whose caller may leave meanwhile."""

    def __init__(self, store: Store, hold: Hold, caps: Sequence[Cap]) -> None:
        self._store = store
        self._hold = hold
        self._caps = caps
        self._lock = threading.Lock()
        self._left = False
        self.begun = False

    def __call__(self) -> Outcome:
        self.begun = True
        outcome = self._store.reserve(self._hold, self._caps)
        with self._lock:
            left = self._left
        if left and outcome.done:
            self._store.release(self._hold.id)
        return outcome

    def leave(self) -> None:
        """From here on nobody takes the hold. One made before is the caller's to give back."""
        with self._lock:
            self._left = True


def _demand_whole(amounts: Amounts) -> None:
    for metric, amount in amounts.items():
        if metric not in METRICS:
            raise ValueError(f"{metric!r} is no metric; known: {', '.join(METRICS)}")
        if not 0 <= amount <= MOST:
            raise ValueError(f"{metric} must be from 0 to {MOST:,}, and is {amount:,}")
