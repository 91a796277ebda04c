"""REST bodies of every shape: unchanged ones leave as they came, changed ones differ only where changed."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weighlock.converters import rest_json
from weighlock.request import TextPart, Turn

KEYS = st.sampled_from(["mimeType", "mime_type", "inline_data", "a", "b_c", "$ref", "é", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(KEYS, JSON, max_size=3)
UNKNOWN = st.dictionaries(st.sampled_from(["tomorrow", "some_field", "x-y"]), JSON, max_size=2)
"""Fields nobody knows yet: carried, and never spelt anew."""


@st.composite
def data(draw: st.DrawFn) -> str:
    raw = draw(st.binary(min_size=1, max_size=12))
    text = (base64.urlsafe_b64encode if draw(st.booleans()) else base64.b64encode)(raw).decode()
    return text if draw(st.booleans()) else text.rstrip("=")


def spelt(camel: str, snake: str) -> st.SearchStrategy[str]:
    return st.sampled_from([camel, snake])


@st.composite
def media(draw: st.DrawFn) -> dict[str, Any]:
    mime = draw(spelt("mimeType", "mime_type"))
    if draw(st.booleans()):
        blob = {mime: "image/png", "data": draw(data()), **draw(UNKNOWN)}
        return {draw(spelt("inlineData", "inline_data")): blob}
    uri = draw(spelt("fileUri", "file_uri"))
    return {draw(spelt("fileData", "file_data")): {mime: "video/mp4", uri: "gs://b/x"}}


@st.composite
def results(draw: st.DrawFn) -> dict[str, Any]:
    parts = draw(st.lists(media(), max_size=2))
    told = {"name": "f", "response": draw(OBJECT), **({"parts": parts} if parts else {}), **draw(UNKNOWN)}
    return {draw(spelt("functionResponse", "function_response")): told}


PARTS = st.one_of(
    st.text(max_size=9).map(lambda text: {"text": text}),
    st.builds(lambda text, sign: {"text": text, "thoughtSignature": sign}, st.text(max_size=9), data()),
    st.builds(
        lambda medium, unknown: {**medium, "video_metadata": {"start_offset": "1s"}, **unknown}, media(), UNKNOWN
    ),
    results(),
    OBJECT.map(lambda args: {"function_call": {"name": "f", "args": args}}),
    UNKNOWN,
)
BODIES = st.builds(
    lambda turns, schema, unknown: {
        "contents": turns,
        "generation_config": {"top_p": 0.5, "response_json_schema": schema},
        "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": schema}]}],
        **unknown,
    },
    st.lists(
        st.builds(
            lambda role, parts, unknown: {"role": role, "parts": parts, **unknown},
            st.sampled_from(["user", "model"]),
            st.lists(PARTS, max_size=4),
            UNKNOWN,
        ),
        max_size=4,
    ),
    OBJECT,
    UNKNOWN,
)
CAMEL = {
    "inline_data": "inlineData",
    "file_data": "fileData",
    "mime_type": "mimeType",
    "file_uri": "fileUri",
    "function_response": "functionResponse",
    "function_call": "functionCall",
    "video_metadata": "videoMetadata",
    "start_offset": "startOffset",
    "generation_config": "generationConfig",
    "response_json_schema": "responseJsonSchema",
    "function_declarations": "functionDeclarations",
    "parameters_json_schema": "parametersJsonSchema",
    "top_p": "topP",
}
OWN = {"args", "response", "responseJsonSchema", "parametersJsonSchema", "tomorrow", "some_field", "x-y"}


def camel(value: Any) -> Any:
    """An oracle of its own: every known field in camelCase, down to what belongs to the caller."""
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = {CAMEL.get(key, key): item for key, item in value.items()}
    return {key: item if key in OWN else camel(item) for key, item in names.items()}


@given(BODIES, st.sampled_from([None, 1]), st.booleans())
def test_an_unchanged_request_leaves_byte_for_byte(body: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    raw = json.dumps(body, indent=indent, ensure_ascii=ascii_only).encode()
    found = rest_json.parse(raw)

    assert rest_json.emit(found.request, found) == raw


@given(BODIES)
def test_a_changed_request_differs_where_it_was_changed(body: dict[str, Any]) -> None:
    found = rest_json.parse(json.dumps(body))
    added = Turn(role="user", parts=(TextPart(text="more"),))

    emitted = json.loads(rest_json.emit(replace(found.request, turns=(*found.request.turns, added)), found))

    assert emitted["contents"].pop() == {"role": "user", "parts": [{"text": "more"}]}
    assert emitted == camel(body)


@given(BODIES, st.data())
def test_a_part_that_changed_leaves_its_neighbours_alone(body: dict[str, Any], draw: st.DataObject) -> None:
    found = rest_json.parse(json.dumps(body))
    turns = list(found.request.turns)
    if not turns:
        return
    at = draw.draw(st.integers(0, len(turns) - 1))
    turns[at] = replace(turns[at], parts=(TextPart(text="first"), *turns[at].parts))

    emitted = json.loads(rest_json.emit(replace(found.request, turns=tuple(turns)), found))

    assert emitted["contents"][at]["parts"].pop(0) == {"text": "first"}
    assert emitted == camel(body)


@given(BODIES)
def test_built_from_values_alone_it_is_the_same_request(body: dict[str, Any]) -> None:
    request = rest_json.parse(json.dumps(body)).request

    again = rest_json.parse(rest_json.emit(request)).request

    assert again == request
    assert rest_json.emit(again) == rest_json.emit(request)
