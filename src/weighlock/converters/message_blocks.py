"""One part as a content block in the newest shape, and what messages cannot express."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, assert_never

from weighlock.converters.message_fields import CONTENT_KEY
from weighlock.encoded import Base64, encode
from weighlock.errors import InputError, MalformedMedia, UnreadableSource
from weighlock.request import Json, MediaPart, OpaquePart, Part, Place, TextPart, ToolCallPart, ToolResultPart, Uri
from weighlock.written import listed

_A_PLACE = re.compile(r"(?:generateContentRequest\.|generate_content_request\.)?contents\[\d+\]\.")
_A_NOTE = re.compile(r"media_note(?:_\d+)?")


def user_block(part: Part, place: Place, where: str) -> dict[str, Json]:
    """What a user or a tool says. `where` is the place the block will have.

    Raises:
        InputError: it is neither text nor a medium, or has fields messages know nothing of.
        UnreadableSource: a file cannot be read.
        MalformedMedia: the medium is empty.
    """
    if isinstance(part, TextPart) and not part.carried.get("thought"):
        return text_block(part, place)
    if isinstance(part, MediaPart):
        return _medium(part, place, where)
    raise cannot_say(part, place)


def text_block(part: Part, place: Place) -> dict[str, Json]:
    """Text, or a thought as reasoning.

    Raises:
        InputError: it is no text, or has fields messages know nothing of.
    """
    if not isinstance(part, TextPart):
        raise cannot_say(part, place)
    refuse_others(part.carried, place, "thought", "thoughtSignature")
    kind = "reasoning" if part.carried.get("thought") else "text"
    signature = part.carried.get("thoughtSignature")
    metadata = {"metadata": {"thought_signature": signature}} if signature else {}
    return {"type": kind, "text": part.text, **metadata}


def _medium(part: MediaPart, place: Place, where: str) -> dict[str, Json]:
    if not part.declared_mime:
        raise cannot("a medium without a media type", place)
    refuse_others(part.carried, place, "inlineData", "fileData")
    shown = None
    for key in ("inlineData", "fileData"):
        refuse_others(part.carried.get(key) or {}, place, "displayName")
        shown = shown or (part.carried.get(key) or {}).get("displayName")
    main = part.declared_mime.partition("/")[0].strip().lower()
    kind = main if main in ("image", "audio", "video") else "document"
    block: dict[str, Json] = {"type": kind, "media_type": part.declared_mime, "source": _source(part, place)}
    if part.content is not None:
        block["metadata"] = {CONTENT_KEY: part.content.value}
    # A label that only says where the medium stands is no name of it.
    named = part.label not in ("", where) and not _A_PLACE.match(part.label)
    name = part.label if named else shown
    return {**block, "name": name} if name else block


def _source(part: MediaPart, place: Place) -> dict[str, Json]:
    if isinstance(part.source, Uri):
        return {"type": "url", "url": part.source.text}
    try:
        data = part.source.text if isinstance(part.source, Base64) else encode(_bytes(part.source))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnreadableSource(f"{place}: the file cannot be read: {reason}", place=str(place)) from None
    if not data:
        raise MalformedMedia("the medium is empty", place=str(place))
    return {"type": "base64", "data": data}


def _bytes(source: bytes | Path | BinaryIO) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, Path):
        return source.read_bytes()
    stood = source.tell()
    source.seek(0)
    try:
        return source.read()
    finally:
        source.seek(stood)


def response_text(response: Json, place: Place) -> str:
    """A tool's `{"result": text}` is that text, what screening noted of its media behind it; anything else its JSON.

    Raises:
        InputError: it is no JSON value; a medium a tool returned raw must have left before.
    """
    if response is None:
        return ""
    if isinstance(response, Mapping):
        response = dict(response)
        said = response.get("result")
        if isinstance(said, str) and all(_is_note(key, value) for key, value in response.items() if key != "result"):
            notes = "".join(f"[{value}]" for key, value in response.items() if key != "result")
            return f"{said}\n{notes}" if said and notes else said or notes
    try:
        return json.dumps(response, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise cannot("a response that is no JSON", place) from None


def _is_note(key: str, value: Json) -> bool:
    return isinstance(value, str) and _A_NOTE.fullmatch(key) is not None


def refuse_others(fields: Mapping[str, Json], place: Place, *known: str) -> None:
    """Raises `InputError` where there are fields that would be lost."""
    if others := [key for key, value in fields.items() if value is not None and key not in known]:
        raise cannot(listed(others), place)


def cannot_say(part: Part, place: Place) -> InputError:
    """The error for a part that is where no message can hold it."""
    match part:
        case OpaquePart():
            return cannot(listed(part.wire) or "an empty part", place)
        case TextPart():
            return cannot("a thought outside of what the model said", place)
        case MediaPart():
            return cannot("a medium in a system instruction", place)
        case ToolCallPart():
            return cannot("functionCall here", place)
        case ToolResultPart():
            return cannot("functionResponse here", place)
    assert_never(part)


def cannot(what: str, place: Place) -> InputError:
    """The error for what messages cannot express."""
    return InputError(f"{place}: messages cannot express {what}", place=str(place))
