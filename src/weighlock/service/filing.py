"""Files that are there: looked at, listed, fetched, deleted. A tenant sees its own; another's is not there for it.

Whose a file is, the registry of references says: whatever comes to the service from here is in it.
"""

from __future__ import annotations

from typing import Any

from weighlock.errors import ReferenceUnrecoverable
from weighlock.request import Backend, Request
from weighlock.service.answering import answer_json, refuse
from weighlock.service.call import Call
from weighlock.service.passing import relayed
from weighlock.service.upstream import Ask
from weighlock.uploads.repair import references_in

_MOST_BYTES = 4 << 20
_MOST_PAGE, _PAGE = 100, 10
_METHODS = {None: ("GET", "DELETE"), "download": ("GET",)}


async def files(call: Call) -> None:
    """`files` and `files/NAME`."""
    if call.endpoint.account.backend is Backend.VERTEX:
        await refuse(call.send, 404, "the account is Vertex's, which has no Files API", "unknown_path")
        return
    name, method = call.route.name, call.route.method
    if name is None:
        await _listed(call) if call.method == "GET" else await _no_method(call)
        return
    if call.method not in _METHODS.get(method, ()):
        await _no_method(call)
    elif not await call.served.io.call(_is_own, call, name):
        await refuse(call.send, 403, _gone(name), "no_such_file")
    elif method == "download":
        await relayed(call, "GET", f"{_url(call, name)}:download", None)
    elif call.method == "DELETE":
        await _deleted(call, name)
    else:
        document = await described(call, name)
        if document is None:
            await refuse(call.send, 403, _gone(name), "no_such_file")
        else:
            await answer_json(call.send, 200, document)


async def demand_own(call: Call, request: Request) -> None:
    """Does nothing where everything a request names at the service is its tenant's: there all tenants are one project.

    Raises:
        ReferenceUnrecoverable: a file is not, or there is none; or it names a cache, and nobody here knows whose it is.
    """
    if not call.served.serving.clients:
        return
    if request.carried.get("cachedContent") is not None:
        raise ReferenceUnrecoverable("there is no such cached content, or it is not yours to use", file=None)
    if call.endpoint.account.backend is Backend.VERTEX:
        return
    for name in dict.fromkeys(name for name, _ in references_in(request)):
        if not await call.served.io.call(_is_own, call, name):
            raise ReferenceUnrecoverable(_gone(name), file=name)


async def described(call: Call, name: str) -> dict[str, Any] | None:
    """A file as the service describes it; `None` where it has none of that name any more."""
    service = call.served.upstream.service(call.endpoint.account)
    async with call.served.upstream.send(service, Ask(method="GET", url=_url(call, name))) as found:
        return await found.document(_MOST_BYTES) if found.status == 200 else None


async def _listed(call: Call) -> None:
    """A page of the tenant's own. Files that ended meanwhile are not on it: a page may be shorter than asked for."""
    size, after = call.asked("pageSize") or "", call.asked("pageToken") or ""
    most = min(int(size), _MOST_PAGE) if size.isdigit() and int(size) else _PAGE
    names = sorted(await call.served.io.call(_own_names, call))
    page = [name for name in names if name > after]
    documents = await call.served.io.gather([described(call, name) for name in page[:most]])
    told: dict[str, Any] = {}
    if found := [one for one in documents if one is not None]:
        told["files"] = found
    if len(page) > most:
        told["nextPageToken"] = page[most - 1]
    await answer_json(call.send, 200, told)


async def _deleted(call: Call, name: str) -> None:
    references = call.served.preflight.references(call.endpoint.account)
    missed = (await references.deleted([name])).missed
    await call.served.io.call(references.forgotten, call.caller.tenant, name)
    if missed:
        await refuse(call.send, 503, f"the service could not be reached to delete {name}", "not_deleted")
    else:
        await answer_json(call.send, 200, {})


async def _no_method(call: Call) -> None:
    await refuse(call.send, 405, f"files take no {call.method}", "method")


def _is_own(call: Call, name: str) -> bool:
    references = call.served.preflight.references(call.endpoint.account)
    known = references.registry.by_name(references.account, call.caller.tenant, name, call.served.io.now())
    return known is not None and known.remote is not None


def _own_names(call: Call) -> list[str]:
    references, now = call.served.preflight.references(call.endpoint.account), call.served.io.now()
    entries = references.registry.entries(now, account=references.account, tenant=call.caller.tenant)
    return [one.remote.name for one in entries if one.remote is not None and one.usable(now) is not None]


def _url(call: Call, name: str) -> str:
    return call.served.upstream.service(call.endpoint.account).target.files_url(name)


def _gone(name: str) -> str:
    """As the service says it of a file that is not there, or another project's."""
    return f"You do not have permission to access the File {name.partition('/')[2]} or it may not exist."
