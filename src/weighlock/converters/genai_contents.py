"""`contents` and `system_instruction` in every form the SDK takes → `types.Content` → `Turn`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.genai import types
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from weighlock.converters import pil_image
from weighlock.converters.genai_fields import fields_as_rest, given, is_like, validated
from weighlock.converters.genai_media import carried_by
from weighlock.converters.genai_raw_results import lifted
from weighlock.converters.wire import malformed
from weighlock.request import (
    NOTHING,
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

_PAYLOADS = (
    "text",
    "inline_data",
    "file_data",
    "function_call",
    "function_response",
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
)
"""Fields of a part of which it holds one."""
_MEDIA = {"inline_data": ("inlineData", "data"), "file_data": ("fileData", "file_uri")}
_CONTENT_KEYS = frozenset({"role", "parts"})
_FILE_DATA_KEYS = frozenset({"file_uri", "fileUri", "mime_type", "mimeType", "display_name", "displayName"})
_INSTEAD = "wrap bytes in types.Part.from_bytes and a path's file likewise"


@dataclass(slots=True)
class Notes:
    """What is noticed while contents are read."""

    labels: dict[int, str] = field(default_factory=dict)
    """What a person calls a part, by its `id`, where the part itself does not say."""
    sdk_takes_it: bool = True
    """False where a form was met that we read and `generate_content` does not."""
    as_it_came: bool = True
    """False where a part holds no bytes yet, so that even what nobody changed has to be written anew."""


# ---- any form → Content


def contents_of(contents: object, notes: Notes) -> tuple[types.Content, ...]:
    """The turns the SDK would send, grouped as it does: parts in a row make one turn, calls one of the model's.

    A tuple counts as a list, as it does to the SDK; so does a dict of a file's URI and type on its own. Bytes are
    refused, which the SDK takes for text.

    Raises:
        MalformedRequest: nothing at all, or a form the SDK refuses; names its place in the list.
    """
    if contents is None or (isinstance(contents, list | tuple) and not contents):
        raise malformed("contents", "is empty")
    items = contents if isinstance(contents, list | tuple) else [contents]
    turns: list[types.Content] = []
    run: list[types.Part] = []
    for index, item in enumerate(items):
        place = f"contents[{index}]"
        if is_like(item, types.Content) or _is_content_dict(item):
            turns += _grouped(run)
            turns.append(_content(item, place))
        elif isinstance(item, list | tuple):
            turns += _grouped(run)
            turns.append(types.Content(role="user", parts=_parts(item, place, notes)))
        else:
            part = _part(item, place, notes)
            if run and (run[0].function_call is None) != (part.function_call is None):
                turns += _grouped(run)
            run.append(part)
    return (*turns, *_grouped(run))


def instruction_of(instruction: object, notes: Notes) -> types.Content:
    """A system instruction in any form as a `Content`.

    Raises:
        MalformedRequest: a form the SDK refuses.
    """
    place = "systemInstruction"
    if is_like(instruction, types.Content) or _is_content_dict(instruction):
        return _content(instruction, place)
    listed = instruction if isinstance(instruction, list | tuple) else [instruction]
    return types.Content(role="user", parts=_parts(listed, place, notes))


def _grouped(run: list[types.Part]) -> list[types.Content]:
    """The run as a turn, and the run emptied."""
    if not run:
        return []
    parts = run.copy()
    run.clear()
    return [types.Content(role="user" if parts[0].function_call is None else "model", parts=parts)]


def _is_content_dict(item: object) -> bool:
    return isinstance(item, dict) and item.keys() <= _CONTENT_KEYS


def _content(item: Any, place: str) -> types.Content:
    return validated(types.Content, item, place) if isinstance(item, dict) else item


def _parts(items: Sequence[object], place: str, notes: Notes) -> list[types.Part]:
    if not items:
        raise malformed(place, "is an empty list")
    return [_part(item, f"{place}[{index}]", notes) for index, item in enumerate(items)]


def _part(item: Any, place: str, notes: Notes) -> types.Part:
    if isinstance(item, str):
        return types.Part(text=item)
    if is_like(item, types.Part):
        return item  # type: ignore[no-any-return]  # a part of another copy of the SDK is taken for ours, as it does
    if is_like(item, types.File):
        return _file(item, place)
    if isinstance(item, dict):
        return _part_of_dict(item, place, notes)
    if pil_image.is_image(item):
        data, mime = pil_image.bytes_and_mime(item, place)
        part = types.Part(inline_data=types.Blob(data=data, mime_type=mime))
        if (name := pil_image.file_name(item)) is not None:
            notes.labels[id(part)] = name
        return part
    raise malformed(place, f"is no content the SDK takes but {type(item).__name__}; {_INSTEAD}")


def _file(file: types.File, place: str) -> types.Part:
    if not file.uri or not file.mime_type:
        raise malformed(place, "is a File without uri or mime_type; wait until its upload is done")
    return types.Part(file_data=types.FileData(file_uri=file.uri, mime_type=file.mime_type))


def _part_of_dict(item: dict[str, Any], place: str, notes: Notes) -> types.Part:
    if "uri" in item:
        return _file(validated(types.File, item, place), place)
    if item.keys() <= _FILE_DATA_KEYS:
        notes.sdk_takes_it = False  # its transformers do, which a call of `generate_content` does not get to
        return types.Part(file_data=validated(types.FileData, item, place))
    return validated(types.Part, item, place)


# ---- Content → Turn


def turn_of(content: types.Content, number: int | None, notes: Notes) -> Turn:
    """The turn a `Content` is. `number` is its place among the contents, `None` the system instruction's.

    Raises:
        MalformedRequest: a part that holds two things at once, a call or a result without a name.
    """
    parts = [_value(part, Place(number, index), notes) for index, part in enumerate(content.parts or ())]
    return Turn(role=content.role, parts=tuple(parts))


def _value(part: types.Part, place: Place, notes: Notes) -> Part:
    if (medium := carried_by(part)) is not None:
        notes.as_it_came = False
        return medium
    fields = given(part)
    if len(fields) == 1 and "text" in fields:
        return TextPart(text=fields["text"])  # nearly all of a long history, so it takes the short way
    held = [name for name in _PAYLOADS if name in fields]
    if len(held) > 1:
        raise malformed(str(place), f"holds {' and '.join(map(to_camel, held))}; a part holds one thing")
    match held[0] if held else None:
        case "text":
            return TextPart(text=fields["text"], carried=fields_as_rest(part, str(place), without=("text",)))
        case "inline_data" | "file_data":
            return medium_of(part, notes.labels.get(id(part), str(place)), str(place))
        case "function_call":
            call: types.FunctionCall = fields["function_call"]
            name = _name(call, f"{place}.functionCall")
            return ToolCallPart(name=name, call_id=call.id or None, wire=fields_as_rest(part, str(place)))
        case "function_response":
            return _tool_result(part, fields["function_response"], place)
        case _:
            return OpaquePart(wire=fields_as_rest(part, str(place)))


def medium_of(part: BaseModel, label: str, place: str) -> MediaPart | OpaquePart:
    """The value of a `types.Part` or `FunctionResponsePart` that holds media; opaque where it holds none.

    Raises:
        MalformedRequest: both bytes and a URI, or neither where one is announced.
    """
    fields = given(part)
    held = [key for key in _MEDIA if key in fields]
    if not held:
        return OpaquePart(wire=fields_as_rest(part, place))
    if len(held) > 1:
        raise malformed(place, f"holds {' and '.join(map(to_camel, held))}; a part holds one thing")
    blob, (name, inner) = fields[held[0]], _MEDIA[held[0]]
    if (source := getattr(blob, inner)) is None:
        raise malformed(f"{place}.{name}.{to_camel(inner)}", "is missing")
    carried = fields_as_rest(part, place, without=(held[0],))
    if beside := fields_as_rest(blob, place, without=(inner, "mime_type")):
        carried[name] = beside
    return MediaPart(
        source=Uri(source) if name == "fileData" else source,
        label=blob.display_name or label,
        declared_mime=blob.mime_type,
        carried=carried or NOTHING,
    )


def _tool_result(part: types.Part, result: types.FunctionResponse, place: Place) -> ToolResultPart:
    where = f"{place}.functionResponse"
    name = _name(result, where)
    nested = [Place(place.turn, place.part, medium) for medium in range(len(result.parts or ()))]
    media = [medium_of(item, str(at), str(at)) for item, at in zip(result.parts or (), nested, strict=True)]
    response = lifted(
        {} if result.response is None else result.response,
        tool=name,
        place=f"{where}.response",
        read_part=lambda item, label: medium_of(item, label, f"{where}.response"),
    )
    return ToolResultPart(
        name=name,
        response=response,
        call_id=result.id or None,
        media=tuple(media),
        carried=_beside_result(part, result, where),
    )


def _beside_result(part: types.Part, result: types.FunctionResponse, where: str) -> Mapping[str, Json]:
    carried = fields_as_rest(part, where, without=("function_response",))
    if inside := fields_as_rest(result, where, without=("id", "name", "response", "parts")):
        carried["functionResponse"] = inside
    return carried or NOTHING


def _name(value: types.FunctionCall | types.FunctionResponse, place: str) -> str:
    if not value.name:
        raise malformed(f"{place}.name", "is missing")
    return value.name
