"""The same request as SDK objects, as REST JSON and as neutral messages is the same REST JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types

import media
from weighlock.converters import genai_types, messages, rest_json
from weighlock.encoded import encode
from weighlock.preflight import Preflight
from weighlock.request import Backend, Request
from weighlock.scales import Asked

PNG, WAV, PDF = media.picture((40, 30)), media.wav(0.5), media.pdf()

REST = {
    "contents": [
        {"role": "user", "parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": encode(PNG)}}]},
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "c1", "name": "shot", "args": {"of_page": 1}}},
                {"functionCall": {"id": "c2", "name": "record", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "shot",
                        "response": {"result": "done"},
                        "parts": [
                            {"inlineData": {"mimeType": "image/png", "data": encode(PNG)}},
                            {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/a.pdf"}},
                        ],
                    }
                }
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "record",
                        "response": {"result": ""},
                        "parts": [{"inlineData": {"mimeType": "audio/wav", "data": encode(WAV)}}],
                    }
                }
            ],
        },
        {"role": "model", "parts": [{"text": "seen"}]},
        {
            "role": "user",
            "parts": [{"text": "and this?"}, {"inlineData": {"mimeType": "application/pdf", "data": encode(PDF)}}],
        },
    ],
    "systemInstruction": {"role": "user", "parts": [{"text": "be brief"}]},
}
"""Without ids in the function responses, which the neutral messages do not send."""


def from_rest() -> Request:
    return rest_json.parse(json.dumps(REST)).request


def from_sdk() -> Request:
    result = types.Part(
        function_response=types.FunctionResponse(
            name="shot",
            response={"result": "done"},
            parts=[
                types.FunctionResponsePart(
                    inline_data=types.FunctionResponseBlob(mime_type="image/png", data=PNG),
                ),
                types.FunctionResponsePart(
                    file_data=types.FunctionResponseFileData(mime_type="application/pdf", file_uri="gs://b/a.pdf"),
                ),
            ],
        )
    )
    sound = types.FunctionResponsePart(
        inline_data=types.FunctionResponseBlob(mime_type="audio/wav", data=WAV),
    )
    recorded = types.FunctionResponse(name="record", response={"result": ""}, parts=[sound])
    calls = [
        types.FunctionCall(id="c1", name="shot", args={"of_page": 1}),
        types.FunctionCall(id="c2", name="record", args={}),
    ]
    contents = [
        types.Content(
            role="user", parts=[types.Part(text="look"), types.Part.from_bytes(data=PNG, mime_type="image/png")]
        ),
        types.Content(role="model", parts=[types.Part(function_call=call) for call in calls]),
        types.Content(role="user", parts=[result]),
        types.Content(role="user", parts=[types.Part(function_response=recorded)]),
        types.Content(role="model", parts=[types.Part(text="seen")]),
        types.Content(
            role="user",
            parts=[types.Part(text="and this?"), types.Part.from_bytes(data=PDF, mime_type="application/pdf")],
        ),
    ]
    return genai_types.parse(contents, types.GenerateContentConfig(system_instruction="be brief")).request


def from_messages() -> Request:
    def block(kind: str, mime: str, data: bytes) -> dict[str, Any]:
        return {"type": kind, "media_type": mime, "source": {"type": "base64", "data": encode(data)}}

    def result(call_id: str, *blocks: dict[str, Any]) -> dict[str, Any]:
        return {"role": "tool", "blocks": [{"type": "tool_result", "call_id": call_id, "blocks": list(blocks)}]}

    pdf = {"type": "document", "media_type": "application/pdf", "source": {"type": "url", "url": "gs://b/a.pdf"}}
    told = [
        {"role": "system", "blocks": [{"type": "text", "text": "be brief"}]},
        {"role": "user", "blocks": [{"type": "text", "text": "look"}, block("image", "image/png", PNG)]},
        {
            "role": "assistant",
            "blocks": [
                {"type": "tool_call", "call_id": "c1", "name": "shot", "input": {"of_page": 1}},
                {"type": "tool_call", "call_id": "c2", "name": "record", "input": {}},
            ],
        },
        result("c1", {"type": "text", "text": "done"}, block("image", "image/png", PNG), pdf),
        result("c2", block("audio", "audio/wav", WAV)),
        {"role": "assistant", "blocks": [{"type": "text", "text": "seen"}]},
        {"role": "user", "blocks": [{"type": "text", "text": "and this?"}, block("document", "application/pdf", PDF)]},
    ]
    return messages.parse(told).request


READ = {"rest": from_rest, "sdk": from_sdk, "messages": from_messages}


@pytest.mark.parametrize("name", READ)
def test_it_is_the_same_rest_json(name: str) -> None:
    assert json.loads(rest_json.emit(READ[name]())) == REST


@pytest.mark.parametrize("backend", ["developer", "vertex"])
@pytest.mark.parametrize("model", ["gemini-3.8-flash", "gemini-2.5-flash"])
def test_screened_it_is_still_the_same(model: str, backend: str) -> None:
    with Preflight.from_config() as preflight:
        asked = Asked(model=model, backend=Backend(backend))
        emitted = {name: rest_json.emit(preflight.screen(read(), asked).request) for name, read in READ.items()}

    assert json.loads(emitted["sdk"]) == json.loads(emitted["rest"])
    assert json.loads(emitted["messages"]) == json.loads(emitted["rest"])
    assert b"audio/wav, " in emitted["rest"]
    assert b'"mimeType":"audio/wav"' not in emitted["rest"]
