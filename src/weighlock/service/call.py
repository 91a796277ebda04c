"""One call of a client: what it asks, who it is, and how it is spoken to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, MutableMapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

from weighlock.service import bodies
from weighlock.service.answering import Send
from weighlock.service.keys import Caller, Headers, fields
from weighlock.service.paths import Route
from weighlock.service.served import Served
from weighlock.settings import Endpoint

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


@dataclass(slots=True, kw_only=True)
class Call:
    """Between the moment it may ask and the end of its answer."""

    served: Served
    route: Route
    caller: Caller
    method: str
    headers: Headers
    query: bytes
    receive: Receive
    send: Send

    @property
    def endpoint(self) -> Endpoint:
        return self.served.settings.endpoint(self.caller.endpoint)

    @property
    def wants_events(self) -> bool:
        """Whether a stream is to be server-sent events, or a JSON array."""
        return self.asked("alt") == "sse"

    def asked(self, name: str) -> str | None:
        """A value of the query."""
        return next((value for key, value in self._pairs if key == name), None)

    def query_of(self, names: Container[str]) -> str:
        """Of the query what goes on, with its question mark; empty where nothing does."""
        kept = [(key, value) for key, value in self._pairs if key in names]
        return f"?{urlencode(kept)}" if kept else ""

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        return fields(self.query)

    def admitted(self) -> AbstractAsyncContextManager[None]:
        """Room for its body while that is held. Raises `BodyRefused`."""
        declared, most = self.declared_bytes, self.served.serving.max_body_bytes
        if declared is not None and declared > most:
            raise bodies.too_large(most)
        return self.served.admission.of(most if declared is None else declared)

    @property
    def own_address(self) -> str:
        """Where this call came to, as the client named it; without its query."""
        secure = any(name == b"x-forwarded-proto" and value.strip() == b"https" for name, value in self.headers)
        host = next((value.decode("latin-1") for name, value in self.headers if name == b"host"), "")
        prefix = "" if self.route.endpoint is None else f"/endpoints/{self.route.endpoint}"
        return f"{'https' if secure else 'http'}://{host}{prefix}{self.route.path}"

    @property
    def declared_bytes(self) -> int | None:
        return bodies.declared_bytes(self.headers)

    async def body(self) -> bytes:
        """The whole body. Raises as `bodies.whole`."""
        serving = self.served.serving
        return await bodies.whole(self.receive, serving.deadlines, serving.max_body_bytes, self.declared_bytes)


class Presence:
    """Whether the client is still there, once its body has been read."""

    def __init__(self, receive: Receive, on_gone: Callable[[], object]) -> None:
        self.is_gone = False
        self._receive, self._on_gone = receive, on_gone
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()

    def left(self) -> None:
        """It has left, or reads no more."""
        if not self.is_gone:
            self.is_gone = True
            self._on_gone()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.left()
