"""What the SDK takes ⇄ Request. Runs on google-genai 2.30 … 3.x (tests/external/test_genai_majors.py)."""

from __future__ import annotations

import base64
import copy
import dataclasses
import http.server
import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import google.genai
import pytest
from google.genai import _transformers, types
from google.oauth2.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from pydantic import BaseModel, create_model
from pydantic.alias_generators import to_camel

import media
from weighlock.converters import rest_json
from weighlock.converters.genai_types import emit, parse
from weighlock.encoded import Base64
from weighlock.errors import MalformedMedia, MalformedRequest, UnreadableSource
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

PNG = media.picture((16, 12))
JPEG = media.picture((16, 12), "JPEG")
SIGNATURE = b"\xfb\xff\xfe"
"""Its base64 differs between the two alphabets."""
OWNED = {"args", "response", "labels", "partMetadata", "responseJsonSchema", "parametersJsonSchema"}
"""Fields whose keys are the caller's."""


# ---- what the SDK really sends


class Capture(http.server.BaseHTTPRequestHandler):
    bodies: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = b'{"candidates": []}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None: ...


@dataclasses.dataclass
class Sdk:
    """The real SDK, talking to a server of ours."""

    url: str
    bodies: list[dict[str, Any]]
    clients: dict[str, google.genai.Client] = dataclasses.field(default_factory=dict)

    def sends(self, contents: Any, config: Any = None, backend: str = "developer") -> dict[str, Any]:
        """The body, every name of the API in camelCase and every base64 in the standard alphabet."""
        if backend not in self.clients:
            self.clients[backend] = google.genai.Client(http_options={"base_url": self.url}, **self._account(backend))
        self.clients[backend].models.generate_content(model="gemini-3.5-flash", contents=contents, config=config)
        body: dict[str, Any] = canonical(self.bodies.pop())
        return body

    @staticmethod
    def _account(backend: str) -> dict[str, Any]:
        if backend == "developer":
            return {"api_key": "x"}
        token = Credentials("token")  # type: ignore[no-untyped-call]
        return {"vertexai": True, "credentials": token, "project": "p", "location": "us-central1"}


