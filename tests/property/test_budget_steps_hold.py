"""Whatever is done to holds, in whatever order and however often: counters are what a plain model says they are."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from budgeting import STORES, cap, hold
from fake_io import FakeClock
from weighlock.budgets.audit import verify
from weighlock.budgets.hold import State, Store

KEYS = ("endpoint:e|day|1", "tenant:t|day|1", "overall|month|1")
IDS = st.sampled_from("abcdef")
AMOUNTS = st.fixed_dictionaries({}, optional={"requests": st.integers(0, 4), "micro_usd": st.integers(0, 60)})
WHERE = st.sets(st.sampled_from(KEYS), min_size=1).map(sorted)
LIMITS = {"requests": 9, "micro_usd": 100}


@dataclass
class Known:
    """A hold as the model sees it."""

    need: dict[str, int]
    where: list[str]
    until: datetime
    state: State = State.HELD
    charge: dict[str, int] | None = None

    @property
    def counted(self) -> dict[str, int]:
        """What of it is in the counters, held or spent."""
        return self.charge if self.charge is not None else self.need


class Steps(RuleBasedStateMachine):
    """Against one store; subclasses say which."""

    kind = "memory"

    @initialize()
    def begin(self) -> None:
        self.clock = FakeClock()
        self.folder = tempfile.TemporaryDirectory()
        self.store: Store = STORES[self.kind](Path(self.folder.name), self.clock.now)
        self.known: dict[str, Known] = {}
        self.past: list[Known] = []
        """Settled, and perhaps forgotten; what they cost is still counted."""
        self.prunings = 0
        self.named: dict[str, str] = {}
        """Ids by name: one that may be forgotten is not used again."""

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()

    def caps(self, where: list[str]) -> list[Any]:
        return [cap(limit, metric, key) for key in where for metric, limit in LIMITS.items()]

    def charge_due(self) -> None:
        for one in self.known.values():
            if one.state is State.HELD and one.until <= self.clock.now():
                one.state, one.charge = State.EXPIRED, dict(one.need)

    def total(self, key: str, metric: str) -> int:
        every = (*self.known.values(), *self.past)
        return sum(one.counted.get(metric, 0) for one in every if key in one.where)

    def fits(self, where: list[str], growth: dict[str, int]) -> bool:
        return all(
            amount <= 0 or self.total(key, metric) + amount <= LIMITS[metric]
            for key in where
            for metric, amount in growth.items()
        )

    @rule(name=IDS, need=AMOUNTS, where=WHERE, lasts_s=st.integers(1, 50))
    def reserve(self, name: str, need: dict[str, int], where: list[str], lasts_s: int) -> None:
        self.charge_due()
        known, fits = self.known.get(name), self.fits(where, need)

        outcome = self.store.reserve(
            hold(self.named.get(name, name), self.clock, *where, need=need, lasts_s=lasts_s), self.caps(where)
        )

        if known is not None:
            assert (outcome.done, outcome.state, outcome.refused) == (False, known.state, ())
            return
        assert outcome.done is fits
        assert bool(outcome.refused) is not fits
        if fits:
            self.known[name] = Known(need, where, self.clock.now() + timedelta(seconds=lasts_s))

    @rule(name=IDS, need=AMOUNTS)
    def adjust(self, name: str, need: dict[str, int]) -> None:
        self.charge_due()
        known = self.known.get(name)
        where = known.where if known else list(KEYS)

        outcome = self.store.adjust(self.named.get(name, name), need, self.caps(where))

        if known is None or known.state is not State.HELD:
            assert (outcome.done, outcome.state) == (False, known and known.state)
            return
        growth = {metric: need.get(metric, 0) - known.need.get(metric, 0) for metric in LIMITS}
        fits = self.fits(where, growth)
        assert bool(outcome.refused) is not fits
        if fits:
            known.need = need

    @rule(name=IDS, lasts_s=st.integers(1, 50))
    def extend(self, name: str, lasts_s: int) -> None:
        self.charge_due()
        until = self.clock.now() + timedelta(seconds=lasts_s)
        self.store.extend(self.named.get(name, name), until)
        known = self.known.get(name)
        if known is not None and known.state is State.HELD:
            known.until = max(known.until, until)

    @rule(name=IDS, used=AMOUNTS, times=st.integers(1, 2))
    def commit(self, name: str, used: dict[str, int], times: int) -> None:
        self.settle(name, State.COMMITTED, used, lambda: self.store.commit(self.named.get(name, name), used), times)

    @rule(name=IDS, times=st.integers(1, 2))
    def release(self, name: str, times: int) -> None:
        self.settle(name, State.RELEASED, {}, lambda: self.store.release(self.named.get(name, name)), times)

    def settle(self, name: str, state: State, charge: dict[str, int], step: Any, times: int) -> None:
        self.charge_due()
        known = self.known.get(name)
        if known is not None and known.state in (State.HELD, State.EXPIRED):
            known.state, known.charge = state, charge

        outcomes = [step() for _ in range(times)]

        assert {one.state for one in outcomes} == {known and known.state}

    @rule(seconds=st.integers(1, 40))
    def wait(self, seconds: int) -> None:
        self.clock.passed_s += seconds

    @rule(ago_s=st.integers(0, 60))
    def prune(self, ago_s: int) -> None:
        self.charge_due()
        self.store.prune(self.clock.now() - timedelta(seconds=ago_s))
        for name, one in list(self.known.items()):
            if one.state is not State.HELD:
                self.past.append(self.known.pop(name))
                self.prunings += 1
                self.named[name] = f"{name}{self.prunings}"

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def counters_are_what_the_model_and_the_journal_say(self) -> None:
        self.charge_due()
        counters = self.store.counters()
        for key in KEYS:
            spent, held = counters.get(key, ({}, {}))
            for metric in LIMITS:
                assert held.get(metric, 0) == sum(
                    one.need.get(metric, 0)
                    for one in self.known.values()
                    if one.state is State.HELD and key in one.where
                )
                assert spent.get(metric, 0) + held.get(metric, 0) == self.total(key, metric)
        assert verify(self.store) == ()


def machine(kind: str) -> type[Steps]:
    return type(f"Steps_{kind}", (Steps,), {"kind": kind})


@pytest.mark.parametrize("kind", STORES)
def test_any_steps_in_any_order_and_number_end_where_the_model_ends(kind: str) -> None:
    run_state_machine_as_test(machine(kind), settings=settings(max_examples=25, stateful_step_count=20, deadline=None))


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
def test_ten_thousand_sequences_of_steps_end_where_the_model_ends(kind: str) -> None:
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        machine(kind),
        settings=settings(max_examples=10_000, stateful_step_count=30, deadline=None, suppress_health_check=quiet),
    )
