"""What the faults do. Each sees a request as bytes that come and bytes that go, so no route knows of any."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from weighlock.converters.json_text import dumps
from weighlock.emulator.behaviours import figure
from weighlock.emulator.errors import ApiError, retry_info
from weighlock.emulator.exchange import App, Exchange, Message, Receive
from weighlock.emulator.faults import Happening, Kind

_READ_BY_THEN_S = 0.02
"""A reset overtakes what has not been read yet; the client is given time for the beginning."""


class Struck:
    """One request that a fault befalls."""

    def __init__(self, exchange: Exchange, happening: Happening, app: App) -> None:
        self.exchange, self.happening, self.app = exchange, happening, app
        self.service = exchange.service

    async def run(self) -> None:
        """
        Raises:
            Lost: the connection was reset.
        """
        deeds: dict[Kind, Callable[[], Awaitable[None]]] = {
            Kind.STATUS: self._refused,
            Kind.RETRY_DELAY: self._put_off,
            Kind.RESET: self._reset,
            Kind.STALL: self._stalled,
            Kind.PARTIAL_COMMIT: self._partly_kept,
            Kind.STATUS_AFTER_COMMIT: self._refused_after_all,
            Kind.LOSE_RESPONSE: self._answer_lost,
            Kind.LOSE_FINAL: self._answer_lost,
            Kind.SESSION_GONE: self._forgotten,
            Kind.FAIL_PROCESSING: self._failed,
            Kind.EMPTY_COUNT: self._counted_nothing,
            Kind.CORRUPTED: self._corrupted,
            Kind.BROKEN_STREAM: self._broken,
            Kind.ERROR_MID_STREAM: self._error_in_stream,
        }
        await deeds[self.happening.kind]()

    async def _refused(self) -> None:
        if self.happening.after_bytes is not None:
            await self._begin()
        await self.exchange.answer(self.happening.status, _unavailable(self.happening.status))

    async def _refused_after_all(self) -> None:
        await self._unanswered(self.exchange.receive)
        await self.exchange.answer(503, _unavailable(503))

    async def _put_off(self) -> None:
        seconds = figure("absurd-retry-delay", "seconds")
        error = ApiError(429, "Resource has been exhausted (e.g. check quota).", details=[retry_info(seconds)])
        await self.exchange.answer(429, dumps(error.document()), (b"retry-after", str(seconds).encode()))

    async def _reset(self) -> None:
        if self.happening.after_bytes is not None:
            await self._begin()
        await self.exchange.reset()

    async def _stalled(self) -> None:
        if self.happening.after_bytes is not None:
            await self._begin()
        await asyncio.sleep(self.service.faults.stall_s)
        await self.exchange.reset()

    async def _partly_kept(self) -> None:
        await self._begin()
        await self.exchange.answer(200, b"", (b"x-goog-upload-status", b"active"))

    async def _answer_lost(self) -> None:
        await self._unanswered(self.exchange.receive)
        await self.exchange.reset()

    async def _forgotten(self) -> None:
        asked = parse_qs(self.exchange.recorded.query).get("upload_id", [""])
        self.service.uploads.forget(asked[0])
        await self.app(self.exchange.scope, self.exchange.receive, self.exchange.send)

    async def _failed(self) -> None:
        self.service.files.fail_next = "The file could not be processed."
        await self.app(self.exchange.scope, self.exchange.receive, self.exchange.send)

    async def _counted_nothing(self) -> None:
        await self._unanswered(self.exchange.receive)
        await self.exchange.answer(200, b"{}")

    async def _begin(self) -> None:
        """Lets the app have the body's beginning, as if the connection had broken there; its answer goes nowhere."""
        left = self.happening.place(self.exchange.length or 0)

        async def receive() -> Message:
            nonlocal left
            if left <= 0 or self.exchange.ended:
                return {"type": "http.disconnect"}
            message = await self.exchange.receive()
            body = message.get("body", b"")[:left]
            left -= len(body)
            return {**message, "body": body, "more_body": True}

        await self._unanswered(receive)

    async def _unanswered(self, receive: Receive) -> None:
        """Lets the app do what it would; nobody hears of it."""

        async def send(message: Message) -> None:
            """Into nothing."""

        with contextlib.suppress(Exception):  # a body that breaks off is an error there
            await self.app(self.exchange.scope, receive, send)

    async def _corrupted(self) -> None:
        """Spoils one byte: of an upload, what is stored; of anything else, what is answered."""
        exchange, spoilt = self.exchange, False
        at = self.happening.place(exchange.length or 0)
        uploading = exchange.recorded.operation in ("upload.chunk", "upload.finalize")

        async def receive() -> Message:
            nonlocal at, spoilt
            message = await exchange.receive()
            body = message.get("body", b"")
            if uploading and not spoilt and at < len(body):
                message, spoilt = {**message, "body": _with_a_wrong_byte(body, at)}, True
            at -= len(body)
            return message

        async def send(message: Message) -> None:
            nonlocal spoilt
            if not uploading and not spoilt and message.get("body"):
                message, spoilt = {**message, "body": _with_a_wrong_byte(message["body"], 0)}, True
            await exchange.send(message)

        await self.app(self.exchange.scope, receive, send)

    async def _broken(self) -> None:
        """Resets the connection in the middle of the answer's body."""
        exchange, left = self.exchange, self.happening.after_bytes

        async def send(message: Message) -> None:
            nonlocal left
            body = message.get("body", b"")
            if message["type"] == "http.response.body":
                left = len(body) // 2 if left is None or left < 0 else left
                message = {**message, "body": body[:left], "more_body": True}
            await exchange.send(message)
            if message["type"] == "http.response.body":
                left = (left or 0) - len(body)
                if left <= 0:
                    await asyncio.sleep(_READ_BY_THEN_S)
                    await exchange.reset()

        await self.app(self.exchange.scope, exchange.receive, send)
        await exchange.reset()  # the answer was shorter

    async def _error_in_stream(self) -> None:
        """One event of the answer, then an error in place of the others."""
        exchange, told = self.exchange, False

        async def send(message: Message) -> None:
            nonlocal told
            if message["type"] == "http.response.start" or not told:
                told = told or message["type"] == "http.response.body"
                message = {**message, "more_body": True} if told else message
                await exchange.send(message)
                if not told:
                    return
                error = ApiError(503, "The model is overloaded. Please try again later.")
                body = b"data: " + dumps(error.document()) + b"\r\n\r\n"
                await exchange.send({"type": "http.response.body", "body": body, "more_body": False})

        await self.app(self.exchange.scope, exchange.receive, send)


def _unavailable(status: int) -> bytes:
    return dumps(ApiError(status, "The service is currently unavailable.").document())


def _with_a_wrong_byte(body: bytes, at: int) -> bytes:
    return body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]
