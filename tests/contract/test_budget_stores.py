"""What every store of budgets does, whatever it keeps them in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from budgeting import DAY, STORES, TENANT, cap, hold
from fake_io import FakeClock
from servers import shared
from weighlock.budgets.audit import sums_of, verify
from weighlock.budgets.hold import Amounts, Grant, State, Store

HELD, COMMITTED, RELEASED, EXPIRED = State.HELD, State.COMMITTED, State.RELEASED, State.EXPIRED


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


SERVERS = [pytest.param(name, marks=pytest.mark.external) for name in ("redis", "valkey")]


@pytest.fixture(params=[*STORES, *SERVERS])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    name = request.param
    store = STORES[name](tmp_path, clock.now) if name in STORES else shared(name, tmp_path, clock.now)
    yield store
    assert verify(store) == ()
    store.close()


def sums(store: Store, key: str = DAY) -> tuple[Amounts, Amounts]:
    """Spent and held, without zeros."""
    spent, held = store.counters().get(key, ({}, {}))
    return {metric: n for metric, n in spent.items() if n}, {metric: n for metric, n in held.items() if n}


def kinds(store: Store) -> list[str]:
    return [row.kind for row in store.journal()]


# ---- reserve


def test_a_hold_is_held_in_every_counter_up_to_the_limit_and_not_past_it(store: Store, clock: FakeClock) -> None:
    caps = [cap(5, "requests"), cap(100, "prompt_tokens", TENANT, scope="tenant:t")]
    need = {"requests": 2, "prompt_tokens": 40}

    outcomes = [store.reserve(hold(name, clock, DAY, TENANT, need=need), caps) for name in "abc"]

    assert [(one.done, one.state, one.refused) for one in outcomes] == [
        (True, HELD, ()), (True, HELD, ()), (False, None, (0, 1)),
    ]  # fmt: skip
    assert [(one.held, one.left) for one in outcomes[1].standings] == [(4, 1), (80, 20)]
    assert [(one.spent, one.held) for one in outcomes[2].standings] == [(0, 4), (0, 80)]
    assert sums(store) == sums(store, TENANT) == ({}, {"requests": 4, "prompt_tokens": 80})


def test_a_limit_is_inclusive_and_what_needs_nothing_of_it_is_not_asked(store: Store, clock: FakeClock) -> None:
    caps = [cap(10, "prompt_tokens"), cap(0, "tokens.VIDEO")]

    assert store.reserve(hold("all", clock, need={"prompt_tokens": 10}), caps).done
    assert store.reserve(hold("text", clock, need={"requests": 1}), caps).done
    assert store.reserve(hold("film", clock, need={"tokens.VIDEO": 1}), caps).refused == (1,)


def test_what_one_counter_has_no_room_for_is_in_none(store: Store, clock: FakeClock) -> None:
    caps = [cap(5), cap(0, "requests", TENANT)]

    refused = store.reserve(hold("a", clock, DAY, TENANT), caps)

    assert (refused.done, refused.refused) == (False, (1,))
    assert sums(store) == sums(store, TENANT) == ({}, {})
    assert kinds(store) == []


def test_a_hold_known_already_is_as_it_was_even_where_there_is_no_room(store: Store, clock: FakeClock) -> None:
    first = store.reserve(hold("a", clock), [cap(1)])

    again = store.reserve(hold("a", clock, need={"requests": 9}), [cap(1)])

    assert first.done
    assert (again.done, again.state, again.refused) == (False, HELD, ())
    assert again.standings == first.standings
    assert sums(store) == ({}, {"requests": 1})


def test_a_cap_over_several_counters_adds_them_up(store: Store, clock: FakeClock) -> None:
    pieces = ("endpoint:e|rolling 60s|0", "endpoint:e|rolling 60s|2")
    rolling = cap(3, "requests", *pieces, "endpoint:e|rolling 60s|4")
    store.reserve(hold("old", clock, pieces[0], need={"requests": 2}), [])
    store.commit("old", {"requests": 2})

    assert store.reserve(hold("a", clock, pieces[1]), [rolling]).done
    refused = store.reserve(hold("b", clock, pieces[1]), [rolling])

    assert refused.refused == (0,)
    assert [(one.spent, one.held) for one in refused.standings] == [(2, 1)]


# ---- adjust, extend


def test_what_grows_has_to_fit_and_what_shrinks_always_does(store: Store, clock: FakeClock) -> None:
    store.reserve(hold("a", clock, need={"requests": 1, "prompt_tokens": 50}), [])
    tight = [cap(60, "prompt_tokens"), cap(0, "requests")]

    grown = store.adjust("a", {"requests": 1, "prompt_tokens": 60}, tight)
    too_much = store.adjust("a", {"requests": 1, "prompt_tokens": 61}, tight)
    shrunk = store.adjust("a", {"prompt_tokens": 5}, [cap(0, "prompt_tokens")])

    assert (grown.done, too_much.done, too_much.refused, shrunk.done) == (True, False, (0,), True)
    assert grown.standings[0].held == 60
    assert too_much.state is HELD
    assert sums(store) == ({}, {"prompt_tokens": 5})


def test_an_adjustment_repeated_is_one(store: Store, clock: FakeClock) -> None:
    store.reserve(hold("a", clock), [])

    outcomes = [store.adjust("a", {"requests": 3}, [cap(3)]) for _ in range(2)]

    assert [(one.done, one.state) for one in outcomes] == [(True, HELD), (False, HELD)]
    assert sums(store) == ({}, {"requests": 3})


def test_a_hold_extended_is_charged_no_sooner(store: Store, clock: FakeClock) -> None:
    store.reserve(hold("a", clock, lasts_s=60), [])

    assert store.extend("a", clock.now() + timedelta(seconds=120)).done
    assert not store.extend("a", clock.now() + timedelta(seconds=30)).done

    clock.passed_s += 119
    store.release("another")  # a step, before which what is due is charged
    assert sums(store) == ({}, {"requests": 1})
    clock.passed_s += 1
    assert store.extend("a", clock.now() + timedelta(seconds=60)).state is EXPIRED
    assert sums(store) == ({"requests": 1}, {})


# ---- commit, release, expiry


def test_what_was_used_takes_the_place_of_what_was_held_in_the_counters_that_reserved_it(
    store: Store, clock: FakeClock
) -> None:
    store.reserve(hold("a", clock, DAY, TENANT, need={"requests": 1, "prompt_tokens": 50}), [])

    done = store.commit("a", {"requests": 1, "prompt_tokens": 70, "tokens.VIDEO": 3}, {"model": "m"})

    used = {"requests": 1, "prompt_tokens": 70, "tokens.VIDEO": 3}
    assert (done.done, done.state) == (True, COMMITTED)
    assert sums(store) == sums(store, TENANT) == (used, {})
    assert [dict(row.note) for row in store.journal() if row.kind == "commit"] == [{"model": "m"}]


def test_what_was_released_leaves_nothing(store: Store, clock: FakeClock) -> None:
    store.reserve(hold("a", clock), [cap(1)])

    assert store.release("a").state is RELEASED

    assert sums(store) == ({}, {})
    assert store.reserve(hold("b", clock), [cap(1)]).done


@pytest.mark.parametrize("first", ["commit", "release"])
@pytest.mark.parametrize("then", ["commit", "release", "adjust", "extend", "reserve"])
def test_a_settled_hold_stays_as_it_is(store: Store, clock: FakeClock, first: str, then: str) -> None:
    def step(name: str) -> State | None:
        match name:
            case "commit":
                return store.commit("a", {"requests": 2}).state
            case "release":
                return store.release("a").state
            case "adjust":
                return store.adjust("a", {"requests": 7}, []).state
            case "extend":
                return store.extend("a", clock.now() + timedelta(days=1)).state
            case _:
                return store.reserve(hold("a", clock), []).state

    store.reserve(hold("a", clock), [])
    settled = step(first)
    before = sums(store), kinds(store)

    assert step(then) is settled
    assert (sums(store), kinds(store)) == before


def test_a_hold_nobody_knows_is_none(store: Store, clock: FakeClock) -> None:
    outcomes = [
        store.commit("x", {"requests": 1}),
        store.release("x"),
        store.adjust("x", {"requests": 1}, []),
        store.extend("x", clock.now()),
    ]

    assert [(one.done, one.state) for one in outcomes] == [(False, None)] * 4
    assert store.counters() == {}


def test_a_hold_whose_time_is_over_is_charged_before_the_next_step(store: Store, clock: FakeClock) -> None:
    store.reserve(hold("late", clock, lasts_s=10), [cap(1)])
    clock.passed_s += 10

    standings = store.standings([cap(1)])
    refused = store.reserve(hold("b", clock), [cap(1)])

    assert [(one.spent, one.held) for one in standings] == [(1, 0)]
    assert refused.refused == (0,)
    assert kinds(store) == ["reserve", "expire"]


def test_a_late_commit_puts_the_charge_right(store: Store, clock: FakeClock) -> None:
    for name in ("more", "less", "none"):
        store.reserve(hold(name, clock, f"{name}|day", need={"prompt_tokens": 50}, lasts_s=10), [])
    clock.passed_s += 11

    states = [store.commit("more", {"prompt_tokens": 80}), store.commit("less", {"prompt_tokens": 20})]
    released = store.release("none")

    assert [one.state for one in states] == [COMMITTED, COMMITTED]
    assert (released.done, released.state) == (True, RELEASED)
    assert sums(store, "more|day") == ({"prompt_tokens": 80}, {})
    assert sums(store, "less|day") == ({"prompt_tokens": 20}, {})
    assert sums(store, "none|day") == ({}, {})


# ---- standings, grants, resets


def test_standings_of_what_nobody_used_are_zero(store: Store) -> None:
    (one,) = store.standings([cap(7)])

    assert (one.spent, one.held, one.granted, one.left) == (0, 0, 0, 7)


def test_a_grant_is_room_for_a_while_in_its_scope_and_metric(store: Store, clock: FakeClock) -> None:
    grant = Grant(
        scope="endpoint:e", metric="requests", amount=2, until=clock.now() + timedelta(hours=6), reason="r", by="me"
    )
    for _ in range(2):
        store.grant(grant, "g1")
    caps = [cap(1), cap(1, "requests", TENANT, scope="tenant:t")]

    assert list(store.grants()) == [grant]
    assert [one.left for one in store.standings(caps)] == [3, 1]
    assert store.reserve(hold("a", clock, need={"requests": 3}), caps[:1]).done
    clock.passed_s += 6 * 3600
    assert list(store.grants()) == []
    assert store.standings(caps)[0].left == -2
    (row,) = [row for row in store.journal() if row.kind == "grant"]
    assert (row.id, row.note["scope"], row.note["amount"], row.note["reason"], row.note["by"]) == (
        "g1", "endpoint:e", "2", "r", "me",
    )  # fmt: skip


def test_a_reset_forgives_what_was_spent_once_and_keeps_what_is_held(store: Store, clock: FakeClock) -> None:
    for name in ("a", "b"):
        store.reserve(hold(name, clock), [])
    store.commit("a", {"requests": 4})

    assert store.reset([DAY, "unknown"], "r1", {"reason": "test"}) == {"requests": 4}
    store.commit("b", {"requests": 1})
    assert store.reset([DAY], "r1", {"reason": "test"}) == {"requests": 4}

    assert sums(store) == ({"requests": 1}, {})
    assert [(row.id, row.note["reason"]) for row in store.journal() if row.kind == "reset"] == [("r1", "test")]


# ---- the journal


def test_the_journal_tells_every_step_in_order_with_what_it_changed(store: Store, clock: FakeClock) -> None:
    store.reserve(hold("a", clock, need={"prompt_tokens": 5}, note={"endpoint": "e"}), [])
    clock.passed_s += 1
    store.adjust("a", {"prompt_tokens": 8}, [])
    store.commit("a", {"prompt_tokens": 6})

    rows = list(store.journal())

    assert [(row.id, row.kind, dict(row.held), dict(row.spent), row.counters) for row in rows] == [
        ("a", "reserve", {"prompt_tokens": 5}, {}, (DAY,)),
        ("a", "adjust", {"prompt_tokens": 3}, {}, (DAY,)),
        ("a", "commit", {"prompt_tokens": -8}, {"prompt_tokens": 6}, (DAY,)),
    ]
    assert [row.seq for row in rows] == sorted({row.seq for row in rows})
    assert dict(rows[0].note) == {"endpoint": "e"}
    assert [row.kind for row in store.journal(clock.now())] == ["adjust", "commit"]


def test_counters_rebuilt_from_the_journal_are_the_same(store: Store, clock: FakeClock) -> None:
    for at in range(4):
        store.reserve(hold(str(at), clock, DAY, TENANT, need={"prompt_tokens": at + 1}), [])
    store.commit("0", {"prompt_tokens": 9})
    store.release("1")
    before = store.counters()

    store.rebuild()

    assert store.counters() == before
    assert sums(store) == ({"prompt_tokens": 9}, {"prompt_tokens": 7})


def test_what_is_pruned_stays_true_in_what_is_left(store: Store, clock: FakeClock) -> None:
    def request(name: str) -> None:
        day = f"endpoint:e|day|{clock.now():%d}"
        over = clock.now() + timedelta(hours=23)
        store.reserve(hold(name, clock, day, keep_until=over), [])
        store.reserve(hold(f"{name}m", clock, "endpoint:e|month|11", keep_until=over + timedelta(days=31)), [])
        store.commit(name, {"requests": 1})
        store.commit(f"{name}m", {"requests": 1})

    for at in range(4):
        request(f"r{at}")
        clock.passed_s += 86_400

    gone = store.prune(clock.now() - timedelta(days=2))

    assert gone > 0
    assert verify(store) == ()
    assert sorted(store.counters()) == ["endpoint:e|day|02", "endpoint:e|day|03", "endpoint:e|month|11"]
    assert sums(store, "endpoint:e|month|11") == ({"requests": 4}, {})
    assert len([row for row in store.journal() if row.kind != "prune"]) == 8
    assert sums_of(store.journal())["endpoint:e|month|11"] == ({"requests": 4}, {})
    assert store.prune(clock.now() - timedelta(days=2)) == 0
    store.rebuild()
    assert sums(store, "endpoint:e|month|11") == ({"requests": 4}, {})


def test_a_settled_hold_is_forgotten_with_its_rows(store: Store, clock: FakeClock) -> None:
    for name in ("old", "late"):
        store.reserve(hold(name, clock, lasts_s=10**6), [])
    store.commit("old", {"requests": 1})
    clock.passed_s += 5 * 86_400
    store.commit("late", {"requests": 1})

    store.prune(clock.now() - timedelta(days=2))

    assert store.release("old").state is None
    assert store.release("late").state is State.COMMITTED


def test_what_is_held_is_not_pruned(store: Store, clock: FakeClock) -> None:
    store.reserve(hold("long", clock, lasts_s=10**6, keep_until=clock.now()), [])
    clock.passed_s += 10**5

    store.prune(clock.now())

    assert sums(store) == ({}, {"requests": 1})
    assert store.commit("long", {"requests": 1}).done
    assert sums(store) == ({"requests": 1}, {})


def test_a_counter_that_a_late_bill_went_into_stays_as_long_as_its_row(store: Store, clock: FakeClock) -> None:
    over = clock.now() + timedelta(days=1)
    store.reserve(hold("late", clock, lasts_s=10**6, keep_until=over), [])
    clock.passed_s += 5 * 86_400
    store.commit("late", {"requests": 3})

    store.prune(clock.now() - timedelta(days=2))

    assert sums(store) == ({"requests": 3}, {})
    assert verify(store) == ()


def test_the_latest_time_a_counter_is_kept_until_counts(store: Store, clock: FakeClock) -> None:
    for name, days in (("a", 1), ("b", 9), ("c", 1)):
        store.reserve(hold(name, clock, keep_until=clock.now() + timedelta(days=days)), [])
        store.release(name)
    clock.passed_s += 5 * 86_400

    store.prune(clock.now())
    kept = DAY in store.counters()
    clock.passed_s += 5 * 86_400
    store.prune(clock.now())

    assert (kept, DAY in store.counters()) == (True, False)


# ---- together


def test_threads_admit_what_is_affordable_and_no_more(store: Store, clock: FakeClock) -> None:
    admitted: list[str] = []
    begin = threading.Barrier(16)

    def work(worker: int) -> None:
        begin.wait()
        for at in range(8):
            name = f"{worker}-{at}"
            for _ in range(2):  # and again, as after a lost answer
                outcome = store.reserve(hold(name, clock, DAY, TENANT), [cap(50)])
                if outcome.done:
                    admitted.append(name)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert len(admitted) == len(set(admitted)) == 50
    assert sums(store) == ({}, {"requests": 50})
    for name in admitted:
        store.commit(name, {"requests": 1})
    assert sums(store) == ({"requests": 50}, {})
