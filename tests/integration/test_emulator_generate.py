"""What the emulator answers to a prompt, what it refuses, and what it bills."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

import media
from emulated import FLASH, FLASH_25, Wire, at, called, inline, model, proves, refusal, result, user
from weighlock.emulator import Answer, Emulator, Project, Remote
from weighlock.errors import InputError
from weighlock.rules import RuleBook

SHOT = media.picture((1920, 1080))
FILM = media.video(3.0, size=(1280, 720), fps=2, sound_s=3.0)
SILENT = media.video(2.0, fps=2)
SONG = media.wav(4.0)
PDF = media.pdf([(595, 842)] * 2)
OVERLAY = 'generation = "gemini-3"\nchecked_on = 2026-11-30\n'
FOUNDED = '\nsince = 2026-01-01\nsource = "https://example.com"\nconfidence = "measured"\n'
GENERIC = (400, "INVALID_ARGUMENT", "Request contains an invalid argument.")


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    return running


@pytest.fixture
def wire(emulator: Emulator) -> Iterator[Wire]:
    wire = Wire(emulator)
    yield wire
    wire.close()


# ---- routes and spelling


@proves("api-versions", "vertex-paths", "unknown-model")
def test_both_backends_answer_under_their_paths(wire: Wire) -> None:
    body = {"contents": [user("hi")]}
    paths = [f"/{version}/models/{FLASH}" for version in ("v1", "v1beta", "v1alpha")]
    paths += [
        f"/v1beta1/projects/p/locations/us-central1/publishers/google/models/{FLASH}",
        f"/v1/publishers/google/models/{FLASH}",
    ]

    assert {wire.http.post(f"{path}:generateContent", json=body).status_code for path in paths} == {200}
    assert wire.http.post(f"/v2/models/{FLASH}:generateContent", json=body).status_code == 404
    code, status, words = refusal(wire.count("hi", name="gemini-9-ultra"))
    assert (code, status) == (404, "NOT_FOUND")
    assert words.startswith("models/gemini-9-ultra is not found for API version v1beta")


@proves("no-key", "wrong-key", "key-in-three-places")
def test_a_key_may_come_in_three_places_and_must_come() -> None:
    with Emulator(keys={"good": Project(name="p")}) as emulator:
        wire, path, body = Wire(emulator, ""), f"/v1/models/{FLASH}:countTokens", {"contents": [user("hi")]}

        assert refusal(wire.http.post(path, json=body))[:2] == (403, "PERMISSION_DENIED")
        assert "API key not valid" in refusal(wire.http.post(f"{path}?key=bad", json=body))[2]
        for headers, query in (
            ({"x-goog-api-key": "good"}, ""),
            ({}, "?key=good"),
            ({"authorization": "Bearer good"}, ""),
        ):
            assert wire.http.post(path + query, json=body, headers=headers).status_code == 200
        wire.close()


@proves("list-models")
def test_models_are_listed_and_told(wire: Wire) -> None:
    names = [one["name"] for one in wire.http.get("/v1beta/models").json()["models"]]

    assert f"models/{FLASH}" in names
    assert wire.http.get(f"/v1beta/models/{FLASH}").json()["inputTokenLimit"] == 1_048_576
    assert wire.http.get("/v1beta/models/gemini-9").status_code == 404


@proves("both-spellings", "both-alphabets", "null-fields", "unknown-field")
def test_what_real_clients_send_is_taken(wire: Wire) -> None:
    data = base64.urlsafe_b64encode(SHOT).decode().rstrip("=")
    part = {"inline_data": {"mime_type": "image/png", "data": data}}
    turns = [{"role": "user", "parts": [part, {"text": "hi"}]}]

    answer = wire.generate(*turns, tools=None, model=f"models/{FLASH}", system_instruction=user("be kind"))

    assert answer.json()["usageMetadata"]["promptTokensDetails"][1] == {"modality": "IMAGE", "tokenCount": 1100}
    code, _, words = refusal(wire.generate("hi", _preflight={}))
    assert (code, words) == (400, 'Invalid JSON payload received. Unknown name "_preflight": Cannot find field.')
    assert refusal(wire.http.post(f"/v1/models/{FLASH}:generateContent", content=b"{"))[0] == 400
    assert refusal(wire.generate())[0] == 400


@proves("payload-limit")
def test_a_body_above_the_inline_limit_is_refused(emulator: Emulator, wire: Wire) -> None:
    emulator.lay_over(OVERLAY + '[[limits]]\nlimit = "inline_request_bytes"\nvalue = 5_000' + FOUNDED)

    assert "payload size" in refusal(wire.generate("x" * 6_000))[2]
    emulator.rules = RuleBook.packaged()
    assert wire.generate("x" * 6_000).status_code == 200


# ---- answers


@proves("bare-sse", "stream-usage-cumulative")
def test_a_stream_is_bare_events_whose_last_usage_is_the_bill(emulator: Emulator, wire: Wire) -> None:
    text = "one two three four five six"
    emulator.script.queue(text)

    answer = wire.http.post(f"/v1/models/{FLASH}:streamGenerateContent?alt=sse", json={"contents": [user("hi")]})

    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, rest = answer.content.split(b"\r\n\r\n")
    assert rest == b""
    assert all(event.startswith(b"data: {") for event in events)
    pieces = [json.loads(event[6:]) for event in events]
    assert "".join(one["candidates"][0]["content"]["parts"][0]["text"] for one in pieces) == text
    counts = [one["usageMetadata"]["candidatesTokenCount"] for one in pieces]
    assert counts == sorted(counts)
    assert counts[-1] == 7
    assert [one["candidates"][0].get("finishReason") for one in pieces] == [None, None, "STOP"]


@proves("json-array-stream", "stream-errors-listed")
def test_without_sse_a_stream_is_an_array_and_so_is_its_error(wire: Wire) -> None:
    good = wire.ask("streamGenerateContent", "hi").json()
    bad = wire.ask("streamGenerateContent", "hi", tools=[], oops=1).json()

    assert good[-1]["candidates"][0]["finishReason"] == "STOP"
    assert bad[0]["error"]["code"] == 400


@proves("json-when-asked")
def test_json_is_answered_where_it_is_asked_for(wire: Wire) -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "name": {"type": "STRING"},
            "kind": {"enum": ["a", "b"]},
            "sizes": {"type": "ARRAY", "minItems": 1, "items": {"type": "INTEGER", "minimum": 3}},
            "maybe": {"type": "NUMBER"},
        },
        "required": ["name", "kind", "sizes"],
    }
    linked = {"$defs": {"Yes": {"type": ["boolean", "null"]}}, "properties": {"ok": {"$ref": "#/$defs/Yes"}}}

    def said(**config: Any) -> Any:
        answer = wire.generate("hi", generationConfig={"responseMimeType": "application/json", **config}).json()
        return json.loads(answer["candidates"][0]["content"]["parts"][0]["text"])

    assert said(responseSchema=schema) == {"name": "text", "kind": "a", "sizes": [3]}
    assert said(responseJsonSchema=linked) == {"ok": True}
    assert said() == {}


def test_answers_are_scripted_by_queue_or_by_what_is_said(emulator: Emulator, wire: Wire) -> None:
    emulator.script.when("a cat", contains="picture")
    emulator.script.when(Answer(json={"n": 1}), model=FLASH_25)
    emulator.script.queue(Answer(calls=[{"name": "look", "args": {"at": "it"}}]), "second")

    def said(text: str, **fields: Any) -> Any:
        return wire.generate(text, **fields).json()["candidates"][0]["content"]["parts"][0]

    assert said("x") == {"functionCall": {"name": "look", "args": {"at": "it"}}}
    assert said("x") == {"text": "second"}
    assert said("this picture") == {"text": "a cat"}
    assert said("x", name=FLASH_25) == {"text": '{"n": 1}'}
    with pytest.raises(InputError):
        Answer(calls=[{"args": {}}])


@proves("max-output-tokens", "blocked-prompt", "usage-total")
def test_an_answer_is_cut_or_blocked_and_billed_all_the_same(emulator: Emulator, wire: Wire) -> None:
    emulator.script.queue("x" * 400, Answer(blocked="SAFETY"), Answer(text="ok", thoughts=50))

    cut = wire.generate("hi", generationConfig={"maxOutputTokens": 10}).json()
    assert cut["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert cut["usageMetadata"]["candidatesTokenCount"] == 10
    blocked = wire.generate("hi").json()
    assert "candidates" not in blocked
    assert blocked["promptFeedback"] == {"blockReason": "SAFETY"}
    assert blocked["usageMetadata"]["promptTokenCount"] > 0
    usage = wire.generate("hi").json()["usageMetadata"]
    assert usage["totalTokenCount"] == usage["promptTokenCount"] + usage["candidatesTokenCount"] + 50


# ---- the bill


@proves("billed-by-the-rules", "usage-by-modality", "sound-folds-per-backend", "pdf-billed-as-image")
def test_media_are_billed_by_the_buckets_of_each_backend(wire: Wire) -> None:
    turn = user(inline(FILM, "video/mp4"), inline(PDF, "application/pdf"), "hi")

    developer, vertex = wire.billed(turn), wire.billed(turn, vertex=True)

    assert developer.keys() == {"TEXT", "VIDEO", "IMAGE"}
    assert vertex["VIDEO"] == 3 * 66
    assert vertex["AUDIO"] == 75
    assert developer["VIDEO"] == vertex["VIDEO"] + vertex["AUDIO"]
    assert wire.billed(turn, name=FLASH_25).keys() == {"TEXT", "VIDEO", "AUDIO", "DOCUMENT"}


@proves("silent-film-billed-sound")
def test_gemini_2_5_bills_sound_for_a_silent_film(wire: Wire) -> None:
    turn = user(inline(SILENT, "video/mp4"), "hi")

    assert wire.billed(turn, name=FLASH_25)["AUDIO"] == 64
    assert "AUDIO" not in wire.billed(turn, vertex=True)


def test_resolution_fps_and_clip_change_the_bill(wire: Wire) -> None:
    film = inline(FILM, "video/mp4", videoMetadata={"fps": 2, "startOffset": "1s"})

    assert wire.billed(user(film, "hi"), vertex=True) == {"TEXT": 1, "VIDEO": 4 * 66, "AUDIO": 50}
    low = {"mediaResolution": "MEDIA_RESOLUTION_LOW"}
    assert wire.billed(user(inline(SHOT, "image/png"), "hi"), generationConfig=low)["IMAGE"] < 280
    level = {"mediaResolution": {"level": "MEDIA_RESOLUTION_ULTRA_HIGH"}}
    assert wire.billed(user(inline(SHOT, "image/png", **level), "hi"))["IMAGE"] > 1120


def test_a_rule_overlay_makes_the_bill_drift(emulator: Emulator, wire: Wire) -> None:
    turn = user(inline(SHOT, "image/png"), "hi")
    assert wire.billed(turn)["IMAGE"] == 1100

    emulator.lay_over(OVERLAY + "[[image]]\nlikely = {flat = 77}" + FOUNDED)

    assert wire.billed(turn)["IMAGE"] == 77
    emulator.rules = RuleBook.packaged()


@proves("implicit-cache", "cached-in-usage")
def test_the_longest_prefix_seen_lately_is_cached(emulator: Emulator, wire: Wire) -> None:
    other = Wire(emulator, "other")

    def usage(question: str, asker: Wire = wire, **fields: Any) -> Any:
        turn = user(inline(SHOT, "image/png"), "about this:", question)
        return asker.generate(turn, **fields).json()["usageMetadata"]

    assert "cachedContentTokenCount" not in usage("one")
    again = usage("two")
    assert again["cachedContentTokenCount"] == sum(one["tokenCount"] for one in again["cacheTokensDetails"])
    assert {"modality": "IMAGE", "tokenCount": 1100} in again["cacheTokensDetails"]
    assert again["cachedContentTokenCount"] < again["promptTokenCount"]
    assert "cachedContentTokenCount" not in usage("two", systemInstruction=user("be kind"))
    assert "cachedContentTokenCount" not in usage("two", name=FLASH_25)
    emulator.clock.advance(3601)
    assert "cachedContentTokenCount" not in usage("two")
    assert "cachedContentTokenCount" not in usage("two", other)
    other.close()


@proves("quota", "count-draws-no-requests", "too-long-still-spends", "prompt-too-long")
def test_quotas_are_drawn_on_by_project_and_model(emulator: Emulator, wire: Wire) -> None:
    project = emulator.accounts.of_key("k")
    project.requests_per_day = 2
    name = "gemini-3.6-flash"

    wire.count("hi", name=name)
    assert [wire.generate("hi", name=name).status_code for _ in range(3)] == [200, 200, 429]
    assert wire.generate("hi", name="gemini-3.7-flash").status_code == 200
    project.requests_per_day = None
    project.input_tokens_per_minute = 1_000_000_000
    long = wire.generate("x" * 6_000_000, name=name)
    assert refusal(long)[2].startswith("The input token count (1320000) exceeds")
    project.input_tokens_per_minute = 1_320_000
    full = wire.generate("hi", name=name)
    assert [one["@type"].rpartition(".")[2] for one in full.json()["error"]["details"]] == ["QuotaFailure", "RetryInfo"]
    emulator.clock.advance(61)
    assert wire.generate("hi", name=name).status_code == 200
    project.input_tokens_per_minute = None


# ---- refusals


@proves("unsupported-mime", "unusable-type", "mime-spelling", "type-from-the-bytes")
def test_types_are_refused_by_their_label_and_billed_by_their_bytes(wire: Wire) -> None:
    for mime in ("application/cu-seeme", "png", "image/jpg", "application/csv", "video/x-matroska"):
        for answer in (wire.generate(user(inline(SHOT, mime), "hi")), wire.count(user(inline(SHOT, mime), "hi"))):
            assert refusal(answer) == (400, "INVALID_ARGUMENT", f"Unsupported MIME type: {mime}")
    assert refusal(wire.generate(user(inline(SHOT, "image/tiff"), "hi"))) == GENERIC
    assert wire.billed(user(inline(SONG, "audio/mpeg"), "hi"))["AUDIO"] == 100
    assert wire.billed(user(inline(SHOT, "image/jpeg"), "hi"))["IMAGE"] == 1100


@proves("unreadable-medium-is-silent")
def test_a_film_without_its_index_is_answered_and_weighs_nothing(wire: Wire) -> None:
    cut = FILM[: FILM.index(b"moov") - 4]

    assert "VIDEO" not in wire.billed(user(inline(cut, "video/mp4"), "hi"))


def test_base64_that_is_none_is_refused(wire: Wire) -> None:
    broken = {"inlineData": {"mimeType": "image/png", "data": "a b!"}}

    assert "TYPE_BYTES" in refusal(wire.generate(user(broken, "hi")))[2]


@proves("no-frames", "limits-of-media", "image-model-resolution")
def test_controls_that_cannot_be_followed_are_refused(wire: Wire) -> None:
    late = inline(FILM, "video/mp4", videoMetadata={"startOffset": "100s"})
    fast = inline(FILM, "video/mp4", videoMetadata={"fps": 25})
    ultra = {"mediaResolution": "MEDIA_RESOLUTION_ULTRA_HIGH"}
    low = {"mediaResolution": "MEDIA_RESOLUTION_LOW"}

    assert refusal(wire.generate(user(late, "hi")))[2].startswith("No frames to extract with given parameters.")
    assert refusal(wire.generate(user(fast, "hi"))) == GENERIC
    assert refusal(wire.generate(user(*[inline(SILENT, "video/mp4")] * 11, "hi"))) == GENERIC
    assert refusal(wire.generate("hi", generationConfig=ultra))[0] == 400
    assert refusal(wire.generate("hi", generationConfig=low, name="gemini-3.1-flash-image")) == GENERIC


@proves("url-not-fetched", "no-files-on-vertex", "text-beside-media-vertex", "file-mime-known")
def test_addresses_hold_what_a_test_puts_there(emulator: Emulator, wire: Wire) -> None:
    emulator.remotes["gs://bucket/shot.png"] = Remote(data=SHOT, mime="image/png")
    here, nowhere = at("gs://bucket/shot.png", "image/png"), at("https://example.com/x.png", "image/png")
    file = wire.upload(SHOT)

    assert wire.billed(user(here, "hi"), vertex=True)["IMAGE"] == 1100
    assert refusal(wire.generate(user(nowhere, "hi"), vertex=True))[2].startswith("Cannot fetch content")
    assert refusal(wire.generate(user(at(file["uri"]), "hi"), vertex=True))[2].startswith("Cannot fetch content")
    assert refusal(wire.generate(user(here), vertex=True))[0] == 400
    assert wire.billed(user(at(file["uri"]), "hi"))["IMAGE"] == 1100


# ---- tool results


@proves("tool-media-before-gemini-3", "tool-audio-video-vertex", "tool-audio-video-developer")
def test_tool_results_hold_pictures_from_gemini_3_on_and_never_sound(wire: Wire) -> None:
    shot = ["hi", called("look"), user(result("look", inline(SHOT, "image/png")))]
    song = ["hi", called("look"), user(result("look", inline(SONG, "audio/wav")))]

    assert wire.billed(*shot)["IMAGE"] == 1100
    assert refusal(wire.generate(*shot, name=FLASH_25))[2].startswith("Multimodal function responses are not supported")
    assert refusal(wire.generate(*song)) == GENERIC
    assert "the mime_type: audio/wav is not supported" in refusal(wire.generate(*song, vertex=True))[2]


@proves("invents-what-it-cannot-see")
def test_a_file_in_a_tool_result_is_answered_with_an_invention_on_the_developer_api(wire: Wire) -> None:
    file = wire.upload(SHOT)
    turns = ["what is it?", called("look"), user(result("look", at(file["uri"], "image/png")))]

    answer = wire.generate(*turns).json()

    assert "dog" in answer["candidates"][0]["content"]["parts"][0]["text"]
    assert [one["modality"] for one in answer["usageMetadata"]["promptTokensDetails"]] == ["TEXT"]
    gone = ["hi", called("look"), user(result("look", at("files/never", "image/png")))]
    assert wire.generate(*gone).status_code == 403


@proves("ref-developer", "ref-vertex", "response-is-object")
def test_a_ref_in_a_response_points_to_a_part_or_is_refused(wire: Wire) -> None:
    named = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(SHOT).decode(), "displayName": "shot"}}

    def turns(name: str) -> list[Any]:
        return ["hi", called("look"), user(result("look", named, response={"seen": {"$ref": name}}))]

    assert wire.generate(*turns("shot"), vertex=True).status_code == 200
    assert refusal(wire.generate(*turns("#/$defs/Shot"), vertex=True)) == GENERIC
    assert refusal(wire.generate(*turns("shot"))) == GENERIC
    bare = ["hi", called("look"), user(result("look", response=["a list"]))]
    assert refusal(wire.generate(*bare))[0] == 400


@proves("calls-answered", "siblings-of-parallel-results", "mixed-turn-empty")
def test_results_answer_the_calls_of_the_turn_before_and_stand_alone(wire: Wire) -> None:
    both = user(result("a"), result("b"), inline(SHOT, "image/png"))

    assert "function response parts" in refusal(wire.generate("hi", called("a", "b"), user(result("a"))))[2]
    assert wire.generate("hi", called("a", "b"), user(result("a"), result("b"))).status_code == 200
    assert refusal(wire.generate("hi", called("a", "b"), both)) == GENERIC
    mixed = ["hi", called("a"), user(result("a"), "go on")]
    assert "parts" not in wire.generate(*mixed).json()["candidates"][0]["content"]
    assert "parts" in wire.generate(*mixed, name="gemini-3.6-flash").json()["candidates"][0]["content"]
    assert wire.generate("hi", model("hello"), "bye").status_code == 200
