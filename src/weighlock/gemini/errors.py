"""What the service says when it refuses, as one of our errors. It may say anything: JSON, HTML, half of either."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from weighlock.errors import ServiceRefused
from weighlock.written import plain

_LONGEST_MESSAGE = 400
_SHORT_KEY = 7
_FILE = re.compile(r"\bFile (?:files/)?([a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?)(?![\w-])")
_OURS = re.compile(r"w[0-9a-f]{37}[0-9a-z]")
"""A name we give: it looks like a key, and is none."""
_QUERY = re.compile(r"(https?://[^\s?\"']{1,300})\?[^\s\"']*")
_TITLE = re.compile(r"<title>([^<]{1,200})</title>", re.IGNORECASE)
_TOO_LONG = re.compile(r"input token count \(?([\d,]+)\)? exceeds .{0,60}?tokens allowed \(?([\d,]+)", re.IGNORECASE)
_TOO_LARGE = re.compile(r"payload size exceeds the limit: ([\d,]+) bytes", re.IGNORECASE)
_STORAGE = re.compile(r"file[_ ]?storage|storage (?:quota|limit|bytes)", re.IGNORECASE)


class Cause(StrEnum):
    """Refusals that something can be done about."""

    FILE_MISSING = "file_missing"
    """Gone, never there, or not ours; the same words are said to a project that has not paid."""
    FILE_NOT_ACTIVE = "file_not_active"
    STORAGE_FULL = "storage_full"
    PROMPT_TOO_LONG = "prompt_too_long"
    """More tokens than the model's context holds. `figures["counted"]` is the service's own word on the prompt."""
    BODY_TOO_LARGE = "body_too_large"
    DAILY_QUOTA = "daily_quota"
    """Waiting a minute does not help."""


def refusal(
    status: int, headers: Mapping[str, str], body: bytes, now: datetime, hidden: Iterable[str] = ()
) -> ServiceRefused:
    """The error an answer stands for. Its message holds none of `hidden`, no key and no query of a URL.

    `figures` also hold `cause` (a `Cause` or `None`); `file`, the name of the file it speaks of; `counted` and `limit`,
    what it says of a request that is too long or too large; `served_at`, its own time (ISO 8601).
    """
    error = _error(body)
    code = error.get("status")
    text = error.get("message")
    said = text if isinstance(text, str) and text else _without_markup(body)
    code = code if isinstance(code, str) and re.fullmatch(r"[A-Z_]{1,60}", code) else None
    named = _FILE.search(said)
    counted, limit = _bounds(said)
    words = _presentable(said, hidden)
    if named is not None and _OURS.fullmatch(named[1]):
        words = words.replace("File [key hidden]", f"File {named[1]}", 1)
    return ServiceRefused(
        f"the service refuses: {status}{f' {code}' if code else ''}: {words}",
        service_status=status,
        service_code=code,
        retry_after_s=_retry_after_s(headers, error, now),
        cause=_cause(status, code, said, error, named is not None),
        file=f"files/{named[1]}" if named else None,
        counted=counted,
        limit=limit,
        served_at=_served_at(headers),
    )


def _served_at(headers: Mapping[str, str]) -> str | None:
    try:
        return parsedate_to_datetime(headers["date"]).isoformat()
    except (KeyError, ValueError, TypeError):
        return None


def no_answer(status: int, why: str) -> ServiceRefused:
    """The error of an answer that says nothing we can use."""
    return ServiceRefused(
        f"the service answers {status}, {why}",
        service_status=status,
        service_code=None,
        retry_after_s=None,
        cause=None,
        file=None,
        counted=None,
        limit=None,
        served_at=None,
    )


def _cause(status: int, code: str | None, said: str, error: Mapping[str, Any], names_file: bool) -> Cause | None:
    if status in (403, 404) and names_file:
        return Cause.FILE_MISSING
    if status == 400 and names_file and "ACTIVE" in said:
        return Cause.FILE_NOT_ACTIVE
    if _TOO_LONG.search(said):
        return Cause.PROMPT_TOO_LONG
    if _TOO_LARGE.search(said):
        return Cause.BODY_TOO_LARGE
    quotas = " ".join(_texts(error, "QuotaFailure", "quotaId"))
    if (status == 429 or code == "RESOURCE_EXHAUSTED") and _STORAGE.search(f"{said} {quotas}"):
        return Cause.STORAGE_FULL
    if status == 429 and "PerDay" in quotas:
        return Cause.DAILY_QUOTA
    return None


def _bounds(said: str) -> tuple[int | None, int | None]:
    """Tokens counted and the bound they break; of a body, its bound in bytes."""
    if found := _TOO_LONG.search(said):
        return _figure(found[1]), _figure(found[2])
    found = _TOO_LARGE.search(said)
    return None, _figure(found[1]) if found else None


def _figure(digits: str) -> int | None:
    bare = digits.replace(",", "")
    return int(bare) if 0 < len(bare) <= 15 else None


def _error(body: bytes) -> Mapping[str, Any]:
    """The `error` object of a body, which a gateway may have put into a list; empty where there is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return {}
    if isinstance(document, list) and document:
        document = document[0]
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, str):  # OAuth's way: {"error": "invalid_grant", "error_description": "…"}
        return {"message": f"{error}: {document.get('error_description', '')}"}
    return error if isinstance(error, dict) else {}


def _without_markup(body: bytes) -> str:
    text = body[:10_000].decode("utf-8", "replace")
    title = _TITLE.search(text)
    return title[1].strip() if title else "no reason given"


def _presentable(text: str, hidden: Iterable[str]) -> str:
    for secret in hidden:
        # An emulator takes any key, `k` too, which is in half of all words.
        whole = re.escape(secret) if len(secret) > _SHORT_KEY else rf"(?<!\w){re.escape(secret)}(?!\w)"
        text = re.sub(whole, "[key hidden]", text)
    return plain(_QUERY.sub(r"\1?[hidden]", text), _LONGEST_MESSAGE)


def _retry_after_s(headers: Mapping[str, str], error: Mapping[str, Any], now: datetime) -> float | None:
    """The longer of `Retry-After` (seconds or a date) and `RetryInfo.retryDelay`; never below 0."""
    asked = [_seconds(text.removesuffix("s")) for text in _texts(error, "RetryInfo", "retryDelay")]
    if header := headers.get("retry-after"):
        asked.append(_seconds(header) if header.strip().isdigit() else _until(header, now))
    return max((one for one in asked if one is not None), default=None)


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _until(text: str, now: datetime) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(text) - now).total_seconds())
    except (ValueError, TypeError, OverflowError):  # no date; one without a zone; one beyond the calendar
        return None


def _texts(error: Mapping[str, Any], kind: str, key: str) -> Iterator[str]:
    """Texts under `key` in the `details` of a kind, and one level below (`QuotaFailure.violations`)."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if not isinstance(detail, dict) or not str(detail.get("@type", "")).endswith(f".{kind}"):
            continue
        below = detail.get("violations")
        for one in (detail, *(below if isinstance(below, list) else ())):
            if isinstance(one, dict) and isinstance(text := one.get(key), str):
                yield text
