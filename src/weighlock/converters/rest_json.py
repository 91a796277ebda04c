"""Bodies of `generateContent`, `streamGenerateContent` and `countTokens` ⇄ `Request`.

Both spellings of every field and both base64 alphabets are read. A request nobody changed leaves as the very bytes that
came; of a changed one, every part that is still the same object leaves as it came, its known fields in camelCase.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from weighlock.converters.json_text import as_bytes, dumps, loads, written
from weighlock.converters.wire import CONTENT, COUNT_TOKENS, PART, check_spellings, kind_of, malformed, recased
from weighlock.encoded import Base64, encode
from weighlock.errors import UnreadableSource
from weighlock.request import (
    NOTHING,
    Json,
    MediaPart,
    OpaquePart,
    Part,
    Request,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
    Uri,
)
from weighlock.written import plain

_PAYLOADS = {
    spelt: name
    for name, spellings in {
        "text": ("text",),
        "inlineData": ("inlineData", "inline_data"),
        "fileData": ("fileData", "file_data"),
        "functionCall": ("functionCall", "function_call"),
        "functionResponse": ("functionResponse", "function_response"),
        "executableCode": ("executableCode", "executable_code"),
        "codeExecutionResult": ("codeExecutionResult", "code_execution_result"),
        "toolCall": ("toolCall", "tool_call"),
        "toolResponse": ("toolResponse", "tool_response"),
    }.items()
    for spelt in spellings
}
"""Fields of a part of which it holds one."""
_WRAPPED = "generateContentRequest"
_READ = ("contents", "systemInstruction", "system_instruction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A request and what it was read from."""

    request: Request
    body: bytes = field(repr=False)
    """As it came."""
    inner: Mapping[str, Json] = field(repr=False)
    """The JSON the request was read from: the body, or what it wraps."""
    around: Mapping[str, Json] | None = None
    """The fields beside `generateContentRequest`, where a `countTokens` body wraps the request in one."""


def parse(body: bytes | bytearray | memoryview | str | Mapping[str, Json], *, model: str | None = None) -> Parsed:
    """The request in a body. `model` is the one its URL names.

    Media stay in base64 until somebody looks.

    Raises:
        MalformedRequest: no JSON, a field of the wrong kind, in two spellings, or a part that holds two things at
            once. Names the place.
    """
    raw = written(body) if isinstance(body, Mapping) else as_bytes(body)
    document = dict(body) if isinstance(body, Mapping) else loads(raw)
    if not isinstance(document, dict):
        raise malformed("", f"is no object but {kind_of(document)}")
    around, inner, place = _unwrapped(document)
    request = _request(inner, place, model)
    return Parsed(request=request, body=raw, inner=inner, around=around)


def emit(request: Request, parsed: Parsed | None = None) -> bytes:
    """The body of a request. With `parsed`, what it was read from, everything nobody changed leaves as it came.

    Raises:
        MalformedRequest: something in it is no JSON value.
    """
    if parsed is not None and request is parsed.request:
        return parsed.body
    return dumps(document(request, parsed))


def document(request: Request, parsed: Parsed | None = None) -> dict[str, Json]:
    """The request as REST JSON values, its known fields in camelCase."""
    writer = _Writer({} if parsed is None else dict(_origins(parsed)))
    body: dict[str, Json] = {"contents": [writer.turn(turn) for turn in request.turns]}
    if request.system_instruction is not None:
        body["systemInstruction"] = writer.turn(request.system_instruction)
    body.update(request.carried)
    around = parsed.around if parsed is not None else None
    return body if around is None else {**around, _WRAPPED: body}


def is_request(document: Json) -> bool:
    """Whether decoded JSON looks like a body of the REST API."""
    if not isinstance(document, dict):
        return False
    inner = document.get(_WRAPPED, document.get("generate_content_request", document))
    return isinstance(inner, dict) and isinstance(inner.get("contents"), list | dict)


