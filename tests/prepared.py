"""Both faces of the line, driven alike: what one does, the other has to do too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from fake_io import FakeAsyncIo, FakeClock, FakeSyncIo
from weighlock.budgets.hold import Amounts
from weighlock.preflight import Preflight
from weighlock.prepared import PreparedRequest, Receipt
from weighlock.settings import Mode, Settings, load


def settings(folder: Path, yaml: str = "") -> Settings:
    """What a file of this text says; `mode: enforce` unless it says otherwise. State is kept in the folder."""
    file = folder / "weighlock.yaml"
    file.write_text("version: 1\n" + yaml)
    known = load(file, environ={}, cwd=folder)
    default = known.default
    if "mode:" not in yaml:
        default = replace(default, mode=Mode.ENFORCE)
        known = replace(
            known, endpoints={name: replace(one, mode=Mode.ENFORCE) for name, one in known.endpoints.items()}
        )
    return replace(known, default=default, state=replace(known.state, dir=folder / "state"))


class Face:
    """One preflight, asked by blocking calls or from within an event loop."""

    def __init__(self, known: Settings, *, awaits: bool) -> None:
        self.awaits, self.clock = awaits, FakeClock()
        self.preflight = Preflight(known, preload=False, io=FakeSyncIo(self.clock), async_io=FakeAsyncIo(self.clock))
        self._loop = asyncio.new_event_loop() if awaits else None

    def close(self) -> None:
        if self._loop is not None:
            self._loop.run_until_complete(self.preflight.__aexit__())
            self._loop.close()
        self.preflight.close()

    def __enter__(self) -> Face:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self, *given: Any, **said: Any) -> PreparedRequest:
        ready: PreparedRequest = self._either(self.preflight.prepare, self.preflight.aprepare, *given, **said)
        return ready

    def settle(self, *given: Any, **said: Any) -> Receipt:
        receipt: Receipt = self._either(self.preflight.settle, self.preflight.asettle, *given, **said)
        return receipt

    def release(self, ready: PreparedRequest) -> None:
        self._either(self.preflight.release, self.preflight.arelease, ready)

    def escalate(self, *given: Any) -> PreparedRequest:
        ready: PreparedRequest = self._either(self.preflight.escalate, self.preflight.aescalate, *given)
        return ready

    def counters(self) -> dict[str, tuple[Amounts, Amounts]]:
        """Spent and held, by counter; without what is zero."""
        store = self.preflight.store
        found: dict[str, tuple[Amounts, Amounts]] = {}
        for key, (spent, held) in store.counters().items():
            left = ({n: v for n, v in spent.items() if v}, {n: v for n, v in held.items() if v})
            if any(left):
                found[key] = left
        return found

    def held(self) -> dict[str, Amounts]:
        return {key: held for key, (_, held) in self.counters().items() if held}

    def _either(
        self, blocking: Callable[..., Any], awaiting: Callable[..., Coroutine[Any, Any, Any]], *given: Any, **said: Any
    ) -> Any:
        return (
            blocking(*given, **said) if self._loop is None else self._loop.run_until_complete(awaiting(*given, **said))
        )


def usd(micro: int) -> Decimal:
    return Decimal(micro) / 1_000_000
