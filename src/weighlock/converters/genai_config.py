"""`config` ⇄ the fields of a request's body beside its contents."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from google.genai import _transformers, types
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from weighlock.converters.genai_fields import as_rest, given, validated
from weighlock.converters.wire import malformed
from weighlock.request import NOTHING, Json

Config = types.GenerateContentConfig | dict[str, Any] | None
GENERATION_CONFIG = "generationConfig"

_CLIENT_SIDE = frozenset(
    {
        "http_options",
        "should_return_http_response",
        "automatic_function_calling",
        "automatic_continuation",
        "system_instruction",
    }
)
"""What the SDK acts upon itself, and the system instruction, which is a turn."""
_TOP_LEVEL = {
    "safety_settings": "safetySettings",
    "tools": "tools",
    "tool_config": "toolConfig",
    "labels": "labels",
    "cached_content": "cachedContent",
    "model_armor_config": "modelArmorConfig",
    "service_tier": "serviceTier",
    "continuation_token": "continuationToken",
    "generation_output_config": "outputConfig",
    "store": "store",
}
"""Fields that stand beside `generationConfig`; all others are inside it."""
_OTHER_NAMES = {"model_selection_config": "modelConfig"}
_SOME_CLIENT: Any = SimpleNamespace(vertexai=False)
"""All the SDK's transformers ask of a client. Declarations of functions do not depend on it."""
_FIELD_OF = {name: field for field, name in (_TOP_LEVEL | _OTHER_NAMES).items()}


def read(config: object) -> types.GenerateContentConfig | None:
    """The config in any form as the SDK's own object.

    Raises:
        MalformedRequest: a field the SDK refuses.
    """
    if config is None or isinstance(config, types.GenerateContentConfig):
        return config
    if isinstance(config, dict | BaseModel):
        return validated(types.GenerateContentConfig, config, "config")
    raise malformed("config", f"is no GenerateContentConfig or dict but {type(config).__name__}")


def carried(config: types.GenerateContentConfig | None) -> Mapping[str, Json]:
    """What the SDK would send of it, as REST JSON; `http_options.extra_body`, which it adds to the body, included."""
    if config is None:
        return NOTHING
    body: dict[str, Json] = {}
    inner: dict[str, Json] = {}
    for field, value in given(config).items():
        if field in _TOP_LEVEL:
            body[_TOP_LEVEL[field]] = _sent(field, value)
        elif field not in _CLIENT_SIDE:
            inner[_OTHER_NAMES.get(field) or to_camel(field)] = _sent(field, value)
    if inner:
        body[GENERATION_CONFIG] = inner
    if (options := config.http_options) is not None and options.extra_body:
        extra = {k: v for k, v in options.extra_body.items() if k not in ("contents", "systemInstruction")}
        _update(body, extra)
    return body or NOTHING


def changed(config: Config, before: Mapping[str, Json], after: Mapping[str, Json]) -> Config:
    """The config with only those fields of the body that differ; the same object where none does, never altered."""
    if before is after or before == after:
        return config
    old, new = _flat(before), _flat(after)
    wanted = {name: new.get(name) for name in {**old, **new} if old.get(name) != new.get(name)}
    return updated(config, _fields(wanted, config))


def updated(config: Config, fields: Mapping[str, Any]) -> Config:
    """A copy of the config with these fields, by their Python names, in the form it came in."""
    if isinstance(config, dict):
        kept = {key: value for key, value in config.items() if key not in {*fields, *map(to_camel, fields)}}
        return kept | {name: value for name, value in fields.items() if value is not None}
    return (config or types.GenerateContentConfig()).model_copy(update=dict(fields))


def counted_at(level: str, config: types.CountTokensConfig | dict[str, Any] | None) -> types.CountTokensConfig:
    """The config of a count with this media resolution, unless it names one itself."""
    if not isinstance(config, types.CountTokensConfig):
        config = validated(types.CountTokensConfig, config or {}, "config")
    inner = config.generation_config or types.GenerationConfig()
    if inner.media_resolution is not None:
        return config
    inner = inner.model_copy(update={"media_resolution": types.MediaResolution(level)})
    return config.model_copy(update={"generation_config": inner})


