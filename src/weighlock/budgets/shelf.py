"""Where a store on this machine keeps things, as its steps see it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, Protocol

from weighlock.budgets.hold import METRICS, Amounts, Counter, Grant, Row, State

NOTHING: Amounts = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A hold as it is kept."""

    id: str
    state: State
    need: Amounts
    counters: tuple[str, ...]
    expires_at: datetime


class Sums(NamedTuple):
    """What a counter holds. What is zero is not there."""

    spent: Amounts = NOTHING
    held: Amounts = NOTHING


class Shelf(Protocol):
    """Where things are kept, within one step."""

    def hold(self, hold_id: str) -> Kept | None: ...

    def due(self, now: datetime) -> Sequence[Kept]:
        """Those held past their time."""
        ...

    def keep(self, kept: Kept, now: datetime) -> None: ...

    def sums(self, keys: Iterable[str], metrics: Collection[str] = METRICS) -> Mapping[str, Sums]:
        """Of those that are there, and at least of these metrics."""
        ...

    def all_sums(self) -> Mapping[str, Sums]: ...

    def add(self, keys: Sequence[str], spent: Amounts, held: Amounts, now: datetime) -> None:
        """The same to each of these."""
        ...

    def keep_until(self, counter: Counter) -> None:
        """At least so long."""
        ...

    def write(self, row: Row) -> None:
        """Into the journal; its number is found here."""
        ...

    def rows(self, since: datetime | None) -> Iterator[Row]:
        """Those summed up first."""
        ...

    def oldest(self, before: datetime, most: int) -> Sequence[Row]:
        """Rows of the journal that are not summed up yet."""
        ...

    def sum_up(self, rows: Sequence[Row], sums: Mapping[str, Sums], before: datetime) -> None:
        """Takes rows out, with their holds that were settled by then, and adds to what stands for them."""
        ...

    def forget(self, before: datetime) -> None:
        """Counters nobody adds up or touched since, with what stands for their rows; grants that are over."""
        ...

    def add_grant(self, grant: Grant, grant_id: str) -> bool:
        """Whether it is new."""
        ...

    def grants(self, now: datetime) -> Sequence[Grant]: ...

    def reset(self, reset_id: str) -> Amounts | None: ...

    def add_reset(self, reset_id: str, spent: Amounts, now: datetime) -> None: ...
