"""Histories in any arrangement, screened: calls and results stay what they are, no text is lost, once is enough."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import media
from weighlock.converters import rest_json
from weighlock.encoded import Base64, encode
from weighlock.planning.carrying import Base64InToolText, ToolMedia
from weighlock.planning.rewrite import rewritten
from weighlock.planning.screen import Policy, Screening, screen
from weighlock.request import (
    Backend,
    Json,
    MediaPart,
    OpaquePart,
    Part,
    Request,
    Source,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
    Uri,
)
from weighlock.rules import ModelRules, RuleBook

MODELS = ("gemini-2.0-flash", "gemini-2.5-flash", "gemini-3.8-flash", "gemini-4-argon", "my-tuned-model")
NESTED = {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
HOLDS_NOTHING = ("gemini-2.0-flash", "gemini-2.5-flash")
FILES = "https://generativelanguage.googleapis.com/v1beta/files/abc"
NOISE = bytes((at * at * 31 + at // 3) % 256 for at in range(999))
DRAWN: dict[str, bytes] = {
    "image/png": media.picture((8, 8)),
    "image/jpeg": media.picture((8, 8), "JPEG"),
    "image/gif": media.picture((8, 8), "GIF"),
    "image/tiff": media.picture((8, 8), "TIFF"),
    "image/avif": media.picture((8, 8), "AVIF"),
    "audio/wav": media.wav(0.4),
    "audio/mpeg": media.sound(0.3, "libmp3lame", "mp3"),
    "video/mp4": media.video(0.5),
    "video/x-matroska": media.video(0.5, "matroska"),
    "application/pdf": media.pdf(),
    "text/plain": b"nothing but words in here",
    "text/csv": "a,b,c\n1,2,3\n4,5,6\nä,ö,ü\n".encode("utf-16"),
    "application/zip": b"PK\5\6" + bytes(18),
    "application/octet-stream": NOISE,
}


@cache
def rules_for(model: str, backend: Backend) -> ModelRules:
    return RuleBook.packaged().for_model(model, backend, date(2026, 11, 30))


# ---- histories

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=30).map(lambda said: TextPart(text=said))
_NAMES = st.sampled_from(["shoot", "record", 'x" y><', "read"])
_IDS = st.none() | st.sampled_from(["c1", "c2", "c3"])
_OTHERS = st.sampled_from(
    [
        OpaquePart(wire={"executableCode": {"code": "1"}}),
        OpaquePart(wire={"newKind": {}, "thoughtSignature": "abc"}),
    ]
)


@st.composite
def sources(draw: st.DrawFn) -> tuple[Source, str | None]:
    """A medium and what somebody calls it, rightly or not."""
    if draw(st.booleans()) and draw(st.booleans()):
        uri = draw(st.sampled_from(["gs://b/a.mp4", "gs://b/a.pdf", "https://e.com/a.png", FILES]))
        return Uri(uri), draw(st.sampled_from([None, "video/mp4", "image/png"]))
    data = DRAWN[kind := draw(st.sampled_from(sorted(DRAWN)))]
    if draw(st.integers(0, 20)) == 0:
        data = b""
    declared = draw(st.sampled_from([kind, kind, kind, None, "image/png", "IMAGE/JPG", "application/octet-stream"]))
    return (Base64(encode(data)) if draw(st.booleans()) else data), declared


@st.composite
def media_parts(draw: st.DrawFn) -> MediaPart:
    source, declared = draw(sources())
    kind = "fileData" if isinstance(source, Uri) else "inlineData"
    carried: Any = draw(st.sampled_from([{}, {"videoMetadata": {"fps": 1}}, {kind: {"displayName": "shot"}}]))
    return MediaPart(source=source, label="file", declared_mime=declared, carried=carried)


@st.composite
def hidden(draw: st.DrawFn) -> Json:
    """What a tool wrote: words, media in base64, or something that looks so."""
    kind = draw(st.sampled_from(sorted(DRAWN)))
    text = encode(DRAWN[kind])
    return draw(
        st.sampled_from(
            [
                f"data:{kind};base64,{text}",
                {"type": "image", "mimeType": kind, "data": text},
                json.dumps({"d": f"data:{kind};base64,{text}"}),
                f"shot: {text} and more",
                text,
                text[: len(text) // 2],
                {"$ref": "shot"},
                {"$ref": "#/definitions/a"},
            ]
        )
    )


_VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=20) | hidden()
_RESPONSES = (
    st.dictionaries(st.sampled_from(["result", "output", "media_note", "a"]), _VALUES, max_size=3)
    | st.lists(_VALUES, max_size=3)
    | _VALUES
)


@st.composite
def rounds(draw: st.DrawFn) -> list[Turn]:
    """Calls and what tools answered, in one turn or in several, with anything beside them."""
    calls = draw(st.lists(st.tuples(_NAMES, _IDS), min_size=1, max_size=3))
    asked: list[Part] = [ToolCallPart(name=n, call_id=i, wire={"functionCall": {"name": n}}) for n, i in calls]
    results: list[Part] = [
        ToolResultPart(
            name=name,
            call_id=call_id,
            response=draw(_RESPONSES),
            media=tuple(draw(st.lists(media_parts(), max_size=2))),
        )
        for name, call_id in calls
    ]
    beside: list[Part] = draw(st.lists(_TEXTS | media_parts() | _OTHERS, max_size=2))
    for one in beside:
        results.insert(draw(st.integers(0, len(results))), one)
    cut = draw(st.integers(0, len(results)))
    runs = [run for run in (results[:cut], results[cut:]) if run]
    return [Turn(role="model", parts=tuple(asked)), *(Turn(role="user", parts=tuple(run)) for run in runs)]


@st.composite
def histories(draw: st.DrawFn) -> Request:
    turns = [Turn(role="user", parts=(TextPart(text="look"),))]
    for _ in range(draw(st.integers(1, 3))):
        spoken = st.builds(
            lambda role, parts: [Turn(role=role, parts=tuple(parts))],
            st.sampled_from(["user", "model", None]),
            st.lists(_TEXTS | media_parts(), max_size=3),
        )
        turns += draw(rounds() | rounds() | spoken)
    system = draw(st.none() | _TEXTS.map(lambda part: Turn(role=None, parts=(part,))))
    return Request(turns=tuple(turns), system_instruction=system)


POLICIES = st.builds(
    Policy,
    tool_media=st.sampled_from(ToolMedia),
    base64_in_tool_text=st.sampled_from(Base64InToolText),
    refuse_mislabelled=st.booleans(),
)
RULES = st.builds(rules_for, st.sampled_from(MODELS), st.sampled_from(Backend))

holds = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def put_right(request: Request, rules: ModelRules, policy: Policy) -> tuple[Request, Screening]:
    screening = screen(request, rules, policy)
    return rewritten(request, screening), screening


def of_kind(request: Request, kind: type) -> list[Any]:
    return [part for turn in request.turns for part in turn.parts if isinstance(part, kind)]


def runs(request: Request) -> list[int]:
    """How many results stand one behind the other, with nothing of anybody else's between."""
    found = [0]
    for turn in request.turns:
        here = sum(isinstance(part, ToolResultPart) for part in turn.parts)
        found[-1] += here
        if not here and found[-1]:
            found.append(0)
    return found


