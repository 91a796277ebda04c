"""Neutral messages become a request and messages again: nine contracts, two shapes, and what must be refused."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

import media
from weighlock.converters import rest_json
from weighlock.converters.messages import emit, is_messages, parse
from weighlock.encoded import Base64, encode
from weighlock.errors import InputError, MalformedMedia, MalformedRequest, UnreadableSource, UnsupportedMedia
from weighlock.request import (
    Content,
    MediaPart,
    OpaquePart,
    Part,
    Request,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
    Uri,
)

PNG = encode(media.picture((8, 8)))
PDF = encode(b"%PDF-1.7\n%%EOF\n")
URL = "https://generativelanguage.googleapis.com/v1beta/files/secret-abc"
SIGNATURE = "c2lnbmVk"
UNSENT = {"functionResponse": {"id": None}}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def image(data: str = PNG, **more: Any) -> dict[str, Any]:
    return {"type": "image", "media_type": "image/png", "source": {"type": "base64", "data": data}, **more}


def linked(kind: str = "video", mime: str = "video/mp4", url: str = URL) -> dict[str, Any]:
    return {"type": kind, "media_type": mime, "source": {"type": "url", "url": url}}


def document(data: str = PDF, mime: str = "application/pdf") -> dict[str, Any]:
    return {"type": "document", "media_type": mime, "source": {"type": "base64", "data": data}}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "blocks": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "blocks": list(blocks)}


def call(call_id: str = "c1", name: str = "shoot", **metadata: Any) -> dict[str, Any]:
    block = {"type": "tool_call", "call_id": call_id, "name": name, "input": {"deg": 1.5}}
    return {**block, "metadata": metadata} if metadata else block


def tool(*blocks: Any, call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "blocks": [{"type": "tool_result", "call_id": call_id, "blocks": list(blocks), **more}]}


def result(said: str, *held: MediaPart, name: str = "shoot", call_id: str | None = "c1") -> ToolResultPart:
    return ToolResultPart(name=name, response={"result": said}, call_id=call_id, media=held, carried=UNSENT)


def medium(source: Any, label: str, mime: str = "image/png") -> MediaPart:
    return MediaPart(source=source, label=label, declared_mime=mime)


def called(call_id: str = "c1", name: str = "shoot") -> ToolCallPart:
    wire = {"functionCall": {"name": name, "args": {"deg": 1.5}, "id": call_id}}
    return ToolCallPart(name=name, call_id=call_id, wire=wire)


def rest(messages: Any) -> dict[str, Any]:
    return rest_json.document(parse(messages).request)


# ---- the nine contracts


def test_contract_1_a_tool_message_with_media_is_one_user_turn_with_one_function_response() -> None:
    messages = [assistant(call()), tool(text("a"), image(), text("b"), document())]

    request = parse(messages).request

    assert request == Request(
        turns=(
            Turn(role="model", parts=(called(),)),
            Turn(
                role="user",
                parts=(
                    result(
                        "ab",
                        medium(Base64(PNG), "messages[1].blocks[0].blocks[1]"),
                        medium(Base64(PDF), "messages[1].blocks[0].blocks[3]", "application/pdf"),
                    ),
                ),
            ),
        )
    )
    assert rest(messages) == {
        "contents": [
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "shoot", "args": {"deg": 1.5}, "id": "c1"}}],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "shoot",
                            "response": {"result": "ab"},
                            "parts": [
                                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                                {"inlineData": {"mimeType": "application/pdf", "data": PDF}},
                            ],
                        }
                    }
                ],
            },
        ]
    }


def test_contract_1_a_media_only_tool_result_has_empty_text() -> None:
    request = parse([assistant(call()), tool(image(name="shot"))]).request

    assert request.turns[1] == Turn(role="user", parts=(result("", medium(Base64(PNG), "shot")),))


def test_contract_2_base64_is_inline_data_and_a_url_is_file_data_without_display_name() -> None:
    messages = [assistant(call()), tool(image(name="shot"), linked())]

    sent = rest(messages)

    assert sent["contents"][1] == {
        "role": "user",
        "parts": [
            {
                "functionResponse": {
                    "name": "shoot",
                    "response": {"result": ""},
                    "parts": [
                        {"inlineData": {"mimeType": "image/png", "data": PNG}},
                        {"fileData": {"mimeType": "video/mp4", "fileUri": URL}},
                    ],
                }
            }
        ],
    }


@pytest.mark.parametrize(
    "block", [image(name="shot"), linked("image", "image/webp"), linked("audio", "audio/wav"), linked(), document()]
)
def test_contract_3_a_block_carries_the_same_values_as_in_a_user_message(block: dict[str, Any]) -> None:
    named = {**block, "name": "it"}

    said = parse([user(named)]).request.turns[0].parts[0]
    answered = parse([assistant(call()), tool(named)]).request.turns[1].parts[0]

    assert isinstance(answered, ToolResultPart)
    assert answered.media == (said,)


@pytest.mark.parametrize(
    "mime", ["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain", "audio/wav", "video/mp4"]
)
def test_contract_4_every_media_kind_is_read_and_left_to_screening(mime: str) -> None:
    block = {"type": "document", "media_type": mime, "source": {"type": "base64", "data": PDF}, "name": "it"}

    request = parse([assistant(call()), tool(block)]).request

    assert request.turns[1].parts == (result("", medium(Base64(PDF), "it", mime)),)


@pytest.mark.parametrize(("blocks", "said"), [([text("42 °C\n"), text("!")], "42 °C\n!"), ([], ""), ([text("")], "")])
@pytest.mark.parametrize("is_error", [False, True])
def test_contract_5_a_text_only_tool_result_is_sent_as_before(blocks: list[Any], said: str, is_error: bool) -> None:
    messages = [assistant(call()), tool(*blocks, is_error=is_error)]

    assert parse(messages).request.turns[1] == Turn(role="user", parts=(result(said),))
    assert json.dumps(rest(messages)["contents"][1]) == json.dumps(
        {"role": "user", "parts": [{"functionResponse": {"name": "shoot", "response": {"result": said}}}]}
    )


@pytest.mark.parametrize("bad", ["@@@@", "AAAAA", "AA AA", "A-+A", "AA\nA", "ä" * 8])
def test_contract_6_malformed_base64_says_the_same_in_a_tool_result_and_a_user_message(bad: str) -> None:
    with pytest.raises(MalformedMedia) as said:
        parse([user(text("look"), image(bad))])
    with pytest.raises(MalformedMedia) as answered:
        parse([assistant(call()), tool(image(bad))])

    assert said.value.message == answered.value.message
    assert bad not in said.value.message
    assert said.value.figures == {"place": "messages[0].blocks[1]"}
    assert answered.value.figures == {"place": "messages[1].blocks[0].blocks[0]"}


@pytest.mark.parametrize("block", [image(), image("@@@@"), linked(), {"type": "audio"}])
@pytest.mark.parametrize("before", [(), (user(image("@@@@")),)])
def test_contract_7_media_in_an_assistant_message_raises_before_anything_is_decoded(
    block: dict[str, Any], before: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Base64, "decode", lambda _: pytest.fail("decoded"))

    with pytest.raises(UnsupportedMedia) as refused:
        parse([*before, assistant(text("here"), block), user(image("@@@@"))])

    assert "only user messages and tool results can carry media, not assistant messages" in refused.value.message
    assert URL not in refused.value.message
    assert PNG not in refused.value.message
    assert refused.value.figures == {"place": f"messages[{len(before)}].blocks[1]"}


@pytest.mark.parametrize("blocks", [[text("no such page")], [image()], [text("half"), image()]])
def test_contract_8_the_error_flag_and_the_response_id_are_not_sent(blocks: list[Any]) -> None:
    failed, fine = (rest([assistant(call()), tool(*blocks, is_error=flag)]) for flag in (True, False))

    assert failed == fine
    answered = failed["contents"][1]["parts"][0]["functionResponse"]
    assert set(answered) <= {"name", "response", "parts"}
    assert set(answered["response"]) == {"result"}


def test_contract_9_each_tool_message_is_its_own_turn_with_its_own_name_and_response() -> None:
    messages = [
        assistant(call("c1", "shoot"), call("c2", "read")),
        tool(text("two"), call_id="c2"),
        tool(text("one"), image(name="shot"), call_id="c1"),
        {**tool(text("three"), call_id="c3"), "metadata": {"name": "other"}},
    ]

    request = parse(messages).request

    assert request == Request(
        turns=(
            Turn(role="model", parts=(called("c1", "shoot"), called("c2", "read"))),
            Turn(role="user", parts=(result("two", name="read", call_id="c2"),)),
            Turn(role="user", parts=(result("one", medium(Base64(PNG), "shot")),)),
            Turn(role="user", parts=(result("three", name="other", call_id="c3"),)),
        )
    )
    assert [turn["parts"][0]["functionResponse"]["name"] for turn in rest(messages)["contents"][1:]] == [
        "read",
        "shoot",
        "other",
    ]


def test_contract_9_a_tool_result_nobody_called_raises() -> None:
    with pytest.raises(MalformedRequest, match="without a name") as refused:
        parse([user(text("hi")), tool(text("x"), call_id="nobody")])

    assert refused.value.figures["place"] == "messages[1]"


def test_contract_9_a_call_after_its_result_names_nothing() -> None:
    with pytest.raises(MalformedRequest):
        parse([tool(text("x")), assistant(call())])


# ---- what else a message holds


def test_system_messages_become_one_instruction_in_order() -> None:
    messages = [
        {"role": "system", "blocks": [text("Be "), text("brief.")]},
        user(text("hi")),
        {"role": "system", "content": "Be kind."},
    ]

    assert parse(messages, model="gemini-3-pro").request == Request(
        turns=(Turn(role="user", parts=(TextPart(text="hi"),)),),
        system_instruction=Turn(role="user", parts=(TextPart(text="Be brief."), TextPart(text="Be kind."))),
        model="gemini-3-pro",
    )


def test_reasoning_is_sent_back_only_with_its_signature() -> None:
    signed = {"type": "reasoning", "text": "hm", "metadata": {"thought_signature": SIGNATURE}}
    messages = [assistant({"type": "reasoning", "text": "unsigned"}, signed, text("so"))]

    assert parse(messages).request.turns[0].parts == (
        TextPart(text="hm", carried={"thought": True, "thoughtSignature": SIGNATURE}),
        TextPart(text="so"),
    )
    parsed = parse(messages)
    assert emit(parsed.request, parsed) == messages


@pytest.mark.parametrize(
    "message",
    [user(), assistant(), assistant({"type": "reasoning", "text": None}), {"role": "assistant", "content": ""}],
)
def test_a_message_without_parts_says_empty_text(message: dict[str, Any]) -> None:
    assert parse([message]).request.turns[0].parts == (TextPart(text=""),)


def test_a_call_keeps_its_signature_and_a_made_up_id_is_not_sent() -> None:
    request = parse([assistant(call("x", synthetic_id=True, thought_signature=SIGNATURE)), tool(call_id="x")]).request

    assert request.turns[0].parts == (
        ToolCallPart(
            name="shoot",
            call_id="x",
            wire={"functionCall": {"name": "shoot", "args": {"deg": 1.5}}, "thoughtSignature": SIGNATURE},
        ),
    )
    assert request.turns[1].parts == (result("", call_id="x"),)


def test_a_signature_in_bytes_is_said_in_base64() -> None:
    part = parse([assistant(call(thought_signature=b"signed"))]).request.turns[0].parts[0]

    assert isinstance(part, ToolCallPart)
    assert part.wire["thoughtSignature"] == SIGNATURE


def test_an_object_around_the_messages_may_name_the_model() -> None:
    wrapped = {"messages": [user(text("hi"))], "model": "gemini-3-flash", "tools": []}

    assert parse(wrapped).request.model == "gemini-3-flash"
    assert parse(wrapped, model="gemini-3-pro").request.model == "gemini-3-pro"


# ---- the old shape, objects, and both mixed


def old_call(**more: Any) -> dict[str, Any]:
    function = {"name": "shoot", "arguments": {"deg": 1.5}}
    return {"id": UUID(int=7), "type": "function", "function": function, **more}


def test_the_old_shape_finds_a_name_by_external_id() -> None:
    messages = [
        {"role": "user", "content": "go", "tool_calls": [], "extra_args": {}},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [old_call(original_id="c1", thought_signature=SIGNATURE)],
            "extra_args": {"model_name": "gemini-3-pro"},
        },
        {"role": "tool", "content": "done", "tool_calls": [], "extra_args": {"external_id": "c1"}},
    ]

    request = parse(messages).request

    assert request == Request(
        turns=(
            Turn(role="user", parts=(TextPart(text="go"),)),
            Turn(
                role="model",
                parts=(
                    ToolCallPart(name="shoot", call_id="c1", wire={**called().wire, "thoughtSignature": SIGNATURE}),
                ),
            ),
            Turn(role="user", parts=(result("done"),)),
        )
    )


@pytest.mark.parametrize("external", ["c1", UUID(int=7), str(UUID(int=7))])
def test_an_external_id_may_be_either_id_of_its_call(external: Any) -> None:
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [old_call(original_id="c1")]},
        {"role": "tool", "content": "done", "extra_args": {"external_id": external}},
    ]

    assert parse(messages).request.turns[1].parts == (result("done"),)


@pytest.mark.parametrize("more", [{}, {"original_id": "c1", "synthetic_id": True}])
def test_an_id_the_model_never_said_is_not_sent_in_the_old_shape(more: dict[str, Any]) -> None:
    part = parse([{"role": "assistant", "content": "", "tool_calls": [old_call(**more)]}]).request.turns[0].parts[0]

    assert isinstance(part, ToolCallPart)
    assert part.call_id == more.get("original_id", str(UUID(int=7)))
    assert part.wire == {"functionCall": {"name": "shoot", "args": {"deg": 1.5}}}


@pytest.mark.parametrize(
    ("arguments", "args"),
    [('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}), ("", {}), (None, {}), ({"a": (1,)}, {"a": [1]})],
)
def test_arguments_may_be_json_text(arguments: Any, args: Any) -> None:
    function = {"name": "f", "arguments": arguments}
    part = parse([{"role": "assistant", "tool_calls": [{"id": "1", "function": function}]}]).request.turns[0].parts[0]

    assert isinstance(part, ToolCallPart)
    assert part.wire["functionCall"]["args"] == args


def test_a_named_tool_message_without_id_answers_the_first_open_call_of_its_tool() -> None:
    messages = [
        assistant(call("c1"), call("c2")),
        {"role": "tool", "content": "one", "extra_args": {"name": "shoot"}},
        tool(text("two"), call_id="c2"),
        {"role": "tool", "content": "three", "extra_args": {"name": "shoot"}},
    ]

    parts = [turn.parts[0] for turn in parse(messages).request.turns[1:]]

    assert [part.call_id for part in parts if isinstance(part, ToolResultPart)] == ["c1", "c2", None]


@pytest.mark.parametrize("calls", [[], [old_call(original_id="c1")]])
def test_a_signature_in_extra_args_goes_to_the_first_call_or_else_to_the_text(calls: list[Any]) -> None:
    extra = {"thought_signature": SIGNATURE}
    turn = parse([{"role": "assistant", "content": "so", "tool_calls": calls, "extra_args": extra}]).request.turns[0]

    signed = [part.wire if isinstance(part, ToolCallPart) else getattr(part, "carried", {}) for part in turn.parts]
    assert [at for at, fields in enumerate(signed) if "thoughtSignature" in fields] == [len(calls)]


class Role(Enum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Kind(Enum):
    TEXT = "text"
    IMAGE = "image"


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Model):
    type: str = "base64"
    data: str


class Block(Model):
    type: Kind
    text: str = ""
    media_type: str | None = None
    source: Source | None = None
    name: str | None = None


class ChatMessage(Model):
    role: Role
    blocks: tuple[Any, ...] = ()
    metadata: dict[str, Any] = {}


@dataclass
class OldMessage:
    role: str
    content: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    extra_args: dict[str, Any] = field(default_factory=dict)


def test_objects_dicts_and_both_shapes_mix() -> None:
    seen = Block(type=Kind.IMAGE, media_type="image/png", source=Source(data=PNG), name="shot")
    answer = SimpleNamespace(type="tool_result", call_id="c1", blocks=(Block(type=Kind.TEXT, text="ok"), seen))
    objects = [
        ChatMessage(role=Role.USER, blocks=(Block(type=Kind.TEXT, text="look"), seen)),
        OldMessage("assistant", tool_calls=[old_call(original_id="c1")]),
        ChatMessage(role=Role.TOOL, blocks=(answer,)),
        OldMessage("user", "thanks"),
    ]
    plain = [
        user(text("look"), image(name="shot")),
        assistant(call()),
        tool(text("ok"), image(name="shot")),
        user(text("thanks")),
    ]

    parsed = parse(objects)

    assert parsed.request == parse(plain).request
    assert all(out is came for out, came in zip(emit(parsed.request, parsed), objects, strict=True))


# ---- back to messages


def test_what_nobody_changed_is_the_very_message_that_came() -> None:
    messages = [
        user(text("a")),
        {"role": "system", "blocks": [text("Be brief.")], "of_tomorrow": 1},
        assistant({"type": "reasoning", "text": "unsigned"}, call()),
        tool(image(sha256="…"), is_error=True),
        {"role": "system", "content": "Be kind."},
    ]
    parsed = parse(messages)
    changed = replace(parsed.request, turns=(Turn(role="user", parts=(TextPart(text="b"),)), *parsed.request.turns[1:]))

    kept, rebuilt = emit(parsed.request, parsed), emit(changed, parsed)

    assert all(out is came for out, came in zip(kept, messages, strict=True))
    assert rebuilt == [user(text("b")), *messages[1:]]
    assert all(out is came for out, came in zip(rebuilt[1:], messages[1:], strict=True))


def test_turns_added_and_taken_away_leave_system_messages_where_they_stood() -> None:
    first, last = {"role": "system", "content": "1"}, {"role": "system", "content": "2"}
    parsed = parse([first, user(text("a")), last, user(text("b"))])
    more = Turn(role="user", parts=(TextPart(text="new"),))

    assert emit(replace(parsed.request, turns=(more, *parsed.request.turns)), parsed)[:2] == [first, user(text("new"))]
    assert emit(replace(parsed.request, turns=parsed.request.turns[1:]), parsed) == [first, last, user(text("b"))]
    assert emit(replace(parsed.request, turns=()), parsed) == [first, last]
    assert emit(replace(parsed.request, turns=parsed.request.turns[:1], system_instruction=None), parsed) == [
        user(text("a"))
    ]


def test_a_changed_result_keeps_name_id_and_error_flag() -> None:
    parsed = parse([assistant(call()), tool(text("seen "), image(), is_error=True)])
    filtered = Turn(role="user", parts=(replace(result("seen [image removed]")),))

    out = emit(replace(parsed.request, turns=(parsed.request.turns[0], filtered)), parsed)

    assert out[1] == {**tool(text("seen [image removed]"), is_error=True), "metadata": {"name": "shoot"}}


def test_a_rest_request_becomes_messages_and_the_same_rest_request_again() -> None:
    body = {
        "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True, "thoughtSignature": SIGNATURE},
                    {"functionCall": {"name": "shoot", "args": {}}, "thoughtSignature": SIGNATURE},
                    {"functionCall": {"name": "read", "args": {"a": 1}}},
                    {"functionCall": {"name": "shoot", "args": {}}},
                ],
            },
            {"role": "user", "parts": [{"functionResponse": {"name": "shoot", "response": {"result": "1"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"result": "2"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "shoot", "response": {"result": ""}}}]},
            {"role": "model", "parts": [{"text": "so", "thoughtSignature": SIGNATURE}]},
        ],
    }

    messages = emit(rest_json.parse(body).request)

    assert rest(messages) == body
    ids = [message["blocks"][0]["call_id"] for message in messages if message["role"] == "tool"]
    assert ids == ["call_1", "call_2", "call_3"]
    assert messages[2]["blocks"][1]["metadata"] == {"synthetic_id": True, "thought_signature": SIGNATURE}


def test_a_turn_of_several_results_becomes_several_tool_messages_and_what_else_it_says_follows() -> None:
    shot = medium(b"\x89PNG", "shot")
    answers = (result("1", name="a", call_id="x"), TextPart(text="so"), result("2", shot, name="b", call_id="y"), shot)

    out = emit(Request(turns=(Turn(role=None, parts=answers),)))

    assert out == [
        {**tool(text("1"), call_id="x"), "metadata": {"name": "a"}},
        {**tool(text("2"), image(encode(b"\x89PNG"), name="shot"), call_id="y"), "metadata": {"name": "b"}},
        user(text("so"), image(encode(b"\x89PNG"), name="shot")),
    ]


@pytest.mark.parametrize("response", [{"temperature": 21}, {"result": 5}, {"result": "a", "more": "ü"}, {}])
def test_any_other_response_becomes_its_json(response: Any) -> None:
    part = ToolResultPart(name="f", response=response)
    said = emit(Request(turns=(Turn(role="user", parts=(part,)),)))[0]["blocks"][0]["blocks"][0]["text"]

    assert json.loads(said) == response


def test_files_are_read_and_left_where_they_stood(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    opened = io.BytesIO(b"abcdef")
    opened.seek(2)
    sources = (medium(tmp_path / "a", "a", "audio/wav"), medium(opened, "b", "text/plain"), medium(Uri(URL), "c"))

    blocks = emit(Request(turns=(Turn(role="user", parts=sources),)))[0]["blocks"]

    assert blocks == [
        {"type": "audio", "media_type": "audio/wav", "source": {"type": "base64", "data": "YWJj"}, "name": "a"},
        {"type": "document", "media_type": "text/plain", "source": {"type": "base64", "data": "YWJjZGVm"}, "name": "b"},
        {"type": "image", "media_type": "image/png", "source": {"type": "url", "url": URL}, "name": "c"},
    ]
    assert opened.tell() == 2


def test_a_display_name_becomes_the_name_of_a_block() -> None:
    blob = {"mimeType": "image/png", "data": PNG, "displayName": "shot.png"}
    request = rest_json.parse({"contents": [{"role": "user", "parts": [{"inlineData": blob}]}]}).request

    assert emit(request) == [user(image(name="shot.png"))]


SHOT = medium(Base64(PNG), "shot")


@pytest.mark.parametrize(
    ("role", "part", "words"),
    [
        ("model", OpaquePart(wire={"executableCode": {"code": "1"}}), "executableCode"),
        ("user", OpaquePart(wire={"toolResponse": {}}), "toolResponse"),
        ("user", called(), "functionCall"),
        ("model", result("x"), "functionResponse"),
        ("model", SHOT, "only user messages and tool results can carry media"),
        ("user", replace(SHOT, carried={"videoMetadata": {"fps": 1}}), "videoMetadata"),
        ("user", replace(SHOT, declared_mime=None), "media type"),
        ("user", TextPart(text="a", carried={"partMetadata": {}}), "partMetadata"),
        ("user", TextPart(text="a", carried={"thought": True}), "thought"),
        ("user", replace(result("x"), carried={"functionResponse": {"willContinue": True}}), "willContinue"),
        ("user", replace(result("x"), media=(OpaquePart(wire={"neu": 1}),)), "neu"),
        ("user", replace(result("x"), response={"result": SHOT}), "no JSON"),
        ("model", replace(called(), wire={"functionCall": {"name": "f", "partialArgs": []}}), "partialArgs"),
        ("critic", TextPart(text="a"), "role"),
    ],
)
def test_what_messages_cannot_express_is_refused_by_name(role: str, part: Part, words: str) -> None:
    request = Request(turns=(Turn(role="user", parts=(TextPart(text="hi"),)), Turn(role=role, parts=(part,))))

    with pytest.raises(InputError, match="messages cannot express") as refused:
        emit(request)

    assert words in refused.value.message
    assert PNG not in refused.value.message
    assert str(refused.value.figures["place"]).startswith("contents[1]")


def test_a_file_that_is_gone_or_empty_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource) as refused:
        emit(Request(turns=(Turn(role="user", parts=(medium(tmp_path / "secret", "a"),)),)))
    with pytest.raises(MalformedMedia):
        emit(Request(turns=(Turn(role="user", parts=(medium(b"", "a"),)),)))

    assert "secret" not in refused.value.message


def test_a_made_up_id_is_none_that_is_there() -> None:
    taken = parse([assistant(call("call_1"))]).request.turns
    free = Turn(role="model", parts=(ToolCallPart(name="f", call_id=None, wire={"functionCall": {"name": "f"}}),))

    assert emit(Request(turns=(free, *taken)))[0]["blocks"][0]["call_id"] == "call_2"


# ---- what is refused


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return {"a": value}


LONG = "x" * 2_000_000


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ("hello", "messages"),
        (5, "messages"),
        ({"model": "m"}, "messages"),
        ({"messages": {"role": "user"}}, "messages"),
        ({"messages": [], "model": 5}, "model"),
        (["hello"], "messages[0]"),
        ([None], "messages[0]"),
        ([[]], "messages[0]"),
        ([{}], "messages[0].role"),
        ([{"role": 5, "blocks": []}], "messages[0].role"),
        ([{"role": LONG, "blocks": []}], "messages[0].role"),
        ([{"role": "user"}], "messages[0]"),
        ([{"role": "user", "content": None}], "messages[0]"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content"),
        ([{"role": "user", "content": "a", "tool_calls": [old_call()]}], "messages[0].tool_calls"),
        ([{"role": "user", "blocks": "text"}], "messages[0].blocks"),
        ([{"role": "user", "blocks": {"type": "text"}}], "messages[0].blocks"),
        ([user("text")], "messages[0].blocks[0]"),
        ([user(text("a"), {"text": "a"})], "messages[0].blocks[1].type"),
        ([user({"type": LONG})], "messages[0].blocks[0].type"),
        ([user({"type": ["text"]})], "messages[0].blocks[0].type"),
        ([user({"type": "text", "text": 5})], "messages[0].blocks[0].text"),
        ([user({"type": "text", "text": "a", "metadata": []})], "messages[0].blocks[0].metadata"),
        ([user(call())], "messages[0].blocks[0]"),
        ([user({"type": "reasoning"})], "messages[0].blocks[0]"),
        ([{"role": "system", "blocks": [image()]}], "messages[0].blocks[0]"),
        ([user(image(""))], "messages[0].blocks[0].source.data"),
        ([user({**image(), "source": {"type": "base64", "data": b"abc"}})], "messages[0].blocks[0].source.data"),
        ([user({**image(), "source": {"type": "file", "id": LONG}})], "messages[0].blocks[0].source.type"),
        ([user({**image(), "source": None})], "messages[0].blocks[0].source"),
        ([user({**image(), "source": URL})], "messages[0].blocks[0].source"),
        ([user({**image(), "media_type": None})], "messages[0].blocks[0].media_type"),
        ([user({**image(), "media_type": ""})], "messages[0].blocks[0].media_type"),
        ([user({**image(), "media_type": LONG})], "messages[0].blocks[0].media_type"),
        ([user(image(name=5))], "messages[0].blocks[0].name"),
        ([user(linked(url=""))], "messages[0].blocks[0].source.url"),
        ([user(linked(url=f"data:image/png;base64,{PNG}"))], "messages[0].blocks[0].source.url"),
        ([assistant(call("c1"), call("c1"))], "messages[0].blocks[1].call_id"),
        ([assistant(call(""))], "messages[0].blocks[0].call_id"),
        ([assistant({**call(), "name": None})], "messages[0].blocks[0].name"),
        ([assistant({**call(), "input": [1]})], "messages[0].blocks[0].input"),
        ([assistant({**call(), "input": nested(200)})], "messages[0].blocks[0].input"),
        ([assistant({**call(), "input": {"a": float("nan")}})], "messages[0].blocks[0].input"),
        ([assistant({**call(), "input": {"a": b"x"}})], "messages[0].blocks[0].input"),
        ([assistant({**call(), "input": {5: 1}})], "messages[0].blocks[0].input"),
        ([assistant(call(thought_signature=5))], "messages[0].blocks[0].thought_signature"),
        ([assistant(call()), tool(call())], "messages[1].blocks[0].blocks[0]"),
        ([assistant(call()), {"role": "tool", "blocks": []}], "messages[1]"),
        ([assistant(call()), {"role": "tool", "blocks": tool()["blocks"] * 2}], "messages[1]"),
        ([assistant(call()), {"role": "tool", "blocks": [text("a")]}], "messages[1].blocks[0]"),
        ([{**tool(), "metadata": {"name": 5}}], "messages[0].metadata.name"),
        ([{"role": "tool", "content": "x", "extra_args": {}}], "messages[0]"),
        ([{"role": "tool", "content": "x", "extra_args": {"external_id": "c"}}], "messages[0]"),
        ([{"role": "assistant", "content": "", "tool_calls": [{}]}], "messages[0].tool_calls[0].function"),
        ([{"role": "assistant", "content": "", "tool_calls": "f"}], "messages[0].tool_calls"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{" * 100_000}}]}],
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "[1]"}}]}],
            "messages[0].tool_calls[0].function.arguments",
        ),
    ],
)
def test_malformed_messages_name_the_place_and_repeat_nothing(messages: Any, place: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        parse(messages)

    assert refused.value.figures["place"] == place
    assert len(refused.value.message) < 300
    assert PNG not in refused.value.message
    assert URL not in refused.value.message


def test_keys_of_tomorrow_are_let_through() -> None:
    block = {**image(), "source": {"type": "base64", "data": PNG, "expires": 1}, "alt": "x", "name": "shot"}

    assert parse([{**user(block), "id": "m1"}]).request == parse([user(image(name="shot"))]).request


@pytest.mark.parametrize(
    ("looked_at", "answer"),
    [
        ([user()], True),
        ([{"role": "tool", "content": "x"}], True),
        ([{"role": "assistant", "tool_calls": []}], True),
        ({"messages": []}, True),
        ({"contents": [], "messages": []}, False),
        ({"contents": []}, False),
        ([{"role": "user", "parts": []}], False),
        ([{"role": "user"}], False),
        ([], False),
        (["a"], False),
        (None, False),
        ("messages", False),
    ],
)
def test_messages_are_recognised_by_their_first(looked_at: Any, answer: bool) -> None:
    assert is_messages(looked_at) is answer


# ---- whatever a caller may say

WORDS = st.text(max_size=8)
NAMES = st.sampled_from(["shoot", "read"])
IDS = st.sampled_from([f"c{n}" for n in range(4)] + ["call_1", "call_2"])
SIGNED = st.fixed_dictionaries({}, optional={"thought_signature": st.just(SIGNATURE), "unknown": WORDS})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
SOURCES = st.builds(lambda data: {"type": "base64", "data": encode(data)}, st.binary(min_size=1, max_size=5)) | st.just(
    {"type": "url", "url": URL}
)
MEDIA = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["image", "audio", "video", "document"]),
        "media_type": st.sampled_from(["image/png", "AUDIO/wav", "video/mp4", "application/pdf", "x"]),
        "source": SOURCES,
    },
    optional={"name": WORDS, "size_bytes": st.integers(0, 9)},
)
TEXTS = st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}, optional={"metadata": SIGNED})
CALLS = st.builds(
    lambda call_id, name, args, made_up, signed: {
        "type": "tool_call",
        "call_id": call_id,
        "name": name,
        "input": args,
        "metadata": {"synthetic_id": made_up, **signed},
    },
    IDS,
    NAMES,
    st.dictionaries(WORDS, JSON, max_size=2),
    st.booleans(),
    SIGNED,
)
REASONING = st.fixed_dictionaries({"type": st.just("reasoning"), "text": st.none() | WORDS, "metadata": SIGNED})


def unique_ids(blocks: list[dict[str, Any]]) -> bool:
    ids = [block["call_id"] for block in blocks if "call_id" in block]
    return len(set(ids)) == len(ids)


OLD_CALLS = st.builds(
    lambda own, original, name: {
        "id": own,
        "function": {"name": name, "arguments": "{}"},
        **({} if original is None else {"original_id": original}),
    },
    IDS.map(lambda name: f"own-{name}"),
    st.none() | IDS,
    NAMES,
)
MESSAGES = st.one_of(
    st.builds(lambda said: {"role": "system", "blocks": said}, st.lists(TEXTS, max_size=2)),
    st.builds(lambda blocks: user(*blocks), st.lists(TEXTS | MEDIA, max_size=3)),
    st.builds(lambda blocks: assistant(*blocks), st.lists(TEXTS | CALLS | REASONING, max_size=3).filter(unique_ids)),
    st.builds(
        lambda blocks, call_id, name, flag: {
            **tool(*blocks, call_id=call_id, is_error=flag),
            "metadata": {"name": name},
        },
        st.lists(TEXTS | MEDIA, max_size=3),
        IDS,
        NAMES,
        st.booleans(),
    ),
    st.builds(lambda role, said: {"role": role, "content": said}, st.sampled_from(["system", "user"]), WORDS),
    st.builds(
        lambda said, calls, extra: {"role": "assistant", "content": said, "tool_calls": calls, "extra_args": extra},
        WORDS,
        st.lists(OLD_CALLS, max_size=2, unique_by=lambda made: made.get("original_id", made["id"])),
        SIGNED,
    ),
    st.builds(
        lambda said, name, ids: {"role": "tool", "content": said, "extra_args": {"name": name, **ids}},
        WORDS,
        NAMES,
        st.fixed_dictionaries({}, optional={"external_id": IDS}),
    ),
)


@given(st.lists(MESSAGES, max_size=8))
def test_messages_built_anew_are_the_same_request(messages: list[dict[str, Any]]) -> None:
    parsed = parse(messages)
    built = emit(parsed.request)

    assert parse(built).request == parsed.request
    assert emit(parse(built).request) == built
    assert parse(json.loads(json.dumps(built))).request == parsed.request
    assert is_messages(built) is bool(built)


@given(st.lists(MESSAGES, max_size=8), st.data())
def test_every_turn_nobody_changed_is_the_message_that_came(
    messages: list[dict[str, Any]], data: st.DataObject
) -> None:
    parsed = parse(messages)
    turns = list(parsed.request.turns)
    changed = data.draw(st.sets(st.sampled_from(range(len(turns))))) if turns else set()
    for number in changed:
        turns[number] = replace(turns[number])

    out = emit(replace(parsed.request, turns=tuple(turns)), parsed)

    assert len(out) == len(messages)
    rebuilt = {parsed.numbers[number] for number in changed}
    assert all(now is came for at, (now, came) in enumerate(zip(out, messages, strict=True)) if at not in rebuilt)
    assert parse(out).request == parsed.request


KEYS = st.sampled_from(["role", "blocks", "content", "type", "text", "call_id", "name", "input", "metadata"]) | (
    st.sampled_from(["source", "data", "url", "media_type", "tool_calls", "function", "extra_args", "messages"])
)
ROLES = st.sampled_from(["user", "assistant", "tool", "system", "text", "image", "tool_call", "tool_result", "base64"])
NONSENSE = st.recursive(
    st.none() | st.booleans() | st.floats() | ROLES | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


def place_of_refusal(messages: Any) -> str:
    try:
        parse(messages)
    except InputError as error:
        return str(error.figures["place"])
    return "messages"


@given(NONSENSE | st.lists(st.fixed_dictionaries({"role": ROLES, "blocks": st.lists(st.dictionaries(KEYS, NONSENSE))})))
def test_nonsense_is_read_or_refused_by_a_typed_error_that_names_the_place(nonsense: Any) -> None:
    assert place_of_refusal(nonsense).startswith(("messages", "model"))


def test_what_a_film_shows_stands_in_the_metadata_of_its_block() -> None:
    def film(word: object) -> dict[str, Any]:
        source = {"type": "base64", "data": "AAAA"}
        return {"type": "video", "media_type": "video/mp4", "source": source, "metadata": {"content_hint": word}}

    parsed = parse([user(film("screen"))])

    assert [part.content for _, part, _ in parsed.request.media()] == [Content.SCREEN]
    assert emit(parsed.request) == [user(film("screen"))]
    with pytest.raises(MalformedRequest, match=r"content_hint.*screen, talk"):
        parse([user(film("dance"))])
