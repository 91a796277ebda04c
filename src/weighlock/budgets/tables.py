"""Budgets as tables of SQLite, within one transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from weighlock.budgets.audit import plus
from weighlock.budgets.hold import METRICS, Amounts, Counter, Grant, Row, State
from weighlock.budgets.shelf import NOTHING, Kept, Sums
from weighlock.errors import StateUnavailable

if TYPE_CHECKING:
    import sqlite3

WITHOUT = "every budget begins anew"
"""What becomes of budgets whose file is moved away."""
MIGRATIONS = (
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
        keep_until REAL,
        touched_at REAL NOT NULL,
        spent_prompt_tokens INTEGER NOT NULL DEFAULT 0,
        spent_requests INTEGER NOT NULL DEFAULT 0,
        spent_micro_usd INTEGER NOT NULL DEFAULT 0,
        spent_text INTEGER NOT NULL DEFAULT 0,
        spent_image INTEGER NOT NULL DEFAULT 0,
        spent_video INTEGER NOT NULL DEFAULT 0,
        spent_audio INTEGER NOT NULL DEFAULT 0,
        spent_document INTEGER NOT NULL DEFAULT 0,
        held_prompt_tokens INTEGER NOT NULL DEFAULT 0,
        held_requests INTEGER NOT NULL DEFAULT 0,
        held_micro_usd INTEGER NOT NULL DEFAULT 0,
        held_text INTEGER NOT NULL DEFAULT 0,
        held_image INTEGER NOT NULL DEFAULT 0,
        held_video INTEGER NOT NULL DEFAULT 0,
        held_audio INTEGER NOT NULL DEFAULT 0,
        held_document INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX over ON counters (keep_until);
    CREATE TABLE journal (
        seq INTEGER PRIMARY KEY,
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
_written = json.JSONEncoder().encode
_SPENT, _HELD = (
    {metric: f"{what}_{metric.rpartition('.')[2].lower()}" for metric in METRICS} for what in ("spent", "held")
)


class Tables:
    """A `Shelf`."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self._until: dict[str, float | None] = {}

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
                _keys_text(kept.counters),
                kept.expires_at.timestamp(),
                now.timestamp(),
            ),
        )

    def sums(self, keys: Iterable[str], metrics: Collection[str] = METRICS) -> Mapping[str, Sums]:
        wanted, told = tuple(keys), tuple(metrics)
        return self._found(told, self._sql.execute(f"{_sums(told)} WHERE key IN {_marks(wanted)}", wanted))

    def all_sums(self) -> Mapping[str, Sums]:
        return self._found(METRICS, self._sql.execute(_sums(METRICS)))

    def _found(self, metrics: Sequence[str], rows: Iterable[Any]) -> dict[str, Sums]:
        found = {}
        for key, keep_until, *amounts in rows:
            self._until[key] = keep_until
            spent, held = amounts[: len(metrics)], amounts[len(metrics) :]
            found[key] = Sums(_amounts(metrics, spent), _amounts(metrics, held))
        return found

    def add(self, keys: Sequence[str], spent: Amounts, held: Amounts, now: datetime) -> None:
        at = now.timestamp()
        adding, change = _adding(tuple(spent), tuple(held)), (*spent.values(), *held.values(), at)
        done = self._sql.execute(f"{adding}{_marks(keys)}", (*change, *keys))
        if done.rowcount < len(keys):
            known = self.sums(keys)
            new = tuple(key for key in keys if key not in known)
            self._sql.executemany("INSERT INTO counters (key, touched_at) VALUES (?, ?)", [(key, at) for key in new])
            self._sql.execute(f"{adding}{_marks(new)}", (*change, *new))

    def keep_until(self, counter: Counter) -> None:
        if counter.keep_until is None:
            return
        until, known = counter.keep_until.timestamp(), self._until.get(counter.key)
        if known is None or known < until:
            self._sql.execute(
                "UPDATE counters SET keep_until = ? WHERE key = ? AND ifnull(keep_until, 0) < ?",
                (until, counter.key, until),
            )

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
                _keys_text(row.counters),
                _json(row.note),
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

    def sum_up(self, rows: Sequence[Row], sums: Mapping[str, Sums], before: datetime) -> None:
        if not rows:
            return
        self._sql.execute("DELETE FROM journal WHERE seq <= ?", (rows[-1].seq,))
        self._sql.executemany(
            "DELETE FROM holds WHERE id = ? AND state <> 'held' AND changed_at < ?",
            [(hold_id, before.timestamp()) for hold_id in {row.id for row in rows}],
        )
        for key, one in sums.items():
            found = self._sql.execute("SELECT held, spent FROM summed_up WHERE key = ?", (key,)).fetchone()
            held, spent = (_read(found[0]), _read(found[1])) if found else (NOTHING, NOTHING)
            self._sql.execute(
                "INSERT OR REPLACE INTO summed_up VALUES (?, ?, ?, ?)",
                (key, rows[-1].at.timestamp(), _json(plus(held, one.held)), _json(plus(spent, one.spent))),
            )

    def forget(self, before: datetime) -> None:
        at = before.timestamp()
        held = " OR ".join(_HELD.values())
        over = f"SELECT key FROM counters WHERE keep_until < ? AND touched_at < ? AND NOT ({held})"  # noqa: S608
        self._sql.execute(f"DELETE FROM summed_up WHERE key IN ({over})", (at, at))  # noqa: S608
        self._sql.execute(f"DELETE FROM counters WHERE key IN ({over})", (at, at))  # noqa: S608
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


def _marks(values: Sequence[object]) -> str:
    return f"({','.join('?' * len(values))})"


@lru_cache(maxsize=256)  # most requests ask of the same metrics, and add to the same
def _sums(metrics: Sequence[str]) -> str:
    names = (*map(_SPENT.__getitem__, metrics), *map(_HELD.__getitem__, metrics))
    return f"SELECT key, keep_until, {', '.join(names)} FROM counters"  # noqa: S608


@lru_cache(maxsize=256)
def _adding(spent: Sequence[str], held: Sequence[str]) -> str:
    names = (*map(_SPENT.__getitem__, spent), *map(_HELD.__getitem__, held))
    return f"UPDATE counters SET {''.join(f'{name} = {name} + ?, ' for name in names)}touched_at = ? WHERE key IN "  # noqa: S608


def _amounts(metrics: Sequence[str], values: Sequence[int]) -> Amounts:
    return {metric: amount for metric, amount in zip(metrics, values, strict=True) if amount}


def _kept(row: Any) -> Kept:
    return Kept(
        id=row["id"],
        state=_state(row["state"]),
        need=_read(row["need"]),
        counters=_keys(row["counters"]),
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
        counters=_keys(row["counters"]),
        note=_read(row["note"]),
    )


@lru_cache(maxsize=1024)  # most requests are counted where the one before was
def _keys_text(keys: tuple[str, ...]) -> str:
    return _written(keys)


@lru_cache(maxsize=1024)
def _keys(text: str) -> tuple[str, ...]:
    return tuple(_read(text))


def _json(values: Mapping[str, Any]) -> str:
    return _values_text(tuple(values.items())) if values else "{}"


@lru_cache(maxsize=1024)  # a need is written twice, a note with every request alike
def _values_text(values: tuple[tuple[str, Any], ...]) -> str:
    return _written(dict(values))


def _state(text: str) -> State:
    try:
        return State(text)
    except ValueError as error:
        raise _damaged() from error


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _damaged() from error


def _damaged() -> StateUnavailable:
    return StateUnavailable(f"a row of their file is damaged; move it away: {WITHOUT}")


def _moment(timestamp: float) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)
