"""Raw values × schema → the file, or the mistakes in an operator's words."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from weighlock.settings.model import suggest
from weighlock.settings.schema import NOT_YET, SettingsFile
from weighlock.settings.text import Document, KeyPath, dotted


def validate(document: Document) -> SettingsFile | None:
    """The file as the schema reads it; `None` where it cannot, with the mistakes in `document.problems`."""
    try:
        return SettingsFile.model_validate(document.values)
    except ValidationError as error:
        told = {problem.key for problem in document.problems}  # while reading: what came of it is no second mistake
        for detail in error.errors(include_url=False, include_context=True, include_input=True):
            path, text = _told(detail)
            if dotted(path) not in told:
                document.wrong(path, text)
        return None


def _told(detail: ErrorDetails) -> tuple[KeyPath, str]:
    path = tuple(str(step) for step in detail["loc"] if step != "[key]")
    given = detail["input"]
    shown = "text" if path[0] == "accounts" and isinstance(given, str) else _shown(given)  # it may be a key
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


def _keys_at(path: KeyPath) -> list[str]:
    """The keys the schema knows at this place."""
    model: type[BaseModel] | None = SettingsFile
    steps = iter(path)
    for step in steps:
        field = None if model is None else model.model_fields.get(step)
        if field is None:
            return []
        if any(getattr(part, "__origin__", part) is dict for part in (field.annotation, *get_args(field.annotation))):
            next(steps, None)
        model = _model_in(field.annotation)
    return [] if model is None else list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return repr(value) if isinstance(value, str) else str(value)
