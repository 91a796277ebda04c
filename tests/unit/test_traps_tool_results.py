"""What goes wrong with tool results in other programs (tests/golden/known_traps.md), each with all of its kind.

A REST body comes in, is screened, and the JSON that leaves is looked at.
"""

from __future__ import annotations

import base64
import io
import json
import zipfile
from datetime import date
from itertools import combinations
from typing import Any

import pytest

import media
from weighlock.converters import rest_json
from weighlock.errors import MalformedRequest
from weighlock.planning.carrying import Action, Base64InToolText, ToolMedia
from weighlock.planning.rewrite import rewritten
from weighlock.planning.said import text_sizes
from weighlock.planning.screen import Policy, Screening, screen
from weighlock.request import Backend
from weighlock.rules import RuleBook

BOOK, DAY = RuleBook.packaged(), date(2026, 11, 30)
NEW, OLD = "gemini-3.8-flash", "gemini-2.5-flash"
NEWER = [NEW, "gemini-3-pro-preview", "gemini-4-argon"]
OLDER = [OLD, "gemini-2.5-pro", "gemini-2.0-flash"]
BACKENDS = list(Backend)
Json = dict[str, Any]


def zipped(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, "<x/>")
    return packed.getvalue()


PNG, JPEG = media.picture((8, 8)), media.picture((8, 8), "JPEG")
SOUND_AND_FILM = {
    "audio/mpeg": media.sound(0.3, "libmp3lame", "mp3"),
    "audio/wav": media.wav(0.3),
    "audio/ogg": media.sound(0.3, "libopus", "ogg", rate=48000),
    "audio/flac": media.sound(0.3, "flac", "flac"),
    "audio/mp4": media.sound(0.3, "aac", "ipod"),
    "audio/aac": media.sound(0.3, "aac", "adts"),
    "video/mp4": media.video(0.5),
    "video/webm": media.video(0.5, "webm", codec="libvpx"),
    "video/quicktime": media.video(0.5, "mov"),
    "video/x-matroska": media.video(0.5, "matroska"),
}
NO_MEDIA = {
    "image/tiff": media.picture((8, 8), "TIFF"),
    "image/svg+xml": b'<svg xmlns="http://www.w3.org/2000/svg"><rect/></svg>',
    "image/vnd.adobe.photoshop": b"8BPS\0\1" + bytes(40),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": zipped("[Content_Types].xml", "xl/a.xml"),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": zipped("word/document.xml"),
    "application/vnd.microsoft.portable-executable": b"MZ\x90\0" + bytes(60),
    "application/x-executable": b"\x7fELF\2\1\1" + bytes(60),
    "application/zip": zipped("a.bin"),
    "application/gzip": b"\x1f\x8b\x08\0" + bytes(60),
}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def inline(data: bytes, mime: str | None = "image/png", **more: Any) -> Json:
    named = {} if mime is None else {"mimeType": mime}
    return {"inlineData": {**named, "data": b64(data), **more}}


def linked(uri: str, mime: str = "image/png") -> Json:
    return {"fileData": {"mimeType": mime, "fileUri": uri}}


def answer(response: Any, *parts: Json, name: str = "shoot") -> Json:
    held = {"parts": list(parts)} if parts else {}
    return {"functionResponse": {"name": name, "response": response, **held}}


def body(*answers: Json, calls: tuple[str, ...] = ("shoot",)) -> Json:
    """A request in which a model called tools, and they answered."""
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "look"}]},
            {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in calls]},
            {"role": "user", "parts": list(answers)},
        ]
    }


def screened(
    request: Json, model: str = NEW, backend: Backend = Backend.DEVELOPER, policy: Policy | None = None
) -> tuple[list[Json], Screening]:
    """The contents that leave, and what was found."""
    parsed = rest_json.parse(json.dumps(request).encode())
    screening = screen(parsed.request, BOOK.for_model(model, backend, DAY), policy or Policy())
    sent: Json = json.loads(rest_json.emit(rewritten(parsed.request, screening), parsed))
    return sent["contents"], screening


def response_of(contents: list[Json], index: int = 0) -> Json:
    found: Json = contents[2]["parts"][index]["functionResponse"]
    return found


def nested_types(contents: list[Json], index: int = 0) -> list[str]:
    return [part["inlineData"]["mimeType"] for part in response_of(contents, index).get("parts", [])]


def moved(contents: list[Json]) -> list[Json]:
    """The media in the turn behind the results."""
    parts = contents[3]["parts"] if len(contents) > 3 else []
    return [part for part in parts if "text" not in part]


