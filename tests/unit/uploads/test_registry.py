"""The table of references, by a clock that the test moves."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from weighlock.errors import StateUnavailable
from weighlock.gemini.files import FileState, RemoteFile
from weighlock.state import StateFile
from weighlock.uploads.chosen import Chosen
from weighlock.uploads.entries import FAILURE_KEPT_S, LEASE_S, Entry, Key, Lease
from weighlock.uploads.owners import is_dead, new_owner
from weighlock.uploads.registry import MARGIN_S, MIGRATIONS, Registry
from weighlock.uploads.upkeep import due

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
KEY = Key(account="acme", tenant="a", sha256="5" * 64, mime="video/mp4")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    opened = Registry(tmp_path / "uploads.db")
    yield opened
    opened.close()


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def claimed(registry: Registry, now: datetime = NOW, *, wanting: int = 0, owner: str = "", key: Key = KEY) -> Lease:
    lease = registry.claim(key, owner or new_owner(), now, wanting=wanting, size_bytes=7)
    assert lease is not None
    return lease


def file(name: str = "files/w1", created: datetime = NOW, hours: float = 48) -> RemoteFile:
    return RemoteFile(
        name=name,
        uri=f"https://service/v1beta/{name}",
        state=FileState.ACTIVE,
        created_at=created,
        expires_at=created + timedelta(hours=hours),
    )


def found(registry: Registry, now: datetime = NOW, key: Key = KEY) -> Entry:
    entry = registry.find(key, now)
    assert entry is not None
    return entry


def is_usable(registry: Registry, now: datetime) -> bool:
    return found(registry, now).usable(now) is not None


def test_a_path_that_is_no_utf8_comes_back_as_it_was(registry: Registry) -> None:
    path = Path(os.fsdecode(b"/media/\xff\xfe.png"))
    assert registry.claim(KEY, new_owner(), NOW, wanting=0, size_bytes=7, path=path)
    assert found(registry).path == path


def test_where_its_bytes_and_name_were_seen_last_is_remembered_and_a_claim_is_a_use(registry: Registry) -> None:
    def claim(at_s: float, path: Path | None, label: str | None) -> tuple[Path | None, str | None, datetime]:
        lease = registry.claim(KEY, new_owner(), after(at_s), wanting=0, size_bytes=7, path=path, label=label)
        assert lease is not None
        registry.release(lease)
        entry = found(registry)
        return entry.path, entry.label, entry.used_at

    assert claim(0, None, None) == (None, None, NOW)
    assert claim(1, Path("/a"), "a") == (Path("/a"), "a", after(1))
    assert claim(2, None, None) == (Path("/a"), "a", after(2))
    assert claim(3, Path("/b"), "b") == (Path("/b"), "b", after(3))


def test_one_claims_and_the_others_wait_until_it_is_recorded(registry: Registry) -> None:
    lease = claimed(registry)

    assert registry.claim(KEY, new_owner(), NOW, wanting=0, size_bytes=7) is None
    assert found(registry).uploading
    assert registry.record(lease, file(), NOW, 0.5)

    known = found(registry)
    assert known.usable(NOW) == known.remote
    assert (known.round, known.uploading, known.size_bytes) == (1, False, 7)
    assert known.remote is not None
    assert known.remote.uri == "https://service/v1beta/files/w1"


def test_who_saw_an_older_round_claims_nothing(registry: Registry) -> None:
    registry.record(claimed(registry), file(), NOW, 0.5)

    assert registry.claim(KEY, new_owner(), NOW, wanting=0, size_bytes=7) is None
    assert claimed(registry, wanting=1).round == 2


def test_a_lease_outlives_its_time_never_and_its_late_owner_writes_nothing(registry: Registry) -> None:
    late = claimed(registry)
    assert registry.claim(KEY, new_owner(), after(LEASE_S - 1), wanting=0, size_bytes=7) is None
    next_one = claimed(registry, after(LEASE_S))

    assert not registry.renew(late, after(LEASE_S))
    assert not registry.record(late, file("files/late"), after(LEASE_S), 0.5)
    assert not registry.fail(late, "unreadable", after(LEASE_S))
    assert not registry.release(late)
    assert registry.record(next_one, file("files/next"), after(LEASE_S), 0.5)
    known = found(registry)
    assert known.remote is not None
    assert known.remote.name == "files/next"


def test_renewing_is_for_the_whole_time_again(registry: Registry) -> None:
    lease = claimed(registry)

    assert registry.renew(lease, after(100))

    assert registry.claim(KEY, new_owner(), after(LEASE_S + 50), wanting=0, size_bytes=7) is None


def test_who_looked_at_the_clock_before_the_lease_began_does_not_take_it(registry: Registry) -> None:
    claimed(registry)

    assert registry.claim(KEY, new_owner(), after(-1), wanting=0, size_bytes=7) is None


def test_a_clock_set_back_frees_what_would_be_held_for_hours(registry: Registry) -> None:
    claimed(registry)

    assert claimed(registry, after(-7200)).fence == 2


def test_what_was_released_is_free(registry: Registry) -> None:
    assert registry.release(claimed(registry))

    assert claimed(registry).round == 1


def test_a_lease_of_a_process_that_died_is_free_at_once(registry: Registry) -> None:
    code = "from weighlock.uploads.owners import new_owner; print(new_owner())"
    dead = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    claimed(registry, owner=dead)

    assert is_dead(dead)
    assert claimed(registry).fence == 2


@pytest.mark.parametrize("owner", ["", "x", "elsewhere/pid:[4] 1 5 abc", "- 1 - abc"])
def test_an_owner_somewhere_else_may_be_alive(owner: str) -> None:
    assert not is_dead(owner)
    assert not is_dead(new_owner())


def test_a_file_is_used_no_more_some_time_before_it_ends(registry: Registry) -> None:
    registry.record(claimed(registry), file(), NOW, 0.5)
    end_s = 48 * 3600

    assert is_usable(registry, after(end_s - MARGIN_S - 1))
    assert not is_usable(registry, after(end_s - MARGIN_S))


def test_a_short_life_has_a_short_margin(registry: Registry) -> None:
    registry.record(claimed(registry), file(hours=0.1), NOW, 0.5)

    assert is_usable(registry, after(300))
    assert not is_usable(registry, after(330))


@pytest.mark.parametrize("hours", [-2, 2])
def test_ends_are_told_by_the_services_clock(registry: Registry, hours: int) -> None:
    registry.set_clock("acme", hours * 3600)
    registry.record(claimed(registry), file(created=after(hours * 3600)), NOW, 0.5)
    end_s = 48 * 3600 - MARGIN_S

    assert is_usable(registry, after(end_s - 1))
    assert not is_usable(registry, after(end_s))


@pytest.mark.parametrize(("chance", "share"), [(0.0, 0.7), (0.5, 0.8), (1.0, 0.9)])
def test_a_file_is_due_at_its_own_moment_and_only_while_it_is_usable(
    registry: Registry, chance: float, share: float
) -> None:
    registry.record(claimed(registry), file(), NOW, chance)
    due_s = share * 48 * 3600

    assert not found(registry).is_due(after(due_s - 1))
    assert found(registry).is_due(after(due_s + 1))
    assert not found(registry).is_due(after(48 * 3600))


def test_a_failure_is_believed_for_a_day(registry: Registry) -> None:
    assert registry.fail(claimed(registry), "no video track", NOW)

    known = found(registry)
    assert (known.round, known.failed(NOW), known.remote) == (1, "no video track", None)
    assert known.failed(after(FAILURE_KEPT_S)) is None


def test_a_name_leads_to_its_content_long_after_it_was_given_up(registry: Registry) -> None:
    registry.record(claimed(registry), file("files/one"), NOW, 0.5)
    registry.give_up("acme", "files/one", deleted=True)
    assert not is_usable(registry, NOW)
    registry.record(claimed(registry, wanting=1), file("files/two"), NOW, 0.5)

    entry = registry.by_name("acme", "a", "files/one", NOW)

    assert entry is not None
    assert (entry.key, entry.round) == (KEY, 2)
    assert entry.remote is not None
    assert entry.remote.name == "files/two"


def test_what_may_still_be_at_the_service_is_neither_deleted_nor_ended(registry: Registry) -> None:
    for at, name in enumerate(("files/one", "files/two", "files/three")):
        lease = claimed(registry, after(at), wanting=at)
        registry.record(lease, file(name, created=after(100 * at)), after(at), 0.5)
    registry.give_up("acme", "files/one", deleted=True)
    registry.give_up("acme", "files/two", deleted=False)

    assert sorted(registry.names(KEY, after(3))) == ["files/three", "files/two"]
    assert registry.names(KEY, after(48 * 3600 + 150)) == ["files/three"]


def test_no_tenant_and_no_account_sees_anothers(registry: Registry) -> None:
    registry.record(claimed(registry), file(), NOW, 0.5)
    other = Key(account="acme", tenant="b", sha256=KEY.sha256, mime=KEY.mime)

    assert registry.find(other, NOW) is None
    assert registry.by_name("acme", "b", "files/w1", NOW) is None
    assert registry.by_name("other", "a", "files/w1", NOW) is None
    assert registry.is_others("acme", "b", "files/w1")
    assert not registry.is_others("acme", "a", "files/w1")
    assert registry.entries(NOW, tenant="b") == []
    assert [one.key for one in registry.entries(NOW)] == [KEY]


def test_use_is_noted_now_and_then(registry: Registry) -> None:
    claimed(registry)

    registry.touch(found(registry), after(30))
    assert found(registry).used_at == NOW

    registry.touch(found(registry), after(90))
    assert found(registry).used_at == after(90)


def test_every_registry_of_a_file_has_its_secret(registry: Registry, tmp_path: Path) -> None:
    again, other = Registry(tmp_path / "uploads.db"), Registry(tmp_path / "other.db")

    assert again.secret == registry.secret
    assert other.secret != registry.secret
    again.close()
    other.close()


def test_what_is_in_use_and_near_its_end_is_due(registry: Registry) -> None:
    registry.record(claimed(registry), file(), NOW, 0.5)
    later = after(0.9 * 48 * 3600)

    assert due(registry.entries(NOW), NOW) == []
    assert due(registry.entries(later), later) == []
    registry.touch(found(registry), later)
    assert [one.key for one in due(registry.entries(later), later)] == [KEY]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE contents SET used_at = 1e300",
        "UPDATE contents SET used_at = 'lately'",
        "UPDATE contents SET size_bytes = 'x'",
        "UPDATE contents SET leased_until = 'x', owner = 'x'",
        "UPDATE remotes SET expires_at = x'ff'",
        "UPDATE clocks SET ahead_s = 'x'",
        "UPDATE secret SET value = 'text'",
        "UPDATE secret SET value = x''",
    ],
)
def test_what_none_of_ours_wrote_is_a_damaged_file(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "uploads.db"
    registry = Registry(path)
    registry.record(claimed(registry), file(), NOW, 0.5)
    registry.set_clock("acme", 3600)
    registry.close()
    sql = sqlite3.connect(path)
    with sql:
        sql.execute(damage)
    sql.close()

    for look in (Registry.find, Registry.entries):
        with pytest.raises(StateUnavailable, match=r"uploads\.db: .*; move it away"):
            look(Registry(path), *((KEY, NOW) if look is Registry.find else (NOW,)))


def test_a_content_is_found_by_the_name_its_tenant_chose_and_by_no_other_tenant(registry: Registry) -> None:
    other = replace(KEY, sha256="6" * 64)
    for key, name in ((KEY, "files/w1"), (other, "files/w2")):
        registry.record(claimed(registry, key=key), file(name), NOW, 0.5)
    chosen = Chosen(registry.file)

    assert chosen.choose(KEY, "files/mine", NOW)
    assert chosen.choose(KEY, "files/mine", NOW)
    assert not chosen.choose(other, "files/mine", NOW)
    assert not chosen.choose(replace(KEY, tenant="b"), "files/mine", NOW)  # it has no such content
    entry = registry.by_name("acme", "a", "files/mine", NOW)
    assert entry is not None
    assert entry.key == KEY
    assert registry.by_name("acme", "b", "files/mine", NOW) is None
    assert registry.by_name("elsewhere", "a", "files/mine", NOW) is None
    assert chosen.of("acme", "a") == {KEY: "files/mine"}

    assert chosen.choose(other, "files/mine", after(48 * 3600))  # what it was has ended
    registry.forget(other)
    assert registry.by_name("acme", "a", "files/mine", NOW) is None


def test_a_registry_of_the_first_version_goes_on(tmp_path: Path) -> None:
    first = StateFile(tmp_path / "uploads.db", MIGRATIONS[:1])
    with first.writing() as sql:
        sql.execute("INSERT INTO secret VALUES (1, ?)", (b"s" * 32,))
    first.close()

    registry = Registry(tmp_path / "uploads.db")
    registry.record(claimed(registry), file(), NOW, 0.5)

    assert registry.secret == b"s" * 32
    registry.describe(KEY, "a picture")
    assert Chosen(registry.file).choose(KEY, "files/mine", NOW)
    for name in (file().name, "files/mine"):
        assert registry.described("acme", "a", name) == (7, "a picture")
        assert registry.described("acme", "b", name) is None
    registry.close()
