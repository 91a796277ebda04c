"""`countTokens`: weighed, held and settled by nobody."""

from __future__ import annotations

from dataclasses import replace

from weighlock.converters import rest_json
from weighlock.converters.json_text import dumps
from weighlock.prepared import PreparedRequest
from weighlock.request import Backend
from weighlock.service.call import Call
from weighlock.service.generating import parsed_of, prepared
from weighlock.service.passing import relayed


async def count(call: Call) -> None:
    """`countTokens`, of the request as it would be sent: over a limit too, and nothing is held."""
    async with call.admitted():
        parsed = await parsed_of(call, await call.body())
        ready = await prepared(call, parsed, holds=False, refuses=False)
        body = await call.served.io.call(_counted, ready, parsed, call.endpoint.account.backend)
        await relayed(call, "POST", _url(call, ready), body)


def _url(call: Call, ready: PreparedRequest) -> str:
    target = call.served.upstream.service(call.endpoint.account).target
    return target.model_url(call.route.model or ready.model, call.route.kind.value)


def _counted(ready: PreparedRequest, parsed: rest_json.Parsed, backend: Backend) -> bytes:
    """In the form the backend takes: the Developer API counts all of a request only where it is wrapped in one."""
    wrapped = parsed.around is not None
    if backend is Backend.VERTEX:
        if not wrapped:
            return ready.body
        flat = rest_json.document(ready.request, replace(parsed, around=None))
        return dumps({key: value for key, value in flat.items() if key != "model"})
    if (wrapped and "model" in parsed.inner) or (not wrapped and not set(parsed.inner) - {"contents"}):
        return ready.body
    whole = rest_json.document(ready.request, replace(parsed, around=None))
    return dumps({"generateContentRequest": {**whole, "model": f"models/{ready.model.removeprefix('models/')}"}})
