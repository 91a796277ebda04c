"""A refusal as the service would word it: Google's error object, our sentence in it. Pure.

400 for what is wrong with the request or over a limit of its own, 429 only where waiting helps: clients repeat a 429.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from weighlock.errors import (
    BudgetError,
    Cancelled,
    ConfigError,
    InputError,
    ReferenceUnrecoverable,
    ServiceRefused,
    ServiceUnreachable,
    WeighlockError,
    WindowExhausted,
)

DOMAIN = "weighlock"
_TYPE = "type.googleapis.com/google.rpc."
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_MOST_RETRY_S = 31 * 86_400
_LONGEST = 300


def refusal(
    status: int,
    message: str,
    *,
    reason: str,
    figures: Mapping[str, Any] | None = None,
    retry_after_s: float | None = None,
) -> dict[str, Any]:
    """The body of a refusal. `reason` is stable, in lower case; `figures` go into `ErrorInfo.metadata` as text."""
    metadata = {name: text for name, value in (figures or {}).items() if (text := _text(value)) is not None}
    details: list[dict[str, Any]] = [
        {"@type": f"{_TYPE}ErrorInfo", "reason": reason.upper(), "domain": DOMAIN, "metadata": metadata}
    ]
    if retry_after_s is not None:
        delay_s = min(math.ceil(max(0.0, retry_after_s)), _MOST_RETRY_S)
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{delay_s}s"})
    return {"error": {"code": status, "message": message, "status": _STATUS.get(status, "UNKNOWN"), "details": details}}


def of_error(error: WeighlockError) -> tuple[int, dict[str, Any], float | None]:
    """The status, the body, and after how many seconds it is worth trying again."""
    retry_after_s = error.figures.get("retry_after_s")
    after_s = float(retry_after_s) if isinstance(retry_after_s, int | float) else None
    status = _status(error, after_s)
    told_s = after_s if status in (429, 503) else None
    message = _OURS if isinstance(error, ConfigError) else error.message
    figures = {} if isinstance(error, ConfigError) else error.figures
    return status, refusal(status, message, reason=error.code, figures=figures, retry_after_s=told_s), told_s


_OURS = "weighlock is not set up for this request; whoever runs it finds the reason in its log"


def _status(error: WeighlockError, after_s: float | None) -> int:
    match error:
        case WindowExhausted():
            return 400 if after_s is None else 429
        case BudgetError() | InputError():
            return 400
        case ConfigError():
            return 500
        case ReferenceUnrecoverable():
            return 403  # as the service says it of a file that is gone, and clients know it
        case Cancelled():
            return 499
        case ServiceRefused():
            said = error.figures.get("service_status")
            return said if isinstance(said, int) and said in (400, 403, 404, 429) else 502
        case ServiceUnreachable():
            return 504 if error.figures.get("timed_out") else 502
        case _:
            return error.http_status if error.http_status in _STATUS else 503


def _text(value: Any) -> str | None:
    """A figure as text; none of what is nested."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)[:_LONGEST]
        case list() | tuple() if all(isinstance(one, str | int | float) for one in value):
            return ", ".join(map(str, value))[:_LONGEST]
        case _:
            return None
