"""The SDK's `models`, with the line in front of each of their requests: every turn, every hop of a continuation.

Chats, automatic function calling and continuations all come down to `_generate_content` and `_generate_content_stream`,
which are private: `genai_contract` looks whether they still are what is relied on here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from google.genai import types
from google.genai.models import AsyncModels, Models

from weighlock.integrations.genai_contract import MODELS, uncovered
from weighlock.integrations.genai_gate import AwaitingFace, BlockingFace, Call, answered, finished, to_count
from weighlock.integrations.genai_uncovered import guard
from weighlock.integrations.receipts import receipts
from weighlock.io import run
from weighlock.prepared import PreparedRequest


class WeighedModels(Models):
    """As `client.models`."""

    _face: BlockingFace

    def _generate_content(self, *, model: str, contents: Any, config: Any = None) -> types.GenerateContentResponse:
        plain = super()._generate_content

        async def send(ready: PreparedRequest) -> types.GenerateContentResponse:
            return plain(model=model, contents=ready.contents, config=ready.config)

        return run(answered(self._face, send, contents, config, model))

    def _generate_content_stream(
        self, *, model: str, contents: Any, config: Any = None
    ) -> Iterator[types.GenerateContentResponse]:
        plain = super()._generate_content_stream

        async def send(
            ready: PreparedRequest,
        ) -> tuple[Iterator[types.GenerateContentResponse], types.GenerateContentResponse | None]:
            chunks = iter(plain(model=model, contents=ready.contents, config=ready.config))
            return chunks, next(chunks, None)  # what the service refuses, it refuses here

        call = run(Call.of(self._face, contents, config, model))
        chunks, chunk = run(call.sent(send))
        whole = False
        try:
            while chunk is not None:
                call.seen(chunk)
                yield chunk
                chunk = next(chunks, None)
            whole = True
        finally:
            try:
                _close(chunks)
            finally:
                run(call.settle(partial=not whole))

    def escalate(
        self, response: types.GenerateContentResponse, parts: Iterable[int | str]
    ) -> types.GenerateContentResponse:
        """Asks once more what a response was the answer to, with some parts as sharp as the budget allows.

        For an answer that could not read them. `weighlock.receipt` of what comes shows both passes.

        Args:
            response: Of this client; not merged from several hops.
            parts: Which media, by number or name, as the receipt has them.

        Raises:
            BudgetExceeded: there is no room for them to be sharper than they were.
            InputError: no such part, or a response that came another way.
        """
        plain = super()._generate_content

        async def flow() -> types.GenerateContentResponse:
            call = await Call.again(self._face, response, parts)

            async def send(ready: PreparedRequest) -> types.GenerateContentResponse:
                return plain(model=ready.model, contents=ready.contents, config=ready.config)

            return await finished(call, send)

        return run(flow())

    def count_tokens(self, *, model: str, contents: Any, config: Any = None) -> types.CountTokensResponse:
        """What the contents would count as they would be sent, over a limit too; nothing is held.

        A media resolution of the whole request cannot be told to the Developer API's count: the receipt warns of it.
        """
        ready = run(self._face.prepare(contents, model=model, holds=False, refuses=False))
        asked, slip = to_count(self._face, ready, config)
        counted = super().count_tokens(model=model, contents=ready.contents, config=asked)
        receipts.put(counted, slip)
        return counted

    def embed_content(self, *, model: str, contents: Any, config: Any = None) -> types.EmbedContentResponse:
        ready = run(self._face.prepare(contents, model=model, holds=False))
        return super().embed_content(model=model, contents=ready.contents, config=config)


class AsyncWeighedModels(AsyncModels):
    """As `client.aio.models`."""

    _face: AwaitingFace

    async def _generate_content(
        self, *, model: str, contents: Any, config: Any = None
    ) -> types.GenerateContentResponse:
        plain = super()._generate_content

        async def send(ready: PreparedRequest) -> types.GenerateContentResponse:
            return await plain(model=model, contents=ready.contents, config=ready.config)

        return await answered(self._face, send, contents, config, model)

    async def _generate_content_stream(  # type: ignore[override]  # the SDK declares what a coroutine of it gives
        self, *, model: str, contents: Any, config: Any = None
    ) -> AsyncIterator[types.GenerateContentResponse]:
        return self._chunks(super()._generate_content_stream, model, contents, config)

    async def _chunks(
        self, plain: Callable[..., Any], model: str, contents: Any, config: Any
    ) -> AsyncIterator[types.GenerateContentResponse]:
        async def send(
            ready: PreparedRequest,
        ) -> tuple[AsyncIterator[types.GenerateContentResponse], types.GenerateContentResponse | None]:
            chunks = aiter(await plain(model=model, contents=ready.contents, config=ready.config))
            return chunks, await anext(chunks, None)

        call = await Call.of(self._face, contents, config, model)
        chunks, chunk = await call.sent(send)
        whole = False
        try:
            while chunk is not None:
                call.seen(chunk)
                yield chunk
                chunk = await anext(chunks, None)
            whole = True
        finally:
            try:
                await _aclose(chunks)
            finally:
                await call.settle(partial=not whole)

    async def escalate(
        self, response: types.GenerateContentResponse, parts: Iterable[int | str]
    ) -> types.GenerateContentResponse:
        """As `client.models.escalate`."""
        plain = super()._generate_content
        call = await Call.again(self._face, response, parts)

        async def send(ready: PreparedRequest) -> types.GenerateContentResponse:
            return await plain(model=ready.model, contents=ready.contents, config=ready.config)

        return await finished(call, send)

    async def count_tokens(self, *, model: str, contents: Any, config: Any = None) -> types.CountTokensResponse:
        """As `client.models.count_tokens`."""
        ready = await self._face.prepare(contents, model=model, holds=False, refuses=False)
        asked, slip = to_count(self._face, ready, config)
        counted = await super().count_tokens(model=model, contents=ready.contents, config=asked)
        receipts.put(counted, slip)
        return counted

    async def embed_content(self, *, model: str, contents: Any, config: Any = None) -> types.EmbedContentResponse:
        ready = await self._face.prepare(contents, model=model, holds=False)
        return await super().embed_content(model=model, contents=ready.contents, config=config)


guard(WeighedModels, Models, uncovered(Models, MODELS), "models.")
guard(AsyncWeighedModels, AsyncModels, uncovered(AsyncModels, MODELS), "aio.models.")


def _close(chunks: Any) -> None:
    if callable(close := getattr(chunks, "close", None)):
        close()


async def _aclose(chunks: Any) -> None:
    if callable(close := getattr(chunks, "aclose", None)):
        await close()