# ---- TUL-001: base64 in a tool's text

SHAPES: dict[str, Any] = {
    "mcp": lambda d, m: {"content": [{"type": "image", "mimeType": m, "data": d}]},
    "anthropic": lambda d, m: [{"type": "image", "source": {"type": "base64", "media_type": m, "data": d}}],
    "langchain": lambda d, m: {"result": [{"type": "image", "base64": d, "mime_type": m}]},
    "openai": lambda d, m: {"result": {"image_url": {"url": f"data:{m};base64,{d}"}}},
    "sdk": lambda d, m: {"result": {"inline_data": {"mime_type": m, "data": d}}},
    "markdown": lambda d, m: {"result": f"![shot](data:{m};base64,{d})"},
    "as json": lambda d, m: {"result": json.dumps([{"type": "image", "base64": d, "mime_type": m}])},
    "bare": lambda d, _: {"result": d},
}
LARGE = media.png_header((8, 8), media.png_chunk(b"teSt", bytes(range(256)) * 16))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", [*NEWER, *OLDER, "my-tuned-model"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_base64_of_a_picture_stays_in_a_tool_s_text(shape: str, model: str, backend: Backend) -> None:
    contents, screening = screened(body(answer(SHAPES[shape](b64(LARGE), "image/png"))), model, backend)

    assert b64(LARGE)[:200] not in json.dumps(response_of(contents)["response"])
    assert screening.errors == ()
    where = moved(contents) if model in OLDER else response_of(contents)["parts"]
    assert where == [inline(LARGE)]


@pytest.mark.parametrize("wanted", [Base64InToolText.NOTE, Base64InToolText.KEEP])
def test_an_endpoint_may_want_a_note_or_the_text_itself(wanted: Base64InToolText) -> None:
    request = body(answer(SHAPES["mcp"](b64(LARGE), "image/png")))

    contents, screening = screened(request, policy=Policy(base64_in_tool_text=wanted))

    kept = b64(LARGE) in json.dumps(response_of(contents))
    assert kept is (wanted is Base64InToolText.KEEP)
    assert "parts" not in response_of(contents)
    assert len(screening.findings) == 1


# ---- TUL-002: sound and film in a tool result


@pytest.mark.parametrize("mime", SOUND_AND_FILM)
@pytest.mark.parametrize("model", [*NEWER, *OLDER, "my-tuned-model"])
def test_sound_and_film_leave_a_tool_result_with_a_note(mime: str, model: str) -> None:
    data = SOUND_AND_FILM[mime]

    for backend in BACKENDS:
        contents, screening = screened(body(answer({"result": "ok"}, inline(data, mime))), model, backend)

        found = response_of(contents)
        assert "parts" not in found
        assert found["response"]["result"] == "ok"
        assert mime in found["response"]["media_note"]
        assert f"{len(data):,} bytes" in found["response"]["media_note"]
        assert len(contents) == 3
        assert screening.errors == ()


@pytest.mark.parametrize("mime", [mime for mime in SOUND_AND_FILM if mime != "video/x-matroska"])
@pytest.mark.parametrize("model", [NEW, OLD])
def test_a_poisoned_history_heals_and_a_second_pass_changes_nothing(mime: str, model: str) -> None:
    poisoned = body(answer({"result": "ok"}, inline(SOUND_AND_FILM[mime], mime), inline(PNG)))
    poisoned["contents"] += [{"role": "model", "parts": [{"text": "so"}]}, {"role": "user", "parts": [{"text": "on"}]}]

    for tool_media in (ToolMedia.FILTER, ToolMedia.RELOCATE):
        once, screening = screened(poisoned, model, policy=Policy(tool_media=tool_media))
        twice, again = screened({"contents": once}, model, policy=Policy(tool_media=tool_media))

        assert screening.errors == again.errors == ()
        assert twice == once
        assert mime not in json.dumps(nested_types(once))
        relocated = [part["inlineData"]["data"] for part in moved(once) if "inlineData" in part]
        assert (b64(SOUND_AND_FILM[mime]) in relocated) is (tool_media is ToolMedia.RELOCATE)


# ---- TUL-004: media beside the results of parallel calls


