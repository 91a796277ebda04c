"""Fields of the SDK's objects ⇄ REST JSON in camelCase, and what is common to the modules around it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

import google.genai
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from weighlock.converters.wire import malformed, path_of
from weighlock.encoded import encode
from weighlock.errors import MalformedRequest
from weighlock.request import Json

MAX_DEPTH = 100
"""Levels of nesting that are followed; the service takes fewer."""

Model = TypeVar("Model", bound=BaseModel)
_SCALARS = (str, int, float, bool)


def given(model: BaseModel) -> dict[str, Any]:
    """The fields that are set, by their Python names."""
    return {name: value for name, value in model.__dict__.items() if value is not None}


def is_like(value: object, kind: type[BaseModel]) -> bool:
    """Whether this is such an object of the SDK, or of another copy of it in the same program."""
    if isinstance(value, kind):
        return True
    if not isinstance(value, BaseModel):
        return False
    ours, theirs = kind.model_fields.keys(), type(value).model_fields.keys()
    named_alike = any(base.__name__ == kind.__name__ for base in type(value).__mro__)
    return named_alike and (ours <= theirs or theirs <= ours)


def as_rest(value: object, place: str, depth: int = 0) -> Json:
    """The same as REST JSON: objects of the SDK with camelCase names, bytes in standard base64.

    Keys of dicts are the caller's (arguments, schema properties, labels) and stay as they are.

    Raises:
        MalformedRequest: something in it has no JSON form, or it is nested too deep or in itself.
    """
    if value is None or type(value) in _SCALARS:
        return value
    if depth > MAX_DEPTH:
        raise malformed(place, f"is nested more than {MAX_DEPTH} levels deep", levels=MAX_DEPTH)
    match value:
        case BaseModel():
            return fields_as_rest(value, place, depth=depth)
        case dict():
            return {key_text(key, place): as_rest(item, place, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [as_rest(item, place, depth + 1) for item in value]
        case bytes():
            return encode(value)
        case _:
            return leaf(value, place)


def fields_as_rest(model: BaseModel, place: str, *, without: tuple[str, ...] = (), depth: int = 0) -> dict[str, Json]:
    """What is set in an object of the SDK, but for the fields named, as REST JSON."""
    kind = type(model)
    return {
        _rest_name(kind, name): as_rest(value, place, depth + 1)
        for name, value in given(model).items()
        if name not in without
    }


def leaf(value: object, place: str) -> Json:
    """What the SDK or pydantic would write for a value that is no container.

    Raises:
        MalformedRequest: nothing JSON knows.
    """
    match value:
        case Enum():
            return value.value
        case datetime.datetime():
            return value.isoformat().replace("+00:00", "Z")
        case str() | int() | float():
            return value
        case Iterator():  # reading it would use it up, and the caller's own object with it
            raise malformed(place, f"holds a {type(value).__name__}, which can be read once only; make it a list")
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, UnicodeDecodeError) as error:
        raise malformed(place, f"holds an object that has no JSON form ({type(value).__name__})") from error


def key_text(key: object, place: str) -> str:
    """A key of a dict as `json.dumps` writes it.

    Raises:
        MalformedRequest: what it refuses.
    """
    match key:
        case str():
            return key
        case None | bool() | int() | float():
            return json.dumps(key)
        case _:
            raise malformed(place, f"has a key that is no text ({type(key).__name__})")


def validated(kind: type[Model], fields: Mapping[str, Json] | BaseModel, place: str) -> Model:
    """The SDK's object for fields in either case.

    Raises:
        MalformedRequest: names the field the SDK refuses, or that this version of it does not have.
    """
    try:
        return kind.model_validate(dict(fields) if isinstance(fields, Mapping) else fields)
    except ValidationError as error:
        raise refused(error, place) from None  # its text quotes the input, which may be media
    except TypeError:
        raise malformed(place, "has a key that is no text") from None
    except RecursionError:
        raise malformed(place, f"is nested more than {MAX_DEPTH} levels deep", levels=MAX_DEPTH) from None


def refused(error: ValidationError, place: str) -> MalformedRequest:
    """pydantic's refusal, with the place and without the input."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    inner = path_of(to_camel(step) if isinstance(step, str) else step for step in first["loc"])
    where = place + ("" if not inner or inner.startswith("[") else ".") + inner
    if first["type"] == "extra_forbidden":
        return malformed(where, f"is no field that google-genai {google.genai.__version__} knows here")
    return malformed(where, f"is refused by google-genai: {first['msg']}")


@lru_cache(maxsize=4096)
def _rest_name(kind: type[BaseModel], name: str) -> str:
    field = kind.model_fields.get(name)
    # Before pydantic has built a class its fields do not know the alias their generator gives them.
    return field.alias if field is not None and field.alias else to_camel(name)
