"""Whether counters are what the journal says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from weighlock.budgets.hold import Amounts, Row, Store

_NOTHING: tuple[Amounts, Amounts] = (MappingProxyType({}), MappingProxyType({}))
_LOOKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A counter that is not the sum of its rows."""

    key: str
    spent: Amounts
    """By how much more there is than the journal says, or less."""
    held: Amounts


def plus(one: Amounts, other: Amounts, times: int = 1) -> Amounts:
    """Metric by metric; what comes to nothing is not in it."""
    sums = {metric: one.get(metric, 0) + times * other.get(metric, 0) for metric in {**one, **other}}
    return {metric: amount for metric, amount in sums.items() if amount}


def sums_of(rows: Iterable[Row]) -> dict[str, tuple[Amounts, Amounts]]:
    """Of every counter in these rows: spent and held."""
    sums: dict[str, tuple[Amounts, Amounts]] = {}
    for row in rows:
        for key in row.counters:
            spent, held = sums.get(key, _NOTHING)
            sums[key] = (plus(spent, row.spent), plus(held, row.held))
    return sums


def verify(store: Store) -> tuple[Difference, ...]:
    """Where counters and journal differ: nowhere. Looks again where somebody was at work between the two.

    Raises:
        BudgetStoreUnavailable: the store cannot be asked.
    """
    for _ in range(_LOOKS):
        before, journal, after = store.counters(), sums_of(store.journal()), store.counters()
        if before == after:
            break
    return tuple(_differences(after, journal))


def _differences(
    counters: Mapping[str, tuple[Amounts, Amounts]], journal: Mapping[str, tuple[Amounts, Amounts]]
) -> Iterable[Difference]:
    for key in sorted({*counters, *journal}):
        pairs = zip(counters.get(key, _NOTHING), journal.get(key, _NOTHING), strict=True)
        spent, held = (plus(counted, told, -1) for counted, told in pairs)
        if spent or held:
            yield Difference(key=key, spent=spent, held=held)
