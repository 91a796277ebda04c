"""The proxy: a call is understood by its path, let in by its key, answered by what it asks for. An ASGI app.

Nothing of a body is read before it is known who asks, and for which endpoint.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from weighlock.errors import ConfigError, WeighlockError
from weighlock.service.answering import Send, answer_json, refuse, retry_after
from weighlock.service.api import ROOT as API
from weighlock.service.api import api
from weighlock.service.bodies import BodyRefused, ClientGone
from weighlock.service.call import Call, Receive
from weighlock.service.filing import files
from weighlock.service.generating import generate
from weighlock.service.keys import MOST_FIELDS, Caller, Forbidden, caller, fields
from weighlock.service.passing import models, unknown
from weighlock.service.paths import Kind, Route, route
from weighlock.service.refusals import of_error
from weighlock.service.served import Served
from weighlock.service.spool import unknown_upload
from weighlock.service.uploading import begin, go_on
from weighlock.service.weighing import count
from weighlock.written import plain

_log = logging.getLogger("weighlock")
Deed = Callable[[Call], Awaitable[None]]
_GET, _POST = frozenset({"GET"}), frozenset({"POST"})
_PUT_OR_POST = frozenset({"PUT", "POST"})
_DEEDS: dict[Kind, tuple[frozenset[str] | None, Deed]] = {
    Kind.GENERATE: (_POST, generate),
    Kind.STREAM: (_POST, generate),
    Kind.COUNT: (_POST, count),
    Kind.MODELS: (_GET, models),
    Kind.FILES: (None, files),
    Kind.UPLOAD: (_PUT_OR_POST, begin),
}


class Proxy:
    """Answers the clients' port. `served` gives the configuration in force."""

    def __init__(self, served: Callable[[], Served]) -> None:
        self._served = served

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        asked = route(_path(scope))
        listed = asked is not None and asked.kind is Kind.STREAM and b"alt=sse" not in scope["query_string"]
        begun = Begun(send)
        try:
            await self._answered(asked, scope, receive, begun)
        except ClientGone:
            return
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await _told(error, begun, listed=listed)

    async def _answered(
        self, asked: Route | None, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        if scope["query_string"].count(b"&") >= MOST_FIELDS:
            await refuse(send, 400, f"a query of more than {MOST_FIELDS} fields", "query")
            return
        served = self._served()
        with served.used():
            await self._answered_by(served, asked, scope, receive, send)

    async def _answered_by(
        self, served: Served, asked: Route | None, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        if asked is not None and asked.kind is Kind.UPLOAD and b"upload_id=" in scope["query_string"]:
            await self._uploaded(served, asked, scope, receive, send)
            return
        client = served.keys.client(scope["headers"], scope["query_string"])
        if asked is None:
            await refuse(send, 404, "no such path", "unknown_path")
            return
        known = served.settings.endpoints
        who = caller(client, scope["headers"], named=asked.endpoint, known=known)
        if asked.path.startswith(API):
            await api(_call(served, asked, who, scope, receive, send), asked.path.removeprefix(API))
            return
        methods, deed = _DEEDS.get(asked.kind, (None, unknown))
        if methods is not None and scope["method"] not in methods:
            await refuse(send, 405, f"{asked.kind.value} takes {' or '.join(sorted(methods))}", "method")
            return
        await deed(_call(served, asked, who, scope, receive, send))

    async def _uploaded(
        self, served: Served, asked: Route, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        """Real clients go on with an upload without a key: its address is one."""
        word = dict(fields(scope["query_string"])).get("upload_id", "")
        if scope["method"] not in _PUT_OR_POST:
            await refuse(send, 405, "upload takes POST or PUT", "method")
            return
        begun = await served.io.call(served.spool.look, word)
        who = Caller(client=begun.client, tenant=begun.tenant, endpoint=begun.endpoint)
        others = served.keys.is_others(scope["headers"], scope["query_string"], who.tenant)
        if others or not served.keys.still(who, served.settings.endpoints):
            raise unknown_upload()
        await go_on(_call(served, asked, who, scope, receive, send), word)


def _call(
    served: Served, asked: Route, who: Caller, scope: MutableMapping[str, Any], receive: Receive, send: Send
) -> Call:
    return Call(
        served=served,
        route=asked,
        caller=who,
        method=scope["method"],
        headers=scope["headers"],
        query=scope["query_string"],
        receive=receive,
        send=send,
    )


class Begun:
    """`send`, and whether an answer has begun: then a refusal has no place any more."""

    def __init__(self, send: Send) -> None:
        self._send, self.has = send, False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        self.has = True
        await self._send(message)


def _path(scope: MutableMapping[str, Any]) -> str:
    """As it was sent: what is escaped in it stays so, and is no path of ours."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


async def _told(error: Exception, send: Begun, *, listed: bool) -> None:
    if send.has:
        _log.error("an answer broke off: %s", type(error).__name__)
        raise error
    match error:
        case Forbidden():
            await refuse(send, 403, str(error), "forbidden", listed=listed)
        case BodyRefused():
            after_s = error.retry_after_s
            await refuse(send, error.status, error.message, error.reason, retry_after_s=after_s, listed=listed)
        case WeighlockError():
            if isinstance(error, ConfigError):
                _log.error("a request cannot be answered: %s", plain(error.message, 500))
            status, document, after_s = of_error(error)
            await answer_json(send, status, [document] if listed else document, retry_after(after_s))
        case _:
            _log.exception("a request could not be answered")
            await refuse(send, 500, "weighlock failed; its log has more", "internal", listed=listed)