def _unwrapped(document: dict[str, Json]) -> tuple[Mapping[str, Json] | None, dict[str, Json], str]:
    for key in (_WRAPPED, "generate_content_request"):
        if isinstance(inner := document.get(key), dict):
            check_spellings(dict.fromkeys(document), COUNT_TOKENS, "")
            # `contents` beside it is ignored by the service; what it holds must not travel unscreened.
            return {k: v for k, v in document.items() if k != key and (k != "contents" or v is None)}, inner, key
    return None, document, ""


# ---- reading


def _request(body: dict[str, Json], place: str, model: str | None) -> Request:
    check_spellings({key: None if key == "contents" else value for key, value in body.items()}, COUNT_TOKENS, place)
    inner = f"{place}." if place else ""
    system = _system_instruction(body)
    others = {key: value for key, value in body.items() if key not in _READ}
    named = others.get("model")
    where = f"{inner}contents"
    return Request(
        turns=_Turns(_listed(body.get("contents"), where), where),
        system_instruction=None if system is None else _turn(system, f"{inner}systemInstruction", None),
        model=named if isinstance(named, str) else model,
        carried=recased(others, COUNT_TOKENS) if others else NOTHING,
    )


class _Turns(Sequence[Turn]):
    """The turns of a body. One of plain text, as are nearly all of a long history, is read when it is looked at."""

    __slots__ = ("_contents", "_turns", "_where", "beyond_text")

    def __init__(self, contents: list[Json], where: str) -> None:
        self._contents, self._where = contents, where
        self._turns: list[Turn | None] = [
            None if _is_plain(content) else _turn(content, where, at) for at, content in enumerate(contents)
        ]
        self.beyond_text: list[int] = [
            at
            for at, turn in enumerate(self._turns)
            if turn is not None and not all(type(part) is TextPart for part in turn.parts)
        ]
        """Numbers of the turns that hold anything but text."""

    def __len__(self) -> int:
        return len(self._turns)

    @overload
    def __getitem__(self, at: int) -> Turn: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Turn, ...]: ...
    def __getitem__(self, at: int | slice) -> Turn | tuple[Turn, ...]:
        if isinstance(at, slice):
            return tuple(self[one] for one in range(*at.indices(len(self))))
        turn = self._turns[at]
        if turn is None:
            turn = self._turns[at] = _turn(self._contents[at], self._where, at % len(self))
        return turn

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def _is_plain(content: Json) -> bool:
    """Whether it is `{"role": …, "parts": [{"text": …}]}` and nothing else."""
    return (
        type(content) is dict
        and len(content) == 2
        and type(content.get("role")) is str
        and type(parts := content.get("parts")) is list
        and len(parts) == 1
        and type(part := parts[0]) is dict
        and len(part) == 1
        and type(part.get("text")) is str
    )


def _system_instruction(body: Mapping[str, Json]) -> Json:
    return body.get("systemInstruction", body.get("system_instruction"))


def _turn(content: Json, where: str, at: int | None) -> Turn:
    if type(content) is not dict:
        raise malformed(_at(where, at), f"is no object but {kind_of(content)}")
    role, parts = content.get("role"), content.get("parts")
    if role is not None and type(role) is not str:
        raise malformed(f"{_at(where, at)}.role", f"is no text but {kind_of(role)}")
    if type(parts) is not list:
        parts = _listed(parts, f"{_at(where, at)}.parts")
    read: list[Part] = []
    for index, part in enumerate(parts):
        if type(part) is dict and len(part) == 1 and type(text := part.get("text")) is str:
            read.append(TextPart(text=text))  # nearly all of a long history, so it takes the short way
        else:
            read.append(_part(part, f"{_at(where, at)}.parts[{index}]"))
    if len(content) <= (role is not None) + ("parts" in content):
        return Turn(role=role, parts=tuple(read))
    return Turn(role=role, parts=tuple(read), carried={k: v for k, v in content.items() if k not in ("role", "parts")})


