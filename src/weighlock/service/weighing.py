"""Calls that are weighed and limited, and settled by nobody: counting now, embedding, batches and caches next door."""

from __future__ import annotations

from dataclasses import replace

from weighlock.converters import rest_json
from weighlock.converters.json_text import dumps
from weighlock.prepared import PreparedRequest
from weighlock.request import Backend
from weighlock.scales import Asked
from weighlock.service.call import Call
from weighlock.service.filing import demand_own
from weighlock.service.generating import parsed_of
from weighlock.service.passing import relayed


async def count(call: Call) -> None:
    """`countTokens`, of the request as it would be sent: over a limit too, and nothing is held."""
    async with call.admitted():
        parsed = await parsed_of(call, await call.body())
        ready = await prepared(call, parsed, refuses=False)
        body = await call.served.io.call(_counted, ready, parsed, call.endpoint.account.backend)
        await relayed(call, "POST", _url(call, ready), body)


async def prepared(call: Call, parsed: rest_json.Parsed, *, refuses: bool = True) -> PreparedRequest:
    """A request in which nothing is held."""
    await demand_own(call, parsed.request)
    who = call.caller
    return await call.served.preflight.aprepare(
        parsed,
        model=call.route.model,
        endpoint=who.endpoint,
        tenant=who.tenant,
        session=who.session,
        asked=Asked(backend=call.endpoint.account.backend),
        holds=False,
        refuses=refuses,
    )


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