@pytest.fixture(scope="module")
def sdk() -> Iterator[Sdk]:
    handler = type("Handler", (Capture,), {"bodies": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    sdk = Sdk(f"http://127.0.0.1:{server.server_port}", handler.bodies)  # type: ignore[attr-defined]
    yield sdk
    for client in sdk.clients.values():
        client.close()
    server.shutdown()
    server.server_close()
    thread.join()


def canonical(value: Any, key: str = "") -> Any:
    if key in OWNED:
        return value
    if isinstance(value, dict):
        return {k if key == "properties" else to_camel(k): canonical(v, to_camel(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [canonical(item, key) for item in value]
    if key in ("data", "thoughtSignature"):
        return value.replace("-", "+").replace("_", "/")
    return value


def said(request: Request) -> dict[str, Any]:
    return rest_json.document(request)


def fresh(contents: Any) -> list[types.Content]:
    """What the SDK makes of contents, the way a call takes."""
    coerced = types._GenerateContentParameters(model="m", contents=contents).contents
    return _transformers.t_contents(coerced)


def only(contents: Any) -> Any:
    [turn] = parse(contents).request.turns
    [part] = turn.parts
    return part


# ---- every form


def forms() -> dict[str, Any]:
    return {
        "text": "hello",
        "empty text": "",
        "part": types.Part(text="a"),
        "file": types.File(uri="gs://b/a.mp4", mime_type="video/mp4", display_name="a"),
        "file dict": [{"uri": "gs://b/a.mp4", "mimeType": "video/mp4", "name": "files/a"}],
        "part dict": {"text": "a"},
        "snake dict": [{"inline_data": {"data": PNG, "mime_type": "image/png"}}],
        "camel dict": [{"inlineData": {"data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}}],
        "content": types.Content(role="user", parts=[types.Part(text="a")]),
        "content without a role": types.Content(parts=[types.Part(text="a")]),
        "content without parts": [types.Content(role="user", parts=[])],
        "content dict": {"role": "model", "parts": [{"text": "a"}]},
        "list": ["a", types.Part(text="b"), "c"],
        "tuple": ("a", "b"),
        "nested": ["a", ["b", types.Part(text="c")], "d"],
        "call and result": [
            "go",
            types.Part(function_call=types.FunctionCall(name="f", args={"a_b": 1})),
            types.Part(function_call=types.FunctionCall(name="g", args={"aB": {"c_d": []}})),
            types.Part(function_response=types.FunctionResponse(name="f", response={"r_s": 1})),
            types.Part(function_response=types.FunctionResponse(name="g", response={})),
        ],
        "between contents": ["a", {"role": "user", "parts": [{"text": "b"}]}, "c", types.Content(), "d"],
        "nested call": [[{"functionCall": {"name": "f"}}]],
    }


@pytest.mark.parametrize("backend", ["developer", "vertex"])
@pytest.mark.parametrize("form", forms())
def test_every_form_is_read_as_what_the_sdk_sends(form: str, backend: str, sdk: Sdk) -> None:
    contents = forms()[form]

    assert said(parse(contents).request) == {"contents": [], **without_none(sdk.sends(contents, backend=backend))}


def without_none(body: dict[str, Any]) -> dict[str, Any]:
    for content in body["contents"]:
        content.setdefault("parts", [])
    return body


@pytest.mark.parametrize("form", forms())
def test_what_is_built_anew_is_what_the_sdk_would_have_built(form: str) -> None:
    contents = forms()[form]
    parsed = parse(contents)

    rebuilt, _ = emit(parsed.request)
    kept, _ = emit(replace(parsed.request, model="m"), parsed)

    dumped = [{"parts": [], **content.model_dump(exclude_none=True)} for content in fresh(contents)]
    assert [content.model_dump(exclude_none=True) for content in rebuilt] == dumped
    assert [{"parts": [], **content.model_dump(exclude_none=True)} for content in kept] == dumped


@pytest.mark.parametrize("contents", ["a", ["a", types.Part(text="b")], types.Content(parts=[types.Part(text="c")])])
def test_an_unchanged_request_leaves_as_the_very_objects_that_came(contents: Any) -> None:
    config = types.GenerateContentConfig(temperature=0.5)
    parsed = parse(contents, config)

    emitted = emit(parsed.request, parsed)

    assert emitted[0] is contents
    assert emitted[1] is config


def test_a_dict_of_uri_and_type_is_read_and_leaves_in_a_form_the_sdk_takes(sdk: Sdk) -> None:
    parsed = parse({"file_uri": "gs://b/a.mp4", "mime_type": "video/mp4"})

    [part] = parsed.request.turns[0].parts
    assert part == MediaPart(source=Uri("gs://b/a.mp4"), label="contents[0].parts[0]", declared_mime="video/mp4")
    assert sdk.sends(*emit(parsed.request, parsed)) == said(parsed.request)


def test_objects_of_another_copy_of_the_sdk_are_read_likewise() -> None:
    def copied(kind: type[BaseModel]) -> Any:
        fields: dict[str, Any] = dict.fromkeys([*kind.model_fields, "other"], (Any, None))
        return create_model(kind.__name__, **fields)

    theirs = [copied(kind) for kind in (types.Content, types.Part, types.File)]
    content_type, part_type, file_type = theirs
    contents = [
        content_type(role="user", parts=[part_type(text="a")]),
        part_type(text="b"),
        file_type(uri="gs://b/a", mime_type="a/b"),
    ]
    ours = [
        types.Content(role="user", parts=[types.Part(text="a")]),
        types.Part(text="b"),
        types.File(uri="gs://b/a", mime_type="a/b"),
    ]

    parsed = parse(contents)

    assert parsed.request == parse(ours).request
    assert emit(replace(parsed.request, model="m"), parsed)[0][1:] == emit(parse(ours).request)[0][1:]


@pytest.mark.parametrize(
    ("contents", "place"),
    [
        (None, "contents"),
        ([], "contents"),
        (["a", "b", b"bytes"], "contents[2]"),
        (Path("a.png"), "contents[0]"),
        (["a", types.Blob(data=b"a", mime_type="image/png")], "contents[1]"),
        ([["a", ["b"]]], "contents[0][1]"),
        (["a", []], "contents[1]"),
        ([1], "contents[0]"),
        ([None], "contents[0]"),
        ({"text": "a", "other": 1}, "contents[0].other"),
        ({"text": "a", 1: 1}, "contents[0]"),
        ({"parts": [{"text": 5}]}, "contents[0].parts[0].text"),
        ([types.File(name="files/a")], "contents[0]"),
        ([types.Part(text="a", file_data=types.FileData(file_uri="gs://b/a"))], "contents[0].parts[0]"),
        (
            ["a", {"role": "user", "parts": [{"text": "b"}, {"text": "c", "function_call": {"name": "f"}}]}],
            "contents[1].parts[1]",
        ),
        ([types.Part(function_call=types.FunctionCall(args={}))], "contents[0].parts[0].functionCall.name"),
        ([types.Part(inline_data=types.Blob(mime_type="image/png"))], "contents[0].parts[0].inlineData.data"),
    ],
)
def test_what_the_sdk_refuses_is_refused_with_its_place(contents: Any, place: str) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        parse(contents)

    assert refusal.value.figures["place"] == place


def test_a_refusal_holds_nothing_of_the_input() -> None:
    with pytest.raises(MalformedRequest) as refusal:
        parse({"inline_data": {"data": "s€cret", "mime_type": "image/png"}})

    assert "cret" not in str(refusal.value)
    assert refusal.value.figures["place"] == "contents[0].inlineData.data"


# ---- parts


def test_text_keeps_what_stands_beside_it() -> None:
    part = only(types.Part(text="a", thought=True, thought_signature=SIGNATURE))

    assert part == TextPart(text="a", carried={"thought": True, "thoughtSignature": "+//+"})


def test_a_medium_keeps_its_bytes_its_name_and_its_controls() -> None:
    data = bytes(PNG)
    part = only(
        types.Part(
            inline_data=types.Blob(data=data, mime_type="image/png", display_name="shot.png"),
            video_metadata=types.VideoMetadata(start_offset="1.5s", fps=0.5),
            media_resolution=types.PartMediaResolution(
                level=types.PartMediaResolutionLevel.MEDIA_RESOLUTION_LOW, num_tokens=3
            ),
            thought_signature=SIGNATURE,
        )
    )

    assert part == MediaPart(
        source=PNG,
        label="shot.png",
        declared_mime="image/png",
        carried={
            "videoMetadata": {"startOffset": "1.5s", "fps": 0.5},
            "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW", "numTokens": 3},
            "thoughtSignature": "+//+",
            "inlineData": {"displayName": "shot.png"},
        },
    )
    assert part.source is data


def test_a_tool_result_keeps_its_own_media_and_flags() -> None:
    response = {"snake_case": {"camelCase": None}}
    result = types.FunctionResponse(
        id="7",
        name="shot",
        response=response,
        will_continue=True,
        scheduling=types.FunctionResponseScheduling.SILENT,
        parts=[
            types.FunctionResponsePart.from_bytes(data=PNG, mime_type="image/png"),
            types.FunctionResponsePart(
                file_data=types.FunctionResponseFileData(file_uri="gs://b/a.pdf", display_name="a.pdf")
            ),
            types.FunctionResponsePart(),
        ],
    )

    assert only(types.Part(function_response=result, thought=False)) == ToolResultPart(
        name="shot",
        call_id="7",
        response=response,
        media=(
            MediaPart(source=PNG, label="contents[0].parts[0].functionResponse.parts[0]", declared_mime="image/png"),
            MediaPart(source=Uri("gs://b/a.pdf"), label="a.pdf", carried={"fileData": {"displayName": "a.pdf"}}),
            OpaquePart(wire={}),
        ),
        carried={"thought": False, "functionResponse": {"willContinue": True, "scheduling": "SILENT"}},
    )


def test_calls_and_what_we_do_not_understand_are_carried_whole() -> None:
    call = types.Part(
        function_call=types.FunctionCall(id="1", name="f", args={"start_at": [{"endAt": None}]}),
        thought_signature=SIGNATURE,
    )
    code = types.Part(executable_code=types.ExecutableCode(code="1", language=types.Language.PYTHON))

    turns = parse([call, code, types.Part()]).request.turns

    wire = {
        "functionCall": {"id": "1", "name": "f", "args": {"start_at": [{"endAt": None}]}},
        "thoughtSignature": "+//+",
    }
    assert turns[0] == Turn(role="model", parts=(ToolCallPart(name="f", call_id="1", wire=wire),))
    assert turns[1] == Turn(
        role="user",
        parts=(
            OpaquePart(wire={"executableCode": {"code": "1", "language": "PYTHON"}}),
            OpaquePart(wire={}),
        ),
    )


# ---- writing


def test_only_what_was_changed_is_built_anew() -> None:
    history = [
        types.Content(
            role="user", parts=[types.Part(text="a"), types.Part.from_bytes(data=PNG, mime_type="image/png")]
        ),
        types.Content(role="model", parts=[types.Part(text="b")]),
    ]
    before = copy.deepcopy(history)
    parsed = parse(history)
    text, picture = parsed.request.turns[0].parts
    assert isinstance(picture, MediaPart)
    smaller = replace(picture, source=JPEG, declared_mime="image/jpeg")
    changed = replace(parsed.request, turns=(Turn(role="user", parts=(text, smaller)), parsed.request.turns[1]))

    contents, config = emit(changed, parsed)

    assert contents[1] is history[1]
    assert contents[0].parts[0] is history[0].parts[0]  # type: ignore[index]
    assert contents[0].parts[1].inline_data == types.Blob(data=JPEG, mime_type="image/jpeg")
    assert contents[0].parts[1].inline_data.data is JPEG
    assert history == before
    assert config is None


def test_a_caller_who_goes_on_writing_his_history_mixes_up_nothing() -> None:
    turn = types.Content(role="user", parts=[types.Part(text="a"), types.Part(text="b")])
    parsed = parse([turn])
    assert turn.parts is not None
    turn.parts.insert(0, types.Part(text="later"))
    changed = replace(parsed.request.turns[0], parts=parsed.request.turns[0].parts[1:])

    contents, _ = emit(replace(parsed.request, turns=(changed,)), parsed)

    assert contents == [types.Content(role="user", parts=[types.Part(text="b")])]


def test_every_source_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    file = io.BytesIO(PNG)
    file.seek(5)
    sources = (PNG, path, Base64(base64.urlsafe_b64encode(PNG).decode()), file)
    parts = tuple(MediaPart(source=source, label="a", declared_mime="image/png") for source in sources)

    contents, _ = emit(Request(turns=(Turn(role="user", parts=parts),)))

    assert [part.inline_data.data for part in contents[0].parts] == [PNG] * 4
    assert file.tell() == 5


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (MediaPart(source=Path("/nowhere/a.png"), label="a"), UnreadableSource),
        (MediaPart(source=Base64("a b"), label="a"), MalformedMedia),
        (TextPart(text="a", carried={"ofTomorrow": 1}), MalformedRequest),
        (OpaquePart(wire={"kindOfTomorrow": {}}), MalformedRequest),
        (ToolResultPart(name="f", response="no object"), MalformedRequest),
    ],
)
def test_what_this_sdk_cannot_hold_is_refused(part: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        emit(Request(turns=(Turn(role="user", parts=(part,)),)))


# ---- config


class Answer(BaseModel):
    word: str
    count: int | None = None


def weather(city: str, days: int = 1) -> str:
    """The weather there."""
    return f"{city} {days}"


def configs() -> dict[str, Any]:
    return {
        "none": None,
        "empty": types.GenerateContentConfig(),
        "dict": {"temperature": 0.5, "topP": 0.25, "max_output_tokens": 5, "systemInstruction": "be brief"},
        "thinking": types.GenerateContentConfig(
            thinking_config=types.ThinkingConfig(thinking_budget=5, include_thoughts=True),
            media_resolution=types.MediaResolution.MEDIA_RESOLUTION_LOW,
            response_modalities=["TEXT"],
            stop_sequences=["a_b"],
            speech_config="Puck",
        ),
        "tools": types.GenerateContentConfig(
            tools=[
                weather,
                types.Tool(google_search=types.GoogleSearch()),
                types.Tool(
                    function_declarations=[
                        types.FunctionDeclaration(
                            name="f",
                            parameters=types.Schema(
                                type=types.Type.OBJECT, properties={"snake_case": types.Schema(type=types.Type.STRING)}
                            ),
                        )
                    ]
                ),
            ],
            tool_config=types.ToolConfig(
                function_calling_config=types.FunctionCallingConfig(
                    mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["f"]
                )
            ),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        ),
        "schema": types.GenerateContentConfig(response_mime_type="application/json", response_schema=Answer),
        "schema dict": {"response_schema": {"type": "OBJECT", "properties": {"a_b": {"type": "STRING"}}}},
        "list schema": {"response_schema": list[Answer]},
        "JSON schema": {"response_json_schema": {"type": "object", "properties": {"a_b": {"max_length": 1}}}},
        "safety": types.GenerateContentConfig(
            safety_settings=[
                types.SafetySetting(
                    category=types.HarmCategory.HARM_CATEGORY_HATE_SPEECH,
                    threshold=types.HarmBlockThreshold.BLOCK_NONE,
                )
            ],
        ),
        "cached": {"cached_content": "cachedContents/abc", "seed": 7},
        "system parts": {"system_instruction": ["a", types.Part(text="b")]},
        "system content": {"system_instruction": types.Content(parts=[types.Part(text="a")])},
        "system part dict": {"system_instruction": {"text": "a"}},
        "extra body": {"seed": 1, "http_options": {"extra_body": {"generationConfig": {"newKnob": 2}, "newField": 3}}},
    }


@pytest.mark.parametrize("backend", ["developer", "vertex"])
@pytest.mark.parametrize("name", configs())
def test_a_config_is_read_as_what_the_sdk_sends(name: str, backend: str, sdk: Sdk) -> None:
    config = configs()[name]
    sent = sdk.sends("a", copy.deepcopy(config), backend)
    sent = {key: value for key, value in sent.items() if value or key != "generationConfig"}
    if backend == "vertex" and name == "cached":
        sent["cachedContent"] = sent["cachedContent"].removeprefix("projects/p/locations/us-central1/")

    assert said(parse("a", config).request) == sent


@pytest.mark.parametrize("name", configs())
def test_a_config_built_anew_says_the_same(name: str, sdk: Sdk) -> None:
    request = parse("a", configs()[name]).request

    contents, config = emit(request)

    assert parse(contents, config).request == request
    assert said(request) == {k: v for k, v in sdk.sends(contents, config).items() if v or k != "generationConfig"}


@pytest.mark.parametrize(
    "config",
    [
        types.GenerateContentConfig(media_resolution=types.MediaResolution.MEDIA_RESOLUTION_HIGH, tools=[weather]),
        {"mediaResolution": "MEDIA_RESOLUTION_HIGH", "tools": [weather]},
        {"media_resolution": "MEDIA_RESOLUTION_HIGH", "tools": [weather]},
    ],
)
def test_only_the_changed_field_of_a_config_is_written(config: Any) -> None:
    before = copy.copy(config)
    parsed = parse("a", config)
    lower = {**parsed.request.carried, "generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"}}

    _, changed = emit(replace(parsed.request, carried=lower), parsed)

    assert type(changed) is type(config)
    assert config == before
    assert parse("a", changed).request.carried == lower
    tools = changed["tools"] if isinstance(changed, dict) else changed.tools  # type: ignore[union-attr]
    assert tools[0] is weather  # type: ignore[index]


def test_a_changed_system_instruction_is_written_and_its_unchanged_parts_stay() -> None:
    kept = types.Part(text="kept")
    config = types.GenerateContentConfig(system_instruction=[kept, "dropped"], seed=1)
    parsed = parse("a", config)
    system = parsed.request.system_instruction
    assert system is not None
    shorter = replace(system, parts=system.parts[:1])

    contents, changed = emit(replace(parsed.request, system_instruction=shorter), parsed)

    assert isinstance(changed, types.GenerateContentConfig)
    instruction = changed.system_instruction
    assert isinstance(instruction, types.Content)
    assert instruction.parts is not None
    assert instruction.parts[0] is kept
    assert changed.seed == 1
    assert config.system_instruction == [kept, "dropped"]
    assert contents == [types.Content(role="user", parts=[types.Part(text="a")])]


def test_a_config_may_appear_where_there_was_none() -> None:
    parsed = parse("a")
    lower = {"generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"}}

    _, config = emit(replace(parsed.request, carried=lower), parsed)

    assert config == types.GenerateContentConfig(media_resolution=types.MediaResolution.MEDIA_RESOLUTION_LOW)


def test_a_body_s_unknown_fields_travel_in_the_extra_body(sdk: Sdk) -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "a"}]}],
        "fieldOfTomorrow": {"aB": 1},
        "tools": [{"toolOfTomorrow": {}}],
        "generationConfig": {"seed": 1, "knobOfTomorrow": [1]},
    }
    request = rest_json.parse(body).request

    assert sdk.sends(*emit(request)) == body


