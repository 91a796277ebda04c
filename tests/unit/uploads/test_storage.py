"""Room at the service, by a clock that the test moves: what counts, and what goes first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from weighlock.gemini.files import FileState, RemoteFile
from weighlock.uploads.entries import Key
from weighlock.uploads.owners import new_owner
from weighlock.uploads.registry import Registry
from weighlock.uploads.storage import HOLD_S, IN_USE_S, Storage

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR_S, LIFE_S = 3600.0, 48 * 3600.0
SIZE = 1000


class Shelf:
    """One account's registry; its contents are told apart by a letter."""

    def __init__(self, path: Path) -> None:
        self.registry = Registry(path)
        self.storage = Storage(self.registry.file)

    def key(self, letter: str, tenant: str = "a", account: str = "acme") -> Key:
        return Key(account=account, tenant=tenant, sha256=letter * 64, mime="image/png")

    def put(self, letter: str, at_s: float = 0, *, wanting: int = 0, tenant: str = "a", account: str = "acme") -> str:
        """A new file; its name is the letter and the round."""
        now, name = after(at_s), f"files/{letter}{wanting + 1}"
        lease = self.registry.claim(
            self.key(letter, tenant, account), new_owner(), now, wanting=wanting, size_bytes=SIZE
        )
        assert lease is not None
        file = RemoteFile(
            name=name,
            uri=name,
            state=FileState.ACTIVE,
            created_at=now,
            expires_at=now + timedelta(seconds=LIFE_S),
        )
        assert self.registry.record(lease, file, now, 0.5)
        return name

    def claim(self, letter: str, at_s: float, wanting: int) -> None:
        assert self.registry.claim(self.key(letter), new_owner(), after(at_s), wanting=wanting, size_bytes=SIZE)

    def spared(self, at_s: float, need_bytes: int = 10 * SIZE, tenant: str = "a") -> list[str]:
        return self.storage.give_up_oldest("acme", tenant, after(at_s), need_bytes)

    def used(self, at_s: float) -> int:
        return self.storage.used_bytes("acme", after(at_s))


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path / "uploads.db")
    yield made
    made.registry.close()


def test_what_is_there_or_on_its_way_takes_room_until_it_ends(shelf: Shelf) -> None:
    shelf.put("b")
    shelf.put("c", HOUR_S)
    shelf.put("d", account="other")
    assert shelf.used(HOUR_S) == 2 * SIZE

    shelf.claim("e", HOUR_S, wanting=0)
    assert shelf.used(HOUR_S) == 3 * SIZE
    assert shelf.used(LIFE_S + 1) == SIZE  # one file ended; whoever claimed is past its time
    assert shelf.used(LIFE_S + HOUR_S) == 0


def test_what_was_given_up_takes_room_until_it_is_deleted(shelf: Shelf) -> None:
    name = shelf.put("b")

    shelf.registry.give_up("acme", name, deleted=False)
    assert shelf.used(0) == SIZE
    shelf.registry.give_up("acme", name, deleted=True)
    assert shelf.used(0) == 0
    shelf.registry.give_up("acme", name, deleted=False)
    assert shelf.used(0) == 0


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_file_ends_by_the_service_s_clock(shelf: Shelf, hours: int) -> None:
    shelf.put("b")
    shelf.registry.set_clock("acme", hours * HOUR_S)

    assert shelf.used(LIFE_S - hours * HOUR_S - 1) == SIZE
    assert shelf.used(LIFE_S - hours * HOUR_S) == 0
    assert shelf.spared(LIFE_S - hours * HOUR_S) == []


def test_what_nobody_refers_to_goes_first_then_what_was_replaced_then_the_longest_unused(shelf: Shelf) -> None:
    used_last = shelf.put("b")
    used_first = shelf.put("c", 10)
    replaced, newest = shelf.put("d", 20), shelf.put("d", 40, wanting=1)
    given_up = shelf.put("e", 50)
    shelf.registry.give_up("acme", given_up, deleted=False)
    entry = shelf.registry.find(shelf.key("b"), NOW)
    assert entry is not None
    shelf.registry.touch(entry, after(100))

    assert shelf.spared(HOUR_S) == [given_up, replaced, used_first, newest, used_last]


def test_no_more_goes_than_is_needed(shelf: Shelf) -> None:
    first, second, third = (shelf.put(letter, at) for at, letter in enumerate("bcd"))

    assert shelf.spared(HOUR_S, need_bytes=SIZE + 1) == [first, second]
    shelf.registry.give_up("acme", first, deleted=True)
    shelf.registry.give_up("acme", second, deleted=True)
    assert shelf.spared(HOUR_S, need_bytes=1) == [third]


def test_what_was_used_just_now_or_is_held_stays(shelf: Shelf) -> None:
    names = [shelf.put(letter) for letter in "bc"]
    assert shelf.spared(IN_USE_S) == []

    assert shelf.storage.hold(shelf.key("b"), names[0], new_owner(), after(IN_USE_S))

    assert shelf.spared(IN_USE_S + 1) == [names[1]]


def test_a_lease_keeps_its_content_from_being_spared(shelf: Shelf) -> None:
    """One that was renewed long after it was last used."""
    shelf.put("b")
    lease = shelf.registry.claim(shelf.key("b"), new_owner(), after(0), wanting=1, size_bytes=SIZE)
    assert lease is not None
    for at_s in range(100, 1600, 100):
        assert shelf.registry.renew(lease, after(at_s))

    assert shelf.spared(1510) == []
    assert shelf.registry.release(lease)
    assert shelf.spared(1510) == ["files/b1"]


def test_another_tenant_s_files_are_spared_for_nobody(shelf: Shelf) -> None:
    shelf.put("b")

    assert shelf.spared(HOUR_S, tenant="other") == []


def test_a_hold_ends_with_its_time_or_its_process(shelf: Shelf) -> None:
    name = shelf.put("b")
    code = "from weighlock.uploads.owners import new_owner; print(new_owner())"
    dead = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    assert shelf.storage.hold(shelf.key("b"), name, new_owner(), after(HOUR_S))
    assert shelf.spared(HOUR_S + 1) == []
    assert shelf.spared(HOUR_S + HOLD_S) == [name]

    other = shelf.put("c")
    assert shelf.storage.hold(shelf.key("c"), other, dead, after(HOUR_S))
    assert other in shelf.spared(HOUR_S + 1)


def test_what_is_about_to_be_deleted_is_held_by_nobody_any_more(shelf: Shelf) -> None:
    name = shelf.put("b")
    shelf.registry.give_up("acme", name, deleted=False)

    assert shelf.storage.hold(shelf.key("b"), name, new_owner(), NOW) is None
    assert shelf.storage.hold(shelf.key("x"), name, new_owner(), NOW) is None


def test_the_last_to_let_go_gives_up_all_files_of_a_content(shelf: Shelf) -> None:
    first, second = shelf.put("b"), shelf.put("b", 10, wanting=1)
    held = [shelf.storage.hold(shelf.key("b"), second, new_owner(), after(20)) for _ in range(2)]
    assert held[0]
    assert held[1]

    assert shelf.storage.let_go(held[0], after(30)) == []
    assert sorted(shelf.storage.let_go(held[1], after(30))) == [first, second]
    assert shelf.storage.let_go(held[1], after(30)) == []
