"""`generateContent` and `streamGenerateContent`: prepared, sent on, mended once where a file is refused, settled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from weighlock.converters import rest_json
from weighlock.converters.json_text import dumps
from weighlock.errors import ServiceError, ServiceRefused, ServiceUnreachable
from weighlock.gemini.errors import refusal as service_refusal
from weighlock.prepared import PreparedRequest, Receipt
from weighlock.request import Backend
from weighlock.scales import Asked
from weighlock.service.answering import answer, begin, forwarded, go_on, of_receipt, returned
from weighlock.service.call import Call, Presence
from weighlock.service.events import Listed, Stream
from weighlock.service.filing import demand_own
from weighlock.service.paths import Kind
from weighlock.service.refusals import of_error
from weighlock.service.upstream import Answer, Ask
from weighlock.settings.serving import OnClientGone

_LIGHT_BYTES = 64 * 1024
_MOST_ANSWER_BYTES = 256 << 20
_MOST_REFUSAL_BYTES = 1 << 20


async def generate(call: Call) -> None:
    """One request of a client, answered. Whatever happens, it is settled."""
    async with call.admitted():
        parsed = await parsed_of(call, await call.body())  # nobody holds the body beside it
        async with _present(call) as client:
            exchange = _Exchange(call=call, ready=await prepared(call, parsed))
            try:
                async with exchange.answered() as found:
                    if call.route.kind is Kind.STREAM and found.status == 200:
                        await _streamed(exchange, found, client)
                    else:
                        await _whole(exchange, found)
            except BaseException as error:
                await exchange.settle(error=error)
                raise


@asynccontextmanager
async def _present(call: Call) -> AsyncIterator[Presence]:
    """While the client is there. Once it has left, all goes on, or is broken off here, as the settings have it."""
    task = asyncio.current_task()
    cancels = task is not None and call.served.serving.on_client_gone is OnClientGone.CANCEL
    client = Presence(call.receive, task.cancel if task is not None and cancels else bool)
    try:
        async with client:
            yield client
    except asyncio.CancelledError:
        if not (client.is_gone and cancels):
            raise
        if task is not None:
            task.uncancel()


async def prepared(
    call: Call, parsed: rest_json.Parsed, *, holds: bool = True, refuses: bool = True
) -> PreparedRequest:
    """Weighed and shaped; everything it names is its tenant's. Raises as `demand_own` and `Preflight.aprepare`."""
    await demand_own(call, parsed.request)
    caller = call.caller
    return await call.served.preflight.aprepare(
        parsed,
        model=call.route.model,
        endpoint=caller.endpoint,
        tenant=caller.tenant,
        session=caller.session,
        asked=Asked(backend=call.endpoint.account.backend),
        holds=holds,
        refuses=refuses,
    )


async def parsed_of(call: Call, body: bytes) -> rest_json.Parsed:
    """A large body is read beside the event loop. Raises `MalformedRequest`."""
    if len(body) <= _LIGHT_BYTES:
        return rest_json.parse(body, model=call.route.model)
    return await call.served.io.call(rest_json.parse, body, model=call.route.model)


@dataclass(slots=True, kw_only=True)
class _Exchange:
    """A prepared request between being sent and being settled."""

    call: Call
    ready: PreparedRequest
    receipt: Receipt | None = None
    """Once it is settled."""
    upstream_ms: float = 0.0

    @asynccontextmanager
    async def answered(self) -> AsyncIterator[Answer]:
        """The service's answer; of a request it refused for a file, that of the mended one."""
        begun = perf_counter()
        while True:
            async with self._sent() as found:
                self.upstream_ms = (perf_counter() - begun) * 1000
                if found.status < 400 or not await self._mended(found):
                    yield found
                    return

    @asynccontextmanager
    async def _sent(self) -> AsyncIterator[Answer]:
        upstream, account = self.call.served.upstream, self.call.endpoint.account
        service = upstream.service(account)
        kind = self.call.route.kind
        url = service.target.model_url(self.call.route.model or self.ready.model, kind.value)
        headers = {**forwarded(self.call.headers), "content-type": "application/json"}
        body = await _body(self.call, self.ready)
        ask = Ask(method="POST", url=f"{url}?alt=sse" if kind is Kind.STREAM else url, headers=headers, body=body)
        async with upstream.send(service, ask) as found:
            yield found

    async def _mended(self, found: Answer) -> bool:
        """Whether the request may be sent once more. What the service said is kept for the client."""
        found.held = await found.read(_MOST_REFUSAL_BYTES)
        said = self.refused(found.status, found.headers, found.held)
        mended = await self.call.served.preflight.amend(self.ready, said)
        if mended is None:
            return False
        self.ready = mended
        return True

    def refused(self, status: int, headers: list[tuple[str, str]], body: bytes) -> ServiceRefused:
        """What the service said, as an error of ours."""
        served = self.call.served
        hidden = served.upstream.service(self.call.endpoint.account).hidden()
        return service_refusal(status, dict(headers), body, served.io.now(), hidden)

    async def settle(self, usage: Any = None, *, error: BaseException | None = None, partial: bool = False) -> None:
        """Once, and to its end though the call is broken off meanwhile."""
        if self.receipt is None:
            self.receipt = self.ready.receipt
            settling = self.call.served.preflight.asettle(self.ready, usage, error=error, partial=partial)
            self.receipt = await asyncio.shield(asyncio.ensure_future(settling))

    def headers(self) -> list[tuple[str, str]]:
        receipt = self.receipt or self.ready.receipt
        return list(of_receipt(receipt, {"upstream": self.upstream_ms} if self.upstream_ms else None))