@pytest.mark.parametrize("model", [*OLDER, *NEWER])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_media_beside_parallel_results_leave_one_result_for_each_call(model: str, at: int) -> None:
    answers = [answer({"result": "a"}, name="a"), answer({"result": "b"}, name="b")]
    answers.insert(at, inline(PNG))

    contents, screening = screened(body(*answers, calls=("a", "b")), model)

    assert [list(part) for part in contents[2]["parts"]] == [["functionResponse"], ["functionResponse"]]
    assert [response_of(contents, n)["name"] for n in (0, 1)] == ["a", "b"]
    assert (contents[3]["role"], contents[3]["parts"]) == ("user", [inline(PNG)])
    assert screening.errors == ()


@pytest.mark.parametrize("model", OLDER)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_media_of_one_of_parallel_results_go_behind_the_last(model: str, at: int) -> None:
    calls = ("a", "b", "c")
    answers = [answer({"result": n}, *([inline(PNG)] if n == calls[at] else []), name=n) for n in calls]

    contents, _ = screened(body(*answers, calls=calls), model)

    assert [list(part) for part in contents[2]["parts"]] == [["functionResponse"]] * 3
    assert moved(contents) == [inline(PNG)]
    assert f'tool="{calls[at]}"' in contents[3]["parts"][0]["text"]


# ---- TUL-006: another body for each model and backend


def test_each_model_and_backend_gets_its_own_body_and_nothing_is_dropped_in_silence() -> None:
    request = body(answer({"shot": {"$ref": "shot"}}, inline(PNG, displayName="shot")))

    old, old_found = screened(request, OLD)
    developer, new_found = screened(request, NEW)
    vertex, vertex_found = screened(request, NEW, Backend.VERTEX)

    assert "parts" not in response_of(old)
    assert "next message" in response_of(old)["response"]["media_note"]
    assert moved(old)[0]["inlineData"]["data"] == b64(PNG)
    assert response_of(developer)["response"] == {"output": '{"shot": {"$ref": "shot"}}'}
    assert nested_types(developer) == ["image/png"]
    assert vertex == request["contents"]
    assert [len(found.findings) for found in (old_found, new_found, vertex_found)] == [1, 1, 1]


@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_tool_result_may_hold_stays_there_from_gemini_3_on_and_moves_before(mime: str, backend: Backend) -> None:
    drawn = {
        "image/png": PNG,
        "image/jpeg": JPEG,
        "image/webp": media.picture((8, 8), "WEBP"),
        "application/pdf": media.pdf(),
        "text/plain": b"just words",
    }
    request = body(answer({"result": "ok"}, inline(drawn[mime], mime)))

    for model in NEWER:
        assert screened(request, model, backend)[0] == request["contents"]
    for model in OLDER:
        contents, _ = screened(request, model, backend)
        assert "parts" not in response_of(contents)
        assert moved(contents) == [inline(drawn[mime], mime)]


# ---- TUL-007: a part that holds two things

PAYLOADS: dict[str, Any] = {
    "text": "a",
    "inlineData": {"mimeType": "image/png", "data": b64(PNG)},
    "fileData": {"mimeType": "image/png", "fileUri": "gs://b/a.png"},
    "functionCall": {"name": "a", "args": {}},
    "functionResponse": {"name": "a", "response": {}},
}
SNAKE = {name: "".join(f"_{c.lower()}" if c.isupper() else c for c in name) for name in PAYLOADS}


@pytest.mark.parametrize(("one", "other"), list(combinations(PAYLOADS, 2)))
@pytest.mark.parametrize("spelt", [dict(zip(PAYLOADS, PAYLOADS, strict=True)), SNAKE], ids=["camel", "snake"])
def test_a_part_that_holds_two_things_is_refused_by_name_and_place(one: str, other: str, spelt: dict[str, str]) -> None:
    part = {spelt[one]: PAYLOADS[one], spelt[other]: PAYLOADS[other]}

    with pytest.raises(MalformedRequest, match=f"holds {one} and {other}") as raised:
        rest_json.parse({"contents": [{"role": "user", "parts": [{"text": "x"}, part]}]})

    assert raised.value.figures["place"] == "contents[0].parts[1]"


def test_a_nested_part_that_holds_two_things_is_refused_too() -> None:
    with pytest.raises(MalformedRequest, match="holds inlineData and fileData"):
        rest_json.parse(body(answer({}, {**inline(PNG), **linked("gs://b/a.png")})))


# ---- TUL-008: a URL in a tool result

