"""The service behind the proxy, streamed both ways. The one door to `aiohttp`.

aiohttp, not httpx2, by measurement: on two cores a proxied call takes a third of the time of httpx2's
(`tests/benchmarks/proxy.py` prints both). Nothing here is logged, no redirect followed, no cookie kept.
"""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from weighlock.accounts import service_of
from weighlock.errors import ServiceUnreachable
from weighlock.gemini.http import Service
from weighlock.io import Io
from weighlock.settings import Account
from weighlock.settings.serving import Deadlines

_CONNECT_S, _POOL_S, _KEPT_ALIVE_S = 5.0, 1.0, 15.0
_MOST_CONNECTIONS, _MOST_LINE = 1_000, 16_384
_PIECE_BYTES = 64 * 1024
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
_OURS = ("user-agent", "accept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One call. Its address and headers may hold secrets: neither is shown."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | AsyncIterator[bytes] | None = field(default=None, repr=False)
    keyless: bool = False
    """For an address that is a key itself."""


class Answer:
    """An answer whose body has not been read yet. Valid inside the `async with` it came from."""

    __slots__ = ("_response", "headers", "held", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = [(name.lower(), value) for name, value in response.headers.items()]
        """Names in lower case, repeated ones too."""
        self.held: bytes | None = None
        """The body, where somebody read it already."""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises `ServiceUnreachable` where it breaks off."""
        with _our_errors():
            async for piece in self._response.content.iter_any():
                yield piece

    async def read(self, most: int) -> bytes:
        """The whole body.

        Raises:
            ServiceUnreachable: it breaks off, or is longer than `most` bytes.
        """
        found = bytearray()
        async for piece in self.pieces():
            found += piece
            if len(found) > most:
                raise ServiceUnreachable(
                    f"the service's answer is longer than {most:,} bytes", unsent=False, timed_out=False
                )
        return bytes(found)

    async def document(self, most: int) -> dict[str, Any]:
        """The whole body as a JSON object.

        Raises:
            ServiceUnreachable: it is none, breaks off, or is longer than `most` bytes.
        """
        try:
            found = json.loads(await self.read(most))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ServiceUnreachable("the service's answer is no JSON object", unsent=False, timed_out=False)
        return found


class Upstream:
    """The services of all accounts, over one pool of connections. Of one event loop."""

    def __init__(self, io: Io, deadlines: Deadlines) -> None:
        self._io, self._deadlines = io, deadlines
        self._services: dict[str, Service] = {}
        self._session: aiohttp.ClientSession | None = None

    def service(self, account: Account) -> Service:
        """Raises `ConfigError`: no key where the account says it is."""
        known = self._services.get(account.name)
        return known or self._services.setdefault(account.name, service_of(account, self._io))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def send(self, service: Service, ask: Ask) -> AsyncIterator[Answer]:
        """The answer, whatever its status; redirects are answers.

        Raises:
            ServiceUnreachable: none came.
            ConfigError: no usable key or login.
        """
        response = await self._sent(service, ask, fresh=False)
        if response.status == 401 and service.refreshable and not ask.keyless and _repeatable(ask):
            response.close()
            response = await self._sent(service, ask, fresh=True)
        try:
            yield Answer(response)
        finally:
            # A body that was not read to its end is of no use to the next call on this connection.
            response.release() if response.content.at_eof() else response.close()

    async def _sent(self, service: Service, ask: Ask, *, fresh: bool) -> aiohttp.ClientResponse:
        headers = {"accept-encoding": "identity", **ask.headers}
        if not ask.keyless:
            headers |= await service.credentials(fresh=fresh)
        with _our_errors():
            return await self._pool().request(
                ask.method,
                URL(ask.url, encoded=True),
                headers=headers,
                data=_in_pieces(ask.body),
                allow_redirects=False,
                skip_auto_headers=[name for name in _OURS if name not in headers],
            )

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            limits = aiohttp.ClientTimeout(
                total=None,
                connect=_CONNECT_S + _POOL_S,
                sock_connect=_CONNECT_S,
                sock_read=self._deadlines.first_byte_s,
            )
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_MOST_CONNECTIONS, keepalive_timeout=_KEPT_ALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=limits,
                auto_decompress=False,
                trust_env=False,
                read_bufsize=_PIECE_BYTES,
                max_line_size=_MOST_LINE,
                max_field_size=_MOST_LINE,
            )
        return self._session


def _in_pieces(body: Any) -> Any:
    """A large one is handed over bit by bit: at once, a connection would hold it a second time."""
    return io.BytesIO(body) if isinstance(body, bytes) and len(body) > _PIECE_BYTES else body


def _repeatable(ask: Ask) -> bool:
    return ask.body is None or isinstance(ask.body, bytes)


class _our_errors:  # noqa: N801
    """aiohttp's errors as ours, told without them: they hold the address, and with it what is secret."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, aiohttp.ClientError | TimeoutError):
            timed_out = isinstance(error, TimeoutError)
            what = "no answer in time" if timed_out else "no answer"
            raise ServiceUnreachable(
                f"the service gave {what} ({type(error).__name__})",
                timed_out=timed_out,
                unsent=isinstance(error, _UNSENT),
            ) from None
