"""Connections that can be reset in the middle: the server's HTTP protocol, with the socket within reach of the app.

The one door to `uvicorn`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

RESET = "weighlock.reset"
"""The ASGI extension: a function that resets the connection."""
_LINGER_NOT = struct.pack("ii", 1, 0)
_PATIENCE_S = 10.0
_KEPT_ALIVE_S = 75


class _ResettableProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False  # whatever the host logs: addresses of uploads, and keys in queries, are secrets

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {RESET: {"reset": self.reset}}

    def reset(self) -> None:
        """Ends the connection with RST instead of FIN: whatever was on its way is lost."""
        connection = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self.transport.abort()


def loopback_socket(port: int) -> socket.socket:
    """A listening socket on 127.0.0.1; 0 takes any free port.

    Raises:
        OSError: the port is taken.
    """
    # With its protocol named: asyncio sets TCP_NODELAY on no other, and a call would take 50 ms instead of 3.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
    except OSError:
        listening.close()
        raise
    return listening


class ServerThread:
    """Serves an ASGI app on a socket, in a thread of its own."""

    def __init__(self, app: Callable[..., Any], listening: socket.socket) -> None:
        self._config = uvicorn.Config(
            app,
            http=_ResettableProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,  # it would print ?key=
            proxy_headers=False,
            timeout_keep_alive=_KEPT_ALIVE_S,
        )
        self._listening = listening
        self._serving = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="weighlock-emulator", daemon=True)

    def start(self) -> None:
        """Returns once it takes connections."""
        self._config.load()
        self._thread.start()
        self._serving.wait(_PATIENCE_S)

    def stop(self) -> None:
        """Ends at once: open connections are broken off."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        state = ServerState()
        server = await self._loop.create_server(
            lambda: _ResettableProtocol(self._config, state, {}, self._loop), sock=self._listening, backlog=512
        )
        self._serving.set()
        await self._stop.wait()
        server.close()
        for connection in tuple(state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        for task in (tasks := tuple(state.tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets the aborted transports close their sockets