def test_a_config_the_sdk_refuses_is_refused() -> None:
    with pytest.raises(MalformedRequest) as refusal:
        parse("a", {"temprature": 1})  # type: ignore[dict-item, unused-ignore]

    assert refusal.value.figures["place"] == "config.temprature"


# ---- PIL images


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize(
    ("form", "mime"),
    [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp"), ("GIF", "image/gif"), ("BMP", "image/bmp")],
)
@pytest.mark.parametrize("loaded", [False, True])
def test_an_image_opened_from_a_path_is_its_file(form: str, mime: str, loaded: bool, tmp_path: Path) -> None:
    path = tmp_path / f"shot.{form.lower()}"
    path.write_bytes(media.picture((16, 12), form))
    with Image.open(path) as image:
        if loaded:
            image.load()

        part = only(image)

    assert part == MediaPart(source=path.read_bytes(), label=path.name, declared_mime=mime)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "MPO"])
def test_an_image_opened_from_memory_is_those_bytes(form: str) -> None:
    data = media.multi_picture((16, 12)) if form == "MPO" else media.picture((16, 12), form)
    image = opened(data)

    assert only(image).source == data
    assert image.getpixel((0, 0)) == (0, 0, 0)


def drawn_on(image: Image.Image) -> Image.Image:
    ImageDraw.Draw(image).line((0, 0, 9, 9), fill=(255, 255, 255))
    return image


