"""How things stand when somebody asks: budgets, files, rules, prices ahead. What cannot be told now is left out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time

from weighlock.accounts import account_id, target_of
from weighlock.budgeting import budgets_for
from weighlock.budgets.hold import MICRO_USD
from weighlock.errors import WeighlockError
from weighlock.holding import usd
from weighlock.io import SyncIo, run
from weighlock.observe import metrics as m
from weighlock.observe.sample import Sample
from weighlock.opened import Opened
from weighlock.pricing import upcoming_change
from weighlock.request import Backend
from weighlock.rules import RuleBook
from weighlock.settings import Account, Settings
from weighlock.uploads.registry import Registry
from weighlock.uploads.storage import Storage

_log = logging.getLogger("weighlock")
_USD = "usd"


class Gauges:
    """Of one set of settings. Blocks; not for an event loop. Thread-safe as `io` is."""

    def __init__(self, settings: Settings, rules: RuleBook, opened: Opened, io: SyncIo) -> None:
        self._settings, self._rules, self._opened, self._io = settings, rules, opened, io
        self._every = (settings.default, *settings.endpoints.values())
        self._told: set[str] = set()

    def __call__(self) -> Iterator[Sample]:
        """Every sample there is. Nothing is raised: what fails is logged once."""
        for ask in (self._endpoints, self._budgets, self._store, self._files, self._rule_dates, self._prices):
            yield from self._asked(ask)

    def _asked(self, ask: Callable[[], Iterable[Sample]]) -> list[Sample]:
        try:
            return list(ask())
        except WeighlockError as error:
            if ask.__name__ not in self._told:
                self._told.add(ask.__name__)
                _log.warning("metrics leave out what cannot be told: %s", error.message)
            return []

    def _endpoints(self) -> Iterator[Sample]:
        for one in self._every:
            labels = {"endpoint": one.name, "owner": one.owner or "", "mode": one.mode.value}
            yield Sample(metric=m.ENDPOINT, value=1, labels=labels)

    def _budgets(self) -> Iterator[Sample]:
        names = [None, *self._settings.endpoints]
        budgets = {one.scope + one.window.name: one for name in names for one in budgets_for(self._settings, name)}
        if not budgets:
            return
        for one in run(self._opened.ledger(self._io).standings(list(budgets.values()))):
            name = one.cap.scope.partition(":")[2]
            unit = _USD if one.cap.metric == MICRO_USD else one.cap.metric.lower()
            labels = {"endpoint": name or m.OVERALL, "window": one.cap.window, "unit": unit}
            limit = one.cap.limit + one.granted
            for metric, figure in ((m.BUDGET_LIMIT, limit), (m.BUDGET_USED, one.spent), (m.BUDGET_HELD, one.held)):
                yield Sample(metric=metric, value=float(usd(figure)) if unit == _USD else figure, labels=labels)

    def _store(self) -> Iterator[Sample]:
        store = self._opened.store()
        labels = {"store": self._settings.state.store.value, "reach": store.reach.value}
        yield Sample(metric=m.STORE, value=1, labels=labels)

    def _files(self) -> Iterator[Sample]:
        for account in {one.account.name: one.account for one in self._every}.values():
            if account.backend is Backend.DEVELOPER:
                yield from self._files_of(account)

    def _files_of(self, account: Account) -> Iterator[Sample]:
        registry: Registry = self._opened.registry()
        storage, named = Storage(registry.file), {"account": account.name}
        known = account_id(account.name, target_of(account))
        yield Sample(metric=m.FILES_BYTES, value=storage.used_bytes(known, self._io.now()), labels=named)
        yield Sample(metric=m.FILES_QUOTA, value=self._settings.uploads.policy.quota_bytes, labels=named)
        ends = storage.next_expiry(known, self._io.now())
        if ends is not None:
            yield Sample(metric=m.FILES_EXPIRY, value=ends.timestamp(), labels=named)

    def _rule_dates(self) -> Iterator[Sample]:
        oldest = min(one.checked_on for one in self._rules.generations())
        yield Sample(metric=m.RULES_CHECKED, value=_midnight(oldest))

    def _prices(self) -> Iterator[Sample]:
        today = self._io.now().date()
        used = {self._rules.for_model(one.model, one.account.backend, today).model: one for one in self._every}
        for model, one in used.items():
            change = upcoming_change(one.model, one.account.backend, on=today, pricing=self._settings.pricing)
            if change is None:
                continue
            named = {"model": model}
            yield Sample(metric=m.PRICE_CHANGE, value=_midnight(change.on), labels=named)
            if change.before.text:
                yield Sample(metric=m.PRICE_FACTOR, value=float(change.after.text / change.before.text), labels=named)


def _midnight(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()
