"""What values of the settings file may be: numbers, sizes, spans, names; and what is wrong, in an operator's words."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from weighlock.budgets.windows import Period
from weighlock.settings.amounts import bounded, parse_clip, parse_seconds, parse_size
from weighlock.settings.model import suggest
from weighlock.written import quoted, without_keys

_VARIABLE = re.compile(r"^[A-Z_][A-Z0-9_]*$")
_NAME = re.compile(r"^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$")
_WINDOW = r"^(minute|hour|day|month|rolling [1-9][0-9]{0,7}s)$"


def number(value: Any) -> Any:
    """A number as it is; what is none is for the field to say."""
    # Lax integers would take `true` as 1.
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return bounded(value)


def _name(value: str) -> str:
    if not _NAME.match(value):
        raise ValueError("a name is lower-case words joined by single underscores, as variables spell it")
    if value == "default":
        raise ValueError("`default` is what every endpoint starts from; write it at the top level")
    return value


def _window(value: str) -> str:
    if not re.match(_WINDOW, value):
        nearest = suggest(value, [*(period.value for period in Period), "rolling 3600s"])
        raise ValueError(f"unknown key; {nearest}")
    return value


def _variable(value: str) -> str:
    # Upper case only: a key pasted here by mistake has lower-case letters, and must be neither kept nor repeated.
    if not _VARIABLE.match(value) or without_keys(value) != value:
        raise ValueError("must be the name of a variable, such as GEMINI_API_KEY; a key itself is never written here")
    return value


def _base_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("must be https://host or https://host/path, without a login or a query")
    return value


def _keep_copies(value: Any) -> Any:
    return value if value in ("off", "until_deleted") else parse_seconds(value)


def _clip(value: str) -> str:
    return str(parse_clip(value))


def _timezone(value: str) -> str:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{quoted(value)} is no time zone; write an IANA name such as Europe/Berlin") from None
    return value


Count = Annotated[int, BeforeValidator(number), Field(ge=0)]
Usd = Annotated[Decimal, BeforeValidator(number), Field(ge=0)]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}], "examples": ["100MB", "2GiB"]}),
]
Seconds = Annotated[
    float,
    BeforeValidator(parse_seconds),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}], "examples": [14400, "4h"]}),
]
KeepCopies = Annotated[
    Literal["off", "until_deleted"] | float,
    BeforeValidator(_keep_copies),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}], "examples": ["off", "7d"]}),
]
Name = Annotated[str, AfterValidator(_name)]
TenantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$")]
WindowName = Annotated[str, AfterValidator(_window), WithJsonSchema({"type": "string", "pattern": _WINDOW})]
WarnAt = Annotated[Decimal, BeforeValidator(number), Field(gt=0, le=1)]
ClipText = Annotated[
    str,
    AfterValidator(_clip),
    WithJsonSchema(
        {"type": "string", "examples": ["last 60s", "first 2m", "10s-70s", "10s-", "around 95s", "30s around 95s"]}
    ),
]
Variable = Annotated[str, AfterValidator(_variable)]
TimeZone = Annotated[str, AfterValidator(_timezone)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
Level = Literal["low", "medium", "high", "ultra_high"]


class Section(BaseModel):
    """A mapping of known keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