def _at(where: str, at: int | None) -> str:
    return where if at is None else f"{where}[{at}]"


def _part(part: Json, place: str) -> Part:
    if not isinstance(part, dict):
        raise malformed(place, f"is no object but {kind_of(part)}")
    check_spellings(part, PART, place)
    held = [(key, name) for key in part if (name := _PAYLOADS.get(key)) and part[key] is not None]
    if len(held) > 1:
        names = " and ".join(name for _, name in held)
        raise malformed(place, f"holds {names}; a part holds one thing")
    key, name = held[0] if held else ("", "")
    match name:
        case "text":
            if not isinstance(part[key], str):
                raise malformed(f"{place}.text", f"is no text but {kind_of(part[key])}")
            return TextPart(text=part[key], carried=_beside(part, name))
        case "inlineData" | "fileData":
            return _medium(part, name, place)
        case "functionCall":
            call, where = _object(part[key], f"{place}.{name}"), f"{place}.{name}"
            if not call.get("name"):  # a piece of a call that is streamed
                return OpaquePart(wire=recased(part, PART))
            return ToolCallPart(name=_text(call, "name", where), call_id=_id(call, where), wire=recased(part, PART))
        case "functionResponse":
            return _tool_result(part, f"{place}.{name}")
        case _:
            return OpaquePart(wire=part)


def _tool_result(part: dict[str, Json], place: str) -> ToolResultPart:
    part = recased(part, PART)
    result, inner = _object(part["functionResponse"], place), f"{place}.parts"
    media = [_nested(item, f"{inner}[{at}]") for at, item in enumerate(_listed(result.get("parts"), inner))]
    return ToolResultPart(
        name=_text(result, "name", place),
        call_id=_id(result, place),
        response=result.get("response"),
        media=tuple(media),
        carried=_beside(part, "functionResponse", "id", "name", "response", "parts"),
    )


def _nested(item: Json, place: str) -> MediaPart | OpaquePart:
    item = _object(item, place)
    held = [n for key in item if (n := _PAYLOADS.get(key)) in ("inlineData", "fileData") and item[key] is not None]
    if len(held) > 1:
        raise malformed(place, f"holds {' and '.join(map(str, held))}; a part holds one thing")
    return _medium(item, str(held[0]), place) if held else OpaquePart(wire=item)


def _medium(part: dict[str, Json], name: str, place: str) -> MediaPart:
    part = recased(part, PART)
    blob, where = _object(part[name], f"{place}.{name}"), f"{place}.{name}"
    key = "data" if name == "inlineData" else "fileUri"
    held, declared, shown = blob.get(key), blob.get("mimeType"), blob.get("displayName")
    if not isinstance(held, str):
        raise malformed(f"{where}.{key}", "is missing" if held is None else f"is no text but {kind_of(held)}")
    if declared is not None and not isinstance(declared, str):
        raise malformed(f"{where}.mimeType", f"is no text but {kind_of(declared)}")
    return MediaPart(
        source=Base64(held) if key == "data" else Uri(held),
        label=shown if isinstance(shown, str) and shown else place,
        declared_mime=declared,
        carried=_beside(part, name, key, "mimeType"),
    )


def _beside(part: Mapping[str, Json], name: str, *told: str) -> Mapping[str, Json]:
    """Everything in a part but what its value tells: its other fields, and those inside `name` other than `told`."""
    others = {k: v for k, v in recased(dict(part), PART).items() if k != name and not (v is None and k in _PAYLOADS)}
    inner = part.get(name)
    if told and isinstance(inner, dict) and (kept := {k: v for k, v in inner.items() if k not in told}):
        others[name] = kept
    return others or NOTHING


def _listed(value: Json, place: str) -> list[Json]:
    """Items of a field. The service takes a single object for a list of one, and nothing for an empty one."""
    if isinstance(value, list):
        return value
    if value is None:
        return []
    if isinstance(value, dict):
        return [value]
    raise malformed(place, f"is no list but {kind_of(value)}")