def shrunk(image: Image.Image) -> Image.Image:
    image.thumbnail((4, 4))
    return image


def drafted(image: Image.Image) -> Image.Image:
    image.draft("L", (4, 4))
    return image


@pytest.mark.parametrize("alter", [drawn_on, shrunk, drafted, Image.Image.copy])
def test_an_altered_image_is_sent_as_it_looks_now(alter: Any, tmp_path: Path) -> None:
    path = tmp_path / "shot.jpg"
    path.write_bytes(JPEG)
    with Image.open(path) as source:
        image = alter(source)

        part = only([image])

        assert part.declared_mime == "image/png"
        assert opened(part.source).tobytes() == image.tobytes()


def test_a_file_replaced_since_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "shot.png"
    path.write_bytes(PNG)
    image = Image.open(path)
    image.load()
    path.write_bytes(media.picture((4000, 3000)))

    part = only(image)

    assert opened(part.source).size == (16, 12)


def test_an_image_the_service_cannot_take_as_it_is_becomes_png() -> None:
    for image in (opened(media.picture((8, 8), "TIFF")), Image.new("CMYK", (8, 8)), Image.new("YCbCr", (8, 8))):
        assert only(image).declared_mime == "image/png"


def test_an_image_without_pixels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shot.png"
    path.write_bytes(PNG)
    with Image.open(path) as left:
        pass
    closed = opened(PNG)
    closed.close()

    for broken in (left, closed, Image.new("F", (2, 2))):
        with pytest.raises(MalformedRequest) as refusal:
            parse(["a", broken])
        assert refusal.value.figures["place"] == "contents[1]"


