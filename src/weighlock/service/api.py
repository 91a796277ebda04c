"""The JSON API on the clients' port: what a request or one medium would cost, and how it would be made to fit.

Nothing is sent and nothing is held. A source is the bytes in the request, or an address that begins as one the settings
list (`service.uris`); nothing is ever read from a path or fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from weighlock.converters import rest_json
from weighlock.errors import InputError, UnsupportedMedia, WeighlockError
from weighlock.request import Backend, MediaPart, Request, Turn, Uri
from weighlock.scales import Asked
from weighlock.service.answering import answer_json, retry_after
from weighlock.service.bodies import BodyRefused
from weighlock.service.call import Call
from weighlock.service.filing import demand_own
from weighlock.service.openapi import document
from weighlock.uploads.repair import file_name

ROOT = "/weighlock/v1/"
PROBLEM = "application/problem+json"
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Problem(Exception):
    """What is wrong with a call, in the words of RFC 9457."""

    status: int
    title: str
    detail: str


async def api(call: Call, path: str) -> None:
    """`check`, `fit`, and what describes them. `path` is what follows the root."""
    try:
        match (call.method, path):
            case "GET", "openapi.json":
                await answer_json(call.send, 200, document())
            case "POST", "check" | "fit":
                await _weighed(call, fits=path == "fit")
            case _, "openapi.json" | "check" | "fit":
                raise Problem(405, "method", f"{path} takes no {call.method}")
            case _:
                raise Problem(404, "unknown path", "there is /weighlock/v1/check, fit and openapi.json")
    except Problem as error:
        await _told(call, error.status, error.title, error.detail)
    except BodyRefused as error:
        await _told(call, error.status, error.reason.replace("_", " "), error.message, error.retry_after_s)


async def _weighed(call: Call, *, fits: bool) -> None:
    asked = _asked(call)
    async with call.admitted():
        body = await call.body()
        try:
            request = await call.served.io.call(_request, call, body)
            await demand_own(call, request)
            told = await call.served.io.call(_told_of, call, request, asked, fits=fits)
        except WeighlockError as error:
            problem = error.as_problem()
            status = 400 if isinstance(error, InputError) and error.http_status >= 500 else error.http_status
            await answer_json(call.send, status, _plain({**problem, "status": status}), kind=PROBLEM)
            return
    await answer_json(call.send, 200, told)


def _told_of(call: Call, request: Request, asked: Asked, *, fits: bool) -> dict[str, Any]:
    preflight = call.served.preflight
    return preflight.fit(request, asked).as_dict() if fits else preflight.weigh_request(request, asked).as_dict()


def _request(call: Call, body: bytes) -> Request:
    """A body of `generateContent`, or one medium as it is."""
    kind = _content_type(call)
    if kind in ("", "application/json"):
        request = rest_json.parse(body, model=call.asked("model")).request
    else:
        medium = MediaPart(source=body, label="medium", declared_mime=None if kind == _ANY else kind)
        request = Request(turns=(Turn(role="user", parts=(medium,)),), model=call.asked("model"))
    for _, part, _ in request.media():
        if isinstance(part.source, Uri) and not _is_allowed(part.source.text, call):
            raise UnsupportedMedia("an address that is not listed (service.uris); send the bytes, or have it listed")
    return request


_ANY = "application/octet-stream"


def _is_allowed(uri: str, call: Call) -> bool:
    return file_name(uri) is not None or uri.startswith(call.served.serving.uris or ("\0",))


def _asked(call: Call) -> Asked:
    """What the query says: `model`, `backend`, `max_tokens`, `max_usd`, `output_tokens`.

    Raises:
        Problem: one of them is none.
    """
    backend = call.asked("backend")
    if backend not in (None, *Backend):
        raise Problem(400, "query", f"backend is one of {', '.join(Backend)}")
    return Asked(
        endpoint=call.caller.endpoint,
        tenant=call.caller.tenant,
        session=call.caller.session,
        model=call.asked("model"),
        backend=Backend(backend) if backend else call.endpoint.account.backend,
        max_tokens=_count(call, "max_tokens"),
        output_tokens=_count(call, "output_tokens"),
        max_usd=_usd(call, "max_usd"),
    )


def _count(call: Call, name: str) -> int | None:
    text = call.asked(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Problem(400, "query", f"{name} is a whole number")
    return int(text)


def _usd(call: Call, name: str) -> Decimal | None:
    text = call.asked(name)
    if text is None:
        return None
    try:
        found = Decimal(text) if len(text) <= 2 * _MOST_DIGITS else None
    except InvalidOperation:
        found = None
    if found is None or not found.is_finite() or found < 0 or found.adjusted() > _MOST_DIGITS:
        raise Problem(400, "query", f"{name} is an amount of US dollars")
    return found


def _content_type(call: Call) -> str:
    found = next((value for name, value in call.headers if name == b"content-type"), b"")
    return found.decode("latin-1").partition(";")[0].strip().lower()[:100]


def _plain(problem: Mapping[str, Any]) -> dict[str, Any]:
    """With figures as JSON has them."""
    return {name: value if _is_json(value) else str(value) for name, value in problem.items()}


def _is_json(value: Any) -> bool:
    match value:
        case None | bool() | int() | float() | str():
            return True
        case list() | tuple():
            return all(map(_is_json, value))
        case dict():
            return all(isinstance(key, str) and _is_json(one) for key, one in value.items())
    return False


async def _told(call: Call, status: int, title: str, detail: str, after_s: float | None = None) -> None:
    problem = {"type": f"urn:weighlock:{title.replace(' ', '_')}", "title": title, "status": status, "detail": detail}
    await answer_json(call.send, status, problem, retry_after(after_s), kind=PROBLEM)
