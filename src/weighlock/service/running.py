"""The service from its start to its end, in one process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from weighlock.events import Ended
from weighlock.io import AsyncIo
from weighlock.preflight import Preflight
from weighlock.rules import RuleBook
from weighlock.service.proxy import Proxy
from weighlock.service.served import Served
from weighlock.service.server import Server, listening
from weighlock.settings import Settings

_PATIENCE_S = 30.0


class Service:
    """Serves what the settings say, on sockets that listen already."""

    def __init__(
        self,
        settings: Settings,
        *,
        clients: socket.socket,
        rules: RuleBook | None = None,
        on_event: Iterable[Callable[[Ended], object]] = (),
    ) -> None:
        self._settings, self._rules, self._on_event = settings, rules, tuple(on_event)
        self._clients = clients

    async def run(self, stopped: asyncio.Event, on_start: Callable[[], object] = lambda: None) -> None:
        """Until `stopped`: then what is under way ends, and everything is settled."""
        io = AsyncIo()
        preflight = Preflight(self._settings, rules=self._rules, async_io=io, on_event=self._on_event)
        async with preflight:
            served = Served(self._settings, preflight, io)
            server = Server(Proxy(lambda: served), self._clients)
            await server.start()
            try:
                on_start()
                await stopped.wait()
            finally:
                await server.stop(self._settings.service.deadlines.drain_s)
                await served.close()


class ServiceThread:
    """A service in a thread of its own, as long as its `with` lasts: inside a test, a notebook, a demo."""

    def __init__(
        self,
        settings: Settings,
        *,
        rules: RuleBook | None = None,
        on_event: Iterable[Callable[[Ended], object]] = (),
    ) -> None:
        """Raises `OSError` where the port is taken."""
        clients = listening(settings.service.listen)
        self.base_url = f"http://{settings.service.listen.host}:{clients.getsockname()[1]}"
        """For `HttpOptions(base_url=…)`."""
        self._service = Service(settings, clients=clients, rules=rules, on_event=on_event)
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="weighlock-service", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(_PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._service.run(self._stopped, self._ready.set))
