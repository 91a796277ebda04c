"""What the service is doing right now, for those who ask: which settings are in force, and whether it may be asked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from weighlock.errors import WeighlockError
from weighlock.observe import metrics
from weighlock.observe.sample import Sample
from weighlock.service.served import Served


class State:
    """Shared by the clients' port and the admin port."""

    def __init__(self, served: Served) -> None:
        self.served = served
        """The configuration in force."""
        self.is_ending = False
        self.reloaded_at = datetime.now(UTC)
        self.reload_problem: str | None = None
        """Why changed settings are not in force."""

    def not_ready(self) -> list[str]:
        """Why no request should be sent here. Blocks: it asks the store of budgets."""
        why = ["it ends"] if self.is_ending else []
        try:
            self.served.preflight.store.now()
            self.served.preflight.store.standings(())
        except WeighlockError as error:
            why.append(error.message)
        return why

    def samples(self) -> list[Sample]:
        """For `/metrics`."""
        return [
            Sample(metric=metrics.RELOADED, value=self.reloaded_at.timestamp()),
            Sample(metric=metrics.RELOAD_OK, value=float(self.reload_problem is None)),
        ]

    async def close(self) -> None:
        """Of the configuration in force by then."""
        await self.served.close()

    def told(self) -> dict[str, Any]:
        """For `/readyz`."""
        return {"settings_of": self.reloaded_at.isoformat(), "reload_problem": self.reload_problem}