def test_a_later_frame_is_sent_alone() -> None:
    image = opened(media.animated_gif((16, 12), 3))
    image.seek(1)

    assert only(image).declared_mime == "image/png"


def test_a_changed_request_keeps_the_original_bytes_of_images() -> None:
    parsed = parse([opened(JPEG), "a"], {"system_instruction": opened(PNG)})

    contents, _ = emit(replace(parsed.request, model="m"), parsed)

    assert contents[0].parts[0].inline_data == types.Blob(data=JPEG, mime_type="image/jpeg")
    assert parsed.request.system_instruction is not None
    assert isinstance(medium := parsed.request.system_instruction.parts[0], MediaPart)
    assert medium.source == PNG


# ---- raw results of automatic function calling


def result_of(response: Any) -> Any:
    return only(types.Part(function_response=types.FunctionResponse(name="screenshot", response=response))).response


SHOT = MediaPart(source=PNG, label="screenshot result", declared_mime="image/png")


@dataclasses.dataclass
class Found:
    image: Any
    score: float


class Video(BaseModel):
    """A tool's own, named as one of the SDK's."""

    uri: str


class Model(BaseModel):
    image: bytes
    note: str | None = None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (opened(PNG), SHOT),
        (Image.new("RGB", (16, 12)), None),
        (PNG, replace(SHOT, declared_mime=None)),
        (bytearray(PNG), replace(SHOT, declared_mime=None)),
        (types.Part.from_bytes(data=PNG, mime_type="image/png"), SHOT),
        (types.Blob(data=PNG, mime_type="image/png"), SHOT),
        (types.Image(image_bytes=PNG, mime_type="image/png"), SHOT),
        (types.FunctionResponsePart.from_bytes(data=PNG, mime_type="image/png"), SHOT),
        (
            types.File(name="files/a", uri="https://h/v1beta/files/a", mime_type="image/png"),
            replace(SHOT, source=Uri("https://h/v1beta/files/a")),
        ),
        ([types.Part(text="see"), types.Part.from_bytes(data=PNG, mime_type="image/png")], ["see", SHOT]),
        ([PNG, JPEG], [replace(SHOT, declared_mime=None), MediaPart(source=JPEG, label="screenshot result 2")]),
        ({"img": ("a", opened(PNG))}, {"img": ["a", SHOT]}),
        (
            types.FunctionResponse(
                name="inner",
                response={"a_b": 1},
                parts=[types.FunctionResponsePart.from_bytes(data=PNG, mime_type="image/png")],
            ),
            {"name": "inner", "response": {"a_b": 1}, "parts": [SHOT]},
        ),
        (Found(image=PNG, score=0.5), {"image": replace(SHOT, declared_mime=None), "score": 0.5}),
        (Video(uri="https://h/watch"), {"uri": "https://h/watch"}),
        (Model(image=PNG), {"image": replace(SHOT, declared_mime=None)}),
        (b"\xfb\xff no medium", base64.urlsafe_b64encode(b"\xfb\xff no medium").decode()),
        (b"text", "dGV4dA=="),
        ({1: None, False: 2, None: 3.5}, {"1": None, "false": 2, "null": 3.5}),
        (types.Language.PYTHON, "PYTHON"),
    ],
)
def test_a_raw_result_is_lifted_where_it_stands(raw: Any, expected: Any) -> None:
    if expected is None:
        expected = replace(SHOT, source=result_of({"result": raw})["result"].source)

    assert result_of({"result": raw}) == {"result": expected}


