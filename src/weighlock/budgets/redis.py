"""Budgets that many hosts share, in Redis or Valkey: every step is one script, which the server runs alone.

The door to `redis`. What a crash can lose is the server's to say: with `appendfsync always` nothing it answered, with
`everysec` the last second of a power cut, or of a kill while its disk is slow.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from weighlock.budgets.audit import sums_of
from weighlock.budgets.hold import Amounts, Cap, Grant, Hold, Outcome, Reach, Row, Standing, State
from weighlock.errors import BudgetStoreUnavailable, ConfigError
from weighlock.locks import Lock

_VERSION = "1"
_PREFIX = "{weighlock-budgets}:"
_CONNECT_S, _STEP_S, _FREE_S = 0.5, 1.0, 2.0
_MOST_CONNECTIONS = 64
_UPKEEP_EVERY = 1_000
_WORTH_KEEPING = timedelta(days=62)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_NOTE: Mapping[str, str] = MappingProxyType({})


class RedisStore:
    """The store of all who name the same server. Thread-safe; opened by the first step, in every process by itself.

    Args:
        url: `redis://…`, `rediss://…` or `unix://…`. Never repeated, for it may hold a password.
        clock: The time, instead of the server's own: for tests.
        prefix: Of every key, in braces; two of them are two stores.

    Raises:
        ConfigError: an address that is none.
    """

    reach = Reach.SHARED
    is_local = False

    def __init__(self, url: str, *, clock: Callable[[], datetime] | None = None, prefix: str = _PREFIX) -> None:
        self._url, self._clock, self._prefix = url, clock, prefix
        self._lock = Lock()
        self._clients: dict[int, redis.Redis] = {}  # by process: a forked child shares no connection
        self._since_upkeep = 0
        try:
            redis.connection.parse_url(url)  # type: ignore[no-untyped-call]
        except ValueError:
            raise ConfigError("state.url_env holds no address such as redis://host:6379/0") from None

    def now(self) -> datetime:
        if self._clock is not None:
            return self._clock()
        seconds, micros = self._asked(lambda client: client.time())
        return _EPOCH + timedelta(seconds=seconds, microseconds=micros)

    # ---- holds

    def reserve(self, hold: Hold, caps: Sequence[Cap]) -> Outcome:
        self._maintain()
        counters = [[one.key, None if one.keep_until is None else _micros(one.keep_until)] for one in hold.counters]
        return self._outcome(
            caps,
            step="reserve",
            id=hold.id,
            need=_told(hold.need),
            counters=counters,
            expires_at=_micros(hold.expires_at),
            note=dict(hold.note),
        )

    def adjust(self, hold_id: str, need: Amounts, caps: Sequence[Cap]) -> Outcome:
        return self._outcome(caps, step="adjust", id=hold_id, need=_told(need))

    def extend(self, hold_id: str, expires_at: datetime) -> Outcome:
        return self._outcome((), step="extend", id=hold_id, expires_at=_micros(expires_at))

    def commit(self, hold_id: str, used: Amounts, note: Mapping[str, str] = _NO_NOTE) -> Outcome:
        state = State.COMMITTED.value
        return self._outcome(
            (), step="settle", id=hold_id, kind="commit", state=state, used=_told(used), note=dict(note)
        )

    def release(self, hold_id: str) -> Outcome:
        state = State.RELEASED.value
        return self._outcome((), step="settle", id=hold_id, kind="release", state=state, used={}, note={})

    # ---- looking

    def standings(self, caps: Sequence[Cap]) -> tuple[Standing, ...]:
        return self._outcome(caps, step="standings").standings

    def counters(self) -> Mapping[str, tuple[Amounts, Amounts]]:
        found = self._step(step="all")["counters"]
        return {key: (_amounts(one["spent"]), _amounts(one["held"])) for key, one in _items(found)}

    def journal(self, since: datetime | None = None) -> Iterable[Row]:
        told = self._step(step="all")
        summed = [
            Row(
                seq=0,
                at=_time(one["at"]),
                id=key,
                kind="prune",
                held=_amounts(one["held"]),
                spent=_amounts(one["spent"]),
                counters=(key,),
                note={},
            )
            for key, one in _items(told["summed"])
        ]
        rows = [*summed, *map(_row, told["journal"] or ())]
        return tuple(row for row in rows if since is None or row.at >= since)

    # ---- the operator's

    def grant(self, grant: Grant, grant_id: str) -> None:
        kept = {
            "scope": grant.scope,
            "metric": grant.metric,
            "amount": str(grant.amount),
            "until": _micros(grant.until),
            "reason": grant.reason,
            "by": grant.by,
        }
        self._step(step="grant", id=grant_id, grant=kept, note=kept | {"until": grant.until.isoformat()})

    def grants(self) -> Sequence[Grant]:
        return tuple(
            Grant(
                scope=one["scope"],
                metric=one["metric"],
                amount=int(one["amount"]),
                until=_time(one["until"]),
                reason=one["reason"],
                by=one["by"],
            )
            for one in self._step(step="grants")["grants"] or ()
        )

    def reset(self, counters: Sequence[str], reset_id: str, note: Mapping[str, str]) -> Amounts:
        told = self._step(step="reset", id=reset_id, counters=list(counters), note=dict(note))
        return _amounts(told["spent"])

    def rebuild(self) -> None:
        known, right = self.counters(), sums_of(self.journal())
        every = {key: right.get(key, ({}, {})) for key in {*known, *right}}
        sums = {key: {"spent": _told(spent), "held": _told(held)} for key, (spent, held) in every.items()}
        self._step(step="rebuild", sums=sums)

    def prune(self, before: datetime) -> int:
        gone = 0
        while batch := int(self._step(step="prune", before=_micros(before))["gone"]):
            gone += batch
        return gone

    def close(self) -> None:
        with self._lock:
            client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    # ---- the server

    def _maintain(self) -> None:
        self._since_upkeep += 1
        if self._since_upkeep >= _UPKEEP_EVERY:
            self._since_upkeep = 0
            self._step(step="prune", before=_micros(self.now() - _WORTH_KEEPING))

    def _outcome(self, caps: Sequence[Cap], **step: Any) -> Outcome:
        asked = [
            {"scope": one.scope, "metric": one.metric, "limit": one.limit, "counters": list(one.counters)}
            for one in caps
        ]
        told = self._step(caps=asked, **step)
        rows = told["standings"] or ()
        return Outcome(
            done=bool(told["done"]),
            state=None if told["state"] is None else State(told["state"]),
            standings=tuple(
                Standing(cap=cap, spent=int(spent), held=int(held), granted=int(granted))
                for cap, (spent, held, granted) in zip(caps, rows, strict=False)
            ),
            refused=tuple(int(at) for at in told["refused"] or ()),
        )

    def _step(self, **step: Any) -> dict[str, Any]:
        now = None if self._clock is None else int(_micros(self._clock()))
        words = json.dumps({**step, "now": now, "version": _VERSION})

        def ask(client: redis.Redis) -> Any:
            script, sha = _script()
            try:
                return client.evalsha(sha, 1, self._prefix, words)
            except redis.exceptions.NoScriptError:  # the server began anew
                return client.eval(script, 1, self._prefix, words)

        told: dict[str, Any] = json.loads(self._asked(ask))
        return told

    def _asked(self, ask: Callable[[redis.Redis], Any]) -> Any:
        """Once more where a connection broke: every step may be repeated."""
        for last in (False, True):
            try:
                return ask(self._client())
            except redis.exceptions.ResponseError as error:
                words = str(error)
                if "NEWERDATA" in words:
                    raise ConfigError(
                        "the store of budgets was written by another version of weighlock: let all of them be of one"
                    ) from None
                raise BudgetStoreUnavailable(f"the store of budgets refuses: {type(error).__name__}") from None
            except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError) as error:
                if last or isinstance(error, redis.exceptions.TimeoutError):
                    raise BudgetStoreUnavailable(
                        f"the store of budgets does not answer ({type(error).__name__})"
                    ) from None
            except redis.exceptions.RedisError as error:
                raise BudgetStoreUnavailable(f"the store of budgets failed ({type(error).__name__})") from None
        raise AssertionError

    def _client(self) -> redis.Redis:
        with self._lock:
            if os.getpid() not in self._clients:
                pool = redis.BlockingConnectionPool.from_url(
                    self._url,
                    max_connections=_MOST_CONNECTIONS,
                    timeout=_FREE_S,
                    socket_connect_timeout=_CONNECT_S,
                    socket_timeout=_STEP_S,
                    retry=Retry(NoBackoff(), 0),
                    decode_responses=True,
                )
                self._clients[os.getpid()] = redis.Redis(connection_pool=pool)
            return self._clients[os.getpid()]


@cache
def _script() -> tuple[str, str]:
    """The script, and what the server calls it."""
    import hashlib

    script = resources.files("weighlock.budgets").joinpath("redis.lua").read_text(encoding="utf-8")
    return script, hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()


def _micros(moment: datetime) -> str:
    return str((moment - _EPOCH) // timedelta(microseconds=1))


def _time(micros: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(micros))


def _told(amounts: Amounts) -> dict[str, str]:
    return {metric: str(amount) for metric, amount in amounts.items()}


def _amounts(told: Any) -> Amounts:
    return {metric: int(amount) for metric, amount in _items(told)}


def _items(told: Any) -> Iterable[tuple[str, Any]]:
    """An empty table of Lua's is a list in JSON."""
    return told.items() if isinstance(told, dict) else ()


def _row(line: str) -> Row:
    row = json.loads(line)
    note = row.get("note")
    return Row(
        seq=int(row["seq"]),
        at=_time(row["at"]),
        id=row["id"],
        kind=row["kind"],
        held=_amounts(row["held"]),
        spent=_amounts(row["spent"]),
        counters=tuple(row["counters"] or ()),
        note=note if isinstance(note, dict) else {},
    )
