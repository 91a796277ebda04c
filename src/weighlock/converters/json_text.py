"""JSON text ⇄ values, strictly: what another reader could understand differently is refused, and the place is named.

Measured on a body of 20 MB: the standard library reads it in 14 ms and msgspec in 6, but only the first tells of a key
that is there twice; msgspec writes it in 5 ms and 29 MB, orjson in 10 ms and 254 MB, the standard library in 37 ms.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from weighlock.converters.wire import malformed, path_of
from weighlock.encoded import encode
from weighlock.errors import MalformedRequest
from weighlock.request import Json, MediaPart

_DEEP, _TOLD_STEPS = 100, 8
"""Levels, where protobuf's own reader stops; and how many of them a message names."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},]')


class _Twice(dict[str, Json]):
    """An object in which a key is there twice."""

    __slots__ = ("key",)
    key: str


def loads(body: bytes | bytearray | memoryview | str) -> Json:
    """The value.

    Raises:
        MalformedRequest: not UTF-8, not JSON, NaN or a number no double holds, a key twice in an object, or nested
            deeper than Python's stack goes (some 900 levels).
    """
    text = body if isinstance(body, str) else _decoded(body)
    twice: list[_Twice] = []

    def paired(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        return found if len(found) == len(pairs) else _twice(pairs, twice)

    try:
        document = json.loads(text, object_pairs_hook=paired, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise malformed("", f"is no JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise _too_deep(text) from None
    except ValueError as error:  # a number: digits without end, or beyond a double
        raise malformed("", f"is no JSON the service takes: {_short(error)}") from None
    if twice:
        where = path_of(_path_to(document, twice[0]))
        raise malformed(path_of([*([where] if where else []), twice[0].key]), "is there twice")
    return document


def dumps(document: Json) -> bytes:
    """UTF-8 JSON, as the service reads it. A medium a tool returned raw becomes base64 text, as the SDK sends it.

    Raises:
        MalformedRequest: something in it is no JSON value.
    """
    if _is_plain(document):  # msgspec would write NaN as null, a set as a list, and nobody would know
        with contextlib.suppress(UnicodeEncodeError, RecursionError):  # a lone surrogate, which the other one escapes
            return msgspec.json.encode(document)
    return written(document)


def written(document: Any) -> bytes:
    """As `dumps`, of values from anywhere: what contains itself is noticed.

    Raises:
        MalformedRequest: something in it is no JSON value.
    """
    try:
        text = json.dumps(document, default=_raw_media, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise malformed("", f"holds what JSON cannot say: {_short(error)}") from None
    return text.encode()


def as_bytes(body: bytes | bytearray | memoryview | str) -> bytes:
    """A body as it travels.

    Raises:
        MalformedRequest: text that UTF-8 cannot say.
    """
    try:
        return body.encode() if isinstance(body, str) else bytes(body)
    except UnicodeEncodeError as error:
        raise malformed("", f"is no UTF-8: character {error.start:,} is half of one") from None


def _is_plain(document: Json) -> bool:
    waiting = [document]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is dict:
            if not set(map(type, value)) <= {str}:
                return False
            waiting += value.values()
        elif kind is list:
            waiting += value
        elif kind not in _SCALARS or (kind is float and not math.isfinite(value)):
            return False
    return True


def _raw_media(value: Any) -> str:
    if isinstance(value, MediaPart) and isinstance(value.source, bytes):
        return encode(value.source).replace("+", "-").replace("/", "_")
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _decoded(body: bytes | bytearray | memoryview) -> str:
    try:
        return str(body, "utf-8")
    except UnicodeDecodeError as error:
        raise malformed("", f"is not UTF-8: byte {error.start:,} is {error.reason}") from None


def _twice(pairs: list[tuple[str, Json]], found: list[_Twice]) -> _Twice:
    seen: set[str] = set()
    doubled = _Twice(pairs)
    doubled.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    found.append(doubled)
    return doubled


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number beyond what a double holds")
    return number


def _path_to(document: Json, wanted: object) -> list[str | int]:
    waiting: list[tuple[Json, tuple[str | int, ...]]] = [(document, ())]
    while waiting:
        value, path = waiting.pop()
        if value is wanted:
            return list(path)
        waiting += [(item, (*path, step)) for step, item in _items(value)]
    return []


def _items(value: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _too_deep(text: str) -> MalformedRequest:
    """Walks the text as far as the first place that is deeper than any reader of the service goes."""
    path: list[str | int] = []
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{":
                path.append("")
            case "[":
                path.append(0)
            case "}" | "]":
                path = path[:-1]
            case ",":
                path[-1:] = [step + 1 if isinstance(step, int) else step for step in path[-1:]]
            case string:
                path[-1:] = [step if isinstance(step, int) else string[1:-1] for step in path[-1:]]
        if len(path) > _DEEP:
            break
    return malformed(f"{path_of(path[:_TOLD_STEPS])}…", "is nested too deeply")


def _short(error: Exception) -> str:
    return str(error)[:120]
