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
    if options := schema.get("enum"):
        return options[0]
    for key in ("anyOf", "any_of", "oneOf", "allOf"):
        if options := schema.get(key):
            return example(options[0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Mapping[str, Json], root: Json, depth: int) -> Json:
    match _type(schema):
        case "object":
            asked = schema.get("properties") or {}
            needed = schema.get("required", list(asked))
            return {name: example(asked[name], root, depth + 1) for name in asked if name in needed}
        case "array":
            least = int(schema.get("minItems") or schema.get("min_items") or 0)
            return [example(schema.get("items"), root, depth + 1) for _ in range(min(least, _MOST_ITEMS))]
        case "integer":
            return int(schema.get("minimum") or 0)
        case "number":
            return float(schema.get("minimum") or 0)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "text"


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
