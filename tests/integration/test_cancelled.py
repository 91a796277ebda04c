"""Broken off anywhere: nothing stays held, nothing that may have cost is taken for nothing, no file is left."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import films
import media
import weighlock
from emulated import inline, user
from fake_io import FakeAsyncIo, FakeClock
from prepared import settings
from weighlock.budgets.hold import PROMPT_TOKENS, Amounts
from weighlock.budgets.memory import MemoryStore
from weighlock.emulator import Emulator
from weighlock.events import Ended
from weighlock.io import AsyncIo
from weighlock.preflight import Preflight
from weighlock.settings import Settings

MODEL = "gemini-3.5-flash"
YAML = f"""
default:
  model: {MODEL}
  count: {{when: always}}
  output_tokens: {{expected: 50}}
  local_work: allowed
  media: {{video: {{apply: always, clip: last 2s, cut: exact}}}}
  limits: {{bytes: 60000}}
  windows: {{day: {{prompt_tokens: 1000000}}}}
uploads: {{inline_below: {{developer: 1KB}}}}
"""


class Striking(FakeAsyncIo):
    """Cancels the task that comes to a waiting point of this number."""

    def __init__(self, at: int) -> None:
        super().__init__(FakeClock())
        self.at, self.points = at, 0

    async def point(self) -> None:
        self.points += 1
        if self.points == self.at:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        await asyncio.sleep(0)

    async def call(self, deed: Callable[..., Any], *given: Any, **said: Any) -> Any:
        await self.point()
        result = await super().call(deed, *given, **said)
        await self.point()
        return result

    async def turn(self) -> None:
        await self.point()

    async def gather(self, flows: Sequence[Coroutine[Any, Any, Any]], *, at_most: int = 8) -> list[Any]:
        try:
            await self.point()
        except asyncio.CancelledError:
            for flow in flows:
                flow.close()
            raise
        return await super().gather(flows, at_most=at_most)


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator(processing_s=0.0) as emulator:
        yield emulator


@pytest.fixture
def known(running: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    running.reset()
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", running.base_url)
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return settings(tmp_path, YAML)


@pytest.fixture(scope="module")
def contents() -> list[Any]:
    film, shot = films.film(6.0), media.picture((640, 480))
    return [user("look", inline(film, "video/mp4"), inline(shot, "image/png"))]


def store_of(preflight: Preflight) -> MemoryStore:
    """One that is asked beside the loop, so that every step of it can be broken off."""
    store = MemoryStore()
    store.is_local = False
    preflight._opened._store = store
    return store


def sums(store: MemoryStore) -> tuple[Amounts, Amounts]:
    ((spent, held),) = [*store.counters().values()] or [({}, {})]
    return spent, {name: amount for name, amount in held.items() if amount}


async def settled_owed(preflight: Preflight) -> None:
    """What could not be settled then is settled with the next step."""
    io = preflight._async_io
    if isinstance(io, Striking):
        io.at = -1
    await preflight.arelease(await preflight.aprepare({"contents": [user("later")]}, model=MODEL))
    await asyncio.to_thread(lambda: None)


async def struck(
    known: Settings,
    at: int,
    deed: Callable[[Preflight], Coroutine[Any, Any, Any]],
    told: Callable[[Ended], object] = lambda _: None,
) -> tuple[bool, int, MemoryStore]:
    """Whether it was broken off, how many points there were, and what is in the store then."""
    io = Striking(at)
    async with Preflight(known, preload=False, async_io=io, on_event=[told]) as preflight:
        store, cancelled = store_of(preflight), False
        try:
            await deed(preflight)
        except asyncio.CancelledError:
            cancelled = True
        points = io.points
        await settled_owed(preflight)
    return cancelled, points, store


def still_held(known: Settings, at: int, deed: Callable[[Preflight], Coroutine[Any, Any, Any]]) -> bool:
    """Whether it was broken off there; then it may hold nothing."""
    cancelled, _, store = asyncio.run(struck(known, at, deed))
    assert not cancelled or sums(store) == ({}, {}), at
    return cancelled


@pytest.mark.slow
def test_prepare_broken_off_anywhere_holds_nothing(known: Settings, contents: list[Any], tmp_path: Path) -> None:
    async def deed(preflight: Preflight) -> None:
        await preflight.aprepare({"contents": contents}, model=MODEL)

    cancelled, points, store = asyncio.run(struck(known, 0, deed))
    assert not cancelled
    assert sums(store)[1]
    struck_at = [at for at in range(1, points + 1) if still_held(known, at, deed)]
    assert len(struck_at) > 15  # what is uploaded by then is not uploaded again, and waits less
    assert not list((tmp_path / "temporary").iterdir())


def test_settle_broken_off_anywhere_is_settled(known: Settings) -> None:
    answer = {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}}

    async def deed(preflight: Preflight) -> None:
        io = preflight._async_io
        assert isinstance(io, Striking)
        at, io.at = io.at, -1
        ready = await preflight.aprepare({"contents": [user("hi")]}, model=MODEL)
        io.at, io.points = at, 0
        await preflight.asettle(ready, answer)

    _, points, _ = asyncio.run(struck(known, 0, deed))
    assert points >= 3  # its turn, the commit, and after it
    for at in range(points + 1):
        told: list[Ended] = []
        _, _, store = asyncio.run(struck(known, at, deed, told.append))
        spent, held = sums(store)
        assert (spent[PROMPT_TOKENS], held) == (7, {}), at
        settled = [event.billed.prompt for event in told if event.billed is not None]
        assert settled == [7], at


async def chunks(client: weighlock.Client) -> AsyncIterator[Any]:
    async for chunk in await client.aio.models.generate_content_stream(model=MODEL, contents="Tell me a story"):
        yield chunk


@pytest.mark.parametrize("ends", ["close", "raise", "cancel", "break"])
def test_a_stream_broken_off_at_any_event_is_charged(known: Settings, running: Emulator, ends: str) -> None:
    async def whole(at: int) -> tuple[int, Amounts, Amounts]:
        async with Preflight(known, preload=False) as preflight:
            store, seen = store_of(preflight), 0
            client = weighlock.Client(preflight=preflight)
            stream = await client.aio.models.generate_content_stream(model=MODEL, contents="Tell me a story")

            async def read() -> None:
                nonlocal seen
                async for _ in stream:
                    seen += 1
                    if seen == at:
                        match ends:
                            case "raise":
                                raise RuntimeError("reader")
                            case "cancel":
                                task = asyncio.current_task()
                                assert task is not None
                                task.cancel()
                                await asyncio.sleep(0)
                            case _:
                                break

            task = asyncio.create_task(read())
            (result,) = await asyncio.gather(task, return_exceptions=True)
            assert result is None or isinstance(result, RuntimeError | asyncio.CancelledError)
            await stream.aclose()  # type: ignore[attr-defined]
            await client.aio.aclose()
            client.close()
            await settled_owed(preflight)
            return (seen, *sums(store))

    running.script.when("word " * 60)
    events, spent, held = asyncio.run(whole(0))
    assert events >= 2
    assert held == {}
    for at in range(1, events + 1):
        _, partly, held = asyncio.run(whole(at))
        assert held == {}, at
        assert partly[PROMPT_TOKENS] == spent[PROMPT_TOKENS], at


def test_a_blocking_stream_broken_off_at_any_event_is_charged(known: Settings, running: Emulator) -> None:
    running.script.when("word " * 60)

    def whole(at: int) -> tuple[int, Amounts, Amounts]:
        with Preflight(known, preload=False) as preflight, closing(weighlock.Client(preflight=preflight)) as client:
            store, seen = store_of(preflight), 0
            for _ in client.models.generate_content_stream(model=MODEL, contents="Tell me a story"):
                seen += 1
                if seen == at:
                    break
            return (seen, *sums(store))

    events, spent, _ = whole(0)
    for at in range(1, events + 1):
        _, partly, held = whole(at)
        assert (partly[PROMPT_TOKENS], held) == (spent[PROMPT_TOKENS], {}), at


def test_a_call_that_hangs_and_is_given_up_is_charged_as_held(known: Settings, running: Emulator) -> None:
    running.faults.stall_s = 5.0
    running.faults.set("stall-always", rate=1, on="generate")

    async def whole() -> tuple[Amounts, Amounts]:
        async with Preflight(known, preload=False) as preflight:
            store = store_of(preflight)
            client = weighlock.Client(preflight=preflight)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.aio.models.generate_content(model=MODEL, contents="hi"), 0.5)
            await client.aio.aclose()
            client.close()
            running.faults.clear()
            await settled_owed(preflight)
            return sums(store)

    spent, held = asyncio.run(whole())
    assert held == {}
    assert spent[PROMPT_TOKENS] > 0


def test_what_is_broken_off_as_it_is_settled_is_told_of_all_the_same(known: Settings) -> None:
    events: list[Ended] = []

    class Stuck(AsyncIo):
        armed = False

        async def call(self, deed: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if self.armed:
                await asyncio.get_running_loop().create_future()
            return await super().call(deed, *args, **kwargs)

    async def whole() -> MemoryStore:
        io = Stuck()
        async with Preflight(known, preload=False, async_io=io, on_event=[events.append]) as preflight:
            store = store_of(preflight)
            ready = await preflight.aprepare({"contents": [user("hi")]}, model=MODEL)
            io.armed = True
            settling = asyncio.ensure_future(preflight.asettle(ready, {"usageMetadata": {"promptTokenCount": 7}}))
            await asyncio.sleep(0.01)
            settling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await settling
            io.armed = False
        return store

    spent, held = sums(asyncio.run(whole()))

    assert spent["prompt_tokens"] == 7
    assert held == {}
    assert [event.billed.prompt for event in events if event.billed is not None] == [7]