def test_json_stays_the_same_object() -> None:
    inner = {"a": [1, {"b": None}], "c": "d"}

    response = result_of({"result": inner, "image": PNG})

    assert response["result"] is inner
    assert result_of({"result": inner})["result"] is inner


def test_a_result_in_itself_or_too_deep_is_refused() -> None:
    cycle: list[Any] = []
    cycle.append({"again": cycle})
    deep: Any = PNG
    for _ in range(200):
        deep = [deep]

    for raw in (cycle, deep, {"a": object()}, {("a",): 1}):
        with pytest.raises(MalformedRequest) as refusal:
            result_of({"result": raw})
        assert refusal.value.figures["place"] == "contents[0].parts[0].functionResponse.response"


def test_a_branch_shared_many_times_is_walked_once() -> None:
    shared: list[Any] = [PNG]
    for _ in range(60):
        shared = [shared, shared]

    response = result_of({"result": shared})

    for _ in range(60):
        response = response["result"] if isinstance(response, dict) else response[0]
    assert response[0] is response[1]


def test_media_left_in_a_result_are_what_the_sdk_would_have_written(sdk: Sdk) -> None:
    part = types.Part(function_response=types.FunctionResponse(name="shot", response={"result": PNG, "b": {"c": [1]}}))
    parsed = parse(part)

    contents, _ = emit(parsed.request)

    assert canonical(sdk.sends(contents)) == sdk.sends(part)
    assert contents[0].parts[0].function_response.response["result"] == base64.urlsafe_b64encode(PNG).decode()


