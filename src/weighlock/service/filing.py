"""Files that are there: looked at, listed, fetched, deleted. A tenant sees its own; another's is not there for it.

Whose a file is, the registry of references says: whatever comes to the service from here is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from weighlock.errors import ReferenceUnrecoverable
from weighlock.gemini.errors import refusal
from weighlock.request import Backend, Json, OpaquePart, Request, ToolResultPart, Uri
from weighlock.service.announced import number
from weighlock.service.answering import answer_json, refuse
from weighlock.service.call import Call
from weighlock.service.passing import relayed
from weighlock.service.upstream import Ask
from weighlock.uploads.entries import Entry

_MOST_BYTES = 4 << 20
_MOST_PAGE, _PAGE = 100, 10
_METHODS = {None: ("GET", "DELETE"), "download": ("GET",)}
_LIKE = re.compile(r"(?:^|[/\\\s])files[/\\]+([a-z0-9][a-z0-9-]*)(?=$|[/\\?#:\s])", re.IGNORECASE | re.ASCII)
_URI_FIELDS = ("fileUri", "file_uri")


async def files(call: Call) -> None:
    """`files` and `files/NAME`."""
    if call.endpoint.account.backend is Backend.VERTEX:
        await refuse(call.send, 404, "the account is Vertex's, which has no Files API", "unknown_path")
        return
    name, method = call.route.name, call.route.method
    if call.method not in (("GET",) if name is None else _METHODS.get(method, ())):
        await refuse(call.send, 405, f"files take no {call.method}", "method")
        return
    if name is None:
        await _listed(call)
        return
    own = await call.served.io.call(_own, call, name)
    if own is None:
        await refuse(call.send, 403, _gone(name), "no_such_file")
    elif method == "download":
        await relayed(call, "GET", f"{_url(call, own.name)}:download", None)
    elif call.method == "DELETE":
        await _deleted(call, own)
    else:
        document = await described(call, own.name)
        if document is None:
            await refuse(call.send, 403, _gone(name), "no_such_file")
        else:
            await answer_json(call.send, 200, {**document, "name": name})


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
    for name in dict.fromkeys(_names_in(request)):
        if await call.served.io.call(_own, call, name) is None:
            raise ReferenceUnrecoverable(_gone(name), file=name)


def _names_in(request: Request) -> Iterator[str]:
    """Every file somebody might take a request to name, however it spells it, in parts nobody here understands too."""
    for _, medium, _ in request.media():
        if isinstance(medium.source, Uri):
            yield from _names_of(medium.source.text)
    for _, turn in request.beyond_text():
        for part in turn.parts:
            for one in part.media if isinstance(part, ToolResultPart) else (part,):
                if isinstance(one, OpaquePart):
                    for uri in _uris_in(one.wire):
                        yield from _names_of(uri)


def _names_of(uri: str) -> Iterator[str]:
    return (f"files/{found[1].lower()}" for found in _LIKE.finditer(unquote(uri)))


def _uris_in(value: Json) -> Iterator[str]:
    match value:
        case list() | tuple():
            for one in value:
                yield from _uris_in(one)
        case Mapping():
            for key, one in value.items():
                if key in _URI_FIELDS and isinstance(one, str):
                    yield one
                yield from _uris_in(one)


async def described(call: Call, name: str) -> dict[str, Any] | None:
    """A file as the service describes it; `None` where it has none of that name any more.

    Raises:
        ServiceRefused: the service does not say.
    """
    service = call.served.upstream.service(call.endpoint.account)
    async with call.served.upstream.send(service, Ask(method="GET", url=_url(call, name))) as found:
        if found.status == 200:
            return await found.document(_MOST_BYTES)
        if found.status in (403, 404):
            return None
        body = await found.read(_MOST_BYTES)
        raise refusal(found.status, dict(found.headers), body, call.served.io.now(), service.hidden())


async def _listed(call: Call) -> None:
    """A page of the tenant's own. Files that ended meanwhile are not on it: a page may be shorter than asked for."""
    size, after = number(call.asked("pageSize") or "0"), call.asked("pageToken") or ""
    if size is None:
        await refuse(call.send, 400, "pageSize is a whole number", "query")
        return
    most = min(size or _PAGE, _MOST_PAGE)
    own = sorted(await call.served.io.call(_all_own, call))
    page = [(name, there) for name, there in own if name > after]
    documents = await call.served.io.gather([described(call, there) for _, there in page[:most]])
    found = zip((name for name, _ in page), documents, strict=False)
    told: dict[str, Any] = {"files": [{**one, "name": name} for name, one in found if one is not None]}
    if not told["files"]:
        told = {}
    if len(page) > most:
        told["nextPageToken"] = page[most - 1][0]
    await answer_json(call.send, 200, told)


async def _deleted(call: Call, own: _Own) -> None:
    """At the service under every name it has there, and here."""
    references, io = call.served.preflight.references(call.endpoint.account), call.served.io
    names = await io.call(references.registry.names, own.entry.key, io.now())
    missed = (await references.deleted(dict.fromkeys([own.name, *names]))).missed
    if missed:
        await refuse(call.send, 503, "the service did not delete it; try again later", "not_deleted")
        return
    await io.call(references.forgotten, own.entry)
    await answer_json(call.send, 200, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """A file of the tenant's."""

    entry: Entry
    name: str
    """At the service, now."""


def _own(call: Call, name: str) -> _Own | None:
    """The file the tenant means by a name: whatever came in its place, where it had to be uploaded again."""
    references = call.served.preflight.references(call.endpoint.account)
    entry = references.registry.by_name(references.account, call.caller.tenant, name, call.served.io.now())
    return _Own(entry=entry, name=entry.remote.name) if entry is not None and entry.remote is not None else None


def _all_own(call: Call) -> list[tuple[str, str]]:
    """Name by name, those at the service beside them."""
    references, now = call.served.preflight.references(call.endpoint.account), call.served.io.now()
    registry, account, tenant = references.registry, references.account, call.caller.tenant
    entries, chosen = registry.entries(now, account=account, tenant=tenant), references.chosen.of(account, tenant)
    there = [(one.key, one.remote.name) for one in entries if one.remote is not None and one.usable(now) is not None]
    return [(chosen.get(key, name), name) for key, name in there]


def is_taken(call: Call, name: str) -> bool:
    """Whether the tenant has a file of that name."""
    own, now = _own(call, name), call.served.io.now()
    return own is not None and own.entry.usable(now) is not None


def _url(call: Call, name: str) -> str:
    return call.served.upstream.service(call.endpoint.account).target.files_url(name)


def _gone(name: str) -> str:
    """As the service says it of a file that is not there, or another project's."""
    return f"You do not have permission to access the File {name.partition('/')[2]} or it may not exist."
