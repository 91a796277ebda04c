"""One configuration in force: its settings, and what serves by them. Put in the place of another as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from weighlock.accounts import state_folder
from weighlock.io import AsyncIo
from weighlock.preflight import Preflight
from weighlock.service.bodies import Admission
from weighlock.service.keys import Keys
from weighlock.service.spool import Spool
from weighlock.service.upstream import Upstream
from weighlock.settings import Settings


class Served:
    """What calls are answered by. Of one event loop."""

    def __init__(self, settings: Settings, preflight: Preflight, io: AsyncIo) -> None:
        self.settings, self.preflight, self.io = settings, preflight, io
        self.serving = settings.service
        self.keys = Keys(settings.service.clients)
        self.admission = Admission(settings.service.max_in_flight_bytes)
        self.upstream = Upstream(io, settings.service.deadlines)
        self.spool = Spool(state_folder(settings) / "spool", most_bytes=settings.safety.max_file_bytes)
        self._calls, self._idle = 0, asyncio.Event()
        self._idle.set()

    @contextmanager
    def used(self) -> Iterator[None]:
        """By a call: until it has ended, nothing of this is closed."""
        self._calls += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def close(self) -> None:
        """Once no call is answered by it any more."""
        await self._idle.wait()
        await self.upstream.close()
        await self.io.call(self.preflight.close)