URLS = [
    "https://example.com/a.png",
    "http://example.com/a.png",
    "gs://bucket/a.png",
    "https://generativelanguage.googleapis.com/v1beta/files/abc-123",
]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("model", [NEW, OLD, "my-tuned-model"])
@pytest.mark.parametrize("tool_media", [ToolMedia.FILTER, ToolMedia.RELOCATE])
def test_a_reference_never_stays_in_a_tool_result_of_the_developer_api(
    url: str, model: str, tool_media: ToolMedia
) -> None:
    request = body(answer({"result": "ok"}, linked(url)))

    contents, _ = screened(request, model, policy=Policy(tool_media=tool_media))

    assert "parts" not in response_of(contents)
    assert "next message" in response_of(contents)["response"]["media_note"]
    assert url not in json.dumps(response_of(contents))
    assert moved(contents) == [linked(url)]


@pytest.mark.parametrize("url", URLS)
def test_vertex_reads_a_reference_from_gemini_3_on(url: str) -> None:
    request = body(answer({"result": "ok"}, linked(url)))

    if "/files/" in url:  # the Developer API's, which Vertex does not read
        assert "gs://" in response_of(screened(request, NEW, Backend.VERTEX)[0])["response"]["media_note"]
    else:
        assert screened(request, NEW, Backend.VERTEX)[0] == request["contents"]
    assert "parts" not in response_of(screened(request, OLD, Backend.VERTEX)[0])


@pytest.mark.parametrize("url", URLS)
def test_a_url_in_a_tool_s_words_stays_words(url: str) -> None:
    request = body(answer({"type": "image_url", "image_url": {"url": url}, "mimeType": "image/png", "data": url}))

    assert screened(request)[0] == request["contents"]


@pytest.mark.parametrize("label", ["image/png", "image/gif", "application/octet-stream"])
def test_a_data_uri_becomes_inline_data_of_the_type_its_bytes_are(label: str) -> None:
    contents, _ = screened(body(answer({"image_url": {"url": f"data:{label};base64,{b64(JPEG)}"}})))

    assert response_of(contents)["parts"] == [inline(JPEG, "image/jpeg")]


# ---- TUL-009: one gate for every way in

EVERY = {
    **SOUND_AND_FILM,
    **NO_MEDIA,
    "image/png": PNG,
    "image/gif": media.picture((8, 8), "GIF"),
    "image/bmp": media.picture((8, 8), "BMP"),
    "image/avif": media.picture((8, 8), "AVIF"),
    "application/pdf": media.pdf(),
    "text/csv": b"a,b,c\n1,2,3\n4,5,6\n",
}


@pytest.mark.parametrize("mime", EVERY)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_medium_out_of_a_tool_meets_the_same_gate_as_in_a_user_turn(mime: str, backend: Backend) -> None:
    data = EVERY[mime]
    spoken = {"contents": [{"role": "user", "parts": [{"text": "look"}, inline(data, mime)]}]}
    relocate = Policy(tool_media=ToolMedia.RELOCATE)
    (asked,) = screened(spoken, OLD, backend)[1].findings

    for request in (
        body(answer({"result": "ok"}, inline(data, mime))),
        body(answer({"result": "ok"}), inline(data, mime)),
        body(answer({"mimeType": "image/png", "data": f"data:{mime};base64,{b64(data)}"})),
    ):
        found = screened(request, OLD, backend, relocate)[1].findings
        if not found:
            assert mime.startswith("text/") or mime in NO_MEDIA
            continue
        (one,) = found
        if asked.decision.action is Action.REJECT:
            assert one.decision.action in (Action.REMOVE, Action.REJECT)
        else:
            assert one.decision.action is Action.RELOCATE
            assert (one.decision.convert, one.decision.send_as) == (asked.decision.convert, asked.decision.send_as)


@pytest.mark.parametrize(("mime", "target"), [("image/gif", "png"), ("image/bmp", "png"), ("image/avif", "webp")])
@pytest.mark.parametrize("model", NEWER)
def test_a_convertible_picture_is_converted_in_a_tool_result_as_in_a_user_turn(
    mime: str, target: str, model: str
) -> None:
    spoken = {"contents": [{"role": "user", "parts": [{"text": "look"}, inline(EVERY[mime], mime)]}]}

    for request in (spoken, body(answer({"result": "ok"}, inline(EVERY[mime], mime)))):
        (one,) = screened(request, model)[1].pending
        assert (one.decision.action, one.decision.send_as) == (Action.CONVERT, f"image/{target}")


# ---- TUL-010: an answer that is no object


