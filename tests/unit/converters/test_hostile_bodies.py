"""Bodies somebody made to break a reader: a typed error that names the place, in bounded time and memory."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

import media
from weighlock.converters import rest_json
from weighlock.encoded import encode
from weighlock.errors import InputError, MalformedMedia, MalformedRequest
from weighlock.planning.carrying import Action, ToolMedia
from weighlock.planning.rewrite import rewritten
from weighlock.planning.screen import Policy, Screening, screen
from weighlock.request import Backend
from weighlock.rules import RuleBook
from weighlock.settings import load

MOST_S, MOST_TIMES_BODY = 20, 40
"""Generous, for the machine is shared: what these catch is growth by the square."""
PNG = encode(media.picture((40, 30)))


def refused(body: bytes) -> MalformedRequest:
    with pytest.raises(MalformedRequest) as caught:
        rest_json.parse(body)
    assert len(caught.value.message) < 500
    return caught.value


def part(text: str) -> bytes:
    return b'{"contents":[{"parts":[' + text.encode() + b"]}]}"


def screened(body: bytes, policy: Policy | None = None) -> Screening:
    found = rest_json.parse(body)
    rules = RuleBook.packaged().for_model("gemini-3.8-flash", Backend.DEVELOPER, DAY)
    screening = screen(found.request, rules, policy or Policy())
    rest_json.emit(rewritten(found.request, screening), found)
    return screening


DAY = RuleBook.packaged().generation("gemini-3").checked_on


@pytest.fixture
def bounded() -> Iterator[None]:
    begin = time.process_time()
    yield
    assert time.process_time() - begin < MOST_S


@pytest.mark.parametrize(
    ("body", "place", "words"),
    [
        (b"", "", "line 1, column 1"),
        (b"[]", "", "no object but a list"),
        (b'"contents"', "", "no object but text"),
        (b'{"contents":[', "", "line 1"),
        (b'{"contents":[]} x', "", "line 1, column 17"),
        (b"\xef\xbb\xbf{}", "", "BOM"),
        (b'{"contents":[],"a":"\xff"}', "", "not UTF-8: byte 20"),
        (b'{"contents":[],"a":NaN}', "", "NaN"),
        (b'{"contents":[],"a":-Infinity}', "", "-Infinity"),
        (b'{"contents":[],"a":1e999}', "", "beyond what a double holds"),
        (b'{"contents":[],"a":' + b"9" * 5000 + b"}", "", "digits"),
        (b'{"contents":[],"contents":[]}', "contents", "twice"),
        (part('{"text":"a","text":"b"}'), "contents[0].parts[0].text", "twice"),
        (part('{"functionCall":{"name":"f","args":{"a":[{"b":1,"b":1}]}}}'), "args.a[0].b", "twice"),
        (b'{"contents":[],"systemInstruction":{},"system_instruction":{}}', "systemInstruction", "two spellings"),
        (b'{"contents":[],"generationConfig":{"topP":1,"top_p":1}}', "generationConfig.topP", "two spellings"),
        (part('{"inlineData":{"mimeType":"a/b","mime_type":"a/b","data":""}}'), "inlineData.mimeType", "two spellings"),
        (part('{"inlineData":{},"inline_data":{}}'), "contents[0].parts[0].inlineData", "two spellings"),
        (b'{"contents":5}', "contents", "no list but a number"),
        (b'{"contents":[5]}', "contents[0]", "no object but a number"),
        (b'{"contents":[{"role":5}]}', "contents[0].role", "no text but a number"),
        (b'{"contents":[{"parts":"hi"}]}', "contents[0].parts", "no list but text"),
        (part("null"), "contents[0].parts[0]", "no object but null"),
        (part('{"text":5}'), "contents[0].parts[0].text", "no text but a number"),
        (part('{"inlineData":[]}'), "contents[0].parts[0].inlineData", "no object but a list"),
        (part('{"inlineData":{"mimeType":"a/b"}}'), "inlineData.data", "missing"),
        (part('{"inlineData":{"mimeType":5,"data":""}}'), "inlineData.mimeType", "no text but a number"),
        (part('{"fileData":{}}'), "fileData.fileUri", "missing"),
        (part('{"functionCall":{"name":5}}'), "functionCall.name", "no text"),
        (part('{"functionResponse":{"name":"f","id":5}}'), "functionResponse.id", "no text"),
        (part('{"functionResponse":{"name":"f","parts":[5]}}'), "functionResponse.parts[0]", "no object"),
        (part('{"text":"a","inlineData":{"data":"","mimeType":"a/b"}}'), "parts[0]", "text and inlineData"),
        (part('{"functionResponse":{"name":"f"},"inline_data":{"data":""}}'), "parts[0]", "holds one thing"),
        (b'{"generateContentRequest":{"contents":[5]}}', "generateContentRequest.contents[0]", "no object"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(body: bytes, place: str, words: str) -> None:
    error = refused(body)

    assert words in error.message
    assert error.figures["place"].endswith(place)
    assert error.figures["place"] in error.message or not error.figures["place"]
    assert error.http_status == 400


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_deep_nesting_is_refused_where_it_gets_too_deep(opening: str) -> None:
    error = refused(b'{"contents":[{"parts":[{"functionCall":{"name":"f","args":{"x":' + opening.encode() * 200_000)

    assert "nested too deeply" in error.message
    assert error.figures["place"].startswith("contents[0].parts[0].functionCall.args.x")


@pytest.mark.usefixtures("bounded")
def test_what_json_nests_just_deep_enough_to_be_read_goes_through_every_step() -> None:
    deep: Any = PNG
    for _ in range(400):
        deep = {"a": [deep]}
    body = json.dumps(
        {
            "contents": [
                {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
                {"parts": [{"functionResponse": {"name": "f", "response": deep}}, {"text": "moved"}]},
            ]
        }
    ).encode()

    assert screened(body).changes


PIECES = [
    '{"text":"x"}',
    '{"inlineData":{"mimeType":"image/png","data":"' + PNG + '"}}',
    '{"functionResponse":{"name":"f","response":{"result":"x"}}}',
    '{"tomorrow":1}',
]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("piece", PIECES)
def test_a_hundred_thousand_parts_take_time_by_their_number_only(piece: str) -> None:
    screening = screened(part(",".join([piece] * 100_000)))

    assert bool(screening.errors) == ("inlineData" in piece or "functionResponse" in piece)  # too many; no calls


@pytest.mark.parametrize("piece", PIECES)
def test_many_parts_take_memory_by_their_number_only(piece: str) -> None:
    body = part(",".join([piece] * 5_000))
    tracemalloc.start()

    screened(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < max(len(body), 500_000) * MOST_TIMES_BODY


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("where", ["part", "args", "twice"])
def test_a_key_of_a_megabyte_is_carried_but_never_repeated_in_a_message(where: str) -> None:
    key = "k" * 1_000_000
    bodies = {
        "part": part(json.dumps({key: 1})),
        "args": part(json.dumps({"functionCall": {"name": "f", "args": {key: 1}}})),
        "twice": part(f'{{"{key}":1,"{key}":2}}'),
    }
    if where == "twice":
        assert len(refused(bodies[where]).message) < 300
    else:
        found = rest_json.parse(bodies[where])
        assert rest_json.emit(found.request, found) == bodies[where]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (PNG[:40] + " " + PNG[40:], "a blank at character 40"),
        (PNG[:40] + "\\n" + PNG[40:], "a line break at character 40"),
        (PNG[:41], "cut short"),
        (PNG[:40] + "=" + PNG[40:], "padding before the end"),
        (PNG[:40] + "\u00e9" + PNG[40:], "none of base64's at character 40"),
        (PNG[:40] + "-+/_" + PNG[40:], "alphabet are mixed"),
        ("", "0 bytes"),
        ("====", "base64"),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_broken_base64_is_named_alike_in_a_user_turn_and_in_a_tool_result(data: str, words: str, nested: bool) -> None:
    """Under `tool_media: reject`; else a tool's broken medium leaves a note, so that the session goes on."""
    blob = f'{{"inlineData":{{"mimeType":"image/png","data":"{data}"}}}}'
    if nested:
        blob = f'{{"functionResponse":{{"name":"f","response":{{}},"parts":[{blob}]}}}}'

    screening = screened(part(blob), Policy(tool_media=ToolMedia.REJECT))

    (error,) = [one for one in screening.errors if isinstance(one, MalformedMedia)]
    place = "contents[0].parts[0]" + (".functionResponse.parts[0]" if nested else "")
    assert error.message.startswith(f"{place}: ")
    assert words in error.message
    assert error.figures["place"] == place
    assert PNG[:20] not in error.message
    with pytest.raises(InputError):
        screening.demand_sendable()
    healed = [one for one in screened(part(blob)).findings if one.decision.action is Action.REMOVE]
    assert [words in one.decision.reason for one in healed] == [True] * nested


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    "text",
    [
        "A" * 8_000_000,
        "data:image/png;base64," * 300_000,
        "data:" * 1_000_000,
        ("a" * 41 + "\n") * 150_000,
        "\\/" * 2_000_000,
        ";base64," * 700_000,
        ("/9j/" + "A" * 5000 + " ") * 1_000,
        "data:" + "x" * 3_000_000 + ";base64,AAAA",
        "=" * 4_000_000,
    ],
    ids=lambda text: text[:24].replace("\n", "-"),
)
def test_text_that_looks_like_base64_costs_time_by_its_length_only(text: str) -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
    told = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": text, "l": [text]}}}]}

    assert not screened(json.dumps({"contents": [call, told]}).encode()).findings


def test_settings_are_those_a_newcomer_has() -> None:
    """The policy tried above is the shipped one."""
    shipped = load().default

    assert (shipped.tool_media, shipped.base64_in_tool_text) == (Policy().tool_media, Policy().base64_in_tool_text)
