"""What stands in a field of a message: a key of a dict or an attribute of an object, of the kind it has to be.

Every complaint names the place and the kind that was found, and repeats nothing a caller wrote but a short word.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any
from uuid import UUID

from weighlock.converters.json_text import loads
from weighlock.converters.wire import kind_of, malformed
from weighlock.encoded import encode
from weighlock.errors import MalformedRequest
from weighlock.request import NOTHING, Json
from weighlock.written import quoted

CONTENT_KEY = "content_hint"
"""In a medium's metadata: what a film shows."""
_DEEP = 100
"""Levels of a call's input, where the service's own reader stops."""
_MOST_LOOKED_AT = 200
"""Characters of foreign text that are looked at before it is shortened for a message."""


def field_of(thing: object, name: str) -> Any:
    """A key or an attribute; `None` where there is none."""
    if type(thing) is dict:  # nearly always, and asking an abstract class takes long
        return thing.get(name)
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def check_thing(value: object, place: str) -> None:
    """Refuses what has no fields."""
    if type(value) is dict:
        return
    if value is None:
        raise malformed(place, "is missing")
    if isinstance(value, str | bytes | bytearray | int | float | Sequence):
        raise malformed(place, f"is no object but {kind_of(value)}")


def text_of(value: Any, place: str) -> str:
    """Text, or an enum's text value."""
    if type(value) is str:
        return value
    value = value.value if isinstance(value, Enum) else value
    if not isinstance(value, str):
        raise malformed(place, "is missing" if value is None else f"is no text but {kind_of(value)}")
    return value


def word_of(value: Any, place: str) -> str:
    """Text that says something."""
    if not (text := text_of(value, place)):
        raise malformed(place, "is empty")
    return text


def id_of(value: Any, place: str) -> str:
    """An id: text, or a UUID as frameworks make them."""
    return word_of(str(value) if isinstance(value, UUID) else value, place)


def items_of(value: Any, place: str) -> Sequence[Any]:
    """A list; `None` is an empty one."""
    if type(value) is list or type(value) is tuple:
        return value
    if value is None:
        return ()
    if isinstance(value, str | bytes | bytearray) or not isinstance(value, Sequence):
        raise malformed(place, f"is no list but {kind_of(value)}")
    return value


def mapping_of(value: Any, place: str) -> Mapping[str, Any]:
    """An object; `None` is an empty one."""
    if value is None:
        return NOTHING
    if not isinstance(value, Mapping):
        raise malformed(place, f"is no object but {kind_of(value)}")
    return value


def metadata_of(thing: object, place: str) -> Mapping[str, Any]:
    return mapping_of(field_of(thing, "metadata"), f"{place}.metadata")


def blocks_of(thing: object, place: str) -> Iterator[tuple[object, str]]:
    """Each block with its place."""
    for at, block in enumerate(items_of(field_of(thing, "blocks"), f"{place}.blocks")):
        yield block, f"{place}.blocks[{at}]"


def said_in(block: object, place: str) -> str:
    said = field_of(block, "text")
    return "" if said is None else text_of(said, f"{place}.text")


def signature_in(metadata: Mapping[str, Any], place: str) -> Mapping[str, Json]:
    """A thought signature as a part's field of REST JSON, or nothing."""
    signature = None if metadata is NOTHING else metadata.get("thought_signature")
    if not signature:
        return NOTHING
    if isinstance(signature, bytes):
        return {"thoughtSignature": encode(signature)}
    return {"thoughtSignature": text_of(signature, f"{place}.thought_signature")}


def arguments_of(value: Any, place: str) -> Json:
    """A call's arguments as JSON values of their own; an object, or the JSON text of one."""
    if isinstance(value, str):
        try:
            value = loads(value) if value.strip() else None
        except MalformedRequest:
            raise malformed(place, "is no JSON, or JSON that can be read in two ways") from None
    return _json(mapping_of(value, place), place)


def _json(value: Any, place: str, depth: int = 0) -> Json:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise malformed(place, "holds a number JSON cannot say")
        return value
    if depth == _DEEP:
        raise malformed(place, f"is nested deeper than {_DEEP} levels")
    if isinstance(value, Mapping):
        if any(not isinstance(key, str) for key in value):
            raise malformed(place, "holds a key that is no text")
        return {key: _json(item, place, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item, place, depth + 1) for item in value]
    raise malformed(place, f"holds {kind_of(value)}, which is no JSON value")


def shown(text: str) -> str:
    """A caller's word, short and in quotes."""
    return quoted(text[:_MOST_LOOKED_AT])