@pytest.mark.parametrize(
    "value",
    [
        "ok",
        "",
        3,
        0,
        1.5,
        True,
        False,
        [1, 2],
        [],
        [{"a": 1}, "b"],
        None,
    ],
    ids=repr,
)
@pytest.mark.parametrize("model", [NEW, OLD])
def test_an_answer_that_is_no_object_is_wrapped_and_weighed_so(value: Any, model: str) -> None:
    parsed = rest_json.parse(body(answer(value)))
    screening = screen(parsed.request, BOOK.for_model(model, Backend.DEVELOPER, DAY), Policy())
    out = rewritten(parsed.request, screening)
    contents = json.loads(rest_json.emit(out, parsed))["contents"]

    assert response_of(contents)["response"] == {"result": value}
    again = rest_json.parse({"contents": contents}).request
    assert text_sizes(out) == text_sizes(again)


# ---- TUL-011: what an MCP server answers


@pytest.mark.parametrize("where", ["content", "result", "structuredContent"])
def test_every_block_of_an_mcp_result_becomes_what_it_is(where: str) -> None:
    blocks = [
        {"type": "text", "text": "here you are"},
        {"type": "image", "data": b64(PNG), "mimeType": "image/png"},
        {"type": "audio", "data": b64(media.wav(0.3)), "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "f://a.pdf", "mimeType": "application/pdf", "blob": b64(media.pdf())}},
        {"type": "resource", "resource": {"uri": "f://a.txt", "mimeType": "text/plain", "text": "words"}},
        {"type": "resource_link", "uri": "https://example.com/a.png", "mimeType": "image/png"},
    ]

    contents, screening = screened(body(answer({where: blocks, "isError": False})))

    kept = response_of(contents)["response"]
    assert nested_types(contents) == ["image/png", "application/pdf"]
    assert [kept[where][at] for at in (0, 4, 5)] == [blocks[at] for at in (0, 4, 5)]
    assert kept[where][1]["data"] == f"[image/png, {len(PNG)} bytes: attached to this result]"
    assert "removed, because" in kept[where][2]["data"]
    assert "attached" in kept[where][3]["resource"]["blob"]
    assert screening.errors == ()


# ---- TUL-012: what no model takes


@pytest.mark.parametrize("mime", NO_MEDIA)
@pytest.mark.parametrize("model", [*NEWER, *OLDER])
@pytest.mark.parametrize("tool_media", [ToolMedia.FILTER, ToolMedia.RELOCATE])
def test_what_no_model_takes_leaves_a_note_and_the_request_goes_on(
    mime: str, model: str, tool_media: ToolMedia
) -> None:
    data = NO_MEDIA[mime]
    request = body(answer({"result": "ok"}, inline(data, mime), inline(PNG)))

    for backend in BACKENDS:
        contents, screening = screened(request, model, backend, Policy(tool_media=tool_media))

        note = response_of(contents)["response"]["media_note"]
        assert f"{mime}, {len(data):,} bytes: removed, because" in note
        assert b64(data) not in json.dumps(contents)
        assert screening.errors == ()
        screening.demand_sendable()


# ---- TUL-013: keep, text or a note


@pytest.mark.parametrize(
    ("data", "declared", "outcome"),
    [
        (b"a,b,c\n1,2,3\n4,5,6\n", "application/csv", "text/plain"),
        (b"a,b,c\n1,2,3\n4,5,6\n", "text/csv", "text/plain"),
        (b'{"a": [1, 2]}', "application/json", "text/plain"),
        (b"<?xml version='1.0'?><a><b/></a>", "application/xml", "text/plain"),
        (b"key: value\nother: 1\n", "application/yaml", "text/plain"),
        (b"just words", "text/plain", "text/plain"),
        (PNG, "image/png", "image/png"),
        (JPEG, "image/jpeg", "image/jpeg"),
        (media.pdf(), "application/pdf", "application/pdf"),
        (NO_MEDIA["application/zip"], "application/zip", "note"),
        (zipped("word/document.xml"), "application/msword", "note"),
        (bytes(range(256)) * 3, "application/octet-stream", "note"),
        (bytes(range(256)) * 3, None, "note"),
    ],
)
def test_an_artifact_is_kept_read_as_text_or_named_in_a_note(data: bytes, declared: str | None, outcome: str) -> None:
    for backend in BACKENDS:
        contents, screening = screened(body(answer({"result": "ok"}, inline(data, declared))), NEW, backend)

        if outcome == "note":
            assert f"{len(data):,} bytes: removed" in response_of(contents)["response"]["media_note"]
            assert "parts" not in response_of(contents)
        else:
            assert response_of(contents)["parts"] == [inline(data, outcome)]
            assert response_of(contents)["response"] == {"result": "ok"}
        assert screening.errors == ()
