"""What a screened request must be, judged from its JSON alone and without a line of the product's code."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]

NESTED_TYPES = {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
"""What a tool result may carry from Gemini 3 on; before that, nothing."""

LONG_TEXT = 4096
"""Base64 of media from this many characters on is to be gone from a tool's text."""

_RUN = re.compile(r"(?:data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,)?([A-Za-z0-9+/_-]{200,}={0,2})")
_MAGIC = re.compile(
    rb"RIFF....(?:WAVE|WEBP)|....ftyp|\x89PNG|\xff\xd8\xff|%PDF-|ID3|\xff[\xe2-\xfb]|OggS|fLaC|GIF8", re.S
)


def complaints(original: bytes, screened: bytes, model: str) -> list[str]:
    """Every way in which `screened` is not `original` made fit for `model`; empty if it is."""
    before, after = json.loads(original), json.loads(screened)
    return [
        *_unfit_results(after, model),
        *_mixed_contents(after),
        *_changed_calls(before, after),
        *_lost_texts(before, after),
        *_lost_media(before, after),
        *_changed_surroundings(before, after),
    ]


# -- reading, in either casing ----------------------------------------------------------------------------------------


def field(message: Mapping[str, Any], name: str) -> Any:
    """The value of `name`, given in camelCase, however the message spells it; `None` if it has none."""
    snake = re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)
    return message.get(name, message.get(snake))


def parts_of(content: Json) -> list[Json]:
    return field(content, "parts") or []


def all_of(body: Json, kind: str) -> list[Json]:
    """The function calls or the function responses of a request, in order."""
    found = [field(part, kind) for content in body["contents"] for part in parts_of(content)]
    return [one for one in found if one is not None]


def decoded(text: str) -> bytes:
    """The bytes of base64 in either alphabet, padded or not; empty if it is none."""
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return b""


def strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from strings(each)
        case list():
            for each in value:
                yield from strings(each)


def media_texts(value: object) -> Iterator[tuple[str, bytes]]:
    """Media written as base64 anywhere inside: the base64, and the bytes."""
    for text in strings(value):
        for run in _RUN.finditer(text):
            data = decoded(run[1])
            if _MAGIC.match(data):
                yield run[1], data


def places(body: Json, data: bytes) -> set[str]:
    """Where a request holds a medium.

    `nested` in a tool result, `beside` one in the same content, `turn` in a content without any, `text` in a result.
    """
    found = set()
    for content in body["contents"]:
        results = [field(part, "functionResponse") for part in parts_of(content)]
        results = [result for result in results if result is not None]
        if data in _blobs(parts_of(content)):
            found.add("beside" if results else "turn")
        if any(data in _blobs(field(result, "parts") or []) for result in results):
            found.add("nested")
        if any(data == held for result in results for _, held in media_texts(field(result, "response"))):
            found.add("text")
    return found


def _blobs(parts: list[Json]) -> list[bytes]:
    inline = [field(part, "inlineData") for part in parts]
    return [decoded(field(blob, "data")) for blob in inline if blob is not None]


# -- judging ----------------------------------------------------------------------------------------------------------


def _unfit_results(after: Json, model: str) -> Iterator[str]:
    takes_media = re.search(r"gemini-[3-9]", model) is not None
    for result in all_of(after, "functionResponse"):
        name = field(result, "name")
        for part in field(result, "parts") or []:
            medium = field(part, "inlineData") or field(part, "fileData") or {}
            mime = field(medium, "mimeType")
            if not takes_media:
                yield f"{name} carries {mime}, and {model} takes no media there"
            elif mime not in NESTED_TYPES:
                yield f"{name} carries {mime}"
        for text, _ in media_texts(field(result, "response")):
            if len(text) >= LONG_TEXT:
                yield f"{name} says {len(text):,} characters of base64"


def _mixed_contents(after: Json) -> Iterator[str]:
    for at, content in enumerate(after["contents"]):
        results = [part for part in parts_of(content) if field(part, "functionResponse") is not None]
        if results and len(results) != len(parts_of(content)):
            yield f"contents[{at}] holds function responses and other parts"
        if not parts_of(content):
            yield f"contents[{at}] is empty"