# ---- round trips

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.sampled_from(["a_b", "aB", "data", "thought_signature"]), JSON, max_size=3)
NAMES = st.sampled_from(["f", "look_up"])
IDS = st.none() | st.just("id-1")
BLOBS = st.builds(types.Blob, data=st.binary(max_size=9), mime_type=st.none() | st.just("image/png"), display_name=IDS)
FILES = st.builds(types.FileData, file_uri=st.just("gs://b/a"), mime_type=st.none() | st.just("a/b"), display_name=IDS)
SIGNATURES = st.none() | st.binary(min_size=1, max_size=4)
RESPONSE_PARTS = st.builds(
    types.FunctionResponsePart.from_bytes, data=st.binary(max_size=9), mime_type=st.just("image/png")
) | st.just(types.FunctionResponsePart())
PARTS = st.one_of(
    st.builds(types.Part, text=st.text(max_size=5), thought=st.none() | st.booleans(), thought_signature=SIGNATURES),
    st.builds(
        types.Part,
        inline_data=BLOBS,
        video_metadata=st.none() | st.builds(types.VideoMetadata, start_offset=st.just("1.5s"), fps=st.just(0.5)),
        media_resolution=st.none() | st.builds(types.PartMediaResolution, num_tokens=st.integers(1, 9)),
    ),
    st.builds(types.Part, file_data=FILES, thought_signature=SIGNATURES),
    st.builds(
        types.Part,
        function_call=st.builds(types.FunctionCall, id=IDS, name=NAMES, args=st.none() | OBJECTS),
        thought_signature=SIGNATURES,
    ),
    st.builds(
        types.Part,
        function_response=st.builds(
            types.FunctionResponse,
            id=IDS,
            name=NAMES,
            response=st.none() | OBJECTS,
            parts=st.none() | st.lists(RESPONSE_PARTS, max_size=2),
            will_continue=st.none() | st.booleans(),
        ),
    ),
    st.builds(types.Part, executable_code=st.builds(types.ExecutableCode, code=st.text(max_size=3))),
    st.builds(types.Part, part_metadata=OBJECTS),
)
TURNS = st.builds(types.Content, role=st.sampled_from([None, "user", "model"]), parts=st.lists(PARTS, max_size=3))
CONTENTS = st.lists(
    TURNS | PARTS | st.text(max_size=3) | st.lists(PARTS, min_size=1, max_size=2), min_size=1, max_size=4
)
CONFIGS = st.none() | st.builds(
    types.GenerateContentConfig,
    system_instruction=st.none() | st.text(max_size=3) | TURNS,
    temperature=st.none() | st.just(0.5),
    labels=st.none() | st.just({"a_b": "c"}),
    response_json_schema=st.none() | OBJECTS,
    media_resolution=st.none() | st.sampled_from(list(types.MediaResolution)),
)


