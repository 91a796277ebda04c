"""Whatever a caller holds → `Request`, and back into the same: values of our own, a REST body, or the SDK's objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weighlock.converters import rest_json
from weighlock.request import Request

if TYPE_CHECKING:
    from weighlock.converters import genai_types

    Origin = genai_types.Parsed | rest_json.Parsed | None


def read(contents: Any, config: Any = None, *, model: str | None = None) -> tuple[Request, Origin]:
    """The request, and what it was read from: `None` for a `Request`.

    A body of REST JSON is `bytes`, or a dict with `contents`; all else is what `generate_content` takes.

    Raises:
        MalformedRequest: a form neither takes. Names the place.
    """
    if isinstance(contents, Request):
        return contents, None
    if isinstance(contents, rest_json.Parsed):
        return contents.request, contents
    is_body = isinstance(contents, bytes | bytearray | memoryview)
    parsed: Origin
    if is_body or (isinstance(contents, Mapping) and "contents" in contents):
        parsed = rest_json.parse(contents, model=model)
    else:
        from weighlock.converters import genai_types

        is_parsed = isinstance(contents, genai_types.Parsed)
        parsed = contents if is_parsed else genai_types.parse(contents, config, model=model)
    return parsed.request, parsed


def written(request: Request, origin: Origin) -> tuple[Any, Any]:
    """Contents and config for `generate_content`; nothing where that is not what the request was read from.

    Raises:
        InputError: a medium cannot be read any more, or a field this version of the SDK does not have.
    """
    if origin is None or isinstance(origin, rest_json.Parsed):
        return None, None
    from weighlock.converters import genai_types

    return genai_types.emit(request, origin)
