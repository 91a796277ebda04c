"""The file that budgets of one host are kept in."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from budgeting import DAY, cap, hold
from fake_io import FakeClock
from weighlock.budgets.sqlite import SqliteStore
from weighlock.errors import BudgetStoreUnavailable, ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    clock, path = FakeClock(), tmp_path / "budgets.db"
    store = SqliteStore(path, clock=clock.now)
    store.reserve(hold("a", clock), [])
    store.close()
    return path


def change(file: Path, words: str) -> None:
    sql = sqlite3.connect(file, isolation_level=None)
    sql.execute(words)
    sql.close()


def test_what_one_opening_held_the_next_one_settles(file: Path) -> None:
    store = SqliteStore(file, clock=FakeClock().now)

    assert store.commit("a", {"requests": 2}).done
    assert store.counters() == {DAY: ({"requests": 2}, {})}
    store.close()


def test_nothing_is_opened_before_the_first_step(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "budgets.db")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["UPDATE holds SET need = '{'", "UPDATE holds SET state = 'gone'"])
def test_a_damaged_row_is_a_typed_error(file: Path, words: str) -> None:
    change(file, words)
    store = SqliteStore(file, clock=FakeClock().now)

    with pytest.raises(BudgetStoreUnavailable, match="damaged; move it away: every budget begins anew"):
        store.commit("a", {"requests": 1})

    assert [one.held for one in store.standings([cap(5)])] == [1]
    store.close()


def test_a_file_of_a_newer_version_is_the_operators_to_settle(file: Path) -> None:
    change(file, "PRAGMA user_version=99")

    with pytest.raises(ConfigError, match=r"version 99.*every budget begins anew"):
        SqliteStore(file).counters()


def test_a_forked_child_counts_in_the_same_file(file: Path) -> None:
    clock = FakeClock()
    store = SqliteStore(file, clock=clock.now)
    store.reserve(hold("b", clock), [])
    child = os.fork()
    if not child:
        os._exit(0 if store.reserve(hold("c", clock), [cap(3)]).done else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.reserve(hold("d", clock), [cap(3)]).refused == (0,)
    assert [one.held for one in store.standings([cap(3)])] == [3]
    store.close()
