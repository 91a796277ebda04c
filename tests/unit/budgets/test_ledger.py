"""Requests against budgets, through both faces of `Io`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

import pytest

from fake_io import FACES, Face, FakeAsyncIo, FakeClock
from weighlock.budgets.audit import verify
from weighlock.budgets.hold import Amounts, Cap, Hold, Outcome, State
from weighlock.budgets.ledger import Ledger
from weighlock.budgets.memory import MemoryStore
from weighlock.budgets.reservation import OnStoreFailure, Reservation
from weighlock.budgets.windows import Budget, Period, Rolling, Session, Window
from weighlock.errors import BudgetError, BudgetStoreUnavailable, WindowExhausted

T = TypeVar("T")


class Flaky(MemoryStore):
    """A store that can be away."""

    away = False
    asked = 0

    def _shelf(self, *, writing: bool) -> Any:
        self.asked += 1
        if self.away:
            raise BudgetStoreUnavailable("budgets: locked for longer than 1 s")
        return super()._shelf(writing=writing)


@dataclass
class Desk:
    """A ledger, driven by a face."""

    face: Face
    clock: FakeClock = field(default_factory=FakeClock)
    on_failure: OnStoreFailure = OnStoreFailure.REJECT
    ledger: Ledger = field(init=False)
    store: Flaky = field(init=False)

    def __post_init__(self) -> None:
        self.store = Flaky(self.clock.now)
        self.ledger = Ledger(None, self.store, on_failure=self.on_failure)  # type: ignore[arg-type]

    def run(self, flow: Callable[[Ledger], Coroutine[Any, Any, T]]) -> T:
        async def with_io(io: Any) -> T:
            self.ledger._io = io
            return await flow(self.ledger)

        return self.face(with_io, self.clock)

    def reserve(self, name: str, need: Amounts, *budgets: Budget, lasts_s: float = 60) -> Reservation:
        return self.run(
            lambda ledger: ledger.reserve(name, need, budgets, lasts_s=lasts_s, note={"endpoint": "bug_triage"})
        )

    def refused(self, need: Amounts, *budgets: Budget) -> WindowExhausted:
        with pytest.raises(WindowExhausted) as refused:
            self.reserve("refused", need, *budgets)
        return refused.value


@pytest.fixture(params=FACES, ids=lambda face: face.__name__)
def desk(request: pytest.FixtureRequest) -> Desk:
    return Desk(face=request.param)


def day(usd: str | None = None, **limits: Any) -> Budget:
    window = Window(period=Period.DAY, cost_usd=usd and Decimal(usd), timezone="Europe/Berlin", **limits)  # type: ignore[arg-type]
    return Budget(scope="endpoint:bug_triage", window=window, of="bug_triage", owner="team-support")


def per(seconds: int, requests: int) -> Budget:
    window = Window(period=Rolling(seconds), requests=requests)
    return Budget(scope="endpoint:bug_triage", window=window, of="bug_triage")


SESSION = Budget(scope="session:4711", window=Session(prompt_tokens=100), of="agent")


def test_a_request_is_held_and_settled_by_its_bill(desk: Desk) -> None:
    reservation = desk.reserve("a", {"micro_usd": 50, "requests": 1}, day("1"), SESSION)

    settled = desk.run(lambda ledger: ledger.commit(reservation, {"micro_usd": 70, "requests": 1}))
    (standing, _) = desk.run(lambda ledger: ledger.standings([day("1"), SESSION]))

    assert (reservation.state, reservation.unverified) == (State.HELD, False)
    assert [one.held for one in reservation.standings] == [50, 0]
    assert (settled.state, settled.underestimated) == (State.COMMITTED, {"micro_usd": 20})
    assert (standing.spent, standing.held) == (70, 0)
    assert verify(desk.store) == ()


def test_a_request_that_was_not_sent_costs_nothing_and_both_ends_may_be_told_twice(desk: Desk) -> None:
    reservation = desk.reserve("a", {"requests": 1}, day(requests=1))

    states = [desk.run(lambda ledger: ledger.release(reservation)).state for _ in range(2)]

    assert states == [State.RELEASED] * 2
    assert desk.reserve("b", {"requests": 1}, day(requests=1)).state is State.HELD


def test_a_refusal_says_whose_window_has_no_room_for_what_and_until_when(desk: Desk) -> None:
    desk.reserve("a", {"micro_usd": 49_990_000}, day("50"))

    refused = desk.refused({"micro_usd": 20_000}, day("50"))

    assert str(refused) == (
        "endpoint bug_triage, day: needs $0.0200, and $0.0100 of $50.0000 are left ($0.0000 used, $49.9900 held); "
        "again in 11 h. Limit: windows.day.cost_usd of bug_triage. Owner: team-support."
    )
    told = {"scope", "window", "metric", "used", "held", "need", "limit", "retry_after_s", "knob", "endpoint", "owner"}
    assert {key: value for key, value in refused.figures.items() if key in told} == {
        "endpoint": "bug_triage",
        "owner": "team-support",
        "scope": "endpoint:bug_triage",
        "window": "day",
        "metric": "micro_usd",
        "used": 0,
        "held": 49_990_000,
        "need": 20_000,
        "limit": 50_000_000,
        "retry_after_s": 11 * 3600,
        "knob": "windows.day.cost_usd of bug_triage",
    }


def test_where_waiting_does_not_help_it_is_said(desk: Desk) -> None:
    desk.reserve("a", {"prompt_tokens": 90}, SESSION)

    over = desk.refused({"micro_usd": 2_000_000}, day("1"))
    session = desk.refused({"prompt_tokens": 11, "requests": 1}, SESSION, day(requests=0))

    assert [one.figures["retry_after_s"] for one in (over, session)] == [None, None]
    assert str(session).startswith(
        "session: needs 11 prompt tokens, and 10 prompt tokens of 100 prompt tokens are left"
    )
    assert "waiting does not help" in str(over)
    assert session.figures["refused_by"] == ["session.prompt_tokens of agent", "windows.day.requests of bug_triage"]


def test_a_rolling_window_has_room_when_enough_of_it_is_over(desk: Desk) -> None:
    hour = per(3600, 3)
    for name, wait_s in (("a", 600), ("b", 600), ("c", 600)):
        desk.reserve(name, {"requests": 1}, hour)
        desk.clock.passed_s += wait_s

    refused = desk.refused({"requests": 2}, hour)

    retry_after_s = refused.figures["retry_after_s"]
    assert 3600 - 1200 < retry_after_s <= 3600 - 1200 + Rolling(3600).piece_s
    desk.clock.passed_s += retry_after_s - 1
    desk.refused({"requests": 2}, hour)
    desk.clock.passed_s += 1
    assert desk.reserve("d", {"requests": 2}, hour).state is State.HELD


def test_another_need_takes_the_place_of_the_first_or_leaves_it(desk: Desk) -> None:
    budget = day(prompt_tokens=100)
    first = desk.reserve("a", {"prompt_tokens": 40}, budget)

    grown = desk.run(lambda ledger: ledger.adjust(first, {"prompt_tokens": 100}))
    with pytest.raises(WindowExhausted) as refused:
        desk.run(lambda ledger: ledger.adjust(grown, {"prompt_tokens": 101}))

    assert (grown.need, grown.standings[0].left) == ({"prompt_tokens": 100}, 0)
    assert (refused.value.figures["need"], refused.value.figures["left"]) == (1, 0)
    assert [held for _, held in desk.store.counters().values()] == [{"prompt_tokens": 100}]


def test_a_commit_after_midnight_lands_in_the_day_that_reserved_it(desk: Desk) -> None:
    reservation = desk.reserve("a", {"requests": 1}, day(requests=1), lasts_s=86_400)
    desk.clock.passed_s += 12 * 3600

    desk.run(lambda ledger: ledger.adjust(reservation, {"requests": 1, "prompt_tokens": 5}))
    desk.run(lambda ledger: ledger.commit(reservation, {"requests": 1}))

    assert dict(desk.store.counters()) == {"endpoint:bug_triage|day|2026-11-30": ({"requests": 1}, {})}
    assert desk.reserve("b", {"requests": 1}, day(requests=1)).state is State.HELD


def test_what_grows_after_midnight_has_to_fit_in_the_day_that_reserved_it(desk: Desk) -> None:
    first, _ = (desk.reserve(name, {"requests": 4}, day(requests=10), lasts_s=86_400) for name in "ab")
    desk.clock.passed_s += 12 * 3600

    with pytest.raises(WindowExhausted) as refused:
        desk.run(lambda ledger: ledger.adjust(first, {"requests": 7}))

    assert (refused.value.figures["held"], refused.value.figures["left"]) == (8, 2)
    assert desk.run(lambda ledger: ledger.adjust(first, {"requests": 6})).state is State.HELD


def test_a_hold_lives_as_long_as_it_is_extended_and_is_charged_then(desk: Desk) -> None:
    reservation = desk.reserve("a", {"requests": 1}, day(requests=5), lasts_s=30)
    desk.clock.passed_s += 29
    extended = desk.run(lambda ledger: ledger.extend(reservation, 30))
    desk.clock.passed_s += 30

    late = desk.run(lambda ledger: ledger.extend(extended, 30))
    with pytest.raises(BudgetError, match="was over before it was sent"):
        desk.run(lambda ledger: ledger.adjust(extended, {"requests": 2}))
    settled = desk.run(lambda ledger: ledger.commit(extended, {"requests": 3}))

    assert extended.expires_at > reservation.expires_at
    assert late.state is State.EXPIRED
    assert settled.state is State.COMMITTED
    assert [one.spent for one in desk.run(lambda ledger: ledger.standings([day(requests=5)]))] == [3]


def test_an_id_is_one_requests_and_repeated_is_the_same_hold(desk: Desk) -> None:
    first = desk.reserve("a", {"requests": 1}, day(requests=1))
    again = desk.reserve("a", {"requests": 1}, day(requests=1))
    desk.run(lambda ledger: ledger.commit(first, {"requests": 1}))

    assert again.state is State.HELD
    with pytest.raises(ValueError, match="committed already"):
        desk.reserve("a", {"requests": 1}, day(requests=1))


@pytest.mark.parametrize(
    ("need", "said"),
    [({"requests": -1}, "must be from 0 to"), ({"requests": 2**53}, "must be from 0 to"), ({"tokens": 1}, "no metric")],
)
def test_a_need_that_is_none_is_refused_before_it_is_held(desk: Desk, need: Amounts, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        desk.reserve("b", need, day(requests=1))

    assert desk.store.counters() == {}


def test_a_budget_is_told_of_before_it_is_empty(desk: Desk) -> None:
    budget = day("1", warn_at=Decimal("0.8"))

    quiet = desk.reserve("a", {"micro_usd": 799_999}, budget)
    loud = desk.reserve("b", {"micro_usd": 1}, budget)

    assert quiet.warnings == ()
    assert [(one.cap.window, one.held) for one in loud.warnings] == [("day", 800_000)]


# ---- the store is away


def test_closed_a_store_that_is_away_admits_nothing_and_is_asked_again_soon(desk: Desk) -> None:
    desk.store.away = True
    before = desk.store.asked
    for _ in range(50):
        with pytest.raises(BudgetStoreUnavailable, match="locked for longer"):
            desk.reserve("a", {"requests": 1}, day(requests=5))
    assert desk.store.asked == before + 1  # nobody waits for it in vain

    desk.store.away = False
    desk.clock.passed_s += 0.5

    assert desk.reserve("b", {"requests": 1}, day(requests=5)).state is State.HELD
    assert desk.ledger.unverified == 0


@pytest.mark.parametrize("face", FACES)
def test_open_it_admits_unverified_and_counts_each_and_books_what_was_used_once_it_is_back(face: Face) -> None:
    desk = Desk(face=face, on_failure=OnStoreFailure.ADMIT)
    desk.store.away = True

    admitted = [desk.reserve(f"r{at}", {"requests": 1}, day(requests=1)) for at in range(5)]
    adjusted = desk.run(lambda ledger: ledger.adjust(admitted[0], {"requests": 2}))
    settled = [desk.run(lambda ledger, one=one: ledger.commit(one, {"requests": 1})) for one in admitted[:4]]  # type: ignore[misc]
    released = desk.run(lambda ledger: ledger.release(admitted[4]))
    desk.store.away = False
    desk.clock.passed_s += 0.5
    refused = desk.refused({"requests": 1}, day(requests=4))

    assert {(one.unverified, one.state) for one in admitted} == {(True, None)}
    assert adjusted.need == {"requests": 2}
    assert desk.ledger.unverified == 5
    assert {(one.owed, one.state) for one in (*settled, released)} == {(True, None)}
    assert (refused.figures["used"], refused.figures["held"]) == (4, 0)
    assert verify(desk.store) == ()


def test_a_bill_that_cannot_be_booked_now_is_booked_with_the_next_step(desk: Desk) -> None:
    reservation = desk.reserve("a", {"requests": 1}, day(requests=9))
    desk.store.away = True
    settled = desk.run(lambda ledger: ledger.commit(reservation, {"requests": 3}))
    same = desk.run(lambda ledger: ledger.extend(reservation, 600))
    desk.store.away = False
    desk.clock.passed_s += 0.5

    (standing,) = desk.run(lambda ledger: ledger.standings([day(requests=9)]))

    assert (settled.owed, settled.state, settled.underestimated) == (True, None, {"requests": 2})
    assert same == reservation
    assert (standing.spent, standing.held) == (3, 0)


class Mumbling(Flaky):
    """A store whose first answer is lost on its way."""

    lost = False

    def reserve(self, hold: Hold, caps: Sequence[Cap]) -> Outcome:
        outcome = super().reserve(hold, caps)
        if not self.lost:
            self.lost = True
            raise BudgetStoreUnavailable("budgets: no answer within 1 s")
        return outcome


@pytest.mark.parametrize("asked_again", [True, False])
def test_a_hold_whose_answer_was_lost_is_the_same_when_asked_for_again_and_else_is_given_back(
    desk: Desk, asked_again: bool
) -> None:
    desk.store = desk.ledger._store = Mumbling(desk.clock.now)
    with pytest.raises(BudgetStoreUnavailable):
        desk.reserve("a", {"requests": 1}, day(requests=1))
    desk.clock.passed_s += 0.5

    held = desk.reserve("a" if asked_again else "b", {"requests": 1}, day(requests=1))

    assert (held.state, [one.held for one in held.standings]) == (State.HELD, [1])
    assert desk.run(lambda ledger: ledger.commit(held, {"requests": 1})).state is State.COMMITTED


class Shared(MemoryStore):
    """A store elsewhere, whose steps can be watched and held up."""

    is_local = False

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock.now)
        self.go, self.begun, self.made = threading.Event(), threading.Event(), threading.Event()

    def reserve(self, hold: Hold, caps: Sequence[Cap]) -> Outcome:
        self.begun.set()
        self.go.wait(5)
        try:
            return super().reserve(hold, caps)
        finally:
            self.made.set()


@pytest.mark.parametrize("made_before", [True, False], ids=["made", "under way"])
def test_a_caller_who_leaves_leaves_no_hold(made_before: bool) -> None:
    clock = FakeClock()
    store = Shared(clock)

    async def whole() -> None:
        async with FakeAsyncIo(clock) as io:
            ledger = Ledger(io, store)
            asked = asyncio.ensure_future(ledger.reserve("a", {"requests": 1}, [day(requests=1)], lasts_s=60))
            await asyncio.to_thread(store.begun.wait, 5)
            if made_before:
                store.go.set()
                store.made.wait(5)  # the loop is held up, and has not heard of it
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await ledger.standings([day(requests=1)])  # what is owed is settled, perhaps before there is a hold
            store.go.set()
            await asyncio.to_thread(store.made.wait, 5)
            (standing,) = await ledger.standings([day(requests=1)])
            for _ in range(100):
                if not standing.held:
                    break
                await asyncio.sleep(0.01)
                (standing,) = await ledger.standings([day(requests=1)])
            assert (standing.spent, standing.held) == (0, 0)
            ledger.close()

    asyncio.run(whole())


def test_what_is_broken_off_once_all_is_closed_is_settled_all_the_same() -> None:
    """As a stream nobody closed is, by its loop's own end."""
    clock = FakeClock()
    store = Shared(clock)
    store.go.set()

    async def never(*_: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    async def whole() -> None:
        async with FakeAsyncIo(clock) as io:
            ledger = Ledger(io, store)
            held = await ledger.reserve("a", {"requests": 1}, [day(requests=1)], lasts_s=60)
            ledger.close()
            io.call = never  # type: ignore[assignment, method-assign]
            committing = asyncio.ensure_future(ledger.commit(held, {"requests": 1}))
            await asyncio.sleep(0)
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing

    asyncio.run(whole())

    ((spent, left),) = store.counters().values()
    assert (spent["requests"], left.get("requests", 0)) == (1, 0)


def test_the_time_of_a_shared_store_is_read_once_a_minute() -> None:
    clock, read = FakeClock(), []

    class Watched(Shared):
        def now(self) -> Any:
            read.append(clock.passed_s)
            return super().now()

        def reserve(self, hold: Hold, caps: Sequence[Cap]) -> Outcome:
            return MemoryStore.reserve(self, hold, caps)

    store = Watched(clock)

    async def whole() -> list[Reservation]:
        async with FakeAsyncIo(clock) as io:
            ledger, made = Ledger(io, store), []
            for at in range(4):
                made.append(await ledger.reserve(str(at), {"requests": 1}, [SESSION], lasts_s=1))
                clock.passed_s += 30
            return made

    made = asyncio.run(whole())

    assert [(one.reserved_at - made[0].reserved_at).total_seconds() for one in made] == [0, 30, 60, 90]
    assert read == [0, 0, 30, 60, 90, 90]  # each step reads its own clock