# ---- to the wire


def _sent(field: str, value: Any) -> Json:
    place = f"config.{to_camel(field)}"
    try:
        match field:
            case "tools":
                return _tools(value, place)
            case "response_schema":
                value = _transformers.t_schema(None, copy.deepcopy(value) if isinstance(value, dict) else value)
            case "response_json_schema" if inspect.isclass(value) and issubclass(value, BaseModel):
                return value.model_json_schema()
            case "speech_config":
                value = _transformers.t_speech_config(value)
            case "cached_content" if "/" not in value:
                return f"cachedContents/{value}"
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise malformed(place, f"is refused by google-genai ({type(error).__name__})") from error
    return as_rest(value, place)


def _tools(tools: list[Any], place: str) -> Json:
    """The tools as the SDK sends them: functions as declarations, all declarations together as the last tool.

    MCP sessions are left out: what one offers is known only to those who ask it, and the SDK does that itself.
    """
    known = [tool for tool in tools if _is_declared(tool)]
    return as_rest(_transformers.t_tools(_SOME_CLIENT, known), place)


def _is_declared(tool: object) -> bool:
    return isinstance(tool, BaseModel | dict) or inspect.isfunction(tool) or inspect.ismethod(tool)


def _update(body: dict[str, Json], extra: Mapping[str, Json]) -> None:
    """What the SDK does with an extra body: merged in depth, in whatever case."""
    names = {name.replace("_", "").lower(): name for name in body}
    for key, value in extra.items():
        name = names.get(key.replace("_", "").lower(), key)
        if isinstance(value, dict) and isinstance(body.get(name), dict):
            body[name] = dict(body[name])
            _update(body[name], value)
        else:
            body[name] = value


# ---- from the wire


def _flat(body: Mapping[str, Json]) -> dict[tuple[str, str], Json]:
    """Fields by where they stand and their name."""
    fields = {("", name): value for name, value in body.items() if name != GENERATION_CONFIG}
    inner = body.get(GENERATION_CONFIG)
    if isinstance(inner, Mapping):
        fields |= {(GENERATION_CONFIG, name): value for name, value in inner.items()}
    return fields


def _fields(wanted: Mapping[tuple[str, str], Json], config: Config) -> dict[str, Any]:
    """Fields of the config, by their Python names; what this SDK has no field for travels in `extra_body`."""
    fields: dict[str, Any] = {}
    unknown: dict[str, Json] = {}
    for (where, name), value in wanted.items():
        if (field := _field(where, name)) is not None and value is None:
            fields[field] = None
        elif field is None or (known := _known(field, value)) is None:
            inside = unknown.setdefault(where, {}) if where else unknown
            inside[name] = value
        else:
            fields[field] = known
    if unknown:
        fields["http_options"] = _with_extra_body(config, unknown)
    return fields


def _field(where: str, name: str) -> str | None:
    """The Python name of a body's field, where this SDK has it in that place."""
    if (field := _FIELD_OF.get(name)) is None:
        field = next((known for known in types.GenerateContentConfig.model_fields if to_camel(known) == name), None)
    if field is None or field not in types.GenerateContentConfig.model_fields or field in _CLIENT_SIDE:
        return None
    return field if (field in _TOP_LEVEL) == (where == "") else None


def _known(field: str, value: Json) -> Any:
    """The value as the SDK's object; `None` where it holds something this version does not know."""
    try:
        if field == "response_schema":
            return types.Schema.model_validate(value)
        return getattr(types.GenerateContentConfig.model_validate({field: value}), field)
    except ValidationError:
        return None


def _with_extra_body(config: Config, unknown: dict[str, Json]) -> types.HttpOptions:
    before = read(config)
    options = (before.http_options if before is not None else None) or types.HttpOptions()
    body = copy.copy(options.extra_body or {})
    _update(body, unknown)
    return options.model_copy(update={"extra_body": body})
