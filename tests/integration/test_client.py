"""The SDK's own client with the line in front of it, against the emulator."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import errors, types
from google.genai.models import Models
from PIL import Image

import films
import media
import weighlock
from fake_io import START, FakeClock, FakeSyncIo
from prepared import settings
from weighlock.budgets.hold import PROMPT_TOKENS
from weighlock.emulator import Emulator
from weighlock.emulator.script import Answer
from weighlock.errors import BudgetExceeded, ConfigError, InputError, UncoveredCall, WindowExhausted
from weighlock.integrations.genai_gate import BlockingFace, Whose, to_count
from weighlock.preflight import Preflight
from weighlock.prepared import Outcome
from weighlock.request import Backend
from weighlock.settings import Settings

pytestmark = pytest.mark.usefixtures("dialled")

MODEL = "gemini-3.5-flash"
DAY = f"default: {{model: {MODEL}, windows: {{day: {{prompt_tokens: 100000}}}}}}\n"


class Counting(Preflight):
    """Counts what goes through."""

    def __init__(self, known: Settings, clock: FakeClock | None = None) -> None:
        super().__init__(known, preload=False, io=FakeSyncIo(clock) if clock else None)
        self.prepared: list[weighlock.Receipt] = []
        self.settled: list[weighlock.Receipt] = []

    async def _prepared(self, *given: Any, **said: Any) -> weighlock.PreparedRequest:
        ready = await super()._prepared(*given, **said)
        self.prepared.append(ready.receipt)
        return ready

    async def _settled(self, *given: Any) -> weighlock.Receipt:
        receipt = await super()._settled(*given)
        self.settled.append(receipt)
        return receipt

    @property
    def held(self) -> dict[str, Any]:
        return {
            key: left
            for key, (_, held) in self.store.counters().items()
            if (left := {name: amount for name, amount in held.items() if amount})
        }

    @property
    def spent(self) -> int:
        return sum(spent.get(PROMPT_TOKENS, 0) for spent, _ in self.store.counters().values())


@pytest.fixture
def preflight(emulator: Emulator, tmp_path: Path) -> Iterator[Counting]:
    with Counting(settings(tmp_path, DAY)) as known:
        yield known


@pytest.fixture
def client(preflight: Counting) -> Iterator[weighlock.Client]:
    with closing(weighlock.Client(preflight=preflight)) as known:
        yield known


def asked(emulator: Emulator) -> int:
    return sum("enerateContent" in one.path for one in emulator.requests)


def test_it_is_the_sdks_client(client: weighlock.Client) -> None:
    assert isinstance(client, genai.Client)
    assert isinstance(client.aio, genai.client.AsyncClient)


def test_an_answer_is_settled_by_its_bill(client: weighlock.Client, preflight: Counting) -> None:
    shot = types.Part.from_bytes(data=media.picture((1920, 1080)), mime_type="image/png")
    contents: list[Any] = ["What is wrong here?", shot]
    response = client.models.generate_content(model=MODEL, contents=contents)
    assert response.usage_metadata is not None
    receipt = weighlock.receipt(response)
    assert receipt.billed is not None
    assert receipt.billed.usage.prompt == response.usage_metadata.prompt_token_count
    assert preflight.spent == response.usage_metadata.prompt_token_count
    assert preflight.held == {}


def test_a_stream_is_settled_once_at_its_last_usage(client: weighlock.Client, preflight: Counting) -> None:
    chunks = list(client.models.generate_content_stream(model=MODEL, contents="Tell me a long story"))
    last = chunks[-1].usage_metadata
    assert last is not None
    assert preflight.spent == last.prompt_token_count
    assert len(preflight.settled) == 1
    assert weighlock.receipt(chunks[0]).billed is not None
    assert preflight.held == {}


def test_a_stream_nobody_reads_to_its_end_is_charged(client: weighlock.Client, preflight: Counting) -> None:
    stream = client.models.generate_content_stream(model=MODEL, contents="Tell me a long story")
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    (settled,) = preflight.settled
    assert settled.billed is not None
    assert settled.billed.estimated
    assert preflight.spent > 0
    assert preflight.held == {}


def test_both_sides_of_aio(client: weighlock.Client, preflight: Counting) -> None:
    async def flow() -> None:
        response = await client.aio.models.generate_content(model=MODEL, contents="Hello")
        assert weighlock.receipt(response).billed is not None
        stream = await client.aio.models.generate_content_stream(model=MODEL, contents="Tell me a long story")
        async for _ in stream:
            pass
        broken_off = await client.aio.models.generate_content_stream(model=MODEL, contents="Tell me a long story")
        await anext(broken_off)
        await broken_off.aclose()  # type: ignore[attr-defined]
        await client.aio.aclose()

    asyncio.run(flow())
    assert [one.billed and one.billed.estimated for one in preflight.settled] == [False, False, True]
    assert preflight.held == {}


def test_every_turn_of_a_chat_with_functions_is_settled(
    client: weighlock.Client, preflight: Counting, emulator: Emulator
) -> None:
    calls = [Answer(calls=({"name": name, "args": {}},)) for name in ("look", "listen")]
    emulator.script.queue(*calls, "done")

    def look() -> Image.Image:
        """Takes a screenshot."""
        return Image.open(io.BytesIO(media.picture((640, 480))))

    def listen() -> types.Part:
        """Records what is heard."""
        return types.Part.from_bytes(data=media.wav(1.0), mime_type="audio/wav")

    chat = client.chats.create(model=MODEL, config=types.GenerateContentConfig(tools=[look, listen]))
    response = chat.send_message("What do you see and hear?")
    assert response.text == "done"
    assert asked(emulator) == 3
    assert len(preflight.prepared) == len(preflight.settled) == 3
    assert preflight.held == {}
    assert weighlock.receipt(response).resent[0] == 1  # the picture; sound in a tool's result leaves a note


def test_what_a_budget_refuses_is_not_sent(client: weighlock.Client, emulator: Emulator, tmp_path: Path) -> None:
    with Counting(settings(tmp_path, f"default: {{model: {MODEL}, limits: {{prompt_tokens: 5}}}}\n")) as tight:
        strict = weighlock.Client(preflight=tight)
        with pytest.raises(BudgetExceeded):
            strict.models.generate_content(model=MODEL, contents="This is longer than five tokens are, by quite a bit")
        with pytest.raises(BudgetExceeded):
            list(strict.models.generate_content_stream(model=MODEL, contents="So is this one, in a stream of its own"))
        strict.close()
    assert asked(emulator) == 0


def test_a_file_that_is_gone_is_uploaded_again_and_the_call_goes_on(emulator: Emulator, tmp_path: Path) -> None:
    yaml = DAY + "uploads: {inline_below: {developer: 1KB}}\n"
    film, clock = tmp_path / "film.mp4", FakeClock()
    film.write_bytes(films.film(4.0))
    clock.passed_s = (emulator.clock.now() - START).total_seconds()
    with (
        Counting(settings(tmp_path, yaml), clock) as preflight,
        closing(weighlock.Client(preflight=preflight)) as client,
    ):
        contents: list[Any] = [weighlock.media(film), "what happens?"]
        first = client.models.generate_content(model=MODEL, contents=contents)
        (known,) = weighlock.receipt(first).uploads.values()
        client.files.delete(name=known.name)
        clock.passed_s += 3600
        emulator.clock.advance(3600)
        second = client.models.generate_content(model=MODEL, contents=contents)
        assert second.text == first.text
        (settled, again) = preflight.settled
        assert again.billed is not None
        assert again.billed.usage == settled.billed.usage if settled.billed else False
        assert preflight.held == {}


@pytest.mark.parametrize("paid", [True, False])
def test_every_file_that_is_gone_is_uploaded_again_once_wherever_it_stands(
    emulator: Emulator, tmp_path: Path, paid: bool
) -> None:
    yaml = DAY + "uploads: {inline_below: {developer: 1KB}}\n"
    clock = FakeClock()
    clock.passed_s = (emulator.clock.now() - START).total_seconds()
    shots = [media.picture((640, 480 + at)) for at in range(3)]
    with (
        Counting(settings(tmp_path, yaml), clock) as preflight,
        closing(weighlock.Client(preflight=preflight)) as client,
    ):
        contents: list[Any] = [*(types.Part.from_bytes(data=shot, mime_type="image/png") for shot in shots), "what?"]
        client.models.generate_content(model=MODEL, contents=contents)
        for file in emulator.files:
            emulator.files.delete(file.project, file.name)
        clock.passed_s += 3600
        emulator.clock.advance(3600)
        emulator.accounts.of_key("k").paid = paid
        with nullcontext() if paid else pytest.raises(errors.ClientError, match="403"):
            client.models.generate_content(model=MODEL, contents=contents)
        emulator.accounts.of_key("k").paid = True
        assert preflight.held == {}

    answers = [one.status for one in emulator.requests.of("generate")]
    assert answers == ([200, 403, 403, 403, 200] if paid else [200, 403, 403])
    assert len(emulator.requests.of("upload.start")) == (6 if paid else 4)


def test_limits_of_a_block_of_code(emulator: Emulator, tmp_path: Path) -> None:
    yaml = DAY + "endpoints: {triage: {windows: {minute: {requests: 1}}}}\n"
    with Counting(settings(tmp_path, yaml)) as preflight, closing(weighlock.Client(preflight=preflight)) as client:
        with weighlock.endpoint("triage"):
            client.models.generate_content(model=MODEL, contents="a")
            with pytest.raises(WindowExhausted):
                client.models.generate_content(model=MODEL, contents="b")
        client.models.generate_content(model=MODEL, contents="c")


def test_what_is_not_weighed_is_refused_or_told(
    emulator: Emulator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Counting(settings(tmp_path, DAY)) as preflight, closing(weighlock.Client(preflight=preflight)) as client:
        for reach in (lambda: client.interactions, lambda: client.aio.live, lambda: client.tunings):
            with pytest.raises(UncoveredCall, match="uncovered='pass'"):
                reach()
        with pytest.raises(UncoveredCall):
            client.models.generate_images(model="imagen", prompt="x")
        with pytest.raises(UncoveredCall):
            client.batches.create(model=MODEL, src="files/x")
    watching = settings(tmp_path, f"default: {{model: {MODEL}, mode: observe}}\n")
    with Counting(watching) as preflight, closing(weighlock.Client(preflight=preflight)) as client:
        assert client.tunings is client.tunings
    assert "not weighed" in caplog.text


def test_an_endpoint_that_enforces_refuses_what_is_not_weighed_in_its_block(emulator: Emulator, tmp_path: Path) -> None:
    known = settings(
        tmp_path, f"default: {{model: {MODEL}, mode: observe}}\nendpoints: {{strict: {{mode: enforce}}}}\n"
    )
    with Counting(known) as preflight:
        for uncovered, refused in (None, True), ("pass", False):
            with closing(weighlock.Client(preflight=preflight, uncovered=uncovered)) as client:  # type: ignore[arg-type]
                assert client.tunings is not None
                with weighlock.endpoint("strict"):
                    for reach in (lambda: client.tunings, lambda: client.aio.tunings):
                        with pytest.raises(UncoveredCall) if refused else nullcontext():
                            reach()
        with pytest.raises(ConfigError, match="uncovered"):
            weighlock.Client(preflight=preflight, uncovered="allow")  # type: ignore[arg-type]


def test_a_count_over_a_limit_is_of_the_media_too(emulator: Emulator, tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    shot.write_bytes(media.picture((640, 480)))
    contents: list[Any] = [weighlock.media(shot), "what is it?"]
    with (
        Counting(settings(tmp_path, DAY + "endpoints: {tight: {limits: {prompt_tokens: 5}}}\n")) as preflight,
        closing(weighlock.Client(preflight=preflight)) as client,
    ):
        counted = client.models.count_tokens(model=MODEL, contents=contents)
        with weighlock.endpoint("tight"):
            assert client.models.count_tokens(model=MODEL, contents=contents).total_tokens == counted.total_tokens
            with pytest.raises(BudgetExceeded):
                client.models.generate_content(model=MODEL, contents=contents)


def test_a_count_says_what_it_could_not_be_told(emulator: Emulator, tmp_path: Path) -> None:
    contents: list[Any] = [weighlock.media(media.picture((640, 480))), "what is it?"]
    small = "default: {model: gemini-2.5-flash, limits: {tokens: {image: 200}}}\n"
    with (
        Counting(settings(tmp_path, small)) as preflight,
        closing(weighlock.Client(preflight=preflight)) as client,
    ):
        told = weighlock.receipt(client.models.count_tokens(model="gemini-2.5-flash", contents=contents))
        plain = weighlock.receipt(client.models.count_tokens(model="gemini-2.5-flash", contents="words"))
        ready = preflight.prepare(contents, model="gemini-2.5-flash", holds=False)
        vertex = BlockingFace(preflight, Whose(backend=Backend.VERTEX))
        given = types.CountTokensConfig(system_instruction="Be brief")
        asked, slip = to_count(vertex, ready, given)

    assert [words for words in told.warnings if "MEDIA_RESOLUTION_LOW" in words]
    assert plain.warnings == slip.receipt.warnings == ()
    assert asked.system_instruction == "Be brief"
    assert asked.generation_config.media_resolution is types.MediaResolution.MEDIA_RESOLUTION_LOW


@pytest.mark.parametrize("variable", ["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"])
def test_the_account_says_whom_to_ask(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name, value in {variable: "true", "GOOGLE_CLOUD_PROJECT": "other", "GOOGLE_CLOUD_LOCATION": "asia"}.items():
        monkeypatch.setenv(name, value)
    yaml = "accounts: {mine: {backend: developer, api_key_env: GEMINI_API_KEY}, eu: {backend: vertex, project: acme}}\n"
    yaml += f"default: {{account: mine, model: {MODEL}}}\nendpoints: {{there: {{account: eu}}}}\n"
    with Counting(settings(tmp_path, yaml)) as preflight:
        with closing(weighlock.Client(preflight=preflight)) as client:
            assert not client.vertexai
            assert weighlock.receipt(client.models.generate_content(model=MODEL, contents="Hello")).billed
        with closing(weighlock.Client(preflight=preflight, endpoint="there")) as client:
            assert client.vertexai
            assert (client._api_client.project, client._api_client.location) == ("acme", "global")


def test_a_stream_that_cannot_be_closed_is_settled(
    client: weighlock.Client, preflight: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Models._generate_content_stream

    def failing(*given: Any, **said: Any) -> Iterator[types.GenerateContentResponse]:
        try:
            yield from plain(*given, **said)
        finally:
            raise OSError("the connection is gone")

    monkeypatch.setattr(Models, "_generate_content_stream", failing)
    stream = client.models._generate_content_stream(model=MODEL, contents="Tell me a long story")
    next(stream)
    with pytest.raises(OSError, match="gone"):
        stream.close()  # type: ignore[attr-defined]
    assert len(preflight.settled) == 1
    assert preflight.held == {}


def test_counting_caching_batching_and_embedding_are_weighed(
    client: weighlock.Client, preflight: Counting, emulator: Emulator, tmp_path: Path
) -> None:
    assert client.models.count_tokens(model=MODEL, contents="How many tokens?").total_tokens
    with Counting(settings(tmp_path, f"default: {{model: {MODEL}, limits: {{prompt_tokens: 5}}}}\n")) as tight:
        strict = weighlock.Client(preflight=tight)
        long = "This is longer than five tokens are, by quite a bit"
        assert strict.models.count_tokens(model=MODEL, contents=long).total_tokens
        with pytest.raises(BudgetExceeded):
            strict.models.embed_content(model=MODEL, contents=long)
        with pytest.raises(BudgetExceeded):
            strict.caches.create(model=MODEL, config={"contents": [{"role": "user", "parts": [{"text": long}]}]})
        with pytest.raises(BudgetExceeded):
            strict.batches.create(model=MODEL, src=[{"contents": [{"role": "user", "parts": [{"text": long}]}]}])
        strict.close()
    assert preflight.held == {}


def test_a_medium_may_be_a_path_a_file_or_an_upload(
    client: weighlock.Client, preflight: Counting, tmp_path: Path
) -> None:
    shot = tmp_path / "shot.png"
    shot.write_bytes(media.picture((640, 480)))

    class Upload:
        """As Starlette has it."""

        def __init__(self) -> None:
            self.file, self.filename, self.content_type = io.BytesIO(shot.read_bytes()), "up.png", "image/png"

    for one in (shot, str(shot), shot.read_bytes(), io.BytesIO(shot.read_bytes()), Upload()):
        contents: list[Any] = [weighlock.media(one), "what is it?"]
        response = client.models.generate_content(model=MODEL, contents=contents)
        assert weighlock.receipt(response).fitted.after.parts[0].examined.mime == "image/png"
    chat = client.chats.create(model=MODEL)
    chat.send_message([weighlock.media(shot), "what is it?"])
    again = chat.send_message("and now?")
    told = weighlock.receipt(again)
    assert told.resent[0] == 1
    ((_, tokens, cost),) = told.resent_parts
    assert tokens == told.resent[1]
    assert cost is not None
    assert told.as_dict()["resent"]["parts"][0]["tokens"]["likely"] == tokens.likely
    with pytest.raises(TypeError):
        weighlock.media(7)
    with pytest.raises(InputError):
        weighlock.media(shot, clip="last")
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(InputError, match="closed"):
        weighlock.media(closed)


@pytest.mark.parametrize("contents", [b"hi", b'{"contents": []}', {"contents": []}, None, []])
def test_what_the_sdk_takes_for_nothing_is_refused_and_never_read_as_a_body(
    client: weighlock.Client, preflight: Counting, contents: Any
) -> None:
    with pytest.raises(InputError, match="contents"):
        client.models.generate_content(model=MODEL, contents=contents)
    assert preflight.held == {}


def test_a_response_of_another_client_has_no_receipt(client: weighlock.Client) -> None:
    with pytest.raises(InputError, match="did not come through"):
        weighlock.receipt(types.GenerateContentResponse())
    assert Outcome.ADMITTED
