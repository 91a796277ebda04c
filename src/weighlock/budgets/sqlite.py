"""Budgets of all processes of one host, in a SQLite file.

A step is one transaction. A killed process loses nothing it was told of; after a power cut the last moments may be
missing, as `state` says.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighlock.budgets.audit import plus
from weighlock.budgets.hold import Amounts, Grant, Reach, Row, State
from weighlock.budgets.local import NOTHING, Kept, LocalStore, Shelf, Sums
from weighlock.errors import BudgetStoreUnavailable, StateUnavailable
from weighlock.state import StateFile

if TYPE_CHECKING:
    import sqlite3

FILE = "budgets.db"
_WITHOUT = "every budget begins anew"
_JOURNAL_KEPT = timedelta(days=62)
"""Two months can be compared, whatever their lengths; what is older is summed up."""
_MIGRATIONS = (
    """
    CREATE TABLE holds (
        id TEXT PRIMARY KEY,
        state TEXT NOT NULL,
        need TEXT NOT NULL,
        counters TEXT NOT NULL,
        expires_at REAL NOT NULL,
        changed_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX due ON holds (expires_at) WHERE state = 'held';
    CREATE TABLE counters (
        key TEXT PRIMARY KEY,
        spent TEXT NOT NULL,
        held TEXT NOT NULL,
        touched_at REAL NOT NULL,
        keep_until REAL
    ) WITHOUT ROWID;
    CREATE INDEX over ON counters (keep_until);
    CREATE TABLE journal (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL NOT NULL,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        held TEXT NOT NULL,
        spent TEXT NOT NULL,
        counters TEXT NOT NULL,
        note TEXT NOT NULL
    );
    CREATE TABLE summed_up (
        key TEXT PRIMARY KEY,
        at REAL NOT NULL,
        held TEXT NOT NULL,
        spent TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE grants (
        id TEXT PRIMARY KEY,
        scope TEXT NOT NULL,
        metric TEXT NOT NULL,
        amount INTEGER NOT NULL,
        until REAL NOT NULL,
        reason TEXT NOT NULL,
        granted_by TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE resets (id TEXT PRIMARY KEY, at REAL NOT NULL, spent TEXT NOT NULL) WITHOUT ROWID;
    """,
)


class SqliteStore(LocalStore):
    """The store of one host. The file is opened by the first step, and anew by the next one after a failure.

    Args:
        path: Of the file, made where it is not there.
        busy_s: How long a step waits for another process; an event loop waits with it.
        clock: As of `LocalStore`.
    """

    reach = Reach.HOST

    def __init__(self, path: Path, *, busy_s: float = 1.0, clock: Callable[[], datetime] | None = None) -> None:
        super().__init__(clock)
        self._path = path
        self._busy_s = busy_s
        self._file: StateFile | None = None
        self._opening = threading.Lock()

    @contextmanager
    def _shelf(self, *, writing: bool) -> Iterator[Shelf]:
        try:
            file = self._file or self._opened()
            with file.writing() if writing else file.reading() as sql:
                shelf = _Tables(sql)
                yield shelf
                shelf.flush()
        except StateUnavailable as error:
            self.close()  # the next step may find another file in its place
            raise BudgetStoreUnavailable(f"budgets: {error}") from error

    def _opened(self) -> StateFile:
        with self._opening:
            if self._file is None:
                self._file = StateFile(self._path, _MIGRATIONS, busy_s=self._busy_s, without=_WITHOUT)
            return self._file

    def _worth_keeping(self, now: datetime) -> datetime:
        return now - _JOURNAL_KEPT

    def close(self) -> None:
        """Until the next step."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


class _Tables:
    """A shelf of tables, within one transaction. Counters are written at its end, each once."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self._known: dict[str, tuple[Sums, float | None]] = {}
        self._asked: set[str] = set()
        self._changed: dict[str, tuple[Sums, float, float | None]] = {}

    def flush(self) -> None:
        for key, (sums, touched_at, keep_until) in self._changed.items():
            values = (_json(sums.spent), _json(sums.held), touched_at)
            if key not in self._known:
                self._sql.execute("INSERT INTO counters VALUES (?, ?, ?, ?, ?)", (key, *values, keep_until))
            elif keep_until == self._known[key][1]:  # as a rule; its index is left alone then
                self._sql.execute(
                    "UPDATE counters SET spent = ?, held = ?, touched_at = ? WHERE key = ?", (*values, key)
                )
            else:
                self._sql.execute(
                    "UPDATE counters SET spent = ?, held = ?, touched_at = ?, keep_until = ? WHERE key = ?",
                    (*values, keep_until, key),
                )

    def hold(self, hold_id: str) -> Kept | None:
        found = self._sql.execute("SELECT * FROM holds WHERE id = ?", (hold_id,)).fetchone()
        return None if found is None else _kept(found)

    def due(self, now: datetime) -> Sequence[Kept]:
        found = self._sql.execute("SELECT * FROM holds WHERE state = 'held' AND expires_at <= ?", (now.timestamp(),))
        return [_kept(row) for row in found]

    def keep(self, kept: Kept, now: datetime) -> None:
        self._sql.execute(
            "INSERT OR REPLACE INTO holds VALUES (?, ?, ?, ?, ?, ?)",
            (
                kept.id,
                kept.state.value,
                _json(kept.need),
                json.dumps(kept.counters),
                kept.expires_at.timestamp(),
                now.timestamp(),
            ),
        )

    def sums(self, keys: Iterable[str]) -> Mapping[str, Sums]:
        wanted = tuple(keys)
        if unknown := [key for key in wanted if key not in self._asked]:
            self._asked.update(unknown)
            marks = ",".join("?" * len(unknown))
            self._learn(self._sql.execute(f"SELECT * FROM counters WHERE key IN ({marks})", unknown))  # noqa: S608
        return {key: sums for key in wanted if (sums := self._sums(key)) is not None}

    def all_sums(self) -> Mapping[str, Sums]:
        self._learn(self._sql.execute("SELECT * FROM counters"))
        self._asked.update(self._known)
        return {key: sums for key, (sums, _) in self._known.items()}

    def count(self, key: str, sums: Sums, now: datetime, keep_until: datetime | None = None) -> None:
        until = None if keep_until is None else keep_until.timestamp()
        if key in self._known:
            until = max(filter(None, (until, self._known[key][1])), default=None)
        self._changed[key] = (sums, now.timestamp(), until)

    def _learn(self, rows: Iterable[Any]) -> None:
        for row in rows:
            self._known[row["key"]] = (Sums(_read(row["spent"]), _read(row["held"])), row["keep_until"])

    def _sums(self, key: str) -> Sums | None:
        found = self._changed.get(key) or self._known.get(key)
        return None if found is None else found[0]

    # ---- the journal

    def write(self, row: Row) -> None:
        self._sql.execute(
            "INSERT INTO journal (at, id, kind, held, spent, counters, note) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                row.at.timestamp(),
                row.id,
                row.kind,
                _json(row.held),
                _json(row.spent),
                json.dumps(row.counters),
                json.dumps(dict(row.note)) if row.note else "{}",
            ),
        )

    def rows(self, since: datetime | None) -> Iterator[Row]:
        after = -1.0 if since is None else since.timestamp()
        for found in self._sql.execute("SELECT * FROM summed_up WHERE at >= ? ORDER BY key", (after,)):
            yield Row(
                seq=0,
                at=_moment(found["at"]),
                id=found["key"],
                kind="prune",
                held=_read(found["held"]),
                spent=_read(found["spent"]),
                counters=(found["key"],),
                note={},
            )
        yield from map(_row, self._sql.execute("SELECT * FROM journal WHERE at >= ? ORDER BY seq", (after,)))

    def oldest(self, before: datetime, most: int) -> Sequence[Row]:
        found = self._sql.execute("SELECT * FROM journal ORDER BY seq LIMIT ?", (most,))
        return [_row(row) for row in takewhile(lambda row: row["at"] < before.timestamp(), found)]

    def sum_up(self, rows: Sequence[Row], sums: Mapping[str, Sums]) -> None:
        if not rows:
            return
        self._sql.execute("DELETE FROM journal WHERE seq <= ?", (rows[-1].seq,))
        for key, one in sums.items():
            found = self._sql.execute("SELECT held, spent FROM summed_up WHERE key = ?", (key,)).fetchone()
            held, spent = (_read(found[0]), _read(found[1])) if found else (NOTHING, NOTHING)
            self._sql.execute(
                "INSERT OR REPLACE INTO summed_up VALUES (?, ?, ?, ?)",
                (key, rows[-1].at.timestamp(), _json(plus(held, one.held)), _json(plus(spent, one.spent))),
            )

    def forget(self, before: datetime) -> None:
        at = before.timestamp()
        over = "SELECT key FROM counters WHERE keep_until < ? AND touched_at < ? AND held = '{}'"
        self._sql.execute(f"DELETE FROM summed_up WHERE key IN ({over})", (at, at))  # noqa: S608
        self._sql.execute(f"DELETE FROM counters WHERE key IN ({over})", (at, at))  # noqa: S608
        self._sql.execute("DELETE FROM holds WHERE state <> 'held' AND changed_at < ?", (at,))
        self._sql.execute("DELETE FROM grants WHERE until < ?", (at,))
        self._sql.execute("DELETE FROM resets WHERE at < ?", (at,))

    # ---- the operator's

    def add_grant(self, grant: Grant, grant_id: str) -> bool:
        values = (grant.scope, grant.metric, grant.amount, grant.until.timestamp(), grant.reason, grant.by)
        done = self._sql.execute("INSERT OR IGNORE INTO grants VALUES (?, ?, ?, ?, ?, ?, ?)", (grant_id, *values))
        return done.rowcount > 0

    def grants(self, now: datetime) -> Sequence[Grant]:
        return [
            Grant(
                scope=row["scope"],
                metric=row["metric"],
                amount=row["amount"],
                until=_moment(row["until"]),
                reason=row["reason"],
                by=row["granted_by"],
            )
            for row in self._sql.execute("SELECT * FROM grants WHERE until > ? ORDER BY until, id", (now.timestamp(),))
        ]

    def reset(self, reset_id: str) -> Amounts | None:
        found = self._sql.execute("SELECT spent FROM resets WHERE id = ?", (reset_id,)).fetchone()
        return None if found is None else _read(found[0])

    def add_reset(self, reset_id: str, spent: Amounts, now: datetime) -> None:
        self._sql.execute("INSERT INTO resets VALUES (?, ?, ?)", (reset_id, now.timestamp(), _json(spent)))


def _kept(row: Any) -> Kept:
    return Kept(
        id=row["id"],
        state=State(row["state"]),
        need=_read(row["need"]),
        counters=tuple(_read(row["counters"])),
        expires_at=_moment(row["expires_at"]),
    )


def _row(row: Any) -> Row:
    return Row(
        seq=row["seq"],
        at=_moment(row["at"]),
        id=row["id"],
        kind=row["kind"],
        held=_read(row["held"]),
        spent=_read(row["spent"]),
        counters=tuple(_read(row["counters"])),
        note=_read(row["note"]),
    )


def _json(amounts: Amounts) -> str:
    return json.dumps(dict(amounts)) if amounts else "{}"


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise StateUnavailable(f"{FILE} is damaged; move it away: {_WITHOUT}") from error


def _moment(timestamp: float) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)
