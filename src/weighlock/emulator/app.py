"""The ASGI app: the service's routes, the tester's routes, errors as the service tells them, and the watch around."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from weighlock.emulator.admin import admin_routes
from weighlock.emulator.behaviours import reproduces
from weighlock.emulator.errors import ApiError, invalid
from weighlock.emulator.routes import answer, routes
from weighlock.emulator.service import Service
from weighlock.emulator.watch import Watch
from weighlock.errors import ConfigError, InputError, WeighlockError


def application(service: Service) -> Watch:
    """Everything the emulator answers."""
    told = (ApiError, HTTPException, WeighlockError, ClientDisconnect)
    app = Starlette(
        routes=[*routes(service), *admin_routes(service)], exception_handlers=dict.fromkeys(told, _answered)
    )
    return Watch(app, service)


@reproduces("stream-errors-listed")
async def _answered(request: Request, error: Exception) -> Response:
    in_array = request.url.path.endswith(":streamGenerateContent") and request.query_params.get("alt") != "sse"
    told = _as_told(error)
    return answer([told.document()] if in_array else told.document(), told.code)


def _as_told(error: Exception) -> ApiError:
    match error:
        case ApiError():
            return error
        case HTTPException(status_code=code, detail=detail):
            return ApiError(code, detail)
        case InputError() | ConfigError():
            return invalid(str(error))
        case ClientDisconnect():
            return ApiError(499, "The client is gone.")
        case _:
            return ApiError(500, str(error))
