"""Bodies as they come in: bounded in bytes, in time and in how many are held at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from weighlock.service.keys import Headers
from weighlock.settings.serving import Deadlines

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_SLOW_AFTER_S, _SLOWEST_BYTES_PER_S = 10.0, 1_000
_LONGEST_WAIT_S, _AGAIN_S = 5.0, 2.0


class BodyRefused(Exception):
    """A body that is not read on. `retry_after_s` where it may come again."""

    def __init__(self, status: int, message: str, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.reason, self.retry_after_s = status, message, reason, retry_after_s


class ClientGone(Exception):
    """Nobody is left to answer."""


def declared_bytes(headers: Headers) -> int | None:
    """`Content-Length`; `None` of a body in chunks."""
    found = next((value for name, value in headers if name == b"content-length"), None)
    return int(found) if found is not None and found.isdigit() else None


class Admission:
    """How many bytes of bodies may be held at once. In order of arrival: a large one is not passed by forever."""

    def __init__(self, most: int) -> None:
        self._free = self._most = most
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def of(self, size_bytes: int) -> AsyncIterator[None]:
        """Room for a body while it is held.

        Raises:
            BodyRefused: 503, there is none within seconds.
        """
        size_bytes = min(size_bytes, self._most)
        await self._room(size_bytes)
        try:
            yield
        finally:
            self._free += size_bytes
            self._let_in()

    async def _room(self, size_bytes: int) -> None:
        if not self._waiting and size_bytes <= self._free:
            self._free -= size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, turn))
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._free += size_bytes  # let in a moment too late
            else:
                self._waiting = deque(one for one in self._waiting if one[1] is not turn)
            self._let_in()
            if isinstance(error, TimeoutError):
                raise BodyRefused(
                    503, "weighlock holds as many bytes of requests as it may; try again", "busy", _AGAIN_S
                ) from None
            raise

    def _let_in(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size_bytes, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= size_bytes
                turn.set_result(None)


async def pieces(receive: Receive, deadlines: Deadlines, most: int) -> AsyncIterator[bytes]:
    """A body as it arrives.

    Raises:
        BodyRefused: 413, more than `most` bytes; 408, it comes too slowly.
        ClientGone: it will never come.
    """
    loop, arrived = asyncio.get_running_loop(), 0
    begun = loop.time()
    while True:
        with _in_time():
            async with asyncio.timeout(deadlines.idle_s):
                message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        arrived += len(piece)
        if arrived > most:
            raise too_large(most)
        since_s = loop.time() - begun
        if since_s > _SLOW_AFTER_S and arrived < _SLOWEST_BYTES_PER_S * since_s and message.get("more_body"):
            raise _slow()
        if piece:
            yield piece
        if not message.get("more_body", False):
            return


async def whole(receive: Receive, deadlines: Deadlines, most: int, declared: int | None) -> bytes:
    """A body, held once. Raises as `pieces`."""
    first, body, at = b"", bytearray(), 0
    async for piece in pieces(receive, deadlines, most):
        if not at and not body and len(piece) == declared:
            first = piece  # all of it, as small ones come
            continue
        if not body and declared is not None:
            body = bytearray(declared)
        if declared is None:
            body += piece
        else:
            body[at : at + len(piece)] = piece
            at += len(piece)
    return first or bytes(body)


def too_large(most: int) -> BodyRefused:
    """More bytes than are taken."""
    return BodyRefused(413, f"a body of more than {most:,} bytes (service.max.body)", "body_too_large")


def _slow() -> BodyRefused:
    return BodyRefused(408, "the body comes too slowly", "body_too_slow")


@contextmanager
def _in_time() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise _slow() from None
