"""Stores of budgets on a clock that a test moves, and requests to hold against them."""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from fake_io import FakeClock
from weighlock.budgets.hold import Amounts, Cap, Counter, Hold, Store
from weighlock.budgets.ledger import Ledger
from weighlock.budgets.memory import MemoryStore
from weighlock.budgets.redis import RedisStore
from weighlock.budgets.reservation import Reservation
from weighlock.budgets.sqlite import SqliteStore
from weighlock.budgets.windows import Budget, Rolling, Window
from weighlock.errors import WindowExhausted
from weighlock.io import SyncIo, run

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


# ---- a process of several that share one file


def budget(limit: int) -> Budget:
    """So many requests this year, which no test outlives."""
    window = Window(period=Rolling(366 * 86_400), requests=limit)
    return Budget(scope="overall", window=window, of="overall")


def burst(ledger: Ledger, limit: int, names: Sequence[str], *, threads: int, begin: Callable[[], None]) -> list[str]:
    """Asks for all of these at once, each twice, and settles what was admitted. Which ones."""
    ready = threading.Barrier(threads)
    admitted: list[Reservation] = []

    def ask(own: Sequence[str]) -> None:
        begin()
        ready.wait()
        for name in own:
            with suppress(WindowExhausted):
                for _ in range(2):
                    held = run(ledger.reserve(name, {"requests": 1}, [budget(limit)], lasts_s=600))
                admitted.append(held)

    asking = [threading.Thread(target=ask, args=(names[at::threads],)) for at in range(threads)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    for held in admitted:
        run(ledger.commit(held, {"requests": 1}))
    return [held.id for held in admitted]


def live(ledger: Ledger, limit: int, seed: str) -> None:
    """Requests one after another until the process is killed; some end well, some are left to expire."""
    chance = random.Random(seed)
    for at in itertools.count():
        with suppress(WindowExhausted):
            held = run(ledger.reserve(f"{seed}-{at}", {"requests": chance.randint(1, 3)}, [budget(limit)], lasts_s=0.5))
            print("held", flush=True)
            match chance.randint(0, 9):
                case 0:
                    continue
                case 1:
                    run(ledger.release(held))
                case 2:
                    run(ledger.adjust(held, {"requests": 3}))
                    run(ledger.commit(held, {"requests": 5}))
                case _:
                    run(ledger.commit(held, {"requests": chance.randint(0, 2)}))


def opened(where: str) -> Store:
    """A file, or the address of a server."""
    return RedisStore(where) if "://" in where else SqliteStore(Path(where), busy_s=20)


def main(where: str, path: str, seed: str, limit: str, asked: str) -> None:
    with SyncIo() as io:
        ledger = Ledger(io, opened(where))
        if not int(asked):
            live(ledger, int(limit), seed)
        names = [f"{seed}-{at}" for at in range(int(asked))]
        gate = Path(path).with_suffix(".gate")

        def begin() -> None:
            while not gate.exists():
                time.sleep(0.001)

        print(len(burst(ledger, int(limit), names, threads=64, begin=begin)))
        ledger.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