def _object(value: Json, place: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise malformed(place, f"is no object but {kind_of(value)}")
    return value


def _text(value: Mapping[str, Json], key: str, place: str) -> str:
    if not isinstance(found := value.get(key), str) or not found:
        raise malformed(f"{place}.{key}", "is missing" if found in (None, "") else f"is no text but {kind_of(found)}")
    return found


def _id(value: Mapping[str, Json], place: str) -> str | None:
    found = value.get("id")
    if found is not None and not isinstance(found, str):
        raise malformed(f"{place}.id", f"is no text but {kind_of(found)}")
    return found or None


# ---- writing


def _origins(parsed: Parsed) -> Iterator[tuple[int, Json]]:
    """`id` of every turn and part, those inside tool results too, with the JSON it was read from."""
    request, inner = parsed.request, parsed.inner
    contents = [*zip(request.turns, _listed(inner.get("contents"), ""), strict=True)]
    if request.system_instruction is not None:
        contents.append((request.system_instruction, _system_instruction(inner)))
    for turn, content in contents:
        yield id(turn), content
        for part, raw in zip(turn.parts, _listed(content.get("parts"), ""), strict=True):
            yield id(part), raw
            if isinstance(part, ToolResultPart):
                result = recased(raw, PART)["functionResponse"]
                yield from zip(map(id, part.media), _listed(result.get("parts"), ""), strict=True)


class _Writer:
    """Builds REST JSON; what is still the same object leaves as it came."""

    def __init__(self, origins: Mapping[int, Json]) -> None:
        self.origins = origins

    def turn(self, turn: Turn) -> dict[str, Json]:
        if (origin := self.origins.get(id(turn))) is not None:
            return _content(recased(origin, CONTENT))
        role = {} if turn.role is None else {"role": turn.role}
        return {**role, "parts": [self.part(part) for part in turn.parts], **turn.carried}

    def part(self, part: Part) -> Json:
        if (origin := self.origins.get(id(part))) is not None:
            return recased(origin, PART)
        match part:
            case TextPart():
                return {"text": part.text, **part.carried}
            case MediaPart():
                return _media(part)
            case ToolResultPart():
                return self._tool_result(part)
            case ToolCallPart() | OpaquePart():
                return recased(dict(part.wire), PART)

    def _tool_result(self, part: ToolResultPart) -> dict[str, Json]:
        beside = part.carried.get("functionResponse", {})
        told = {
            "id": None if "id" in beside else part.call_id,  # a format that sends none says so
            "name": part.name,
            "response": part.response,
            "parts": [self.part(medium) for medium in part.media] or None,
        }
        result = {key: value for key, value in told.items() if value is not None}
        result.update({key: value for key, value in beside.items() if key != "id"})
        return {**part.carried, "functionResponse": result}


def _content(content: Json) -> dict[str, Json]:
    """A turn read leniently, in the strict form."""
    parts = content.get("parts")
    return {**content, "parts": [parts]} if isinstance(parts, dict) else content


def _media(part: MediaPart) -> dict[str, Json]:
    declared = {} if part.declared_mime is None else {"mimeType": part.declared_mime}
    if isinstance(part.source, Uri):
        blob = {**declared, "fileUri": part.source.text, **part.carried.get("fileData", {})}
        return {**part.carried, "fileData": blob}
    blob = {**declared, "data": _base64(part), **part.carried.get("inlineData", {})}
    return {**part.carried, "inlineData": blob}


def _base64(part: MediaPart) -> str:
    source: Any = part.source
    if isinstance(source, Base64):
        return source.text
    if isinstance(source, bytes):
        return encode(source)
    try:
        if isinstance(source, Path):
            return encode(source.read_bytes())
        stood = source.tell()
        source.seek(0)
        data = source.read()
        source.seek(stood)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UnreadableSource(f"{plain(part.label) or 'a medium'}: cannot be read: {why}") from error
    return encode(data)
