"""Both faces of `Io` over a scripted service, on a clock that a test moves. Sleeping moves it too."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

import httpx2

from weighlock.io import AsyncIo, SyncIo, run

T = TypeVar("T")
START = datetime(2026, 11, 30, 12, tzinfo=UTC)
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loading the machine's certificates takes 30 ms a client
Handler = Callable[[httpx2.Request], httpx2.Response]


@dataclass
class FakeClock:
    """What a test can move, and what was slept."""

    passed_s: float = 0.0
    slept: list[float] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    """What `random` gives, first things first; 1 (the longest wait) when there are no more."""

    def now(self) -> datetime:
        return START + timedelta(seconds=self.passed_s)

    def monotonic(self) -> float:
        return self.passed_s

    def random(self) -> float:
        return self.chances.pop(0) if self.chances else 1.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.passed_s += seconds


class FakeSyncIo(SyncIo):
    def __init__(self, clock: FakeClock, transport: Any = None) -> None:
        super().__init__(transport or httpx2.HTTPTransport(verify=_NO_TLS))
        self.now, self.monotonic, self.random, self.sleep = (  # type: ignore[method-assign]
            clock.now, clock.monotonic, clock.random, clock.sleep,
        )  # fmt: skip


class FakeAsyncIo(AsyncIo):
    def __init__(self, clock: FakeClock, transport: Any = None) -> None:
        super().__init__(transport or httpx2.AsyncHTTPTransport(verify=_NO_TLS))
        self.now, self.monotonic, self.random, self.sleep = (  # type: ignore[method-assign]
            clock.now, clock.monotonic, clock.random, clock.sleep,
        )  # fmt: skip


class Flow(Protocol):
    def __call__(self, io: Any, /) -> Coroutine[Any, Any, Any]: ...


class Face(Protocol):
    """Drives a flow to its end over one kind of `Io`."""

    def __call__(self, flow: Callable[[Any], Coroutine[Any, Any, T]], clock: FakeClock, transport: Any = None) -> T: ...


def sync_face(flow: Callable[[Any], Coroutine[Any, Any, T]], clock: FakeClock, transport: Any = None) -> T:
    with FakeSyncIo(clock, transport) as io:
        return run(flow(io))


def async_face(flow: Callable[[Any], Coroutine[Any, Any, T]], clock: FakeClock, transport: Any = None) -> T:
    async def whole() -> T:
        async with FakeAsyncIo(clock, transport) as io:
            return await flow(io)

    return asyncio.run(whole())


FACES: tuple[Face, ...] = (sync_face, async_face)
