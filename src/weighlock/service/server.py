"""Connections: sockets to listen on, and the HTTP protocol that reads them. The service's door to `uvicorn`.

The parser is lenient where others are not, so what two readers could understand differently is refused here, and the
connection with it: no byte behind a refused head is ever read as another request.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Iterable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from weighlock.converters.json_text import dumps
from weighlock.service.answering import JSON
from weighlock.service.refusals import refusal
from weighlock.settings.serving import Address, Deadlines

_BACKLOG, _KEPT_ALIVE_S = 2048, 75
_MOST_HEAD_BYTES, _MOST_HEADERS, _LONGEST_TARGET = 64 * 1024, 100, 8_192
_HOST = re.compile(rb"(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9.-]{1,253})(?::[0-9]{1,5})?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_ONCE = (b"host", b"content-length", b"transfer-encoding", b"content-type", b"expect")
_MOST_UNREAD_BYTES, _LINGERS_S = 1 << 20, 2.0
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Refused(Exception):
    """A head that is not understood as anything. The connection ends with it."""

    def __init__(self, status: int, message: str, reason: str) -> None:
        super().__init__(message)
        self.status, self.message, self.reason = status, message, reason


class Hosts:
    """Names a server answers to: a page that was led here by DNS names another one.

    None known, any will do: behind a load balancer nobody knows them all.
    """

    def __init__(self, names: Iterable[str], *, is_open: bool) -> None:
        self._names = frozenset(name.lower() for name in names)
        self._ends = tuple(name[1:] for name in self._names if name.startswith("*."))
        self._any = is_open and not self._names

    def __contains__(self, host: str) -> bool:
        bare = host.lower()
        bare = bare.partition("]")[0].strip("[") if bare.startswith("[") else bare.partition(":")[0]
        return self._any or bare in self._names or bare in _LOOPBACK or bare.endswith(self._ends or ("\0",))


class Protocol(HttpToolsProtocol):
    """One connection of a client, which has so long for each of its heads."""

    def __init__(self, config: uvicorn.Config, state: ServerState, hosts: Hosts, deadlines: Deadlines) -> None:
        super().__init__(config, state, {}, asyncio.get_running_loop())
        self.access_log = False  # whatever the host logs: keys in queries and addresses of uploads are secrets
        self._hosts, self._header_s = hosts, deadlines.header_s
        self._in_head, self._in_body = True, False
        self._head_bytes = self._unread_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._wrong: Refused | None = None
        """Why this connection ends; nothing more is read from it."""

    def connection_made(self, transport: Any) -> None:
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, error: Exception | None) -> None:
        self._await_no_head()
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if self._wrong is not None:
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._deadline is None:
                self._await_head()
        super().data_received(data)
        if self._in_head and self._head_bytes > _MOST_HEAD_BYTES and self._wrong is None:
            self._refuse(_too_large())

    def send_400_response(self, msg: str) -> None:
        """What the parser does not understand, and what is raised in the callbacks below."""
        self._refuse(self._wrong or Refused(400, "that is no request of HTTP", "malformed_head"))

    # ---- what the parser tells

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= _MOST_HEADERS:
            raise self._because(_too_large())
        if not _NAME.fullmatch(name) or _CONTROL.search(value):
            raise self._because(Refused(400, "a header that is none", "malformed_head"))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if (wrong := self._ambiguous()) is not None:
            raise self._because(wrong)
        self._in_head, self._in_body, self._unread_bytes = False, True, 0
        self._await_no_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:  # refused before it was read: a little may still come, and no more
            self._unread_bytes += len(body)
            if self._unread_bytes > _MOST_UNREAD_BYTES:
                self.transport.close()
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._await_no_head()
        self._in_head, self._in_body, self._head_bytes = True, False, 0

    def on_response_complete(self) -> None:
        """Of a body that was refused unread a little is taken in, so that its sender gets to read why."""
        super().on_response_complete()
        if self._in_body:
            self._deadline = self.loop.call_later(_LINGERS_S, self.transport.close)

    def _ambiguous(self) -> Refused | None:
        """Why another reader might see another request in this head."""
        found = {name: [value for key, value in self.headers if key == name] for name in _ONCE}
        twice = [name for name, values in found.items() if len(values) > 1]
        if twice:
            return Refused(400, f"{twice[0].decode()} is there twice", "malformed_head")
        host, coding = b"".join(found[b"host"]), b"".join(found[b"transfer-encoding"])
        if not _HOST.fullmatch(host):
            return Refused(400, "a request names one Host", "malformed_head")
        if host.decode("ascii") not in self._hosts:
            return Refused(421, "this service does not answer to that name (service.hosts)", "unknown_host")
        if coding and (found[b"content-length"] or coding.lower() != b"chunked"):
            return Refused(400, "a body is as long as Content-Length says, or it is chunked", "malformed_head")
        if self.parser.should_upgrade():
            return Refused(501, "no upgrade: live sessions are not weighed", "upgrade")
        if self.parser.get_http_version() != "1.1":
            return Refused(505, "version 1.1 of HTTP, please", "http_version")
        if not self.url.startswith(b"/") or len(self.url) > _LONGEST_TARGET:
            return Refused(400, "a target begins with a slash, and is no longer than a page", "malformed_head")
        return None

    def _because(self, wrong: Refused) -> Refused:
        self._wrong = wrong
        return wrong

    # ---- time

    def _await_head(self) -> None:
        self._await_no_head()
        self._deadline = self.loop.call_later(self._header_s, self._too_late)

    def _await_no_head(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if self._in_head:
            self._refuse(Refused(408, "the head comes too slowly", "head_too_slow"), told=bool(self._head_bytes))

    def _refuse(self, wrong: Refused, *, told: bool = True) -> None:
        """The last thing this connection says; nothing into the middle of another answer."""
        self._wrong = wrong
        self._await_no_head()
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle  # none before the first head
        if told and not self.pipeline and (cycle is None or cycle.response_complete or not cycle.response_started):
            body = dumps(refusal(wrong.status, wrong.message, reason=wrong.reason))
            length = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            head = f"HTTP/1.1 {wrong.status} Refused\r\ncontent-type: {JSON}\r\n{length}"
            self.transport.write(head.encode() + body)
        self.transport.close()


def _too_large() -> Refused:
    return Refused(431, f"a head of more than {_MOST_HEAD_BYTES:,} bytes or {_MOST_HEADERS} headers", "head_too_large")


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

    def __init__(self, app: Callable[..., Any], on: socket.socket, hosts: Hosts, deadlines: Deadlines) -> None:
        self._config = uvicorn.Config(
            app,
            http=HttpToolsProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEPT_ALIVE_S,
        )
        self._config.load()
        self._on, self._hosts, self._deadlines, self._state = on, hosts, deadlines, ServerState()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Returns once it takes connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Protocol(self._config, self._state, self._hosts, self._deadlines), sock=self._on, backlog=_BACKLOG
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
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for connection in tuple(self._state.connections):
            if (transport := getattr(connection, "transport", None)) is not None:
                transport.abort()
        await asyncio.sleep(0)  # lets the aborted transports close their sockets
        return len(left)
