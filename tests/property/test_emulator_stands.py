"""Whatever is asked of the emulator, it answers as a service does: with success or with the caller's mistake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import media
from emulated import FLASH, Wire, called, inline, result, user
from weighlock.emulator import Emulator

SHOT = inline(media.picture((8, 8)), "image/png", mediaResolution={"level": "MEDIA_RESOLUTION_LOW"})
SCHEMA = {"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": 1}}}
BODY = {
    "contents": [user("hi", SHOT), called("a"), user(result("a", SHOT))],
    "systemInstruction": user("be kind"),
    "tools": [{"functionDeclarations": [{"name": "a"}]}],
    "generationConfig": {"responseMimeType": "application/json", "responseSchema": SCHEMA, "maxOutputTokens": 5},
}
METHODS = ("generateContent", "streamGenerateContent", "countTokens")
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 1e308, True, "", "x", [], {}, [[]], [{}], {"$ref": "x"}, 10**30, "image/png"]
)
WORDS = st.sampled_from(["resumable", "start", "upload", "upload, finalize", "query", "cancel", "-1", "0", "9" * 30])


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with Emulator() as emulator:
        wire = Wire(emulator)
        yield wire
        wire.close()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


@st.composite
def bodies(draw: st.DrawFn) -> Any:
    body = json.loads(json.dumps(BODY))
    for _ in range(draw(st.integers(1, 3))):
        if not (found := list(places(body))):
            break
        *way, last = draw(st.sampled_from(found))
        holder = body
        for step in way:
            holder = holder[step]
        holder[last] = json.loads(json.dumps(draw(VALUES)))
    return body


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies(), method=st.sampled_from(METHODS), vertex=st.booleans())
def test_no_body_breaks_it(wire: Wire, body: Any, method: str, vertex: bool) -> None:
    path = "/v1beta1/publishers/google" if vertex else "/v1"

    answer = wire.http.post(f"{path}/models/{FLASH}:{method}", json=body)

    assert answer.status_code in (200, 400)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=WORDS, offset=WORDS, length=WORDS, mime=WORDS, file=st.dictionaries(WORDS | st.just("name"), VALUES))
def test_no_upload_breaks_it(wire: Wire, command: str, offset: str, length: str, mime: str, file: Any) -> None:
    said = {"Protocol": "resumable", "Command": command, "Offset": offset}
    said |= {"Header-Content-Length": length, "Header-Content-Type": mime}
    headers = {f"X-Goog-Upload-{name}": value for name, value in said.items()}

    answer = wire.http.post("/upload/v1/files?upload_id=x", headers=headers, json={"file": file})

    assert answer.status_code in (200, 400, 404, 409)
