"""What the service refuses in a request as a whole: calls without results, too many media, too many bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pytest

import media
from weighlock.encoded import encode
from weighlock.errors import InputError, MalformedRequest, MediaTooLarge, UnsupportedMedia
from weighlock.planning.carrying import Base64InToolText
from weighlock.planning.screen import Policy, screen
from weighlock.request import (
    NOTHING,
    Backend,
    Json,
    MediaPart,
    Part,
    Request,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
    Uri,
)
from weighlock.rules import ModelRules, RuleBook
from weighlock.rules.entry import Limit

DAY = date(2026, 11, 30)
BOOK = RuleBook.packaged()
PNG, WAV = media.picture((8, 8)), media.wav(0.1)


def rules_for(model: str = "gemini-3.8-flash", backend: Backend = Backend.DEVELOPER, **limits: int) -> ModelRules:
    """The rules of a model, some of its limits replaced by smaller ones."""
    rules = BOOK.for_model(model, backend, DAY)
    entries = tuple(
        replace(entry, figure=Limit(limit=entry.figure.limit, value=limits[entry.figure.limit]))
        if isinstance(entry.figure, Limit) and entry.figure.limit in limits
        else entry
        for entry in rules.sections["limits"]
    )
    return replace(rules, sections={**rules.sections, "limits": entries}, _picked={}, _accepted={}, _last_image={})


def text(said: str = "hello") -> TextPart:
    return TextPart(text=said)


def call(name: str = "a", call_id: str | None = None) -> ToolCallPart:
    return ToolCallPart(name=name, call_id=call_id, wire={"functionCall": {"name": name}})


def result(
    name: str = "a",
    call_id: str | None = None,
    *nested: MediaPart,
    response: Json = None,
    carried: Mapping[str, Json] = NOTHING,
) -> ToolResultPart:
    return ToolResultPart(
        name=name, call_id=call_id, response=response or {"result": "ok"}, media=nested, carried=carried
    )


def medium(source: bytes | Uri = PNG, mime: str = "image/png") -> MediaPart:
    return MediaPart(source=source, label="file", declared_mime=mime)


def user(*parts: Part) -> Turn:
    return Turn(role="user", parts=parts)


def model(*parts: Part) -> Turn:
    return Turn(role="model", parts=parts)


def problems(*turns: Turn, rules: ModelRules | None = None, policy: Policy | None = None) -> tuple[InputError, ...]:
    return screen(Request(turns=turns), rules or rules_for(), policy or Policy()).problems


# ---- calls and results

FITTING = {
    "one": (user(text()), model(call()), user(result())),
    "two in one turn": (user(text()), model(call("a"), call("b")), user(result("a"), result("b"))),
    "two in two turns": (user(text()), model(call("a"), call("b")), user(result("a")), user(result("b"))),
    "in another order": (user(text()), model(call("a"), call("b")), user(result("b"), result("a"))),
    "the same tool twice": (user(text()), model(call("a"), call("a")), user(result("a"), result("a"))),
    "by id": (user(text()), model(call("a", "1"), call("a", "2")), user(result("a", "2"), result("a", "1"))),
    "only the call has an id": (user(text()), model(call("a", "1")), user(result("a"))),
    "text beside the call": (user(text()), model(text(), call()), user(result())),
    "siblings beside the result": (user(text()), model(call()), user(result(), text())),
    "one after the other": (user(text()), *(model(call()), user(result())) * 3, model(text())),
    "calls at the end": (user(text()), model(call(), call())),
    "another role": (user(text()), model(call()), Turn(role="function", parts=(result(),))),
    "in instalments": (
        user(text()),
        model(call()),
        user(result(carried={"functionResponse": {"willContinue": True}}), result()),
    ),
    "none at all": (user(text()), model(text()), user(text())),
}


@pytest.mark.parametrize("shape", FITTING)
def test_results_that_answer_their_calls_are_no_problem(shape: str) -> None:
    assert problems(*FITTING[shape]) == ()


MISMATCHED = {
    "one too few": (
        (user(text()), model(call("a"), call("b")), user(result("a"))),
        "contents[2]",
        "1 function response to the 2 function calls of contents[1]",
    ),
    "one too many": (
        (user(text()), model(call("a")), user(result("a")), user(result("a"))),
        "contents[2]",
        "2 function responses to the 1 function call of contents[1]",
    ),
    "text between": (
        (user(text()), model(call("a")), user(text())),
        "contents[1]",
        "0 function responses to the 1 function call of contents[1]",
    ),
    "another name": (
        (user(text()), model(call("a")), user(result("b"))),
        "contents[2].parts[0]",
        "a function response is named 'b', which no call has",
    ),
    "another id": (
        (user(text()), model(call("a", "1")), user(result("a", "2"))),
        "contents[2].parts[0]",
        "a function response has the id '2', which no call has",
    ),
    "one id twice": (
        (user(text()), model(call("a", "1"), call("a", "2")), user(result("a", "1"), result("a", "1"))),
        "contents[2].parts[1]",
        "a function response has the id '1', which no call has",
    ),
    "one name twice": (
        (user(text()), model(call("a"), call("b")), user(result("a"), result("a"))),
        "contents[2].parts[1]",
        "a function response is named 'a', which no call has",
    ),
    "deep in the history": (
        (user(text()), model(call()), user(result()), model(call()), user(text()), model(text()), user(text())),
        "contents[3]",
        "0 function responses to the 1 function call of contents[3]",
    ),
}


@pytest.mark.parametrize("shape", MISMATCHED)
def test_results_that_do_not_answer_their_calls_are_told_with_both_places(shape: str) -> None:
    turns, place, words = MISMATCHED[shape]

    (problem,) = problems(*turns)

    assert isinstance(problem, MalformedRequest)
    assert (problem.message, problem.figures["place"]) == (f"{place}: {words}", place)


def test_a_result_nobody_called_is_told() -> None:
    (problem,) = problems(user(result()))

    assert problem.figures["place"] == "contents[0]"


def test_a_result_nobody_called_names_no_turn_that_is_not_there() -> None:
    (problem,) = problems(user(result()))

    assert "-1" not in problem.message


def test_a_hostile_name_is_quoted_and_short() -> None:
    (problem,) = problems(user(text()), model(call()), user(result("\x1b[2Jx" * 1000)))

    assert "\x1b" not in problem.message
    assert len(problem.message) < 400


# ---- how many

COUNTED = [
    ("images", medium(), "images"),
    ("videos", medium(Uri("gs://b/a.mp4"), "video/mp4"), "videos"),
    ("audio_files", medium(WAV, "audio/wav"), "audio files"),
]


@pytest.mark.parametrize(("limit", "one", "words"), COUNTED)
def test_as_many_as_the_limit_pass_and_the_first_one_too_many_is_named(limit: str, one: MediaPart, words: str) -> None:
    rules = rules_for("gemini-3.7-flash", Backend.VERTEX, **{limit: 3})

    assert problems(user(text(), one, one), model(text()), user(one), rules=rules) == ()
    (problem,) = problems(user(text(), one, one), model(text()), user(one, one, one), rules=rules)

    assert isinstance(problem, UnsupportedMedia)
    assert problem.message == f"contents[2].parts[1]: 5 {words} in one request; gemini-3.7-flash takes 3: send fewer"
    assert (problem.figures["count"], problem.figures["limit"]) == (5, 3)


def test_the_limits_in_force_are_those_of_the_model_and_the_backend() -> None:
    songs = [medium(WAV, "audio/wav")] * 2
    films = [medium(Uri("gs://b/a.mp4"), "video/mp4")] * 2

    assert problems(user(text(), *songs), rules=rules_for(backend=Backend.VERTEX))
    assert not problems(user(text(), *songs), rules=rules_for())
    assert problems(user(text(), *films), rules=rules_for("gemini-2.0-flash"))
    assert not problems(user(text(), *films), rules=rules_for("gemini-2.5-flash"))
    assert not problems(user(text(), *films, *songs), rules=BOOK.for_model("tuned", Backend.VERTEX, DAY))


def test_media_in_tool_results_count_and_those_taken_out_do_not() -> None:
    rules = rules_for("gemini-3.7-flash", Backend.VERTEX, images=1, audio_files=1)
    songs = [medium(WAV, "audio/wav")] * 3

    assert problems(user(text()), model(call()), user(result("a", None, *songs)), rules=rules) == ()
    (problem,) = problems(user(text(), medium()), model(call()), user(result("a", None, medium())), rules=rules)
    assert problem.figures["place"] == "contents[2].parts[0].functionResponse.parts[0]"


# ---- how large


def test_bytes_inline_are_counted_as_base64_with_the_text_to_the_byte() -> None:
    chars = len(encode(PNG)) + len(encode(WAV)) + len("hello") + len("result") + len("ok")
    turns = (user(text(), medium()), model(call()), user(result()), user(medium(WAV, "audio/wav")))

    assert problems(*turns, rules=rules_for(inline_request_bytes=chars)) == ()
    (problem,) = problems(*turns, rules=rules_for(inline_request_bytes=chars - 1))

    assert isinstance(problem, MediaTooLarge)
    assert problem.figures["place"] == "contents[3].parts[0]"
    assert (problem.figures["size_bytes"], problem.figures["limit"]) == (chars, chars - 1)
    assert f"contents[3].parts[0]: the largest part ({len(encode(WAV)):,}) of {chars:,} bytes" in problem.message


def test_references_weigh_nothing_and_text_alone_is_left_to_the_context() -> None:
    rules = rules_for(inline_request_bytes=100)

    assert problems(user(text(), medium(Uri("gs://b/a.mp4"), "video/mp4")), rules=rules) == ()
    assert problems(user(text("x" * 101)), rules=rules) == ()
    (problem,) = problems(user(text("x" * 101), medium(Uri("gs://b/a.mp4"), "video/mp4")), rules=rules)
    assert "the largest part" not in problem.message


@pytest.mark.parametrize(
    ("limit", "one"),
    [
        ("inline_image_bytes", medium()),
        ("pdf_bytes", medium(media.pdf(), "application/pdf")),
        ("text_bytes", medium(b"words, " * 30, "text/plain")),
    ],
)
def test_one_medium_of_exactly_the_limit_passes_and_one_byte_more_does_not(limit: str, one: MediaPart) -> None:
    assert isinstance(one.source, bytes)
    size = len(one.source)

    for turns in ((user(text(), one),), (user(text()), model(call()), user(result("a", None, one)))):
        assert problems(*turns, rules=rules_for("gemini-3.8-flash", Backend.VERTEX, **{limit: size})) == ()
        (problem,) = problems(*turns, rules=rules_for("gemini-3.8-flash", Backend.VERTEX, **{limit: size - 1}))
        assert isinstance(problem, MediaTooLarge)
        assert (problem.figures["size_bytes"], problem.figures["limit"]) == (size, size - 1)
        assert problem.message.startswith(f"{problem.figures['place']}: ")


def test_what_a_tool_result_loses_weighs_nothing() -> None:
    turns = (user(text()), model(call()), user(result("a", None, medium(WAV, "audio/wav"))))

    assert problems(*turns, rules=rules_for(inline_request_bytes=300)) == ()


HIDDEN = encode(media.png_header((8, 8), media.png_chunk(b"teSt", bytes(range(256)) * 20)))


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        (Base64InToolText.LIFT, 1),
        (Base64InToolText.NOTE, 0),
        (Base64InToolText.KEEP, 1),
    ],
)
@pytest.mark.parametrize("copies", [1, 2])
def test_base64_in_a_tool_s_text_counts_as_what_is_sent(wanted: Base64InToolText, sent: int, copies: int) -> None:
    response = {f"picture {n}": HIDDEN for n in range(copies)}
    room = rules_for(inline_request_bytes=len(HIDDEN) * copies * sent + 300)

    turns = (user(text(), medium()), model(call()), user(result(response=response)))
    assert problems(*turns, rules=room, policy=Policy(base64_in_tool_text=wanted)) == ()


# ---- media alone


@pytest.mark.parametrize("gemini", ["gemini-2.0-flash", "gemini-2.5-flash", "gemini-3.8-flash", "gemini-4-argon"])
@pytest.mark.parametrize("alone", [(), (text(""),), (text(" \n"),)])
def test_vertex_wants_a_text_beside_media_and_the_developer_api_does_not(gemini: str, alone: tuple[Part, ...]) -> None:
    (problem,) = problems(user(*alone, medium()), rules=rules_for(gemini, Backend.VERTEX))

    assert isinstance(problem, MalformedRequest)
    assert problem.figures["place"] == f"contents[0].parts[{len(alone)}]"
    assert problems(user(*alone, medium()), rules=rules_for(gemini)) == ()


def test_a_text_anywhere_will_do_on_vertex() -> None:
    vertex = rules_for(backend=Backend.VERTEX)

    assert problems(user(medium(), text()), rules=vertex) == ()
    assert problems(user(text()), model(text()), user(medium()), rules=vertex) == ()
