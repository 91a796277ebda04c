"""Stores that are used for long do not grow for ever, and count on as if nothing were gone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from budgeting import STORES, hold
from fake_io import FakeClock
from weighlock.budgets.audit import verify
from weighlock.budgets.hold import Store


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_store_in_use_sums_up_what_is_old(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weighlock.budgets.local._UPKEEP_EVERY", 10)
    monkeypatch.setattr("weighlock.budgets.local._BATCH", 25)
    monkeypatch.setattr("weighlock.budgets.memory._MOST_ROWS", 100)
    clock = FakeClock()
    store: Store = STORES[kind](tmp_path, clock.now)

    for at in range(300):
        clock.passed_s += 86_400
        day = f"endpoint:e|day|{at}"
        store.reserve(hold(str(at), clock, day, "overall|ever", keep_until=clock.now() + timedelta(days=400)), [])
        store.commit(str(at), {"requests": 1})

    assert len(list(store.journal())) < 600
    assert len([row for row in store.journal() if row.kind != "prune"]) < 160
    assert store.counters()["overall|ever"] == ({"requests": 300}, {})
    assert verify(store) == ()
    store.close()
