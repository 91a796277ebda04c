"""The service from its start to its end, in one process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from weighlock.events import Ended
from weighlock.io import AsyncIo
from weighlock.observe.prometheus import Gauges, Metrics, new_registry
from weighlock.preflight import Preflight
from weighlock.rules import RuleBook
from weighlock.service.admin import admin_app
from weighlock.service.proxy import Proxy
from weighlock.service.reload import Reloader
from weighlock.service.served import Served
from weighlock.service.server import Hosts, Server, listening
from weighlock.service.state import State
from weighlock.settings import Settings
from weighlock.settings.serving import Address

_PATIENCE_S = 60.0


class Service:
    """Serves what the settings say, on sockets that listen already; `admin` where operators are served too.

    `read` reads the settings again, for `reload`: by a signal, or when a file of theirs has changed.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clients: socket.socket,
        admin: socket.socket | None = None,
        rules: RuleBook | None = None,
        on_event: Iterable[Callable[[Ended], object]] = (),
        read: Callable[[], Settings] | None = None,
    ) -> None:
        self._settings, self._rules, self._on_event, self._read = settings, rules, tuple(on_event), read
        self._clients, self._admin = clients, admin
        self._registry = new_registry()
        self._metrics = Metrics(self._registry, endpoints=(), models=())
        self._reloader: Reloader | None = None

    async def run(self, stopped: asyncio.Event, on_start: Callable[[], object] = lambda: None) -> None:
        """Until `stopped`: then what is under way ends, and everything is settled."""
        io, serving = AsyncIo(), self._settings.service
        state = State(self._served(self._settings, io))
        self._registry.register(Gauges(lambda: [*state.served.preflight.gauges(), *state.samples()]))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(io.close)
            stack.push_async_callback(state.close)
            if self._read is not None:
                self._reloader = Reloader(state, self._read, lambda found: self._served(found, io, state.served))
                watching = asyncio.create_task(self._reloader.run())
                stack.push_async_callback(self._reloader.close)
                stack.callback(watching.cancel)
            if self._admin is not None and serving.admin is not None:
                app = admin_app(state, self._registry)
                admin = Server(app, self._admin, _hosts(serving.admin, serving.hosts), serving.deadlines)
                await admin.start()
                stack.push_async_callback(admin.stop, 1.0)
            hosts = _hosts(serving.listen, serving.hosts)
            server = Server(Proxy(lambda: state.served), self._clients, hosts, serving.deadlines)
            await server.start()
            try:
                on_start()
                await stopped.wait()
            finally:
                state.is_ending = True
                await server.stop(serving.deadlines.drain_s)

    def reload(self) -> None:
        """Reads the settings again, beside whatever is under way. From the loop it runs in."""
        if self._reloader is not None:
            self._reloader.ask()

    def _served(self, settings: Settings, io: AsyncIo, before: Served | None = None) -> Served:
        preflight = Preflight(settings, rules=self._rules, async_io=io, on_event=[*self._on_event, self._metrics])
        if before is not None:
            preflight.take_over(before.preflight)
        self._metrics.know(settings.endpoints, preflight.rules.models())
        return Served(settings, preflight, io)


def _hosts(address: Address, names: Iterable[str]) -> Hosts:
    own = [] if address.host in ("0.0.0.0", "::") else [address.host]  # noqa: S104
    return Hosts([*own, *names] if address.is_loopback or names else [], is_open=not address.is_loopback)


class ServiceThread:
    """A service in a thread of its own, as long as its `with` lasts: inside a test, a notebook, a demo."""

    def __init__(
        self,
        settings: Settings,
        *,
        rules: RuleBook | None = None,
        on_event: Iterable[Callable[[Ended], object]] = (),
        read: Callable[[], Settings] | None = None,
    ) -> None:
        """Raises `OSError` where a port is taken."""
        clients = listening(settings.service.listen)
        admin = None if settings.service.admin is None else listening(settings.service.admin)
        self.base_url = url_of(clients)
        """For `HttpOptions(base_url=…)`."""
        self.admin_url = None if admin is None else url_of(admin)
        self._service = Service(settings, clients=clients, admin=admin, rules=rules, on_event=on_event, read=read)
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
        self.stop()

    def reload(self) -> None:
        """As SIGHUP would."""
        self._loop.call_soon_threadsafe(self._service.reload)

    def stop(self) -> None:
        """As a signal would. What is under way ends first."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._service.run(self._stopped, self._ready.set))


def url_of(on: socket.socket) -> str:
    """Where a socket is reached on this machine."""
    host, port = on.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
