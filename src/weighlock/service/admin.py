"""The port of those who run it: health for whoever asks, metrics and more for operators. An ASGI app.

Apart from the clients' port, so that a network policy can tell the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from weighlock.observe.prometheus import rendered
from weighlock.service.keys import Forbidden, Keys
from weighlock.service.state import State

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_NO_STORE = {"cache-control": "no-store"}


def admin_app(state: State, registry: CollectorRegistry, more: list[BaseRoute] | None = None) -> Starlette:
    """`/healthz`, `/readyz`, `/metrics`, and whatever else is for operators."""

    async def health(_: Request) -> Response:
        """Alive: it answers."""
        return JSONResponse({"alive": True}, headers=_NO_STORE)

    async def ready(_: Request) -> Response:
        """Whether it may be sent requests: not while it ends, nor where every request would be refused."""
        why = await run_in_threadpool(state.not_ready)
        return JSONResponse({"ready": not why, "why": why, **state.told()}, 503 if why else 200, _NO_STORE)

    async def metrics(request: Request) -> Response:
        body, kind = await run_in_threadpool(rendered, registry, request.headers.get("accept", ""))
        return Response(body, media_type=kind, headers=_NO_STORE)

    operators = for_operators(state)
    return Starlette(
        routes=[
            Route("/healthz", health, methods=["GET"]),
            Route("/readyz", ready, methods=["GET"]),
            Route("/metrics", operators(metrics), methods=["GET"]),
            *(more or ()),
        ]
    )


def for_operators(state: State) -> Callable[[Any], Any]:
    """Lets in whoever shows an operator's key; anybody, where none is named and the address is loopback."""

    def guarded(answer: Any) -> Any:
        async def asked(request: Request) -> Response:
            try:
                keys = Keys(state.served.serving.operators)
                keys.client(request.scope["headers"], request.scope["query_string"])
            except Forbidden:
                return JSONResponse({"title": "forbidden", "status": 403, "detail": "an operator's key, please"}, 403)
            found: Response = await answer(request)
            return found

        return asked

    return guarded
