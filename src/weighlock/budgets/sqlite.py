"""Budgets of all processes of one host, in a SQLite file.

A step is one transaction. A killed process loses nothing it was told of; after a power cut the last moments may be
missing, as `state` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from weighlock.budgets.hold import Reach
from weighlock.budgets.local import LocalStore
from weighlock.budgets.shelf import Shelf
from weighlock.budgets.tables import MIGRATIONS, WITHOUT, Tables
from weighlock.errors import BudgetStoreUnavailable, StateUnavailable
from weighlock.locks import Lock
from weighlock.state import StateFile

FILE = "budgets.db"
_JOURNAL_KEPT = timedelta(days=62)
"""Two months can be compared, whatever their lengths; what is older is summed up."""


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
        self._opening = Lock()

    @contextmanager
    def _shelf(self, *, writing: bool) -> Iterator[Shelf]:
        try:
            file = self._file or self._opened()
            with file.writing() if writing else file.reading() as sql:
                yield Tables(sql)
        except StateUnavailable as error:
            self.close()  # the next step may find another file in its place
            raise BudgetStoreUnavailable(f"budgets: {error}") from error

    def _opened(self) -> StateFile:
        with self._opening:
            if self._file is None:
                self._file = StateFile(self._path, MIGRATIONS, busy_s=self._busy_s, without=WITHOUT)
            return self._file

    def _worth_keeping(self, now: datetime) -> datetime:
        return now - _JOURNAL_KEPT

    def close(self) -> None:
        """Until the next step."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
