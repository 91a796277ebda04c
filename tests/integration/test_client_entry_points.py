"""Every public entry point of the SDK's client, as the SDK itself lists them: what asks a model carries what the line
made of it, or is refused before anything is sent. One that the SDK gains fails here until somebody thought of it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials

import weighlock
from prepared import settings
from weighlock.budgets.memory import MemoryStore
from weighlock.errors import UncoveredCall
from weighlock.integrations.genai_contract import CLIENT
from weighlock.preflight import Preflight

MODEL = "gemini-3.5-flash"
YAML = f"default: {{model: {MODEL}, windows: {{day: {{prompt_tokens: 100000}}}}}}\n"
COVERED = {
    "models.generate_content", "models.generate_content_stream", "models.count_tokens", "models.embed_content",
    "chats.send_message", "chats.send_message_stream", "caches.create", "batches.create",
}  # fmt: skip
ASKS_NO_MODEL = re.compile(
    r"(GET|DELETE|PATCH) .*|POST .*(:computeTokens|:cancel|:fetchPredictOperation|/files:register|/upload/.*/files)"
)
NO_MODEL_BEHIND = {"webhooks", "environments", "credentials", "voices"}
"""Holders that the SDK generates from another description, and through which nothing is asked."""
HOLDERS = ("models", "caches", "batches", "files", "operations")
TOKEN = Credentials("t")  # type: ignore[no-untyped-call]
ARGUMENTS: dict[str, Any] = {
    "model": MODEL,
    "contents": "plain",
    "name": "batches/1",
    "prompt": "plain",
    "reference_images": [],
    "source": types.RecontextImageSource(prompt="plain"),
    "image": types.Image(image_bytes=b"plain"),
    "upscale_factor": "x2",
    "src": [{"contents": [{"role": "user", "parts": [{"text": "plain"}]}]}],
    "file": __file__,
    "auth": TOKEN,
    "uris": ["gs://b/o"],
    "operation": types.GenerateVideosOperation.model_validate({"name": "models/veo/operations/1"}),
}
BESIDE: dict[str, dict[str, Any]] = {
    "caches.create": {"config": {"contents": [{"role": "user", "parts": [{"text": "plain"}]}]}},
    "models.update": {"config": {"display_name": "x"}},
    "files.upload": {"config": {"mime_type": "text/plain"}},
    "files.download": {"file": "files/1"},
    "batches.create_embeddings": {"src": {"file_name": "files/1"}},
}
ELSEWHERE = re.compile(r"(only|not|n't) (\w+ )*(supported|available)|Vertex|Developer|Enterprise")
"""How the SDK says that an entry point is the other backend's."""


class Tagging(Preflight):
    """What comes out of it can be told on the wire."""

    prepared = 0

    async def _prepared(self, *given: Any, **said: Any) -> weighlock.PreparedRequest:
        self.prepared += 1
        return replace(await super()._prepared(*given, **said), contents="weighed")


@dataclass
class Wire:
    """The service: keeps what comes, and answers so that the SDK is content."""

    asked: list[str] = field(default_factory=list)
    """Bodies of what asks a model."""
    beside: list[str] = field(default_factory=list)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        line = f"{request.method} {request.url.path}"
        if ASKS_NO_MODEL.fullmatch(line):
            self.beside.append(line)
            return httpx2.Response(
                200, json={}, headers={"x-goog-upload-url": f"{request.url}", "x-goog-upload-status": "final"}
            )
        self.asked.append(request.content.decode())
        answer = self._answer(line)
        if ":streamGenerateContent" in line:
            return httpx2.Response(200, text=f"data: {json.dumps(answer)}\r\n\r\n")
        return httpx2.Response(200, json=answer)

    def _answer(self, line: str) -> dict[str, Any]:
        if "enerateContent" in line:
            usage = {"promptTokenCount": 3, "candidatesTokenCount": 1}
            said = {"content": {"role": "model", "parts": [{"text": "yes"}]}, "finishReason": "STOP"}
            return {"candidates": [said], "usageMetadata": usage}
        return {"totalTokens": 3, "embedding": {"values": [0.5]}, "embeddings": [{"values": [0.5]}], "name": "it/1"}


@dataclass
class Line:
    """A client over a made-up service, and what is seen of both."""

    client: weighlock.Client
    preflight: Tagging
    wire: Wire


