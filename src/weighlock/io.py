"""What waits: the network, sleep, the clock, chance, blocking work. Handed in, so that every flow is written once.

A flow is an `async def` over an `Io`. `AsyncIo` awaits; `SyncIo` does the same blocking inside its `async def`s, so a
coroutine over it never suspends and `run` drives it with a single `send(None)`. The one door to `httpx2`, which is
loaded on the first request; its logs say nothing of our requests, for addresses and headers of an upload are secrets.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

from weighlock.errors import ServiceUnreachable
from weighlock.locks import Lock
from weighlock.turns import Turns

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
P = ParamSpec("P")

_LOGGERS = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
_SHORTEST_WAIT_S = 0.001
_PIECE_BYTES = 64 * 1024
_SENT_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """A body that is read while it is sent, and never held whole."""

    size_bytes: int
    read_at: Callable[[int, int], bytes] = field(repr=False)
    """Bytes of it, by their offset and how many. Blocks; all of them, or it raises."""

    def places(self) -> Iterator[tuple[int, int]]:
        """Offset and length of each piece."""
        for offset in range(0, self.size_bytes, _SENT_BYTES):
            yield offset, min(_SENT_BYTES, self.size_bytes - offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request. Its address and headers may hold secrets: neither is shown."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | Pieces = field(default=b"", repr=False)
    timeout_s: float = 60.0
    """For the whole exchange: connecting, sending, and every byte of the answer."""


class HttpResponse(Protocol):
    """An answer whose body has not been read yet. Valid inside the `async with` it came from."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        ...

    async def read(self, most: int) -> bytes:
        """The body, cut off after `most` bytes."""
        ...


