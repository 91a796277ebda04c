"""What a tool returned raw: the SDK's automatic function calling puts any Python object into a function's response.

The SDK sends media in there as base64 text, which a model reads as hundreds of thousands of tokens, and fails on a PIL
image. Here each medium becomes a `MediaPart` where it stands, for the screening to lift.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from google.genai import types
from pydantic import BaseModel

from weighlock.converters import pil_image
from weighlock.converters.genai_fields import MAX_DEPTH, given, key_text, leaf
from weighlock.converters.wire import malformed
from weighlock.encoded import Base64
from weighlock.errors import WeighlockError
from weighlock.mime import sniff
from weighlock.request import Json, MediaPart, Modality, Uri

_SCALARS = frozenset({str, int, float, bool, type(None)})
_OPEN = object()

ReadPart = Callable[[BaseModel, str], object]
"""A `types.Part` or `FunctionResponsePart` as its value, with the label given."""


def lifted(response: object, *, tool: str, place: str, read_part: ReadPart) -> Json:
    """The response with a `MediaPart` for every medium in it, and JSON for every other object.

    A response that is JSON already stays the same object, and so does every branch of it.

    Raises:
        MalformedRequest: an object JSON does not know, nested deeper than the service follows, or in itself.
    """
    if response is None:
        return None
    return _Walk(tool, place, read_part).value(response, 0)


class _Walk:
    """One walk. What it has met is remembered, so that a branch shared a million times is walked once."""

    def __init__(self, tool: str, place: str, read_part: ReadPart) -> None:
        self._tool = tool
        self._place = place
        self._read_part = read_part
        self._media = 0
        self._met: dict[int, tuple[object, object]] = {}

    def value(self, raw: object, depth: int) -> Json:
        if type(raw) in _SCALARS:
            return raw
        if depth > MAX_DEPTH:
            raise malformed(self._place, f"is nested more than {MAX_DEPTH} levels deep", levels=MAX_DEPTH)
        if (met := self._met.get(id(raw))) is not None:
            if met[1] is _OPEN:
                raise malformed(self._place, "holds an object that contains itself")
            return met[1]
        self._met[id(raw)] = raw, _OPEN
        try:
            result = self._made(raw, depth)
        except (WeighlockError, MemoryError):
            raise
        except Exception as error:  # the tool's own object: whatever its properties raise is its own matter
            raise malformed(self._place, f"holds a {type(raw).__name__} that cannot be read") from error
        self._met[id(raw)] = raw, result
        return result

    def _inside(self, item: object, depth: int) -> Json:
        return item if type(item) in _SCALARS else self.value(item, depth + 1)

    def _made(self, raw: object, depth: int) -> Json:
        match raw:
            case dict():
                return self._object(raw, depth)
            case list():
                items = [self._inside(item, depth) for item in raw]
                return raw if all(new is old for new, old in zip(items, raw, strict=True)) else items
            case tuple():
                return [self._inside(item, depth) for item in raw]
            case bytes() | bytearray() | memoryview():
                return self._bytes(bytes(raw))
            case MediaPart():
                return raw
            case BaseModel():
                return self._model(raw, depth)
            case _ if pil_image.is_image(raw):
                data, mime = pil_image.bytes_and_mime(raw, self._place)
                return MediaPart(source=data, label=self._label(), declared_mime=mime)
            case _ if dataclasses.is_dataclass(raw) and not isinstance(raw, type):
                fields = {field.name: getattr(raw, field.name) for field in dataclasses.fields(raw)}
                return self.value(fields, depth + 1)
            case _:
                return leaf(raw, self._place)

    def _object(self, raw: dict[Any, object], depth: int) -> Json:
        fields = {
            key if type(key) is str else key_text(key, self._place): self._inside(item, depth)
            for key, item in raw.items()
        }
        if len(fields) != len(raw):
            raise malformed(self._place, "holds two keys that are one in JSON")
        unchanged = len(fields) == len(raw) and all(fields.get(key, _OPEN) is old for key, old in raw.items())
        return raw if unchanged else fields

    def _bytes(self, data: bytes) -> Json:
        found = sniff(data)
        if found.modality is None or found.modality is Modality.TEXT:
            return base64.urlsafe_b64encode(data).decode("ascii")
        return MediaPart(source=data, label=self._label())

    def _model(self, raw: BaseModel, depth: int) -> Json:
        fields = given(raw)
        if isinstance(raw, types.Part | types.FunctionResponsePart):
            if "inline_data" in fields or "file_data" in fields:
                return self._read_part(raw, self._label())
            if isinstance(text := fields.get("text"), str):
                return text
        data, uri = self._payload(raw, fields)
        if data or uri:
            source = data or Uri(str(uri))
            return MediaPart(source=source, label=self._label(), declared_mime=fields.get("mime_type"))
        if type(raw).__module__.startswith("google.genai"):
            return self.value(fields, depth + 1)
        return self.value(raw.model_dump(exclude_none=True), depth + 1)  # a tool's own model may say how it is written

    @staticmethod
    def _payload(raw: BaseModel, fields: Mapping[str, Any]) -> tuple[bytes | None, str | None]:
        """Bytes and URI of an object of the SDK that is itself a medium."""
        for kind, data, uri in _CARRIERS:
            if isinstance(raw, kind):
                return fields.get(data), fields.get(uri)
        return None, None

    def _label(self) -> str:
        self._media += 1
        name = f"{self._tool} result"
        return name if self._media == 1 else f"{name} {self._media}"


_CARRIERS: tuple[tuple[type[BaseModel], str, str], ...] = (
    (types.Blob, "data", ""),
    (types.FunctionResponseBlob, "data", ""),
    (types.FileData, "", "file_uri"),
    (types.FunctionResponseFileData, "", "file_uri"),
    (types.File, "", "uri"),
    (types.Image, "image_bytes", "gcs_uri"),
    (types.Video, "video_bytes", "uri"),
)


def settled(response: Json, read: Callable[[MediaPart], bytes]) -> Json:
    """The response as the SDK can send it: media that were left in it as URL-safe base64 text, or as their URI."""
    match response:
        case MediaPart(source=Uri(text=uri)):
            mime = {} if response.declared_mime is None else {"mime_type": response.declared_mime}
            return {"file_uri": uri, **mime}
        case MediaPart(source=Base64(text=text)):
            return text
        case MediaPart():
            return base64.urlsafe_b64encode(read(response)).decode("ascii")
        case dict():
            fields = {key: settled(item, read) for key, item in response.items()}
            return response if all(fields[key] is old for key, old in response.items()) else fields
        case list():
            items = [settled(item, read) for item in response]
            return response if all(new is old for new, old in zip(items, response, strict=True)) else items
        case _:
            return response