@pytest.fixture(params=["developer", "vertex"])
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Line]:
    wire = Wire()
    transport = httpx2.MockTransport(wire)
    told: dict[str, Any] = {"api_key": "k"}
    if request.param == "vertex":
        told = {"vertexai": True, "project": "p", "location": "global", "credentials": TOKEN}
    options = types.HttpOptions(
        base_url="http://127.0.0.1:9",
        httpx_client=httpx2.Client(transport=transport),  # type: ignore[arg-type, unused-ignore]
        httpx_async_client=httpx2.AsyncClient(transport=transport),  # type: ignore[arg-type, unused-ignore]
    )
    with Tagging(settings(tmp_path, YAML), preload=False) as preflight:
        preflight._opened._store = MemoryStore()
        client = weighlock.Client(preflight=preflight, http_options=options, **told)
        yield Line(client, preflight, wire)
        asyncio.run(client.aio.aclose())
        client.close()


def entry_points(client: weighlock.Client) -> Iterator[tuple[str, Callable[..., Any]]]:
    """All of both sides that are methods of the SDK's own classes, whatever we make of them."""
    batch = "projects/p/locations/global/batchPredictionJobs/1" if client.vertexai else "batches/1"
    for name in ("cancel", "delete", "get"):
        BESIDE[f"batches.{name}"] = {"name": batch}
    for side in (client, client.aio):
        for holder in HOLDERS:
            ours = getattr(side, holder)
            plain = next(one for one in type(ours).__mro__ if one.__module__.startswith("google.genai"))
            for name, _ in inspect.getmembers(plain, inspect.isfunction):
                if not name.startswith("_"):
                    yield f"{holder}.{name}", getattr(ours, name)
        chat = side.chats.create(model=MODEL)
        for name in ("send_message", "send_message_stream"):
            yield f"chats.{name}", partial(getattr(chat, name), "plain")


def called(name: str, method: Callable[..., Any]) -> Any:
    """What comes of it, to its end."""
    needed = [one for one in inspect.signature(method).parameters.values() if one.default is one.empty]
    said = {one.name: ARGUMENTS[one.name] for one in needed if not name.startswith("chats.")}
    return asyncio.run(ended(method, said | BESIDE.get(name, {})))


async def ended(method: Callable[..., Any], said: dict[str, Any]) -> None:
    result = method(**said)
    if inspect.isawaitable(result):
        result = await result
    if hasattr(result, "__aiter__"):
        async for _ in result:
            pass
    elif inspect.isgenerator(result):
        for _ in result:
            pass


def test_every_entry_point_goes_through_the_line_or_is_refused(line: Line) -> None:
    unproved, covered = [], set()
    for name, method in entry_points(line.client):
        line.wire.asked.clear()
        line.wire.beside.clear()
        line.preflight.prepared = 0
        failure: Exception | None = None
        try:
            called(name, method)
        except UncoveredCall as error:
            assert not line.wire.asked + line.wire.beside, name
            failure = error
        except Exception as error:
            failure = error
        for body in line.wire.asked:
            assert "weighed" in body, name
            assert "plain" not in body, name
        assert line.preflight.prepared >= len(line.wire.asked), name
        if name in COVERED:
            covered.add(name)
            assert line.wire.asked or ELSEWHERE.search(str(failure)), (name, failure)
        elif not (line.wire.beside or isinstance(failure, UncoveredCall) or ELSEWHERE.search(str(failure))):
            unproved.append((name, failure))
    assert (unproved, covered) == ([], COVERED)
    assert not any(left for _, held in line.preflight.store.counters().values() for left in held.values())


def test_everything_a_client_has_is_covered_asks_no_model_or_is_refused(line: Line) -> None:
    for ours, plain in ((line.client, genai.Client), (line.client.aio, genai.client.AsyncClient)):
        public = {name for name, _ in inspect.getmembers(plain) if not name.startswith("_")}
        tried = {*HOLDERS, "chats", "aio", "vertexai", "close", "aclose"}
        for name in public - tried - NO_MODEL_BEHIND:
            assert name not in CLIENT
            with pytest.raises(UncoveredCall):
                getattr(ours, name)


@pytest.mark.parametrize(
    "src", ["files/1", "gs://bucket/file.jsonl", {"file_name": "files/1"}, types.BatchJobSource(file_name="files/1")]
)
def test_a_batch_nobody_can_look_into_is_refused(line: Line, src: Any) -> None:
    with pytest.raises(UncoveredCall):
        line.client.batches.create(model=MODEL, src=src)
    with pytest.raises(UncoveredCall):
        asyncio.run(line.client.aio.batches.create(model=MODEL, src=src))
    assert not line.wire.asked


@pytest.mark.parametrize(
    "src", [{"inlined_requests": ARGUMENTS["src"]}, types.BatchJobSource(inlined_requests=ARGUMENTS["src"])]
)
def test_every_way_to_inline_a_batch_is_weighed(line: Line, src: Any) -> None:
    with suppress(ValueError):  # of Vertex, where none are inlined
        line.client.batches.create(model=MODEL, src=src)
    assert all("weighed" in body and "plain" not in body for body in line.wire.asked)
    assert line.preflight.prepared == 1
