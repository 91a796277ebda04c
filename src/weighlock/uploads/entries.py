"""Values of the registry, and how they are read from its rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from weighlock.errors import InputError
from weighlock.state import Damaged
from weighlock.uploads.owners import is_dead
from weighlock.written import is_unicode, quoted

if TYPE_CHECKING:
    import sqlite3

LEASE_S = 180.0
"""Longer than any single step of an upload; whoever goes on renews it."""
_HASTE_S = 60.0
FAILURE_KEPT_S = 86_400.0
"""So long nobody sends again what the service could not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a file is, and whose. Raises `InputError` where that is no text, such as the bytes of a broken argument."""

    account: str
    tenant: str
    sha256: str
    mime: str

    def __post_init__(self) -> None:
        for name in ("tenant", "mime"):
            if not is_unicode(getattr(self, name)):
                raise InputError(f"{name}: {quoted(getattr(self, name))} is not Unicode text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A file at the service. Times are the service's."""

    name: str
    uri: str
    round: int
    size_bytes: int
    uploaded_at: datetime
    expires_at: datetime
    usable_until: datetime
    refresh_at: datetime
    given_up: bool
    """Not to be used any more: gone, refused, or about to be deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is known of one content."""

    key: Key
    size_bytes: int
    label: str | None
    path: Path | None
    """Where its bytes were last seen, where they came from a file."""
    copied: bool
    round: int
    """Of its newest file, or failure; 0 before the first."""
    remote: Remote | None
    """Its newest file."""
    failure: str | None
    """Why the service could not read it."""
    failed_at: datetime | None
    used_at: datetime
    uploading: bool
    ahead_s: float

    def served(self, now: datetime) -> datetime:
        """The service's clock."""
        return now + timedelta(seconds=self.ahead_s)

    def usable(self, now: datetime) -> Remote | None:
        """The file a request may refer to."""
        remote = self.remote
        return remote if remote and not remote.given_up and self.served(now) < remote.usable_until else None

    def is_due(self, now: datetime) -> bool:
        """Whether a usable file is old enough to be replaced ahead of its end."""
        return (remote := self.usable(now)) is not None and self.served(now) >= remote.refresh_at

    def failed(self, now: datetime) -> str | None:
        """The failure, while it is believed."""
        recent = self.failed_at is not None and abs((now - self.failed_at).total_seconds()) < FAILURE_KEPT_S
        return self.failure if recent else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to upload a content. `round` is the one it leads to."""

    key: Key
    content: int
    owner: str
    fence: int
    round: int


# ---- rows


def columns(key: Key) -> tuple[str, str, str, str]:
    return key.account, key.tenant, key.sha256, key.mime


def content_row(sql: sqlite3.Connection, key: Key) -> sqlite3.Row | None:
    row: sqlite3.Row | None = sql.execute(
        "SELECT * FROM contents WHERE account = ? AND tenant = ? AND sha256 = ? AND mime = ?", columns(key)
    ).fetchone()
    return row


def is_leased(row: sqlite3.Row, now: datetime) -> bool:
    if row["owner"] is None:
        return False
    return runs(row["leased_until"], now, LEASE_S) and not is_dead(row["owner"])


def runs(until: float, now: datetime, term_s: float) -> bool:
    """Whether what was given for so long is not over. Far more than that left means that the clock was set back.

    A little more is nothing: `now` was looked at before the other one's term began.
    """
    return 0 < until - now.timestamp() <= term_s + _HASTE_S


def ahead_s(sql: sqlite3.Connection, account: str) -> float:
    found = sql.execute("SELECT ahead_s FROM clocks WHERE account = ?", (account,)).fetchone()
    if found is not None and not isinstance(found[0], float):
        raise Damaged("how far the service's clock is ahead is no number")
    return found[0] if found else 0.0


def entry_of(sql: sqlite3.Connection, row: sqlite3.Row | None, now: datetime) -> Entry | None:
    """Raises `Damaged` where a row holds what none of ours wrote."""
    try:
        return None if row is None else _entry(sql, row, now)
    except (ArithmeticError, OSError, TypeError, ValueError) as error:
        raise Damaged(f"what it says of an upload makes no sense ({type(error).__name__})") from error


def _entry(sql: sqlite3.Connection, row: sqlite3.Row, now: datetime) -> Entry:
    newest = sql.execute("SELECT * FROM remotes WHERE content = ? ORDER BY round DESC LIMIT 1", (row["id"],)).fetchone()
    return Entry(
        key=Key(account=row["account"], tenant=row["tenant"], sha256=row["sha256"], mime=row["mime"]),
        size_bytes=int(row["size_bytes"]),
        label=row["label"],
        path=None if row["path"] is None else Path(os.fsdecode(row["path"])),
        copied=row["copied_at"] is not None,
        round=row["round"],
        remote=None if newest is None else _remote(newest),
        failure=row["failure"],
        failed_at=None if row["failed_at"] is None else _moment(row["failed_at"]),
        used_at=_moment(row["used_at"]),
        uploading=is_leased(row, now),
        ahead_s=ahead_s(sql, row["account"]),
    )


def _remote(row: sqlite3.Row) -> Remote:
    times = {name: _moment(row[name]) for name in ("uploaded_at", "expires_at", "usable_until", "refresh_at")}
    return Remote(
        name=row["name"],
        uri=row["uri"],
        round=row["round"],
        size_bytes=int(row["size_bytes"]),
        given_up=bool(row["given_up"]),
        **times,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
