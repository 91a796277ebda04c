"""What is put before countTokens and what is made of its answers, through both faces."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from fake_io import FACES, Face, FakeClock
from unit.gemini.test_http import Script, Scripted, said
from weighlock.converters import rest_json
from weighlock.errors import CountFailed
from weighlock.gemini.auth import ApiKey
from weighlock.gemini.count import TokenCounter
from weighlock.gemini.errors import Cause
from weighlock.gemini.http import Service, Target
from weighlock.io import Io
from weighlock.planning.counting import Count, Form
from weighlock.request import Backend, Request

each_face = pytest.mark.parametrize("face", FACES)
PNG = "iVBORw0KGgo="
BODY: dict[str, Any] = {
    "contents": [
        {"role": "user", "parts": [{"text": "what is it?"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "shot", "args": {}}, "thoughtSignature": "AQ=="}]},
        {"role": "user", "parts": [{"functionResponse": {
            "name": "shot", "response": {"ok": True}, "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
        }}]},
    ],
    "systemInstruction": {"parts": [{"text": "be brief"}]},
    "tools": [{"functionDeclarations": [{"name": "shot"}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    "safetySettings": [], "labels": {"a": "b"},
    "generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"},
}  # fmt: skip
DEVELOPER, VERTEX = Target(), Target(backend=Backend.VERTEX, project="p")


def request() -> Request:
    return rest_json.parse(BODY).request


def answer(body: Any) -> httpx2.Response:
    return httpx2.Response(200, json=body)


def asked(
    face: Face, script: Script, form: Form = Form.TEXT, target: Target = DEVELOPER, times: int = 1
) -> tuple[list[Count | CountFailed], Scripted]:
    service = Scripted(script)

    async def flow(io: Io) -> list[Count | CountFailed]:
        counter = TokenCounter(Service(io, target, ApiKey("k")))
        return [await told(counter) for _ in range(times)]

    async def told(counter: TokenCounter) -> Count | CountFailed:
        try:
            return await counter.count(request(), "gemini-3.8-flash", form)
        except CountFailed as failure:
            return failure

    return face(flow, FakeClock(), service.transport), service


@each_face
def test_the_developer_api_is_asked_within_a_request_that_names_its_model(face: Face) -> None:
    counts, service = asked(face, [answer({"totalTokens": 40})])

    inner = json.loads(service.asked[0].content)["generateContentRequest"]
    assert str(service.asked[0].url).endswith("/v1beta/models/gemini-3.8-flash:countTokens")
    assert inner["model"] == "models/gemini-3.8-flash"
    assert inner.keys() == {"model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
    assert inner["contents"][0]["parts"] == [{"text": "what is it?"}, {"text": "."}]
    assert "parts" not in inner["contents"][2]["parts"][0]["functionResponse"]
    assert inner["contents"][1] == BODY["contents"][1]
    assert counts == [Count(total=40, covers=Form.TEXT, model="gemini-3.8-flash", stand_ins=1)]


@each_face
def test_vertex_is_asked_with_the_four_fields_it_takes(face: Face) -> None:
    _, service = asked(face, [answer({"totalTokens": 40})], target=VERTEX)

    assert json.loads(service.asked[0].content).keys() == {"contents", "systemInstruction", "tools", "generationConfig"}


@each_face
def test_the_whole_request_is_counted_with_its_media_and_told_by_modality(face: Face) -> None:
    said_ = {
        "totalTokens": "2200", "cachedContentTokenCount": 7,
        "promptTokensDetails": [
            {"modality": "IMAGE", "tokenCount": 2178}, {"modality": "TEXT", "tokenCount": "22"}, {"modality": 3}, 4,
            {"modality": "SMELL", "tokenCount": -1},
        ],
    }  # fmt: skip

    (count,), service = asked(face, [answer(said_)], Form.WHOLE)

    assert isinstance(count, Count)
    assert (count.total, count.cached, count.covers, count.stand_ins) == (2200, 7, Form.WHOLE, 0)
    assert count.by_modality == {"IMAGE": 2178, "TEXT": 22, "SMELL": 0}
    assert service.asked[0].content.count(PNG.encode()) == 2


@each_face
@pytest.mark.parametrize(
    "empty", [{}, {"totalTokens": 0}, {"totalTokens": None}, {"totalTokens": -4}, {"totalTokens": True}, {"total": 3}]
)
def test_nothing_counted_for_something_is_an_error(face: Face, empty: dict[str, Any]) -> None:
    (count,), _ = asked(face, [answer(empty)])

    assert isinstance(count, CountFailed)


@each_face
def test_a_failure_says_what_the_service_said(face: Face) -> None:
    gone = said(403, "PERMISSION_DENIED", "You do not have permission to access the File ab1 or it may not exist.")
    (told,), _ = asked(face, [gone])

    assert isinstance(told, CountFailed)
    assert (told.figures["cause"], told.figures["file"]) == (Cause.FILE_MISSING, "files/ab1")


@each_face
def test_the_same_content_is_asked_about_once_and_a_failure_is_not_remembered(face: Face) -> None:
    counts, service = asked(face, [answer({}), answer({"totalTokens": 4})], times=3)

    assert [isinstance(count, Count) for count in counts] == [False, True, True]
    assert len(service.asked) == 2


@each_face
def test_a_request_of_nothing_is_not_asked_about(face: Face) -> None:
    async def flow(io: Io) -> Count:
        return await TokenCounter(Service(io, DEVELOPER, None)).count(Request(turns=()), "g", Form.WHOLE)

    assert face(flow, FakeClock()).total == 0


@each_face
def test_only_so_many_counts_are_remembered(face: Face) -> None:
    service = Scripted([answer({"totalTokens": 1 + n}) for n in range(4)])

    async def flow(io: Io) -> None:
        counter = TokenCounter(Service(io, DEVELOPER, None), remembered=2)
        for words in ("a", "b", "c", "a"):
            body = {"contents": [{"role": "user", "parts": [{"text": words}]}]}
            await counter.count(rest_json.parse(body).request, "g", Form.TEXT)

    face(flow, FakeClock(), service.transport)

    assert len(service.asked) == 4


@each_face
def test_many_ask_at_once_and_each_is_told_the_count_of_its_own(face: Face) -> None:
    def counting(request: httpx2.Request) -> httpx2.Response:
        (turn,) = json.loads(request.content)["generateContentRequest"]["contents"]
        return answer({"totalTokens": len(turn["parts"][0]["text"])})

    async def flow(io: Io) -> list[Count]:
        counter = TokenCounter(Service(io, DEVELOPER, None))
        bodies = [{"contents": [{"role": "user", "parts": [{"text": "a" * n}]}]} for n in (1, 2, 3) * 20]
        return await io.gather([counter.count(rest_json.parse(body).request, "g", Form.TEXT) for body in bodies])

    counts = face(flow, FakeClock(), httpx2.MockTransport(counting))

    assert [count.total for count in counts] == [1, 2, 3] * 20
