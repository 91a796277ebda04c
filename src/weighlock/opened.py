"""What the line opens when it is first needed: accounts and ledgers over each `Io`, the stores they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weighlock.io import Io
from weighlock.locks import Lock
from weighlock.settings import Settings
from weighlock.settings.model import StoreKind

if TYPE_CHECKING:
    from weighlock.accounts import Accounts
    from weighlock.budgets.hold import Store
    from weighlock.budgets.ledger import Ledger
    from weighlock.uploads.registry import Registry


class Opened:
    """Of one set of settings. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._accounts: dict[int, Accounts] = {}
        self._ledgers: dict[int, Ledger] = {}
        self._registry: Registry | None = None
        self._store: Store | None = None

    def accounts(self, io: Io) -> Accounts:
        if (known := self._accounts.get(id(io))) is None:
            from weighlock.accounts import Accounts

            known = self._accounts.setdefault(id(io), Accounts(self._settings, io, self.registry))
        return known

    def ledger(self, io: Io) -> Ledger:
        if (known := self._ledgers.get(id(io))) is None:
            from weighlock.budgets.ledger import Ledger

            known = Ledger(io, self.store(), on_failure=self._settings.state.on_failure)
            known = self._ledgers.setdefault(id(io), known)
        return known

    def take_over(self, before: Opened) -> None:
        """The budgets that are kept in this process only go on in a successor of the same kind of store."""
        with before._lock, self._lock:
            same = before._settings.state.store is self._settings.state.store is StoreKind.MEMORY
            if same and before._store is not None:
                self._store = before._store

    def store(self) -> Store:
        """Where budgets are kept.

        Raises:
            ConfigError: it may not be where the settings have it.
        """
        from weighlock.budgeting import store_of

        with self._lock:
            if self._store is None:
                self._store = store_of(self._settings)
            return self._store

    def registry(self) -> Registry:
        """What is remembered of uploads. Raises what it does."""
        from weighlock.accounts import registry_of

        with self._lock:
            if self._registry is None:
                self._registry = registry_of(self._settings)
            return self._registry

    def registry_there(self) -> Registry | None:
        """The same, where there is one: whoever only asks makes none. Raises what it does."""
        from weighlock.accounts import registry_file

        return self.registry() if self._registry is not None or registry_file(self._settings).exists() else None

    def close(self) -> None:
        """Until they are used again."""
        for ledger in (*self._ledgers.values(),):
            ledger.close()
        for opened in (self._registry, self._store):
            if opened is not None:
                opened.close()