async def _body(call: Call, ready: PreparedRequest) -> bytes:
    """As it is sent; to Vertex with the endpoint's labels."""
    labels = call.endpoint.labels
    if call.endpoint.account.backend is Backend.VERTEX and labels:
        own = ready.request.carried.get("labels")
        merged = {**(own if isinstance(own, dict) else {}), **labels}
        request = replace(ready.request, carried={**ready.request.carried, "labels": merged})
        ready = replace(ready, request=request)
    light = not isinstance(ready.origin, rest_json.Parsed) or len(ready.origin.body) <= _LIGHT_BYTES
    return ready.body if light else await call.served.io.call(_of, ready)


def _of(ready: PreparedRequest) -> bytes:
    return ready.body


# ---- its answer


async def _whole(exchange: _Exchange, found: Answer) -> None:
    call = exchange.call
    if not 200 <= found.status < 300:
        await _refused(exchange, found)
        return
    body = await found.read(_MOST_ANSWER_BYTES)
    document = await _read(call, body)
    if document is None:
        raise ServiceUnreachable("the service's answer is no JSON", unsent=False, timed_out=False)
    await exchange.settle(document)
    await answer(call.send, found.status, body, [*returned(found.headers), *exchange.headers()])


async def _refused(exchange: _Exchange, found: Answer) -> None:
    """The service's own refusal, as it words it, without our key."""
    call = exchange.call
    body = found.held if found.held is not None else await found.read(_MOST_REFUSAL_BYTES)
    await exchange.settle(error=exchange.refused(found.status, found.headers, body))
    for secret in call.served.upstream.service(call.endpoint.account).hidden():
        body = body.replace(secret.encode(), b"[key hidden]")
    status = found.status if found.status >= 400 else 502  # a redirect is followed by nobody
    await answer(call.send, status, body, [*returned(found.headers), *exchange.headers()])


async def _streamed(exchange: _Exchange, found: Answer, client: Presence) -> None:
    """Sent on as it comes, and read to its end though nobody is left to read it."""
    call = exchange.call
    stream = Stream() if call.wants_events else Listed()
    kept = [(name, value) for name, value in returned(found.headers) if name != "content-type"]
    await begin(call.send, 200, [("content-type", stream.media_type), *kept, *exchange.headers()])
    try:
        async for piece in found.pieces():
            await _passed_on(call, client, stream.feed(piece))
        await exchange.settle(stream.usage or None)
    except ServiceError as error:
        _, document, _ = of_error(error)
        await _passed_on(call, client, stream.item(dumps(document)))
        await exchange.settle(stream.usage or None, error=None if stream.usage else error, partial=True)
        stream.forget()
    except asyncio.CancelledError:
        await exchange.settle(stream.usage or None, partial=True)
        raise
    if not client.is_gone:
        await go_on(call.send, stream.end(), more=False)


async def _passed_on(call: Call, client: Presence, piece: bytes) -> None:
    """A client that reads nothing for too long has left."""
    if not piece or client.is_gone:
        return
    try:
        async with asyncio.timeout(call.served.serving.deadlines.idle_s):
            await go_on(call.send, piece)
    except TimeoutError:
        client.left()


async def _read(call: Call, body: bytes) -> Any:
    try:
        return json.loads(body) if len(body) <= _LIGHT_BYTES else await call.served.io.call(json.loads, body)
    except (ValueError, RecursionError):
        return None
