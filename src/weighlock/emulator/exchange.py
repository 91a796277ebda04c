"""One request and its answer as they pass: recorded, dated by the emulator's clock, and to be broken off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from weighlock.emulator.journal import LONGEST_BODY, Recorded
from weighlock.emulator.service import Service
from weighlock.emulator.transport import RESET

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
RECORDED = "weighlock.recorded"
"""Where a request's record stands in its scope."""
_METHODS = {"generateContent": "generate", "streamGenerateContent": "stream", "countTokens": "count"}


class Lost(Exception):
    """The connection is no more; there is nobody to answer."""


class Exchange:
    """One request and its answer, recorded as they pass."""

    def __init__(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        self.service, self.scope, self.recorded = service, scope, _recorded(scope)
        scope[RECORDED] = self.recorded
        self._receive, self._send = receive, send
        self.ended = False
        """Whether the whole body has come."""
        length, chunked = self.recorded.headers.get("content-length", "0"), "transfer-encoding" in self.recorded.headers
        self.length = None if chunked or not length.isdigit() else int(length)
        """Of the request's body; `None` where it is not announced."""
        self._keeps_body = not self.recorded.operation.startswith("upload.")

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            body = message.get("body", b"")
            self.recorded.body_bytes += len(body)
            if self._keeps_body:
                self.recorded.body += body
                if len(self.recorded.body) > LONGEST_BODY:
                    self.recorded.body, self._keeps_body = b"", False
            self.ended = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.recorded.status = message["status"]
            message = {**message, "headers": [*message["headers"], (b"date", self.service.clock.http_date())]}
        await self._send(message)

    async def answer(self, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        """A whole answer. What of the request has not come is taken and forgotten first, so that it arrives."""
        while not self.ended and (await self.receive())["type"] == "http.request":
            pass
        told = [(b"content-type", b"application/json; charset=UTF-8"), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": [*told, *headers]})
        await self.send({"type": "http.response.body", "body": body})

    async def reset(self) -> None:
        """Ends the connection with RST, and this request with it."""
        self.recorded.status = None
        self.scope["extensions"][RESET]["reset"]()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        raise Lost


def _recorded(scope: Scope) -> Recorded:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return Recorded(
        operation=_operation(scope["method"], scope["path"], headers.get("x-goog-upload-command", "").lower()),
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers=headers,
    )


def _operation(method: str, path: str, command: str) -> str:
    """The name a fault or a test knows a request by."""
    if path.startswith("/upload/"):
        words = {word.strip() for word in command.split(",")}
        named = {"start": "start", "finalize": "finalize", "upload": "chunk", "query": "query", "cancel": "cancel"}
        return f"upload.{next((name for word, name in named.items() if word in words), 'unknown')}"
    parts = path.strip("/").split("/")
    if parts[1:2] == ["files"]:
        return "files.list" if len(parts) == 2 else "files.delete" if method == "DELETE" else "files.get"
    return _METHODS.get(path.rpartition(":")[2], "models" if parts[1:2] == ["models"] else "unknown")
