"""Many at once on one budget: what is affordable is admitted, and no more, whoever is killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from budgeting import STORES, budget, burst
from servers import shared
from weighlock.budgets.audit import verify
from weighlock.budgets.hold import Store
from weighlock.budgets.ledger import Ledger
from weighlock.budgets.reservation import OnStoreFailure, Reservation
from weighlock.budgets.sqlite import SqliteStore
from weighlock.errors import BudgetStoreUnavailable, WindowExhausted
from weighlock.io import AsyncIo, SyncIo, run

HERE = Path(__file__).parent.parent
AT_ONCE, ROUNDS, AFFORDABLE = 64, 4, 150


SERVERS = [pytest.param(name, marks=pytest.mark.external) for name in ("redis", "valkey")]


@pytest.fixture(params=[*STORES, *SERVERS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    name = request.param
    store = STORES[name](tmp_path, lambda: datetime.now(UTC)) if name in STORES else shared(name, tmp_path)
    yield store
    store.close()


def demand_spent(store: Store, amount: int) -> None:
    """So much was spent, nothing is held, and the journal agrees."""
    assert sum(spent.get("requests", 0) for spent, _ in store.counters().values()) == amount
    assert not any(any(held.values()) for _, held in store.counters().values())
    assert verify(store) == ()


def test_threads_at_once_are_admitted_up_to_the_limit(store: Store) -> None:
    names = [str(at) for at in range(AT_ONCE * ROUNDS)]
    with SyncIo() as io:
        admitted = burst(Ledger(io, store), AFFORDABLE, names, threads=AT_ONCE, begin=lambda: None)

    assert len(set(admitted)) == len(admitted) == AFFORDABLE
    demand_spent(store, AFFORDABLE)


def test_tasks_at_once_are_admitted_up_to_the_limit(store: Store) -> None:
    store.is_local = False  # each step beside the loop, so that they truly meet

    async def whole() -> int:
        async with AsyncIo() as io:
            ledger = Ledger(io, store)

            async def request(name: str) -> int:
                try:
                    held = await ledger.reserve(name, {"requests": 1}, [budget(AFFORDABLE)], lasts_s=60)
                except WindowExhausted:
                    return 0
                await asyncio.sleep(0)
                await ledger.commit(held, {"requests": 1})
                return 1

            rounds = [[request(f"{at}-{one}") for one in range(AT_ONCE)] for at in range(ROUNDS)]
            return sum([sum(await asyncio.gather(*flows)) for flows in rounds])

    assert asyncio.run(whole()) == AFFORDABLE
    demand_spent(store, AFFORDABLE)


def begun(path: Path, seed: int, limit: int, asked: int, where: str | None = None) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    words = [sys.executable, "-m", "budgeting", where or str(path), str(path), str(seed), str(limit), str(asked)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ)


def test_processes_at_once_are_admitted_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "budgets.db"
    running = [begun(path, seed, AFFORDABLE, AT_ONCE * ROUNDS) for seed in range(3)]
    time.sleep(0.5)
    path.with_suffix(".gate").touch()

    admitted = [int(one.communicate()[0]) for one in running]

    assert [one.returncode for one in running] == [0, 0, 0]
    assert sum(admitted) == AFFORDABLE
    store = SqliteStore(path)
    demand_spent(store, AFFORDABLE)
    store.close()


@pytest.mark.slow
def test_processes_killed_at_any_moment_leave_counters_that_are_what_the_journal_says(tmp_path: Path) -> None:
    path, chance, kills, limit = tmp_path / "budgets.db", random.Random(4711), 0, 10**9
    store = SqliteStore(path, busy_s=20)
    running = [begun(path, at, limit, 0) for at in range(3)]
    while kills < 100:
        oldest = running.pop(0)
        assert oldest.stdout is not None
        for _ in range(chance.randint(1, 40)):
            assert oldest.stdout.readline()
        time.sleep(chance.uniform(0, 0.003))
        oldest.kill()
        kills += oldest.wait() == -9
        oldest.stdout.close()
        running.append(begun(path, 1000 + kills, limit, 0))
    for one in running:
        one.kill()
        one.communicate()
    time.sleep(1)

    left = store.counters()
    rows = sum(1 for _ in store.journal())
    sql = sqlite3.connect(path)
    intact = sql.execute("PRAGMA integrity_check").fetchall()
    sql.close()

    print(f"{kills} kills, {rows} rows, {left}")
    assert intact == [("ok",)]
    assert rows > 1000
    assert not any(any(held.values()) for _, held in left.values())
    assert verify(store) == ()
    store.rebuild()
    assert store.counters() == left
    store.close()


# ---- outages


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "budgets.db"


def reserved(ledger: Ledger, name: str) -> Reservation:
    return run(ledger.reserve(name, {"requests": 1}, [budget(50)], lasts_s=60))


def locked(file: Path) -> Callable[[], None]:
    made = SqliteStore(file)
    made.counters()
    made.close()
    other = sqlite3.connect(file)
    other.execute("BEGIN EXCLUSIVE")
    return other.close


def damaged(file: Path) -> Callable[[], None]:
    file.write_bytes(b"no database at all, but long enough" * 100)
    return file.unlink


@pytest.mark.parametrize("struck", [locked, damaged])
def test_closed_a_store_that_cannot_be_asked_admits_nothing_and_two_seconds_later_all(
    file: Path, struck: Callable[[Path], Callable[[], None]]
) -> None:
    heal = struck(file)
    with SyncIo() as io:
        ledger = Ledger(io, SqliteStore(file, busy_s=0.05))
        refused = 0
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            with pytest.raises(BudgetStoreUnavailable):
                reserved(ledger, str(refused))
            refused += 1
        heal()
        healed_at = time.monotonic()
        admitted = None
        while admitted is None and time.monotonic() < healed_at + 5:
            try:
                admitted = reserved(ledger, "after")
            except BudgetStoreUnavailable:
                time.sleep(0.01)
        recovery_s = time.monotonic() - healed_at

        assert refused > 1
        assert recovery_s < 2
        assert [one.held for one in run(ledger.standings([budget(50)]))] == [1]
        ledger.close()


@pytest.mark.parametrize("struck", [locked, damaged])
def test_open_it_admits_all_counts_each_and_books_their_bills_once_it_is_back(
    file: Path, struck: Callable[[Path], Callable[[], None]]
) -> None:
    heal = struck(file)

    async def whole(io: Any) -> None:
        ledger = Ledger(io, SqliteStore(file, busy_s=0.05), on_failure=OnStoreFailure.ADMIT)

        async def request(name: str) -> None:
            held = await ledger.reserve(name, {"requests": 1}, [budget(50)], lasts_s=60)
            assert held.unverified
            await ledger.commit(held, {"requests": 1})

        flows: list[Coroutine[Any, Any, None]] = [request(str(at)) for at in range(100)]
        await io.gather(flows)
        assert ledger.unverified == 100
        heal()
        await asyncio.sleep(0.6)
        for _ in range(5):  # a few bills with each step
            (standing,) = await ledger.standings([budget(50)])
        assert (standing.spent, standing.held) == (100, 0)
        with pytest.raises(WindowExhausted):
            await ledger.reserve("after", {"requests": 1}, [budget(50)], lasts_s=60)
        assert ledger.unverified == 100
        ledger.close()

    async def over_a_loop() -> None:
        async with AsyncIo() as io:
            await whole(io)

    asyncio.run(over_a_loop())
