"""References against the emulator, through either face: two clocks that a test moves together or apart."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from fake_io import Face, FakeClock
from weighlock.emulator import Emulator
from weighlock.gemini.auth import ApiKey
from weighlock.gemini.http import Service, Target
from weighlock.io import AsyncIo, Io, SyncIo, run
from weighlock.request import MediaPart
from weighlock.uploads.copies import Copies
from weighlock.uploads.policy import UploadPolicy
from weighlock.uploads.references import References
from weighlock.uploads.registry import Registry

T = TypeVar("T")
KEY = "canary-key-4711"
PNG = "image/png"


@dataclass(kw_only=True)
class Bench:
    """One account of one emulator, one registry, one face."""

    face: Face
    emulator: Emulator
    folder: Path
    policy: UploadPolicy = field(default_factory=UploadPolicy)
    key: str = KEY
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.registry = Registry(self.folder / "uploads.db")

    def service(self, io: Io) -> Service:
        return Service(io, Target(base_url=self.emulator.base_url), ApiKey(self.key))

    def references(self, io: Io) -> References:
        copies = Copies(self.folder / "copies", self.registry, self.policy)
        return References(io, self.service(io), self.registry, account="acme", policy=self.policy, copies=copies)

    def run(self, flow: Callable[[References], Coroutine[Any, Any, T]]) -> T:
        async def whole(io: Io) -> T:
            return await flow(self.references(io))

        return self.face(whole, self.clock)

    def ensure(self, part: MediaPart, tenant: str = "a", mime: str = PNG, **how: Any) -> Any:
        return self.run(lambda references: references.ensure(part, mime, tenant=tenant, **how))

    def advance(self, seconds: float) -> None:
        self.clock.passed_s += seconds
        self.emulator.clock.advance(seconds)

    @property
    def uploads(self) -> int:
        """How many were begun."""
        return len(self.emulator.requests.of("upload.start"))


class _Later:
    """The real clock, set ahead."""

    def __init__(self, ahead_s: float) -> None:
        self._ahead = timedelta(seconds=ahead_s)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead


def sync_for_real(flow: Callable[[Io], Coroutine[Any, Any, T]], ahead_s: float = 0) -> T:
    """Where flows have to wait for each other."""
    with SyncIo() as io:
        io.now = _Later(ahead_s).now  # type: ignore[method-assign]
        return run(flow(io))


def async_for_real(flow: Callable[[Io], Coroutine[Any, Any, T]], ahead_s: float = 0) -> T:
    async def whole() -> T:
        async with AsyncIo() as io:
            io.now = _Later(ahead_s).now  # type: ignore[method-assign]
            return await flow(io)

    return asyncio.run(whole())


def aged(registry: Path) -> None:
    """As if what it knows was uploaded an hour ago: of a new file it would be the project that is refused."""
    sql = sqlite3.connect(registry)
    with sql:
        sql.execute("UPDATE remotes SET uploaded_at = uploaded_at - 3600")
    sql.close()


def medium(data: bytes | Path, label: str = "shot.png") -> MediaPart:
    return MediaPart(source=data, label=label)
