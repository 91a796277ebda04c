"""What the SDK's automatic function calling hands over, screened: media the model can see, JSON the wire can carry."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.genai import types
from PIL import Image

import media
from weighlock.converters import genai_types, rest_json
from weighlock.preflight import Preflight
from weighlock.request import Backend
from weighlock.scales import Asked

PNG, WAV = media.picture((40, 30)), media.wav(1.0)


def history(result: Any) -> list[types.Content]:
    call = types.FunctionCall(name="shot", args={})
    answer = types.FunctionResponse(name="shot", response={"result": result})
    return [
        types.Content(role="user", parts=[types.Part(text="go")]),
        types.Content(role="model", parts=[types.Part(function_call=call)]),
        types.Content(role="user", parts=[types.Part(function_response=answer)]),
    ]


PICTURES: dict[str, Callable[[], Any]] = {
    "PIL image": lambda: Image.new("RGB", (40, 30)),
    "bytes": lambda: PNG,
    "Part": lambda: types.Part.from_bytes(data=PNG, mime_type="image/png"),
    "Blob": lambda: types.Blob(data=PNG, mime_type="image/png"),
    "list of bytes": lambda: [PNG],
    "dict of bytes": lambda: {"shot": PNG, "note": "as asked"},
    "list of Parts": lambda: [types.Part(text="here"), types.Part.from_bytes(data=PNG, mime_type="image/png")],
}


@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.parametrize("model", ["gemini-3.8-flash", "gemini-2.5-flash"])
def test_a_picture_becomes_a_medium_the_model_sees(kind: str, model: str) -> None:
    parsed = genai_types.parse(history(PICTURES[kind]()))
    with Preflight.from_config() as preflight:
        screened = preflight.screen(parsed.request, Asked(model=model))

    contents, _ = genai_types.emit(screened.request, parsed)

    result = contents[2].parts[0].function_response
    json.dumps(result.response)  # the wire can carry it
    nested = [part.inline_data.mime_type for part in result.parts or []]
    moved = [part.inline_data.mime_type for content in contents[3:] for part in content.parts if part.inline_data]
    assert (nested, moved) == ((["image/png"], []) if "3.8" in model else ([], ["image/png"]))
    assert "image/png" in json.dumps(result.response)
    assert json.loads(rest_json.emit(screened.request))["contents"][2]["parts"][0]["functionResponse"]["name"] == "shot"


@pytest.mark.parametrize("result", [WAV, [WAV], types.Blob(data=WAV, mime_type="audio/wav")])
@pytest.mark.parametrize("backend", Backend)
def test_sound_leaves_with_a_note(result: Any, backend: Backend) -> None:
    parsed = genai_types.parse(history(result))
    with Preflight.from_config() as preflight:
        screened = preflight.screen(parsed.request, Asked(model="gemini-3.8-flash", backend=backend))

    contents, _ = genai_types.emit(screened.request, parsed)

    result = contents[2].parts[0].function_response
    assert len(contents) == 3
    assert not result.parts
    assert "audio/wav, 16,044 bytes, 1 s: removed, because gemini-3.8-flash takes no audio" in str(result.response)


def test_the_caller_s_own_objects_are_never_changed() -> None:
    given = history(PNG)
    before = [content.model_dump() for content in given]
    parsed = genai_types.parse(given)

    with Preflight.from_config() as preflight:
        contents, _ = genai_types.emit(
            preflight.screen(parsed.request, Asked(model="gemini-3.8-flash")).request, parsed
        )

    assert [content.model_dump() for content in given] == before
    assert contents[0] is given[0]
    assert contents[2] is not given[2]
