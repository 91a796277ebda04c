from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import media
from weighlock.converters import rest_json
from weighlock.encoded import Base64, encode
from weighlock.errors import MalformedRequest, UnreadableSource
from weighlock.request import (
    MediaPart,
    OpaquePart,
    Request,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
    Uri,
)

PNG = encode(media.picture((40, 30)))


def parsed(body: Any) -> rest_json.Parsed:
    return rest_json.parse(json.dumps(body).encode())


def contents(*turns: Any, **others: Any) -> dict[str, Any]:
    return {"contents": list(turns), **others}


def user(*parts: Any, **others: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts), **others}


def changed(found: rest_json.Parsed) -> dict[str, Any]:
    """The body after a turn was added, so that nothing leaves as the bytes that came."""
    request = found.request
    more = Request(
        turns=(*request.turns, Turn(role="user", parts=(TextPart(text="and?"),))),
        system_instruction=request.system_instruction,
        model=request.model,
        carried=request.carried,
    )
    body: dict[str, Any] = json.loads(rest_json.emit(more, found))
    body.get("generateContentRequest", body)["contents"].pop()
    return body


class TestReading:
    def test_every_kind_of_part_becomes_its_value(self) -> None:
        call = {"functionCall": {"id": "c1", "name": "shot", "args": {"mime_type": "x"}}, "thoughtSignature": "AQL="}
        result = {
            "functionResponse": {
                "id": "c1",
                "name": "shot",
                "response": {"result": "done"},
                "willContinue": True,
                "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "a.png"}}],
            }
        }
        code = {"executableCode": {"language": "PYTHON", "code": "1"}}
        found = parsed(
            contents(
                user(
                    {"text": "hi"},
                    {"text": "hm", "thought": True, "thoughtSignature": "AQL="},
                    {"inlineData": {"mimeType": "image/png", "data": PNG}, "mediaResolution": {"level": "X"}},
                    {"fileData": {"fileUri": "gs://b/a.mp4"}, "videoMetadata": {"fps": 0.5}},
                ),
                {"role": "model", "parts": [call, code]},
                user(result),
                {"parts": [{"tomorrow": 1}], "seen": "yes"},
                systemInstruction={"parts": [{"text": "be brief"}]},
                generationConfig={"temperature": 0},
            )
        )

        assert found.request == Request(
            turns=(
                Turn(
                    role="user",
                    parts=(
                        TextPart(text="hi"),
                        TextPart(text="hm", carried={"thought": True, "thoughtSignature": "AQL="}),
                        MediaPart(
                            source=Base64(PNG),
                            label="contents[0].parts[2]",
                            declared_mime="image/png",
                            carried={"mediaResolution": {"level": "X"}},
                        ),
                        MediaPart(
                            source=Uri("gs://b/a.mp4"),
                            label="contents[0].parts[3]",
                            carried={"videoMetadata": {"fps": 0.5}},
                        ),
                    ),
                ),
                Turn(role="model", parts=(ToolCallPart(name="shot", call_id="c1", wire=call), OpaquePart(wire=code))),
                Turn(
                    role="user",
                    parts=(
                        ToolResultPart(
                            name="shot",
                            call_id="c1",
                            response={"result": "done"},
                            media=(
                                MediaPart(
                                    source=Base64(PNG),
                                    label="a.png",
                                    declared_mime="image/png",
                                    carried={"inlineData": {"displayName": "a.png"}},
                                ),
                            ),
                            carried={"functionResponse": {"willContinue": True}},
                        ),
                    ),
                ),
                Turn(role=None, parts=(OpaquePart(wire={"tomorrow": 1}),), carried={"seen": "yes"}),
            ),
            system_instruction=Turn(role=None, parts=(TextPart(text="be brief"),)),
            carried={"generationConfig": {"temperature": 0}},
        )

    def test_both_spellings_mean_the_same_at_every_depth(self) -> None:
        camel = contents(
            user(
                {"inlineData": {"mimeType": "image/png", "data": PNG}, "videoMetadata": {"startOffset": "1s"}},
                {"functionResponse": {"name": "f", "response": {"a_b": 1}, "parts": [{"fileData": {"fileUri": "u"}}]}},
            ),
            systemInstruction={"parts": [{"text": "s"}]},
            generationConfig={"thinkingConfig": {"thinkingBudget": 1}},
        )
        snake = contents(
            user(
                {"inline_data": {"mime_type": "image/png", "data": PNG}, "video_metadata": {"start_offset": "1s"}},
                {
                    "function_response": {
                        "name": "f",
                        "response": {"a_b": 1},
                        "parts": [{"file_data": {"file_uri": "u"}}],
                    }
                },
            ),
            system_instruction={"parts": [{"text": "s"}]},
            generation_config={"thinking_config": {"thinking_budget": 1}},
        )

        assert parsed(camel).request == parsed(snake).request
        assert changed(parsed(snake)) == camel

    def test_a_single_object_stands_for_a_list_of_one_and_null_for_nothing(self) -> None:
        loose = {"contents": {"role": "user", "parts": {"text": "hi"}}, "tools": None}
        found = parsed(loose)

        assert found.request.turns == (Turn(role="user", parts=(TextPart(text="hi"),)),)
        assert changed(found) == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": None}
        assert parsed({"contents": None}).request.turns == ()
        assert parsed(contents(user({"text": "x", "inlineData": None}))).request.turns[0].parts == (TextPart(text="x"),)

    def test_a_count_that_wraps_a_request_is_read_inside_and_keeps_its_wrapping(self) -> None:
        body = {"generateContentRequest": {"model": "models/m", **contents(user({"text": "hi"}))}, "contents": None}
        found = parsed(body)

        assert found.request.model == "models/m"
        assert found.request.turns == (Turn(role="user", parts=(TextPart(text="hi"),)),)
        assert changed(found) == body

    def test_the_model_is_the_body_s_else_the_address_s(self) -> None:
        assert rest_json.parse(b'{"contents":[],"model":"models/a"}', model="b").request.model == "models/a"
        assert rest_json.parse(b'{"contents":[]}', model="b").request.model == "b"

    def test_contents_beside_a_wrapped_request_do_not_travel_on_unscreened(self) -> None:
        body = {"generateContentRequest": contents(user({"text": "hi"})), "contents": [user({"text": "ignored"})]}

        assert changed(parsed(body)) == {"generateContentRequest": contents(user({"text": "hi"}))}

    def test_pieces_of_streamed_calls_are_carried_through(self) -> None:
        pieces: list[dict[str, Any]] = [
            {"functionCall": {"partialArgs": [{"jsonPath": "$.a"}], "willContinue": True}},
            {"functionCall": {}},
        ]
        found = parsed(contents({"role": "model", "parts": pieces}))

        assert found.request.turns[0].parts == tuple(OpaquePart(wire=piece) for piece in pieces)
        assert changed(found)["contents"][0]["parts"] == pieces

    @pytest.mark.parametrize("name", ["fileData", "inlineData"])
    def test_null_beside_a_nested_medium_is_nothing(self, name: str) -> None:
        nested = {"inlineData": {"mimeType": "image/png", "data": PNG}, name: None}
        nested = {"fileData": {"fileUri": "gs://b/x"}, name: None} if name == "inlineData" else nested
        result = {"functionResponse": {"name": "f", "response": {}, "parts": [nested]}}

        (part,) = parsed(contents(user(result))).request.turns[0].parts
        assert isinstance(part, ToolResultPart)
        assert [type(medium) for medium in part.media] == [MediaPart]

    def test_what_a_dict_holds_beyond_json_is_refused(self) -> None:
        loop: dict[str, Any] = {"contents": []}
        loop["x"] = loop

        for body in (loop, {"contents": [], "x": {None: 1}, "y": {1, 2}}, {"contents": [], "x": {(1, 2): 1}}):
            with pytest.raises(MalformedRequest, match="what JSON cannot say"):
                rest_json.parse(body)

    def test_text_that_utf8_cannot_say_is_refused(self) -> None:
        with pytest.raises(MalformedRequest, match="half of one"):
            rest_json.parse('{"contents":[],"a":"\ud800"}')

    def test_lists_of_lists_where_a_message_belongs_are_carried_however_deep(self) -> None:
        body = b'{"contents":[],"tools":' + b"[" * 700 + b"]" * 700 + b"}"

        assert changed(rest_json.parse(body)) == json.loads(body)

    def test_neither_body_nor_uri_shows_in_a_repr(self) -> None:
        found = parsed(contents(user({"fileData": {"fileUri": "https://h/x?key=AIzaSecret"}})))

        assert "AIzaSecret" not in repr(found)

    def test_media_stay_undecoded(self) -> None:
        found = parsed(contents(user({"inlineData": {"mimeType": "image/png", "data": "not base64 at all!"}})))

        (part,) = found.request.turns[0].parts
        assert isinstance(part, MediaPart)
        assert part.source == Base64("not base64 at all!")

    def test_long_histories_are_read_when_looked_at_and_compare_like_tuples(self) -> None:
        turns = parsed(contents(*(user({"text": str(at)}) for at in range(5)))).request.turns

        assert turns[-1] == Turn(role="user", parts=(TextPart(text="4"),))
        assert turns[-1] is turns[4]
        assert turns[1:3] == tuple(turns)[1:3]
        assert turns == tuple(turns)
        assert hash(turns) == hash(tuple(turns))
        with pytest.raises(IndexError):
            turns[5]


