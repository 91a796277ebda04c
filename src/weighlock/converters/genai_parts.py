"""`Turn` → `types.Content`: what nobody changed is the caller's own object, the rest is built anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, assert_never

from google.genai import types

from weighlock.converters.genai_fields import validated
from weighlock.converters.genai_raw_results import settled
from weighlock.encoded import Base64
from weighlock.errors import UnreadableSource
from weighlock.request import (
    Json,
    MediaPart,
    OpaquePart,
    Part,
    Place,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
    Uri,
)


def content(turn: Turn, number: int | None, originals: Mapping[int, types.Part]) -> types.Content:
    """A new `Content`; parts found in `originals` (by the `id` of their value) are those very objects.

    Raises:
        MalformedRequest: a field this version of the SDK does not have.
        MalformedMedia: base64 that is none.
        UnreadableSource: a file that cannot be read.
    """
    parts = [originals.get(id(part)) or _part(part, str(Place(number, index))) for index, part in enumerate(turn.parts)]
    if turn.carried:
        validated(types.Content, turn.carried, str(Place(number)))  # refuses: it knows no field but role and parts
    return types.Content(role=turn.role, parts=parts)


def _part(part: Part, place: str) -> types.Part:
    match part:
        case TextPart(carried=carried) if not carried:
            return types.Part(text=part.text)
        case TextPart():
            return validated(types.Part, {"text": part.text, **part.carried}, place)
        case MediaPart():
            return validated(types.Part, _medium(part), place)
        case ToolResultPart():
            return validated(types.Part, _tool_result(part), place)
        case ToolCallPart() | OpaquePart():
            return validated(types.Part, part.wire, place)
        case _:
            assert_never(part)


def _tool_result(part: ToolResultPart) -> dict[str, Json]:
    result = {
        "id": part.call_id,
        "name": part.name,
        "response": settled(part.response, _read),
        "parts": [_medium(item) if isinstance(item, MediaPart) else item.wire for item in part.media] or None,
        **part.carried.get("functionResponse", {}),
    }
    return {**part.carried, "functionResponse": {key: value for key, value in result.items() if value is not None}}


def _medium(part: MediaPart) -> dict[str, Json]:
    declared = {} if part.declared_mime is None else {"mimeType": part.declared_mime}
    if isinstance(part.source, Uri):
        blob = {"fileUri": part.source.text, **declared, **part.carried.get("fileData", {})}
        return {**part.carried, "fileData": blob}
    blob = {"data": _read(part), **declared, **part.carried.get("inlineData", {})}
    return {**part.carried, "inlineData": blob}


def _read(part: MediaPart) -> bytes:
    source = part.source
    try:
        match source:
            case bytes():
                return source
            case Base64():
                return source.decode()
            case Path():
                return source.read_bytes()
            case Uri():
                return b""
            case _:
                return _read_file(source)
    except (OSError, ValueError) as error:
        if isinstance(source, Base64):
            raise
        raise UnreadableSource(f"{part.label} cannot be read ({type(error).__name__})") from error


def _read_file(file: BinaryIO) -> bytes:
    stood = file.tell()
    file.seek(0)
    try:
        return file.read()
    finally:
        file.seek(stood)
