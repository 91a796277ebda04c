"""The emulator's time: the machine's, moved by whoever tests. A 48-hour expiry takes no time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime


class Clock:
    """Runs on by itself; `advance` moves it, `now` reads it (aware UTC)."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def advance(self, seconds: float) -> None:
        """Moves on, or back by a negative number. Raises `OverflowError` beyond the calendar, and stays."""
        ahead = self._ahead + timedelta(seconds=seconds)
        for past in (-timedelta(days=7), timedelta(days=7)):  # files begin before, and end after
            datetime.now(UTC) + ahead + past
        self._ahead = ahead

    def http_date(self) -> bytes:
        """The `Date` of an answer."""
        return format_datetime(self.now(), usegmt=True).encode()


def written(moment: datetime) -> str:
    """A time as the service writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
