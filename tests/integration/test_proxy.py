"""A call through the proxy: prepared, sent on, answered as the service would, settled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import media
from emulated import called, inline, result, user
from serving import COUNT, GENERATE, MODEL, STREAM, UPSTREAM_KEY, Served, client_yaml, serving
from weighlock.emulator import Emulator


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(processing_s=0) as running:
        yield running


@pytest.fixture
def served(tmp_path: Path, emulator: Emulator) -> Iterator[Served]:
    emulator.reset()
    with serving(tmp_path, emulator) as running:
        yield running


def test_a_whole_answer_with_its_receipt(served: Served) -> None:
    answer = served.ask(GENERATE, "hello", inline(media.picture((640, 480)), "image/png"))

    assert answer.status_code == 200
    usage = answer.json()["usageMetadata"]
    headers = answer.headers
    assert f"prompt={usage['promptTokenCount']}" in headers["x-weighlock-billed"]
    assert "image=" in headers["x-weighlock-billed"]
    assert headers["x-weighlock-outcome"] == "admitted"
    assert "upstream;dur=" in headers["server-timing"]
    (event,) = served.events
    assert event.id == headers["x-weighlock-decision"]
    assert event.billed is not None
    assert event.billed.prompt == usage["promptTokenCount"]


def test_what_nobody_changed_reaches_the_service_as_the_very_bytes_that_came(served: Served) -> None:
    body = (
        b'{"contents" : [ {"parts":[{"text":"h\\u00e9llo"}] , "role":"user"}], "generationConfig":{"temperature":0.10}}'
    )

    assert served.http.post(GENERATE, content=body, headers={"content-type": "application/json"}).status_code == 200

    assert served.emulator.requests[-1].body == body


@pytest.mark.parametrize("path", [STREAM + "?alt=sse", STREAM])
def test_a_stream(served: Served, path: str) -> None:
    served.emulator.script.queue("word " * 40)
    with served.http.stream("POST", path, json={"contents": [user("tell")]}) as answer:
        raw = b"".join(answer.iter_bytes())
        kind = answer.headers["content-type"]

    if "alt=sse" in path:
        assert kind.startswith("text/event-stream")
        chunks = [json.loads(line[6:]) for line in raw.split(b"\r\n\r\n") if line]
    else:
        assert kind.startswith("application/json")
        chunks = json.loads(raw)
    assert len(chunks) > 1
    text = "".join(part["text"] for one in chunks for part in one["candidates"][0]["content"]["parts"])
    assert text == "word " * 40
    (event,) = served.events
    assert event.billed is not None
    assert event.billed.prompt == chunks[-1]["usageMetadata"]["promptTokenCount"]
    assert not event.billed.estimated


def test_the_clients_key_stays_here_and_the_accounts_goes_on(tmp_path: Path, emulator: Emulator) -> None:
    yaml, keys = client_yaml(app="tenant: acme")
    with serving(tmp_path, emulator, f"service: {{clients: {yaml}}}\n") as served:
        asked = served.ask(
            f"{GENERATE}?key={keys['app']}",
            "hi",
            headers={"x-goog-api-client": "test/1", "x-forwarded-for": "10.0.0.9", "cookie": "a=b"},
        )

    assert asked.status_code == 200
    sent = emulator.requests[-1]
    assert sent.headers["x-goog-api-key"] == UPSTREAM_KEY
    assert sent.headers["x-goog-api-client"] == "test/1"
    assert keys["app"] not in repr((sent.path, sent.query, sent.headers, sent.body))
    assert not {"cookie", "x-forwarded-for", "authorization"} & set(sent.headers)
    assert served.events[-1].tenant == "acme"


def test_a_refusal_reads_like_one_of_the_service(tmp_path: Path, emulator: Emulator) -> None:
    yaml = "endpoints: {tiny: {mode: enforce, on_exceed: reject, owner: team-a, limits: {prompt_tokens: 100}}}\n"
    with serving(tmp_path, emulator, yaml) as served:
        before = len(emulator.requests)
        answer = served.ask(f"/endpoints/tiny{GENERATE}", inline(media.picture((1920, 1080)), "image/png"))

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert error["message"].startswith("tiny refuses")
    assert "team-a" in error["message"]
    (info,) = error["details"]
    assert (info["reason"], info["domain"]) == ("BUDGET_EXCEEDED", "weighlock")
    assert info["metadata"]["endpoint"] == "tiny"
    assert len(emulator.requests) == before


def test_a_window_without_room_says_when_to_come_again(tmp_path: Path, emulator: Emulator) -> None:
    yaml = "endpoints: {few: {mode: enforce, windows: {minute: {requests: 1}}}}\n"
    with serving(tmp_path, emulator, yaml) as served:
        first = served.ask(f"/endpoints/few{GENERATE}", "one")
        second = served.ask(f"/endpoints/few{STREAM}", "two")

    assert (first.status_code, second.status_code) == (200, 429)
    (document,) = second.json()  # an array, as whoever streams without alt=sse reads one
    info, retry = document["error"]["details"]
    assert info["reason"] == "WINDOW_EXHAUSTED"
    assert 0 < int(retry["retryDelay"].removesuffix("s")) <= 60
    assert 0 < int(second.headers["retry-after"]) <= 60


def test_sound_in_a_tool_result_is_taken_out_before_the_service_refuses_it(served: Served) -> None:
    wav = inline(media.wav(1.0), "audio/wav")

    answer = served.http.post(
        GENERATE, json={"contents": [user("hear"), called("listen"), user(result("listen", wav))]}
    )

    assert answer.status_code == 200, answer.text
    sent = served.emulator.requests[-1].json
    assert "inlineData" not in json.dumps(sent)


def test_the_services_own_refusal_passes_as_it_is_worded_and_costs_nothing(served: Served) -> None:
    answer = served.ask("/v1beta/models/gemini-none:generateContent", "hi")

    assert answer.status_code == 404
    assert answer.json()["error"]["status"] == "NOT_FOUND"
    assert served.events[-1].billed is None


@pytest.mark.parametrize("wraps", [False, True])
def test_a_count_is_of_the_request_as_it_would_be_sent_and_of_all_of_it(served: Served, wraps: bool) -> None:
    wav = inline(media.wav(1.0), "audio/wav")
    body: dict[str, Any] = {
        "contents": [user("hear"), called("listen"), user(result("listen", wav))],
        "systemInstruction": {"parts": [{"text": "Be brief. " * 50}]},
    }
    plain = served.ask(COUNT, "hear")
    counted = served.http.post(COUNT, json={"generateContentRequest": body} if wraps else body)

    assert (plain.status_code, counted.status_code) == (200, 200)
    assert counted.json()["totalTokens"] > plain.json()["totalTokens"] + 100
    sent = served.emulator.requests[-1].json
    assert isinstance(sent, dict)
    assert "inlineData" not in json.dumps(sent)
    assert sent["generateContentRequest"]["systemInstruction"] == body["systemInstruction"]
    assert all(event.billed is None for event in served.events)


def test_a_count_over_a_limit_is_answered_all_the_same(tmp_path: Path, emulator: Emulator) -> None:
    yaml = "endpoints: {tiny: {mode: enforce, on_exceed: reject, limits: {prompt_tokens: 10}}}\n"
    with serving(tmp_path, emulator, yaml) as served:
        assert served.ask(f"/endpoints/tiny{COUNT}", "word " * 100).status_code == 200


def test_models_are_those_of_the_endpoint(tmp_path: Path, emulator: Emulator) -> None:
    yaml = f"endpoints: {{one: {{models: [{MODEL}]}}}}\n"
    with serving(tmp_path, emulator, yaml) as served:
        every = served.http.get("/v1beta/models").json()["models"]
        own = served.http.get("/endpoints/one/v1beta/models?pageSize=3").json()["models"]
        known = served.http.get(f"/endpoints/one/v1/models/{MODEL}")
        other = served.http.get("/endpoints/one/v1/models/gemini-2.5-pro")

    assert len(every) > 3
    assert [one["name"] for one in own] == [f"models/{MODEL}"]
    assert (known.status_code, other.status_code) == (200, 404)


def test_a_path_nobody_weighs_passes_only_where_the_settings_say_so(
    tmp_path: Path, emulator: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(tmp_path, emulator, "service: {unknown_paths: pass}\n") as served:
        before = len(emulator.requests)
        answer = served.http.post("/v1beta/interactions?key=secret-of-somebody", json={"input": "hi"})

    assert len(emulator.requests) == before + 1
    assert emulator.requests[-1].path == "/v1beta/interactions"
    assert "secret-of-somebody" not in emulator.requests[-1].query
    assert answer.status_code == 404  # the emulator's own
    assert "passes every limit and budget by" in caplog.text


@pytest.mark.parametrize(("method", "path"), [("GET", GENERATE), ("PUT", COUNT), ("POST", "/v1beta/models")])
def test_another_method_is_none(served: Served, method: str, path: str) -> None:
    answer = served.http.request(method, path)

    assert answer.status_code == 405
    assert answer.json()["error"]["status"] == "UNIMPLEMENTED"


def test_other_models_paths_are_refused_in_words(served: Served) -> None:
    answer = served.http.post("/v1beta/interactions", json={"input": "hi"})

    assert answer.status_code == 404
    assert "weighlock does not weigh" in answer.json()["error"]["message"]


def test_the_url_names_the_model_whatever_the_body_says(served: Served) -> None:
    body = {"model": "models/gemini-2.5-flash-lite", "contents": [user("hi")]}

    assert served.http.post(GENERATE, json=body).status_code == 200
    assert served.events[-1].model == MODEL
