"""An example of what a JSON Schema asks for, so that clients that insist on JSON get some."""

from __future__ import annotations

from collections.abc import Mapping

from weighlock.request import Json

_DEEPEST, _MOST_ITEMS = 24, 100


def example(schema: Json, root: Json = None, depth: int = 0) -> Json:
    """The smallest value of a schema, in either dialect: `OBJECT` of the service's own, `object` of JSON Schema."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    root = schema if root is None else root
    if isinstance(named := schema.get("$ref"), str):
        return example(_referred(named, root), root, depth + 1)
    for key in ("const", "default", "example"):
        if key in schema:
            return schema[key]
    if isinstance(options := schema.get("enum"), list) and options:
        return options[0]
    for key in ("anyOf", "any_of", "oneOf", "allOf"):
        if isinstance(options := schema.get(key), list) and options:
            return example(options[0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Mapping[str, Json], root: Json, depth: int) -> Json:
    match _type(schema):
        case "object":
            asked = schema.get("properties")
            asked = asked if isinstance(asked, Mapping) else {}
            needed = schema.get("required")
            needed = needed if isinstance(needed, list) else list(asked)
            return {name: example(asked[name], root, depth + 1) for name in asked if name in needed}
        case "array":
            least = _number(schema, "minItems") or _number(schema, "min_items")
            return [example(schema.get("items"), root, depth + 1) for _ in range(min(int(least), _MOST_ITEMS))]
        case "integer":
            return int(_number(schema, "minimum"))
        case "number":
            return float(_number(schema, "minimum"))
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "text"


def _number(schema: Mapping[str, Json], key: str) -> float:
    """A bound; 0 where it is none. The service writes some as text."""
    found = schema.get(key)
    try:
        return float(found) if isinstance(found, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _type(schema: Mapping[str, Json]) -> str:
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    return str(kind).lower()


def _referred(named: str, root: Json) -> Json:
    """What `#/$defs/Name` stands for."""
    found = root
    for step in named.removeprefix("#").strip("/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