class Io(Protocol):
    """Everything that waits."""

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """The answer, whatever its status; redirects are answers.

        Raises:
            ServiceUnreachable: none came, or it broke off.
        """
        ...

    async def sleep(self, seconds: float) -> None: ...

    def now(self) -> datetime:
        """Aware, UTC. May jump; for what others must understand."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment. Never jumps; for waits and deadlines."""
        ...

    def random(self) -> float:
        """0 ≤ x < 1, for jitter."""
        ...

    async def call(self, deed: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Blocking work (files, hashing, tokens), beside the event loop where there is one."""
        ...

    async def turn(self) -> None:
        """Waits until short work may be done where we stand, so that many flows leave an event loop to others too."""
        ...

    async def gather(self, flows: Sequence[Coroutine[Any, Any, T]], *, at_most: int = 8) -> list[T]:
        """The results in order, `at_most` at a time. Every flow ends before the first error, in order, is raised."""
        ...

    async def close(self) -> None: ...


def run(flow: Coroutine[Any, Any, T]) -> T:
    """The result of a flow over a `SyncIo`, in this thread.

    Raises:
        RuntimeError: it waited for something, so it was given another `Io`.
    """
    try:
        flow.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    flow.close()
    raise RuntimeError("this flow waits for an event loop; give it a SyncIo, or await it")


class _Ordinary:
    """Clock and chance, the same for both."""

    def __init__(self, transport: Any = None) -> None:
        self._transport = transport

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def random(self) -> float:
        return random.random()  # noqa: S311  # spreads retries; no secret


class AsyncIo(_Ordinary):
    """Awaits. May serve several event loops; each has its own connections, closed by `close` from within it.

    `transport` stands in for httpx2's own, as in `httpx2.MockTransport`.
    """

    def __init__(self, transport: Any = None) -> None:
        super().__init__(transport)
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncIterator[HttpResponse]:
        with _unlogged(), _our_errors(request):
            client, body = self._client(), request.body
            content = self._read(body) if isinstance(body, Pieces) else body or None
            answer = await client.send(_built(client, request, content), stream=True)
            try:
                yield _AsyncResponse(answer, request)
            finally:
                await answer.aclose()

    async def _read(self, body: Pieces) -> AsyncIterator[bytes]:
        for place in body.places():
            yield await self.call(body.read_at, *place)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(self, deed: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(deed, *args, **kwargs)

    async def turn(self) -> None:
        loop = asyncio.get_running_loop()
        if (turns := self._turns.get(loop)) is None:
            turns = self._turns[loop] = Turns(loop)
        await turns.mine()

    async def gather(self, flows: Sequence[Coroutine[Any, Any, T]], *, at_most: int = 8) -> list[T]:
        free = asyncio.Semaphore(at_most)

        async def in_turn(flow: Coroutine[Any, Any, T]) -> T:
            async with free:
                return await flow

        try:
            return _results(await asyncio.gather(*map(in_turn, flows), return_exceptions=True))
        finally:
            for flow in flows:
                flow.close()  # one that never began, where all of it was broken off

    async def close(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            import httpx2

            self._clients[loop] = httpx2.AsyncClient(transport=self._transport, follow_redirects=False)
        return self._clients[loop]


class SyncIo(_Ordinary):
    """Blocks. Thread-safe; drive flows over it with `run`."""

    def __init__(self, transport: Any = None) -> None:
        super().__init__(transport)
        self._clients: dict[int, httpx2.Client] = {}  # by process: a forked child shares no connection
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        run(self.close())

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncIterator[HttpResponse]:
        with _unlogged(), _our_errors(request):
            client, body = self._client(), request.body
            content = (body.read_at(*place) for place in body.places()) if isinstance(body, Pieces) else body or None
            answer = client.send(_built(client, request, content), stream=True)
            try:
                yield _SyncResponse(answer, request)
            finally:
                answer.close()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def call(self, deed: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return deed(*args, **kwargs)

    async def turn(self) -> None:
        pass

    async def gather(self, flows: Sequence[Coroutine[Any, Any, T]], *, at_most: int = 8) -> list[T]:
        if len(flows) < 2 or at_most < 2:
            return _results([_settled(flow) for flow in flows])
        with ThreadPoolExecutor(min(at_most, len(flows)), thread_name_prefix="weighlock") as pool:
            asked = [pool.submit(contextvars.copy_context().run, _settled, flow) for flow in flows]
            return _results([one.result() for one in asked])

    async def close(self) -> None:
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def _client(self) -> httpx2.Client:
        with self._lock:
            if os.getpid() not in self._clients:
                import httpx2

                self._clients[os.getpid()] = httpx2.Client(transport=self._transport, follow_redirects=False)
            return self._clients[os.getpid()]


def _settled(flow: Coroutine[Any, Any, T]) -> T | BaseException:
    try:
        return run(flow)
    except BaseException as error:  # raised by `_results`, once every flow has ended
        return error


def _results(settled: Sequence[T | BaseException]) -> list[T]:
    results: list[T] = []
    for one in settled:
        if isinstance(one, BaseException):
            raise one
        results.append(one)
    return results


# ---- httpx2


class _Answer:
    def __init__(self, answer: httpx2.Response, request: HttpRequest) -> None:
        self._answer = answer
        self._deadline: _Remaining = answer.request.extensions["timeout"]
        self.status = answer.status_code
        self.headers = {name.lower(): value for name, value in answer.headers.items()}


class _AsyncResponse(_Answer):
    async def chunks(self) -> AsyncIterator[bytes]:
        async for piece in self._answer.aiter_bytes(_PIECE_BYTES):
            self._deadline.demand_time()
            yield piece

    async def read(self, most: int) -> bytes:
        return await _read(self.chunks(), most)


class _SyncResponse(_Answer):
    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._answer.iter_bytes(_PIECE_BYTES):
            self._deadline.demand_time()
            yield piece

    async def read(self, most: int) -> bytes:
        return await _read(self.chunks(), most)


async def _read(chunks: AsyncIterator[bytes], most: int) -> bytes:
    body = bytearray()
    async for piece in chunks:
        body += piece
        if len(body) >= most:
            break
    return bytes(body[:most])


class _Remaining(dict[str, float]):
    """httpx2's `timeout` extension: every wait may take what is left of the whole exchange's time."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(dict.fromkeys(("connect", "read", "write", "pool"), timeout_s))
        self._until = time.monotonic() + timeout_s

    def get(self, key: str, default: Any = None) -> float:  # as httpcore2 asks
        return max(_SHORTEST_WAIT_S, self._until - time.monotonic())

    def demand_time(self) -> None:
        if time.monotonic() > self._until:
            import httpx2

            raise httpx2.ReadTimeout("the answer takes too long")


def _built(client: httpx2.Client | httpx2.AsyncClient, request: HttpRequest, content: Any) -> httpx2.Request:
    return client.build_request(
        request.method,
        request.url,
        headers=dict(request.headers),
        content=content,
        extensions={"timeout": _Remaining(request.timeout_s)},
    )


@contextmanager
def _our_errors(request: HttpRequest) -> Iterator[None]:
    """httpx2's errors as ours, told without them: they hold the request, and with it the key."""
    import httpx2

    unsent = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.InvalidURL)
    try:
        yield
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        timed_out = isinstance(error, httpx2.TimeoutException)
        what = f"no answer within {request.timeout_s:g} s" if timed_out else "no answer"
        raise ServiceUnreachable(
            f"the service gave {what} ({type(error).__name__})", timed_out=timed_out, unsent=isinstance(error, unsent)
        ) from None


_ours: contextvars.ContextVar[bool] = contextvars.ContextVar("weighlock_request", default=False)


def _is_others(_: logging.LogRecord) -> bool:
    return not _ours.get()


@contextmanager
def _unlogged() -> Iterator[None]:
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_others)  # added once; a second time is nothing
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)
