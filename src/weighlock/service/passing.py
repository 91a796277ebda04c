"""What is sent on as it is: its answer goes back as it comes, with our key in the place of the client's."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from weighlock.request import Backend
from weighlock.service import bodies
from weighlock.service.answering import answer_json, begin, forwarded, go_on, refuse, returned
from weighlock.service.call import Call
from weighlock.service.paths import Kind
from weighlock.service.upstream import Ask
from weighlock.settings.model import admits
from weighlock.settings.serving import UnknownPaths

_log = logging.getLogger("weighlock")
_PASSED = frozenset({"pageSize", "pageToken", "filter", "alt", "updateMask", "fields"})
"""Of a client's query; a key never is."""
_NAMED = frozenset({Kind.CACHES, Kind.BATCHES, Kind.BATCH})
_MOST_LIST_BYTES = 16 << 20
_UNWEIGHED = (
    "weighlock does not weigh calls to this path, and lets none pass by (service.unknown_paths: pass would); "
    "generateContent, streamGenerateContent and countTokens are prepared and settled"
)


async def models(call: Call) -> None:
    """The models, those of the endpoint's list where it has one."""
    root = _root(call)
    if call.endpoint.account.backend is Backend.VERTEX:
        await refuse(call.send, 404, "the account is Vertex's, which lists no models here", "unknown_path")
        return
    if call.route.model is not None:
        if not call.endpoint.allows(call.route.model):
            await refuse(call.send, 404, f"no model {call.route.model} for this endpoint", "unknown_model")
            return
        await relayed(call, "GET", f"{root}/models/{call.route.model}", None)
        return
    allowed = call.endpoint.models
    if allowed is None:
        await relayed(call, "GET", f"{root}/models", None)
        return
    service = call.served.upstream.service(call.endpoint.account)
    async with call.served.upstream.send(service, Ask(method="GET", url=f"{root}/models?pageSize=1000")) as found:
        document = await found.document(_MOST_LIST_BYTES)
        listed = [one for one in document.get("models", ()) if admits(allowed, str(one.get("name", "")))]
        await answer_json(call.send, found.status, {**document, "models": listed} if listed else document)


async def unknown(call: Call) -> None:
    """A path nobody weighs: refused, or sent on past every limit, as the settings have it; and told."""
    serving = call.served.serving
    shared = call.route.kind in _NAMED and serving.clients  # of another tenant's nobody could tell
    if shared or serving.unknown_paths is UnknownPaths.REFUSE or call.endpoint.account.backend is Backend.VERTEX:
        await refuse(call.send, 404, _UNWEIGHED, "unknown_path")
        return
    _log.warning(
        "a call to %s of %s is not weighed: it passes every limit and budget by", call.route.path, call.caller.client
    )
    host = call.served.upstream.service(call.endpoint.account).target.root
    body = bodies.pieces(call.receive, serving.deadlines, serving.max_body_bytes) if call.method != "GET" else None
    await relayed(call, call.method, f"{host}{call.route.path}", body)


async def relayed(call: Call, method: str, url: str, body: bytes | AsyncIterator[bytes] | None) -> None:
    """One call, and its answer piece by piece."""
    service = call.served.upstream.service(call.endpoint.account)
    headers = forwarded(call.headers)
    if isinstance(body, bytes):
        headers["content-type"] = "application/json"
    elif body is not None and call.declared_bytes is not None:
        headers["content-length"] = str(call.declared_bytes)
    ask = Ask(method=method, url=f"{url}{call.query_of(_PASSED)}", headers=headers, body=body)
    async with call.served.upstream.send(service, ask) as found:
        status = found.status if not 300 <= found.status < 400 else 502  # a redirect is followed by nobody
        await begin(call.send, status, returned(found.headers))
        async for piece in found.pieces():
            await go_on(call.send, piece)
        await go_on(call.send, b"", more=False)


def _root(call: Call) -> str:
    target = call.served.upstream.service(call.endpoint.account).target
    return f"{target.root}/{target.version}"
