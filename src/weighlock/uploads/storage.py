"""Room at the service: what our files take, which may go, and which somebody needs right now.

A tenant makes room from its own files only. What was not uploaded by this registry is never touched.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from weighlock.state import StateFile
from weighlock.uploads.entries import Key, ahead_s, content_row, is_leased, runs
from weighlock.uploads.owners import is_dead

if TYPE_CHECKING:
    import sqlite3

IN_USE_S = 900.0
"""A file used this recently may be in a request that is still read."""
HOLD_S = 3600.0
"""A hold ends then, or with its process."""


class Storage:
    """Room, by the same file as the registry."""

    def __init__(self, file: StateFile) -> None:
        self._file = file

    def used_bytes(self, account: str, now: datetime) -> int:
        """What our files take, those on their way too."""
        with self._file.reading() as sql:
            (there,) = sql.execute(
                "SELECT ifnull(sum(size_bytes), 0) FROM remotes WHERE account = ? AND NOT deleted AND expires_at > ?",
                (account, now.timestamp() + ahead_s(sql, account)),
            ).fetchone()
            leased = sql.execute(
                "SELECT * FROM contents WHERE account = ? AND owner IS NOT NULL", (account,)
            ).fetchall()
        coming = sum(row["size_bytes"] for row in leased if is_leased(row, now))
        return int(there + coming)

    def next_expiry(self, account: str, now: datetime) -> datetime | None:
        """When the first of our files ends, by our clock; `None` without any."""
        with self._file.reading() as sql:
            ahead = ahead_s(sql, account)
            (first,) = sql.execute(
                "SELECT min(expires_at) FROM remotes WHERE account = ? AND NOT deleted AND expires_at > ?",
                (account, now.timestamp() + ahead),
            ).fetchone()
        return None if first is None else datetime.fromtimestamp(first - ahead, UTC)

    def give_up_oldest(self, account: str, tenant: str, now: datetime, need_bytes: int) -> list[str]:
        """Names of files the tenant can spare, those replaced and those not used for longest first.

        From here on nobody refers to them. Empty where there is nothing to spare.
        """
        names: list[str] = []
        with self._file.writing() as sql:
            rows = sql.execute(
                "SELECT remotes.name, remotes.size_bytes, contents.* FROM remotes JOIN contents "
                "ON contents.id = remotes.content WHERE remotes.account = ? AND tenant = ? AND NOT deleted "
                "AND expires_at > ? AND abs(used_at - ?) > ? ORDER BY given_up DESC, remotes.round = contents.round, "
                "used_at, remotes.name",
                (account, tenant, now.timestamp() + ahead_s(sql, account), now.timestamp(), IN_USE_S),
            ).fetchall()
            for row in rows:
                if need_bytes <= 0:
                    break
                if is_leased(row, now) or _is_held(sql, row["id"], now):
                    continue
                sql.execute("UPDATE remotes SET given_up = 1 WHERE account = ? AND name = ?", (account, row["name"]))
                names.append(row["name"])
                need_bytes -= row["size_bytes"]
        return names

    # ---- held by a request

    def hold(self, key: Key, name: str, owner: str, now: datetime) -> str | None:
        """Keeps a file from being deleted; `None` where that has been decided already."""
        with self._file.writing() as sql:
            row = content_row(sql, key)
            if row is None:
                return None
            found = sql.execute(
                "SELECT 1 FROM remotes WHERE account = ? AND name = ? AND NOT given_up", (key.account, name)
            ).fetchone()
            if found is None:
                return None
            held = uuid.uuid4().hex
            sql.execute("INSERT INTO holds VALUES (?, ?, ?, ?)", (held, row["id"], owner, now.timestamp() + HOLD_S))
        return held

    def let_go(self, held: str, now: datetime) -> list[str]:
        """Ends a hold. The names of the content's files, where it was the last one: nobody refers to them any more."""
        with self._file.writing() as sql:
            row = sql.execute("SELECT content FROM holds WHERE id = ?", (held,)).fetchone()
            sql.execute("DELETE FROM holds WHERE id = ?", (held,))
            if row is None or _is_held(sql, row["content"], now):
                return []
            rows = sql.execute(
                "SELECT name FROM remotes WHERE content = ? AND NOT deleted", (row["content"],)
            ).fetchall()
            sql.execute("UPDATE remotes SET given_up = 1 WHERE content = ?", (row["content"],))
        return [one["name"] for one in rows]


def _is_held(sql: sqlite3.Connection, content: int, now: datetime) -> bool:
    rows = sql.execute("SELECT owner, held_until FROM holds WHERE content = ?", (content,)).fetchall()
    return any(runs(row["held_until"], now, HOLD_S) and not is_dead(row["owner"]) for row in rows)
