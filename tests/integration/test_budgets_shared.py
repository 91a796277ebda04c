"""Budgets that hosts share, on real servers: killed clients, a server that begins anew, one that is gone."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from budgeting import budget
from servers import Server
from weighlock.budgets.audit import verify
from weighlock.budgets.hold import Store
from weighlock.budgets.ledger import Ledger
from weighlock.budgets.redis import RedisStore
from weighlock.budgets.reservation import OnStoreFailure, Reservation
from weighlock.errors import BudgetStoreUnavailable, ConfigError, WindowExhausted
from weighlock.io import SyncIo, run

pytestmark = pytest.mark.external
HERE = Path(__file__).parent.parent
AFFORDABLE = 150


@pytest.fixture(params=["redis", "valkey"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    server = Server(request.param, tmp_path).start()
    yield server
    server.stop()


def begun(server: Server, folder: Path, seed: int, limit: int, asked: int) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    words = [sys.executable, "-m", "budgeting", server.url, str(folder / "x.db"), str(seed), str(limit), str(asked)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ)


def demand_right(store: Store) -> None:
    """Nothing is held, and the journal says what the counters say."""
    assert not any(any(held.values()) for _, held in store.counters().values())
    assert verify(store) == ()


def reserved(ledger: Ledger, name: str, limit: int = 10**9) -> Reservation:
    return run(ledger.reserve(name, {"requests": 1}, [budget(limit)], lasts_s=30))


def test_processes_at_once_are_admitted_up_to_the_limit(server: Server, tmp_path: Path) -> None:
    running = [begun(server, tmp_path, seed, AFFORDABLE, 256) for seed in range(3)]
    time.sleep(0.5)
    (tmp_path / "x.gate").touch()
    assert sum(int(one.communicate()[0]) for one in running) == AFFORDABLE
    store = RedisStore(server.url)
    assert sum(spent["requests"] for spent, _ in store.counters().values()) == AFFORDABLE
    demand_right(store)


@pytest.mark.slow
def test_killed_clients_leave_counters_that_are_what_the_journal_says(server: Server, tmp_path: Path) -> None:
    chance, kills = random.Random(4711), 0
    running = [begun(server, tmp_path, at, 10**9, 0) for at in range(3)]
    while kills < 100:
        oldest = running.pop(0)
        assert oldest.stdout is not None
        for _ in range(chance.randint(1, 40)):
            assert oldest.stdout.readline()
        time.sleep(chance.uniform(0, 0.003))
        oldest.kill()
        kills += oldest.wait() == -9
        oldest.stdout.close()
        running.append(begun(server, tmp_path, 1000 + kills, 10**9, 0))
    for one in running:
        one.kill()
        one.communicate()
    time.sleep(1)
    store = RedisStore(server.url)
    left = store.counters()
    demand_right(store)
    store.rebuild()
    assert store.counters() == left


@pytest.mark.slow
def test_a_server_killed_twenty_times_loses_no_step_it_answered(server: Server) -> None:
    store, done, stop = RedisStore(server.url), [0], threading.Event()

    def work(worker: int) -> None:
        with SyncIo() as io:
            ledger, at = Ledger(io, store), 0
            while not stop.is_set():
                at += 1
                try:
                    held = reserved(ledger, f"{worker}-{at}")
                    if run(ledger.commit(held, {"requests": 1})).state is not None:
                        with lock:
                            done[0] += 1
                except BudgetStoreUnavailable:
                    time.sleep(0.05)
            for _ in range(50):  # what is owed is settled once the server is back
                try:
                    run(ledger.standings([budget(10**9)]))
                    break
                except BudgetStoreUnavailable:
                    time.sleep(0.1)

    lock = threading.Lock()
    workers = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for one in workers:
        one.start()
    for _ in range(20):
        time.sleep(0.3)
        server.kill()
        server.start()
    time.sleep(0.5)
    stop.set()
    for one in workers:
        one.join()
    time.sleep(0.2)
    spent = sum(amounts.get("requests", 0) for amounts, _ in store.counters().values())
    print(f"{done[0]:,} answered, {spent:,} counted")
    assert done[0] > 100
    assert spent >= done[0]  # what was answered is there; a lost answer may stand for one more
    assert verify(store) == ()


@pytest.mark.parametrize("policy", OnStoreFailure)
def test_a_server_that_is_gone(server: Server, policy: OnStoreFailure) -> None:
    store = RedisStore(server.url)
    with SyncIo() as io:
        ledger = Ledger(io, store, on_failure=policy)
        run(ledger.release(reserved(ledger, "first")))
        server.kill()
        admitted = []
        for at in range(10):
            try:
                admitted.append(reserved(ledger, f"gone-{at}"))
            except BudgetStoreUnavailable:
                continue
        assert len(admitted) == (10 if policy is OnStoreFailure.ADMIT else 0)
        assert ledger.unverified == len(admitted)
        for one in admitted:
            assert run(ledger.commit(one, {"requests": 1})).owed
        server.start()
        begun_at = time.monotonic()
        while True:
            try:
                again = reserved(ledger, "back")
            except BudgetStoreUnavailable:
                again = None
            if again is not None and not again.unverified:
                break
            assert time.monotonic() - begun_at < 2
            time.sleep(0.02)
        run(ledger.release(again))
        run(ledger.standings([budget(10**9)]))
    assert sum(amounts.get("requests", 0) for amounts, _ in store.counters().values()) >= len(admitted)
    demand_right(store)


def test_neither_the_address_nor_its_password_is_told(server: Server) -> None:
    store = RedisStore("redis://:sesame-4711@127.0.0.1:1/0")
    with pytest.raises(BudgetStoreUnavailable) as caught:
        store.standings([])
    assert "sesame" not in f"{caught.value} {caught.value.figures} {caught.value.__cause__}"
    with pytest.raises(ConfigError) as wrong:
        RedisStore("ftp://sesame-4711")
    assert "sesame" not in str(wrong.value)


def test_data_of_another_version_is_refused(server: Server) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.set("{weighlock-budgets}:version", "2")
    with pytest.raises(ConfigError, match="another version"):
        RedisStore(server.url).counters()


def test_a_budget_is_one_for_all_who_name_the_server(server: Server) -> None:
    with SyncIo() as io:
        one, other = (Ledger(io, RedisStore(server.url)) for _ in range(2))
        reserved(one, "a", 1)
        with pytest.raises(WindowExhausted):
            reserved(other, "b", 1)