@settings(deadline=None)
@given(CONTENTS, CONFIGS)
def test_what_is_built_anew_reads_the_same(contents: Any, config: Any) -> None:
    request = parse(contents, config).request

    assert parse(*emit(request)).request == request


@settings(deadline=None)
@given(CONTENTS, CONFIGS)
def test_the_same_request_as_objects_and_as_rest_is_the_same_rest(contents: Any, config: Any) -> None:
    body = said(parse(contents, config).request)

    read = rest_json.parse(body).request

    assert said(read) == body
    assert said(parse(*emit(read)).request) == body


@settings(deadline=None)
@given(CONTENTS)
def test_a_turn_changed_leaves_the_others_and_the_caller_s_objects_alone(contents: Any) -> None:
    parsed = parse(contents)
    first, *others = parsed.request.turns
    changed = replace(first, parts=(*first.parts, TextPart(text="note")))
    before = [content.model_dump() for content in parsed.turns]

    emitted, _ = emit(replace(parsed.request, turns=(changed, *others)), parsed)

    assert all(new is old for new, old in zip(emitted[1:], parsed.turns[1:], strict=True))
    assert all(new is old for new, old in zip(emitted[0].parts, parsed.turns[0].parts or (), strict=False))
    assert [content.model_dump() for content in parsed.turns] == before


def test_nothing_loads_the_sdk_but_this_converter() -> None:
    code = (
        "import sys, weighlock, weighlock.converters, weighlock.converters.rest_json, weighlock.converters.pil_image\n"
        "print([name for name in ('google.genai', 'PIL', 'pydantic') if name in sys.modules])"
    )

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"
