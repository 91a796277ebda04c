"""Names tenants were given for what they uploaded, or chose: those the service does not know, for which all are one.

A content somebody was given a name of is not deleted at the end of a request: it may be named again.
"""

from __future__ import annotations

from datetime import datetime

from weighlock.state import StateFile
from weighlock.uploads.entries import Key, content_row, entry_of


class Chosen:
    """The names, by the same file as the registry, which finds contents by them (`Registry.by_name`)."""

    def __init__(self, file: StateFile) -> None:
        self._file = file

    def choose(self, key: Key, name: str, now: datetime) -> bool:
        """Whether the content is called so from now on; not while another one with a usable file is."""
        with self._file.writing() as sql:
            row = content_row(sql, key)
            other = sql.execute(
                "SELECT contents.* FROM chosen JOIN contents ON contents.id = content "
                "WHERE chosen.account = ? AND chosen.tenant = ? AND name = ?",
                (key.account, key.tenant, name),
            ).fetchone()
            there = entry_of(sql, other, now)
            if row is None or (there is not None and there.key != key and there.usable(now) is not None):
                return False
            sql.execute("INSERT OR REPLACE INTO chosen VALUES (?, ?, ?, ?)", (key.account, key.tenant, name, row["id"]))
        return True

    def of(self, account: str, tenant: str) -> dict[Key, str]:
        """The tenant's names; of several for one content the first."""
        with self._file.reading() as sql:
            rows = sql.execute(
                "SELECT sha256, mime, min(name) AS name FROM chosen JOIN contents ON contents.id = content "
                "WHERE chosen.account = ? AND chosen.tenant = ? GROUP BY contents.id",
                (account, tenant),
            ).fetchall()
        return {
            Key(account=account, tenant=tenant, sha256=row["sha256"], mime=row["mime"]): row["name"] for row in rows
        }
