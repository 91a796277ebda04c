"""Connections: sockets to listen on, and the HTTP protocol that reads them. The service's door to `uvicorn`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from weighlock.settings.serving import Address

_BACKLOG, _KEPT_ALIVE_S = 2048, 75


class Protocol(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False  # whatever the host logs: keys in queries and addresses of uploads are secrets


def listening(address: Address) -> socket.socket:
    """A socket that listens there; port 0 takes any free one.

    Raises:
        OSError: the port is taken, or the address is none of this machine's.
    """
    (family, _, _, _, where), *_ = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    # With its protocol named: asyncio sets TCP_NODELAY on no other, and a call would take 50 ms instead of 3.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(where)
        found.listen(_BACKLOG)
        found.setblocking(False)
    except OSError:
        found.close()
        raise
    return found


class Server:
    """An ASGI app on one socket, on the running loop."""

    def __init__(self, app: Callable[..., Any], on: socket.socket) -> None:
        self._config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEPT_ALIVE_S,
        )
        self._config.load()
        self._on, self._state = on, ServerState()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Returns once it takes connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Protocol(self._config, self._state, {}, loop), sock=self._on, backlog=_BACKLOG
        )

    async def stop(self, within_s: float) -> int:
        """Takes no more connections, and waits for what is under way. How many calls had to be broken off."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._state.connections):
            connection.shutdown()
        left: set[asyncio.Task[Any]] = set(self._state.tasks)
        if left:
            _, left = await asyncio.wait(left, timeout=within_s)
        for connection in tuple(self._state.connections):
            if (transport := getattr(connection, "transport", None)) is not None:
                transport.abort()
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # lets the aborted transports close their sockets
        return len(left)
