"""What was uploaded, for whom, until when; and who is uploading right now. For all processes of one host.

A content is (account, tenant, sha256, media type), and no tenant sees another's. Whoever finds nothing usable claims
it; the lease ends with its time or its owner's process, and a fence keeps a late owner from writing over a newer one.
Every new file of a content is a new round, and a claim names the round it found wanting: who comes late claims nothing.

Times of files are the service's, all others are ours; `ahead_s` leads from one clock to the other. Addresses of uploads
are never written here.
"""

from __future__ import annotations

import os
import secrets
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from weighlock.gemini.files import RemoteFile
from weighlock.state import Damaged, StateFile
from weighlock.uploads.entries import (
    LEASE_S,
    Entry,
    Key,
    Lease,
    ahead_s,
    columns,
    content_row,
    entry_of,
    is_leased,
)

if TYPE_CHECKING:
    import sqlite3

MARGIN_S = 600.0
"""Before its end a file is used no more: a request may still wait, and be read, for minutes."""
_LIFE_S = 48 * 3600.0
"""Where the service does not say."""
_REFRESH_AT, _SPREAD = 0.8, 0.1
_TOUCH_S = 60.0
_SECRET_BYTES = 32

MIGRATIONS = (
    """
    CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), value BLOB NOT NULL);
    CREATE TABLE clocks (account TEXT PRIMARY KEY, ahead_s REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE contents (
        id INTEGER PRIMARY KEY,
        account TEXT NOT NULL,
        tenant TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        mime TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        label TEXT,
        path TEXT,
        copied_at REAL,
        round INTEGER NOT NULL DEFAULT 0,
        owner TEXT,
        leased_until REAL,
        fence INTEGER NOT NULL DEFAULT 0,
        failure TEXT,
        failed_at REAL,
        used_at REAL NOT NULL,
        UNIQUE (account, tenant, sha256, mime)
    );
    CREATE TABLE remotes (
        account TEXT NOT NULL,
        name TEXT NOT NULL,
        content INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
        round INTEGER NOT NULL,
        uri TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        uploaded_at REAL NOT NULL,
        expires_at REAL NOT NULL,
        usable_until REAL NOT NULL,
        refresh_at REAL NOT NULL,
        given_up INTEGER NOT NULL DEFAULT 0,
        deleted INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (account, name)
    ) WITHOUT ROWID;
    CREATE INDEX remotes_of ON remotes (content, round);
    CREATE TABLE holds (
        id TEXT PRIMARY KEY,
        content INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
        owner TEXT NOT NULL,
        held_until REAL NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE chosen (
        account TEXT NOT NULL,
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        content INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
        PRIMARY KEY (account, tenant, name)
    ) WITHOUT ROWID;
    CREATE INDEX chosen_for ON chosen (content);
    """,
    "ALTER TABLE contents ADD COLUMN facts TEXT",
)


