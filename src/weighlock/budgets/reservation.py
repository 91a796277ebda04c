"""What a ledger gives for a request, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from weighlock.budgets.hold import Amounts, Hold, Standing, State
from weighlock.budgets.windows import Budget, counters


class OnStoreFailure(StrEnum):
    """The store of budgets cannot be asked."""

    REJECT = "reject"
    ADMIT = "admit"
    """Nothing is held against any budget, and it is told and counted. What is used is booked once the store is back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What is held for a request."""

    id: str
    need: Amounts
    budgets: tuple[Budget, ...]
    reserved_at: datetime
    """By the store's clock."""
    expires_at: datetime
    """Then it is charged as it stands."""
    state: State | None = State.HELD
    """`None` where the store did not say."""
    standings: tuple[Standing, ...] = ()
    """Of every cap, with this request in it."""
    note: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    binding: bool = True
    """Whether a budget without room refuses it."""
    unverified: bool = False
    """Admitted without asking the store."""

    @property
    def warnings(self) -> tuple[Standing, ...]:
        """Those past their `warn_at`."""
        return tuple(one for one in self.standings if one.warns)

    def over(self, used: Amounts) -> Amounts:
        """By how much more was used than held."""
        more = {metric: amount - self.need.get(metric, 0) for metric, amount in used.items()}
        return {metric: amount for metric, amount in more.items() if amount > 0}

    @property
    def hold(self) -> Hold:
        return Hold(
            id=self.id,
            need=self.need,
            counters=counters(self.budgets, self.reserved_at),
            expires_at=self.expires_at,
            note=self.note,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of a reservation."""

    id: str
    state: State | None
    """`None` where the store cannot be asked now (then it is `owed`), or knows nothing of it."""
    used: Amounts
    underestimated: Amounts
    """By how much more was used than held; its windows carry it."""
    owed: bool = False
    """Done with the next step the store answers; should this process end before, the hold is charged as it stands."""