def empty_turns(request: Request) -> int:
    return sum(1 for turn in request.turns if not turn.parts)


def leaves(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Everything in a JSON value that holds nothing else, with its place."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path, value


# ---- what holds


@holds
@given(histories(), RULES, POLICIES)
def test_calls_and_results_keep_their_number_order_names_and_ids_and_stand_together(
    request: Request, rules: ModelRules, policy: Policy
) -> None:
    out, screening = put_right(request, rules, policy)

    assert of_kind(out, ToolCallPart) == of_kind(request, ToolCallPart)
    assert of_kind(out, OpaquePart) == of_kind(request, OpaquePart)
    before, after = of_kind(request, ToolResultPart), of_kind(out, ToolResultPart)
    assert [(part.name, part.call_id) for part in after] == [(part.name, part.call_id) for part in before]
    assert [run for run in runs(out) if run] == [run for run in runs(request) if run]
    assert empty_turns(out) == empty_turns(request)
    for turn in out.turns:
        if any(isinstance(part, ToolResultPart) for part in turn.parts):
            assert not any(isinstance(part, TextPart) for part in turn.parts)
            assert screening.errors or not any(isinstance(part, MediaPart) for part in turn.parts)


@holds
@given(histories(), RULES, POLICIES)
def test_no_text_is_lost(request: Request, rules: ModelRules, policy: Policy) -> None:
    out, screening = put_right(request, rules, policy)

    said = Counter(part.text for part in of_kind(request, TextPart))
    assert not said - Counter(part.text for part in of_kind(out, TextPart))
    assert out.system_instruction == request.system_instruction
    gone = {one.hidden.path for one in screening.findings if one.hidden is not None}
    for old, new in zip(of_kind(request, ToolResultPart), of_kind(out, ToolResultPart), strict=True):
        written = json.dumps(new.response, ensure_ascii=False)
        for path, word in leaves(old.response):
            if path in gone or not isinstance(word, str):
                continue
            once = json.dumps(word, ensure_ascii=False)[1:-1]
            twice = json.dumps(once, ensure_ascii=False)[1:-1]  # an accidental `$ref` goes as JSON text
            assert once in written or twice in written


@holds
@given(histories(), RULES, POLICIES)
def test_a_second_pass_changes_nothing(request: Request, rules: ModelRules, policy: Policy) -> None:
    once, first = put_right(request, rules, policy)
    assume(not first.errors and not first.pending)

    twice, again = put_right(once, rules, policy)

    assert twice is once
    assert again.changes == ()
    assert again.errors == ()


@holds
@given(histories(), RULES, POLICIES)
def test_no_tool_result_holds_what_it_may_not_unless_it_is_said(
    request: Request, rules: ModelRules, policy: Policy
) -> None:
    out, screening = put_right(request, rules, policy)
    refused_or_waiting = {id(one.part) for one in screening.findings if one.error or one.decision.convert}
    sources = {id(one.part.source) for one in screening.findings if one.error or one.decision.convert}

    for part in of_kind(out, ToolResultPart):
        for medium in part.media:
            if id(medium) in refused_or_waiting or id(medium.source) in sources:
                continue
            assert rules.model not in HOLDS_NOTHING
            assert medium.declared_mime in NESTED
            assert rules.backend is Backend.VERTEX or not isinstance(medium.source, Uri)


@holds
@given(histories(), RULES, POLICIES)
def test_every_medium_is_sent_or_said_to_be_gone(request: Request, rules: ModelRules, policy: Policy) -> None:
    out, screening = put_right(request, rules, policy)

    given_ = [part for _, part, _ in request.media()]
    listed = [one for one in screening.findings if one.hidden is None]
    assert [one.part for one in listed] == given_
    left = sum(1 for _ in out.media())
    lifted = sum(one.is_sent and one.error is None for one in screening.findings if one.hidden is not None)
    assert left == sum(one.is_sent for one in listed) + lifted


@holds
@given(histories(), RULES, POLICIES)
def test_a_request_in_order_is_the_same_object_and_any_other_is_rest_json(
    request: Request, rules: ModelRules, policy: Policy
) -> None:
    out, screening = put_right(request, rules, policy)

    if out is request:
        assert screening.changes == ()
    else:
        body = rest_json.emit(out)
        read = rest_json.parse(body)
        assert rest_json.emit(read.request) == rest_json.emit(out)
        assert [turn.role for turn in read.request.turns] == [turn.role for turn in out.turns]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("backend", list(Backend))
def test_a_history_without_media_is_never_touched(model: str, backend: Backend) -> None:
    call = ToolCallPart(name="a", call_id=None, wire={"functionCall": {"name": "a"}})
    result = ToolResultPart(name="a", response={"result": "x" * 9000, "list": [1, None]})
    turns = (
        Turn(role="user", parts=(TextPart(text="a"), TextPart(text=""))),
        Turn(role="model", parts=(call,)),
        Turn(role="user", parts=(result,)),
    )
    request = Request(turns=turns * 20)

    out, screening = put_right(request, rules_for(model, backend), Policy())

    assert out is request
    assert screening == Screening()