class Registry:
    """The table of references. Thread-safe, fork-safe; every method is one short transaction."""

    def __init__(self, path: Path, *, busy_s: float = 5.0) -> None:
        """Raises what `StateFile` does."""
        self.file = StateFile(path, MIGRATIONS, busy_s=busy_s)
        with self.file.writing() as sql:
            sql.execute("INSERT OR IGNORE INTO secret VALUES (1, ?)", (secrets.token_bytes(_SECRET_BYTES),))
            (self.secret,) = sql.execute("SELECT value FROM secret").fetchone()
            if not isinstance(self.secret, bytes) or len(self.secret) != _SECRET_BYTES:
                raise Damaged("its secret is none")

    def close(self) -> None:
        self.file.close()

    # ---- looking

    def find(self, key: Key, now: datetime) -> Entry | None:
        with self.file.reading() as sql:
            return entry_of(sql, content_row(sql, key), now)

    def by_name(self, account: str, tenant: str, name: str, now: datetime) -> Entry | None:
        """The content a file of this name has, or had once, or that the tenant calls so."""
        with self.file.reading() as sql:
            return entry_of(sql, _named(sql, account, tenant, name), now)

    def described(self, account: str, tenant: str, name: str) -> tuple[int, str] | None:
        """How many bytes a file of this name has, and what `describe` was told of them."""
        with self.file.reading() as sql:
            found = _named(sql, account, tenant, name)
        return None if found is None or found["facts"] is None else (found["size_bytes"], found["facts"])

    def describe(self, key: Key, facts: str) -> None:
        """What a content is. Written where that is news."""
        with self.file.reading() as sql:
            row = content_row(sql, key)
        if row is not None and row["facts"] != facts:
            with self.file.writing() as sql:
                sql.execute("UPDATE contents SET facts = ? WHERE id = ?", (facts, row["id"]))

    def is_others(self, account: str, tenant: str, name: str) -> bool:
        """Whether a file of this name is another tenant's."""
        with self.file.reading() as sql:
            found = sql.execute(
                "SELECT 1 FROM remotes JOIN contents ON contents.id = content "
                "WHERE remotes.account = ? AND name = ? AND tenant <> ?",
                (account, name, tenant),
            ).fetchone()
        return found is not None

    def entries(self, now: datetime, *, account: str | None = None, tenant: str | None = None) -> list[Entry]:
        """All there are, the last used first."""
        with self.file.reading() as sql:
            rows = sql.execute(
                "SELECT * FROM contents WHERE account = ifnull(?, account) AND tenant = ifnull(?, tenant) "
                "ORDER BY used_at DESC, id",
                (account, tenant),
            ).fetchall()
            return [entry for row in rows if (entry := entry_of(sql, row, now)) is not None]

    def names(self, key: Key, now: datetime) -> list[str]:
        """Files of a content that may still be at the service, those replaced among them."""
        with self.file.reading() as sql:
            rows = sql.execute(
                "SELECT name FROM remotes JOIN contents ON contents.id = content WHERE contents.account = ? "
                "AND tenant = ? AND sha256 = ? AND mime = ? AND NOT deleted AND expires_at > ?",
                (*columns(key), now.timestamp() + ahead_s(sql, key.account)),
            ).fetchall()
        return [row["name"] for row in rows]

    def forget(self, key: Key) -> None:
        """Takes a content and its files out of the registry."""
        with self.file.writing() as sql:
            sql.execute(
                "DELETE FROM contents WHERE account = ? AND tenant = ? AND sha256 = ? AND mime = ?", columns(key)
            )

    # ---- uploading

    def claim(
        self,
        key: Key,
        owner: str,
        now: datetime,
        *,
        wanting: int,
        size_bytes: int,
        label: str | None = None,
        path: Path | None = None,
    ) -> Lease | None:
        """The right to upload a content of which round `wanting` is not good enough.

        `None` where somebody else has it, or has used it since.
        """
        with self.file.writing() as sql:
            sql.execute(
                "INSERT OR IGNORE INTO contents (account, tenant, sha256, mime, size_bytes, label, path, used_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*columns(key), size_bytes, label, _stored(path), now.timestamp()),
            )
            row = content_row(sql, key)
            if row is None or row["round"] != wanting or is_leased(row, now):
                return None
            sql.execute(
                "UPDATE contents SET owner = ?, leased_until = ?, fence = fence + 1, path = ifnull(?, path), "
                "label = ifnull(?, label), used_at = ? WHERE id = ?",
                (owner, now.timestamp() + LEASE_S, _stored(path), label, now.timestamp(), row["id"]),
            )
        return Lease(key=key, content=row["id"], owner=owner, fence=row["fence"] + 1, round=wanting + 1)

    def renew(self, lease: Lease, now: datetime) -> bool:
        """Whether the lease still was its owner's; it then is for its whole time."""
        return self._settle(lease, "leased_until = ?", now.timestamp() + LEASE_S)

    def release(self, lease: Lease) -> bool:
        """Ends the lease with nothing done."""
        return self._settle(lease, "owner = NULL, leased_until = NULL")

    def fail(self, lease: Lease, reason: str, now: datetime) -> bool:
        """Ends the lease: the service cannot read this content."""
        return self._settle(
            lease,
            "owner = NULL, leased_until = NULL, round = ?, failure = ?, failed_at = ?",
            lease.round,
            reason,
            now.timestamp(),
        )

    def record(self, lease: Lease, file: RemoteFile, now: datetime, chance: float) -> bool:
        """Ends the lease with a file that requests may refer to. False where the lease was somebody else's by then.

        `chance`, 0 to 1, spreads the moments at which many files of one hour are uploaded again.
        """
        with self.file.writing() as sql:
            row = _leased(sql, lease)
            if row is None:
                return False
            sql.execute(
                "UPDATE contents SET owner = NULL, leased_until = NULL, round = ?, failure = NULL, failed_at = NULL, "
                "used_at = ? WHERE id = ?",
                (lease.round, now.timestamp(), lease.content),
            )
            served = now.timestamp() + ahead_s(sql, lease.key.account)
            expires = file.expires_at.timestamp() if file.expires_at else served + _LIFE_S
            begun = min(file.created_at.timestamp() if file.created_at else served, expires)
            life = expires - begun
            refresh = begun + life * (_REFRESH_AT + _SPREAD * (2 * chance - 1))
            sql.execute(
                "INSERT OR REPLACE INTO remotes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)",
                (
                    lease.key.account,
                    file.name,
                    lease.content,
                    lease.round,
                    file.uri,
                    row["size_bytes"],
                    served,
                    expires,
                    expires - min(MARGIN_S, life / 10),
                    refresh,
                ),
            )
        return True

    def _settle(self, lease: Lease, what: str, *values: object) -> bool:
        with self.file.writing() as sql:
            if _leased(sql, lease) is None:
                return False
            sql.execute(f"UPDATE contents SET {what} WHERE id = ?", (*values, lease.content))  # noqa: S608
        return True

    # ---- using

    def touch(self, entry: Entry, now: datetime) -> None:
        """It was used. Written once a minute at most."""
        if abs((now - entry.used_at).total_seconds()) > _TOUCH_S:
            with self.file.writing() as sql:
                sql.execute(
                    "UPDATE contents SET used_at = ? WHERE account = ? AND tenant = ? AND sha256 = ? AND mime = ?",
                    (now.timestamp(), *columns(entry.key)),
                )

    def give_up(self, account: str, name: str, *, deleted: bool) -> None:
        """No request refers to this file any more; `deleted`: it takes no room either."""
        with self.file.writing() as sql:
            sql.execute(
                "UPDATE remotes SET given_up = 1, deleted = max(deleted, ?) WHERE account = ? AND name = ?",
                (deleted, account, name),
            )

    def postpone(self, account: str, name: str, now: datetime, seconds: float) -> None:
        """Replacing this file ahead of its end did not succeed: not again so soon."""
        with self.file.writing() as sql:
            later = now.timestamp() + ahead_s(sql, account) + seconds
            sql.execute("UPDATE remotes SET refresh_at = ? WHERE account = ? AND name = ?", (later, account, name))

    def set_clock(self, account: str, measured_s: float) -> None:
        """How far the service's clock is ahead of ours. Less than a second is no news: it tells no more of the time."""
        with self.file.reading() as sql:
            known = ahead_s(sql, account)
        if abs(known - measured_s) > 1:
            with self.file.writing() as sql:
                sql.execute("INSERT OR REPLACE INTO clocks VALUES (?, ?)", (account, measured_s))


_NAMED = (
    "SELECT contents.* FROM remotes JOIN contents ON contents.id = content "
    "WHERE remotes.account = ? AND tenant = ? AND name = ?",
    "SELECT contents.* FROM chosen JOIN contents ON contents.id = content "
    "WHERE chosen.account = ? AND chosen.tenant = ? AND name = ?",
)


def _named(sql: sqlite3.Connection, account: str, tenant: str, name: str) -> sqlite3.Row | None:
    """The content of a file so called by the service, else by its tenant."""
    found = (sql.execute(query, (account, tenant, name)).fetchone() for query in _NAMED)
    return next((row for row in found if row is not None), None)


def _leased(sql: sqlite3.Connection, lease: Lease) -> sqlite3.Row | None:
    """The lease's content, while the lease is its owner's. That its time is over is no matter until somebody claims."""
    row: sqlite3.Row | None = sql.execute(
        "SELECT * FROM contents WHERE id = ? AND owner = ? AND fence = ?", (lease.content, lease.owner, lease.fence)
    ).fetchone()
    return row


def _stored(path: Path | None) -> str | bytes | None:
    """SQLite's text is UTF-8; a name that is none stays the bytes it is."""
    if path is None:
        return None
    name = os.fsencode(path)
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name