def _changed_calls(before: Json, after: Json) -> Iterator[str]:
    for kind, kept in (("functionCall", ("name", "id", "args")), ("functionResponse", ("name", "id"))):
        was, now = ([[field(one, key) for key in kept] for one in all_of(body, kind)] for body in (before, after))
        if was != now:
            yield f"{kind}s were {was}, are {now}"
    if _order(before) != _order(after):
        yield f"calls and responses came as {_order(before)}, come as {_order(after)}"
    yield from _torn_apart(after)


def _order(body: Json) -> list[tuple[str, str]]:
    """Kinds and names of calls and responses, in order."""
    order = []
    for content in body["contents"]:
        for part in parts_of(content):
            for kind in ("functionCall", "functionResponse"):
                if (one := field(part, kind)) is not None:
                    order.append((kind, str(field(one, "name"))))
    return order


def _torn_apart(after: Json) -> Iterator[str]:
    """Nothing comes between the turn that calls and its responses, nor between those."""
    waiting = 0
    for at, content in enumerate(after["contents"]):
        results = sum(field(part, "functionResponse") is not None for part in parts_of(content))
        if waiting > 0 and not results:
            yield f"contents[{at}] comes before {waiting} response(s) to the calls"
        waiting += sum(field(part, "functionCall") is not None for part in parts_of(content)) - results


def _lost_texts(before: Json, after: Json) -> Iterator[str]:
    was, now = (list(_texts(body["contents"])) for body in (before, after))
    all_was, all_now = "\n".join(was), "\n".join(now)
    for text in dict.fromkeys(was):
        if all_now.count(text) < all_was.count(text):
            yield f"lost: {text[:80]!r}"


def _texts(value: object) -> Iterator[str]:
    """What the request says: everything but media, wherever they stand, and the roles of contents."""
    match value:
        case str() if value[:1] in ("{", "[") and (inner := _parsed(value)) is not None:
            yield from _texts(inner)
        case str():
            yield from (said for piece in _outside_base64(value) if (said := piece.strip()))
        case list():
            for each in value:
                yield from _texts(each)
        case dict():
            for key, each in value.items():
                if key not in ("inlineData", "inline_data") and not (key == "role" and "parts" in value):
                    yield from _texts(each)


def _outside_base64(text: str) -> Iterator[str]:
    at = 0
    for run in _RUN.finditer(text):
        if _MAGIC.match(decoded(run[1])):
            yield text[at : run.start()]
            at = run.end()
    yield text[at:]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _lost_media(before: Json, after: Json) -> Iterator[str]:
    """No picture and no document goes; sound and film go with a word about them."""
    kept = {data for _, data in media_texts(after["contents"])}
    gone = {data for _, data in media_texts(before["contents"])} - kept
    was, now = (" ".join(_texts(body["contents"])).lower() for body in (before, after))
    for data in gone:
        kind = _timed(data)
        if kind is None:
            yield f"a medium is gone: {data[:8]!r}, {len(data):,} bytes"
        elif now.count(kind) <= was.count(kind):
            yield f"{kind} is gone without a word"


def _timed(data: bytes) -> str | None:
    if re.match(rb"RIFF....WAVE|ID3|\xff[\xe2-\xfb]|OggS|fLaC", data, re.S):
        return "audio"
    return "video" if data[4:8] == b"ftyp" else None


def _changed_surroundings(before: Json, after: Json) -> Iterator[str]:
    was, now = _folded(before), _folded(after)
    for key in sorted(was.keys() | now.keys()):
        if key != "contents" and was.get(key) != now.get(key):
            yield f"{key} is not what it was"


def _folded(value: Any) -> Any:
    """The same value whichever casing its fields have."""
    match value:
        case str():
            return value
        case dict():
            return {key.replace("_", "").lower(): _folded(each) for key, each in value.items()}
        case list():
            return [_folded(each) for each in value]
    return value
