"""Raw values × schema → the file, or the mistakes in an operator's words."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from weighlock.settings.model import suggest
from weighlock.settings.schema import NOT_YET, SettingsFile
from weighlock.settings.text import Document, KeyPath, dotted
from weighlock.written import MOST_TOLD, quoted


def validate(document: Document) -> SettingsFile | None:
    """The file as the schema reads it; `None` where it cannot, with the mistakes in `document.problems`."""
    try:
        return SettingsFile.model_validate(document.values)
    except ValidationError as error:
        told = {problem.key for problem in document.problems}  # while reading: what came of it is no second mistake
        details = error.errors(include_url=False, include_context=True, include_input=True)
        for detail in details[:MOST_TOLD]:
            path, text = _told(detail)
            if dotted(path) not in told:
                document.wrong(path, text)
        return None


def _told(detail: ErrorDetails) -> tuple[KeyPath, str]:
    path = tuple(str(step) for step in detail["loc"] if step != "[key]")
    given = detail["input"]
    shown = "text" if path[:1] == ("accounts",) and isinstance(given, str) else _shown(given)  # it may be a key
    match detail["type"]:
        case "extra_forbidden":
            text = _unknown_key(path)
        case "missing":
            text = "missing; write `version: 1`" if path == ("version",) else "missing"
        case "value_error":
            text = str(detail["ctx"]["error"])
        case "enum" | "literal_error":
            text = _not_among(path, given, detail["ctx"]["expected"])
        case "model_type" | "dict_type":
            text = f"must be a mapping of keys, not {shown}"
        case _:
            text = f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, not {shown}"
    return path, text


def _not_among(path: KeyPath, given: Any, expected: str) -> str:
    if path == ("version",):
        return f"{_shown(given)} is not known; this version of weighlock reads `version: 1`"
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    near = f"; {suggest(given, words)}" if isinstance(given, str) and suggest(given, words).startswith("did") else ""
    return f"{_shown(given)} is not one of {', '.join(words)}{near}"


def _unknown_key(path: KeyPath) -> str:
    *_, key = path
    relative = path[2:] if path[0] == "endpoints" else path[1:] if path[0] == "default" else path
    if ".".join(relative) in NOT_YET:
        return "this version does not act on it; remove it, so that nobody relies on it"
    return f"unknown key; {suggest(key, _keys_at(path[:-1]))}"


def keys_may_follow(path: KeyPath) -> bool:
    """Whether keys can stand below this place: it is a mapping, or nothing the schema knows."""
    annotation = _annotation_at(path)
    return annotation is None or any(get_origin(one) is dict or _is_section(one) for one in _options(annotation))


def _keys_at(path: KeyPath) -> list[str]:
    """The keys the schema knows at this place."""
    section = next(filter(_is_section, _options(_annotation_at(path))), None)
    return [] if section is None else list(section.model_fields)


def _annotation_at(path: KeyPath) -> Any:
    """The type of the value at this place; `None` where the schema knows no such place."""
    annotation: Any = SettingsFile
    for step in path:
        annotation = next(filter(None, (_annotation_below(one, step) for one in _options(annotation))), None)
    return annotation


def _annotation_below(annotation: Any, key: str) -> Any:
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    field = annotation.model_fields.get(key) if _is_section(annotation) else None
    return None if field is None else field.annotation


def _options(annotation: Any) -> Iterator[Any]:
    """A union's types, one by one."""
    if get_origin(annotation) in (Union, UnionType, Annotated):
        for part in get_args(annotation):
            yield from _options(part)
    else:
        yield annotation


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return quoted(value)