class TestWriting:
    @pytest.mark.parametrize(
        "body",
        [
            b'{"contents": [{"parts": [{"text": "hi"}]}]}',
            b'{ "contents" :[{"role":"user","parts":[{"inline_data":{"data":"-_-_","mime_type":"a/b"}}]}]}\n',
            b'{"contents":[],"x":1e2,"generation_config":{"top_k":1}}',
        ],
    )
    def test_a_request_nobody_changed_leaves_as_the_bytes_that_came(self, body: bytes) -> None:
        found = rest_json.parse(body)

        assert rest_json.emit(found.request, found) is found.body
        assert found.body == body

    def test_of_a_changed_request_only_known_fields_are_spelt_anew(self) -> None:
        own = {"mime_type": "x", "inline_data": {"file_uri": 1}, "mimeType": "y"}
        schema = {"type": "object", "properties": {"inline_data": {"any_of": []}}, "additional_properties": False}
        body = contents(
            {"role": "model", "parts": [{"function_call": {"name": "f", "args": own}}]},
            user({"function_response": {"name": "f", "response": own, "will_continue": False}, "part_metadata": own}),
            user({"tomorrow_kind": {"some_field": 1}}),
            labels={"cost_center": "a"},
            generation_config={"response_json_schema": schema, "response_schema": schema},
            tools=[{"function_declarations": [{"name": "f", "parameters_json_schema": schema}]}],
            unknown_field={"top_k": 1},
        )

        assert changed(parsed(body)) == contents(
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": own}}]},
            user({"functionResponse": {"name": "f", "response": own, "willContinue": False}, "partMetadata": own}),
            user({"tomorrow_kind": {"some_field": 1}}),
            labels={"cost_center": "a"},
            generationConfig={"responseJsonSchema": schema, "responseSchema": schema},
            tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}],
            unknown_field={"top_k": 1},
        )

    @pytest.mark.parametrize("data", ["-_-_", "+/+/", "AQL=", "AQL", "AQ=="])
    def test_neither_alphabet_nor_padding_changes_on_the_way_through(self, data: str) -> None:
        body = contents(user({"inlineData": {"mimeType": "a/b", "data": data}}))

        assert changed(parsed(body)) == body

    def test_numbers_and_characters_outside_the_ordinary_survive_a_change(self) -> None:
        body = '{"contents":[],"a":123456789012345678901234567890,"b":"\\ud83d\\ude00","c":"\\ud800","d":1.0,"e":-0.0}'
        found = rest_json.parse(body)

        assert changed(found) == json.loads(body)

    def test_values_of_any_origin_become_rest(self) -> None:
        request = Request(
            turns=(
                Turn(
                    role="user",
                    parts=(
                        MediaPart(source=b"ab", label="x", declared_mime="text/plain"),
                        MediaPart(source=Uri("gs://b/x"), label="x"),
                        ToolResultPart(name="f", response={}, carried={"functionResponse": {"id": None}}, call_id="c"),
                    ),
                ),
            ),
        )

        assert rest_json.document(request) == contents(
            user(
                {"inlineData": {"mimeType": "text/plain", "data": "YWI="}},
                {"fileData": {"fileUri": "gs://b/x"}},
                {"functionResponse": {"name": "f", "response": {}}},
            )
        )

    def test_a_medium_a_tool_returned_raw_is_written_as_the_sdk_would(self) -> None:
        raw = MediaPart(source=b"\xfb\xff\xfe", label="x")
        request = Request(turns=(Turn(role="user", parts=(ToolResultPart(name="f", response={"result": raw}),)),))

        assert b'"result":"-__-"' in rest_json.emit(request)

    def test_a_file_that_cannot_be_read_is_said_to_be(self, tmp_path: Path) -> None:
        for path in (tmp_path / "none.png", tmp_path):
            request = Request(turns=(Turn(role="user", parts=(MediaPart(source=path, label="x"),)),))
            with pytest.raises(UnreadableSource):
                rest_json.emit(request)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()])
    def test_what_json_cannot_say_is_refused_not_written_as_null(self, value: object) -> None:
        request = Request(turns=(Turn(role="user", parts=(ToolResultPart(name="f", response={"a": value}),)),))

        with pytest.raises(MalformedRequest, match="what JSON cannot say"):
            rest_json.emit(request)


def test_a_body_is_told_from_other_json() -> None:
    assert rest_json.is_request({"contents": []})
    assert rest_json.is_request({"generate_content_request": {"contents": []}})
    assert not any(map(rest_json.is_request, ({}, [], "contents", {"contents": "a"}, {"messages": []})))
