"""google-genai itself against the emulator: every call it makes there, as its users make them."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials

import media
from emulated import FLASH
from weighlock.emulator import Answer, Emulator

SHOT = media.picture((1920, 1080))


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator(processing_s=30) as emulator:
        yield emulator


@pytest.fixture
def emulator(running: Emulator) -> Emulator:
    running.reset()
    return running


@pytest.fixture(params=[None, "v1beta"])
def client(emulator: Emulator, request: pytest.FixtureRequest) -> Iterator[genai.Client]:
    options = types.HttpOptions(base_url=emulator.base_url, api_version=request.param)
    client = genai.Client(api_key="k", http_options=options)
    yield client
    client.close()


def upload(emulator: Emulator, client: genai.Client, data: bytes, mime: str, name: str) -> types.File:
    options = types.HttpOptions(base_url=emulator.base_url)  # else its chunks go to Google's host
    config = types.UploadFileConfig(mime_type=mime, name=name, display_name="Übersicht", http_options=options)
    return client.files.upload(file=io.BytesIO(data), config=config)


def asked(medium: types.Part) -> types.Content:
    return types.Content(role="user", parts=[medium, types.Part(text="hi")])


def test_generate_stream_and_count(emulator: Emulator, client: genai.Client) -> None:
    prompt = asked(types.Part.from_bytes(data=SHOT, mime_type="image/png"))
    emulator.script.queue("seen", "one two three")

    answer = client.models.generate_content(model=FLASH, contents=prompt)
    pieces = list(client.models.generate_content_stream(model=FLASH, contents=prompt))
    count = client.models.count_tokens(model=FLASH, contents=prompt)

    assert answer.text == "seen"
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.prompt_token_count == 1101
    assert "".join(piece.text or "" for piece in pieces) == "one two three"
    assert pieces[-1].usage_metadata is not None
    assert pieces[-1].usage_metadata.cached_content_token_count == 1100
    assert count.total_tokens == 1102


def test_upload_get_list_and_delete(emulator: Emulator, client: genai.Client) -> None:
    data = bytes(range(256)) * 4096 * 9  # two chunks
    file = upload(emulator, client, data, "text/plain", "files/mine")

    assert (file.name, file.size_bytes, file.state) == ("files/mine", len(data), types.FileState.ACTIVE)
    assert file.display_name == "Übersicht"
    assert client.files.get(name="files/mine") == file
    assert [one.name for one in client.files.list()] == ["files/mine"]
    client.files.delete(name="files/mine")
    with pytest.raises(errors.ClientError, match="do not have permission to access the File mine") as caught:
        client.files.get(name="files/mine")
    assert caught.value.code == 403
    assert [one.operation for one in emulator.requests.of("upload")] == [
        "upload.start",
        "upload.chunk",
        "upload.finalize",
    ]


def test_an_uploaded_film_is_used_once_it_is_active(emulator: Emulator, client: genai.Client) -> None:
    film = upload(emulator, client, media.video(2.0, fps=2, sound_s=2.0), "video/mp4", "film")
    prompt = asked(types.Part.from_uri(file_uri=film.uri or "", mime_type="video/mp4"))

    with pytest.raises(errors.ClientError, match="not in an ACTIVE state"):
        client.models.generate_content(model=FLASH, contents=prompt)
    emulator.clock.advance(31)
    answer = client.models.generate_content(model=FLASH, contents=prompt)
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.prompt_tokens_details is not None
    assert {one.modality for one in answer.usage_metadata.prompt_tokens_details} == {
        types.MediaModality.TEXT,
        types.MediaModality.VIDEO,
    }


def test_a_chat_with_a_tool(emulator: Emulator, client: genai.Client) -> None:
    emulator.script.queue(Answer(calls=[{"name": "add", "args": {"a": 1, "b": 2}}]), "three")

    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    chat = client.chats.create(model=FLASH, config=types.GenerateContentConfig(tools=[add]))

    assert chat.send_message("1 + 2?").text == "three"
    sent = emulator.requests[-1].json["contents"][-1]["parts"][0]
    assert sent["functionResponse"]["response"] == {"result": 3}


def test_vertex_generates_and_counts(emulator: Emulator) -> None:
    client = genai.Client(
        vertexai=True,
        credentials=Credentials("token"),  # type: ignore[no-untyped-call]  # google-auth is not typed
        project="p",
        location="us-central1",
        http_options=types.HttpOptions(base_url=emulator.base_url),
    )
    config = types.CountTokensConfig(system_instruction="be kind")

    answer = client.models.generate_content(model=FLASH, contents="hi")
    count = client.models.count_tokens(model=FLASH, contents="hi", config=config)

    assert answer.usage_metadata is not None
    assert answer.usage_metadata.traffic_type == types.TrafficType.ON_DEMAND
    assert (count.total_tokens or 0) > 1
    client.close()


def test_a_fault_is_the_errors_the_sdk_knows(emulator: Emulator, client: genai.Client) -> None:
    emulator.faults.set("absurd-retry-delay", count=1)
    emulator.faults.set("return-503", count=1, on="count")

    with pytest.raises(errors.ClientError) as spent:
        client.models.generate_content(model=FLASH, contents="hi")
    assert spent.value.code == 429
    with pytest.raises(errors.ServerError):
        client.models.count_tokens(model=FLASH, contents="hi")
    assert client.models.count_tokens(model=FLASH, contents="hi").total_tokens == 1
