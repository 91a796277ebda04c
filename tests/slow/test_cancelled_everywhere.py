"""Cancelled at every single suspension of a task, those on the network and on threads among them: nothing stays held,
what was asked is charged, no file, upload or thread is left, and the same call then works."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import tempfile
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.genai.errors import APIError

import films
import media
import weighlock
from emulated import inline, user
from prepared import settings
from weighlock.budgets.hold import PROMPT_TOKENS
from weighlock.budgets.memory import MemoryStore
from weighlock.emulator import Emulator
from weighlock.preflight import Preflight
from weighlock.settings import Settings

pytestmark = pytest.mark.slow

MODEL, NEVER = "gemini-3.5-flash", -9
YAML = f"""
default:
  model: {MODEL}
  count: {{when: always}}
  output_tokens: {{expected: 50}}
  local_work: allowed
  media: {{video: {{apply: always, clip: last 2s, cut: exact}}}}
  windows: {{day: {{prompt_tokens: 1000000}}}}
uploads: {{inline_below: {{developer: 1KB}}, delete_remote: after_request}}
"""


class When(StrEnum):
    """What a cancelled task loses."""

    WAITING = "waiting"
    """What it waits for is cancelled with it."""
    ARRIVED = "arrived"
    """What it waited for is done already, and its result is thrown away."""
    TWICE = "twice"
    """As it waits, and again as it clears up."""


@dataclass
class Strike:
    """Cancels a task at one of its suspensions, those of its children among them."""

    at: int
    when: When
    suspensions: int = 0
    _task: asyncio.Task[Any] | None = None

    async def through(self, flow: Coroutine[Any, Any, Any]) -> Any:
        """What the flow gives, or how it ends."""
        loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        loop.set_task_factory(self._child)
        try:
            return await self._counted(flow)
        finally:
            loop.set_task_factory(None)

    def _child(self, loop: asyncio.AbstractEventLoop, flow: Any, **said: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(self._counted(flow), loop=loop, **said)
        task.add_done_callback(lambda _: flow.close())  # cancelled before it began
        return task

    @types.coroutine
    def _counted(self, flow: Any) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = partial(flow.send, None)
        while True:
            try:
                awaited = step()
            except StopIteration as done:
                return done.value
            self.suspensions += 1
            self._strike(awaited)
            try:
                step = partial(flow.send, (yield awaited))
            except BaseException as error:
                step = partial(flow.throw, error)

    def _strike(self, awaited: Any) -> None:
        assert self._task is not None
        task, behind = self._task, self.suspensions - self.at
        if behind == 0 and self.when is When.ARRIVED and awaited is not None:
            awaited.add_done_callback(lambda _: task.cancel())
        elif behind == 0 or (behind == 1 and self.when is When.TWICE):
            task.cancel()


Deed = Callable[[weighlock.Client, Strike], Coroutine[Any, Any, Any]]


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
    return [user("look", inline(films.film(6.0), "video/mp4"), inline(media.picture((640, 480)), "image/png"))]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is left of one run, once its loop is closed."""

    cancelled: bool
    suspensions: int
    spent: int
    held: dict[str, int]
    asked: int
    """Requests that reached the model."""
    unsettled: int
    """Of uploads: those under way, and those kept for a request."""
    open_files: list[str]
    complaints: list[str]


def complain_to(complaints: list[str]) -> None:
    """What the running loop complains of is noted in words; its own log would keep the SDK's connections alive."""

    def complain(_: asyncio.AbstractEventLoop, told: dict[str, Any]) -> None:
        if "asyncgen" not in told:  # the HTTP library's own, of a stream that nobody closed
            complaints.append(str(told))

    asyncio.get_running_loop().set_exception_handler(complain)


def seen(known: Settings, running: Emulator, deed: Deed, strike: Strike, *, local: bool = False) -> Seen:
    """One run in a loop of its own: it ends only if no thread of it hangs."""
    running.requests.clear()
    store, complaints = MemoryStore(), list[str]()
    store.is_local = local  # where it is not, every step of it is in a thread

    async def whole() -> bool:
        complain_to(complaints)
        async with Preflight(known, preload=False) as preflight:
            preflight._opened._store = store
            client = weighlock.Client(preflight=preflight)
            try:
                await asyncio.wait_for(deed(client, strike), 30)
            except asyncio.CancelledError:
                return True
            finally:
                await client.aio.aclose()
                client.close()
            return False

    cancelled = asyncio.run(whole())
    gc.collect()
    ((spent, held),) = [*store.counters().values()] or [({}, {})]
    return Seen(
        cancelled=cancelled,
        suspensions=strike.suspensions,
        spent=spent.get(PROMPT_TOKENS, 0),
        held={name: amount for name, amount in held.items() if amount},
        asked=sum("enerateContent" in one.path for one in running.requests),
        unsettled=unsettled(known),
        open_files=open_files(),
        complaints=complaints,
    )


def registry(known: Settings) -> Path:
    assert known.state.dir is not None
    return known.state.dir / "uploads.db"


def unsettled(known: Settings) -> int:
    if not registry(known).exists():
        return 0
    with closing(sqlite3.connect(registry(known))) as sql:
        (leases,) = sql.execute("SELECT count(*) FROM contents WHERE owner IS NOT NULL").fetchone()
        (holds,) = sql.execute("SELECT count(*) FROM holds").fetchone()
    return int(leases + holds)


def open_files() -> list[str]:
    """What the process has open of ours that has a name, or had one."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(one.readlink()))
    return [name for name in found if "/temporary/" in name]


def demand_nothing_left(one: Seen, at: str) -> None:
    assert (one.held, one.unsettled, one.open_files, one.complaints) == ({}, 0, [], []), at
    assert one.spent or not one.asked, at


@pytest.mark.parametrize("when", When)
def test_a_call_cancelled_anywhere(known: Settings, running: Emulator, contents: list[Any], when: When) -> None:
    async def deed(client: weighlock.Client, strike: Strike) -> None:
        await strike.through(client.aio.models.generate_content(model=MODEL, contents=contents))

    whole = seen(known, running, deed, Strike(NEVER, when))
    demand_nothing_left(whole, "whole")
    assert (whole.cancelled, whole.asked) == (False, 1)
    for at in range(1, whole.suspensions + 1):
        broken = seen(known, running, deed, Strike(at, when))
        demand_nothing_left(broken, f"{when} at {at}: {broken}")
    assert seen(known, running, deed, Strike(NEVER, when)).spent == whole.spent


@pytest.mark.parametrize("when", When)
def test_a_file_that_is_gone_mended_and_cancelled_anywhere(
    known: Settings, running: Emulator, contents: list[Any], when: When
) -> None:
    async def deed(client: weighlock.Client, strike: Strike) -> None:
        preflight = client.preflight
        ready = await preflight.aprepare(contents, model=MODEL)
        film, shot = ready.receipt.uploads.values()
        await client.aio.files.delete(name=film.name)
        with closing(sqlite3.connect(registry(known))) as sql, sql:  # one is gone, one past its end
            sql.execute("UPDATE remotes SET uploaded_at = uploaded_at - 3600")
            sql.execute("UPDATE remotes SET usable_until = 0 WHERE name = ?", (shot.name,))
        told = f"You do not have permission to access the File {film.name.partition('/')[2]} or it may not exist."
        gone = APIError(403, {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": told}})
        try:
            again = await strike.through(preflight.amend(ready, gone))
            assert again is not None
            await preflight.asettle(again, {"usageMetadata": {"promptTokenCount": 7}})
        except BaseException as error:
            await preflight.asettle(ready, error=error)
            raise

    whole = seen(known, running, deed, Strike(NEVER, when))
    demand_nothing_left(whole, "whole")
    assert whole.spent == 7
    for at in range(1, whole.suspensions + 1):
        broken = seen(known, running, deed, Strike(at, when))
        demand_nothing_left(broken, f"{when} at {at}: {broken}")
        assert broken.spent > 7 or not broken.cancelled, broken


@pytest.mark.parametrize("when", When)
def test_a_stream_cancelled_anywhere(known: Settings, running: Emulator, when: When) -> None:
    """Nobody closes it: that is left to whoever collects it, and to the end of the loop."""
    running.script.when("word " * 60)

    async def read(client: weighlock.Client) -> None:
        async for _ in await client.aio.models.generate_content_stream(model=MODEL, contents="Tell me a story"):
            await asyncio.sleep(0)

    async def deed(client: weighlock.Client, strike: Strike) -> None:
        await strike.through(read(client))

    whole = seen(known, running, deed, Strike(NEVER, when))
    for at in range(1, whole.suspensions + 1):
        broken = seen(known, running, deed, Strike(at, when))
        demand_nothing_left(broken, f"{when} at {at}: {broken}")


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # the SDK's connections, left open too
@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("ends", ["return", "raise", "exit"])
def test_a_stream_left_open_as_its_loop_ends_is_charged(
    known: Settings, running: Emulator, ends: str, *, local: bool
) -> None:
    running.script.when("word " * 60)

    def whole(at: int) -> tuple[int, int, dict[str, int]]:
        store, read, complaints = MemoryStore(), 0, list[str]()
        store.is_local = local
        preflight = Preflight(known, preload=False)
        preflight._opened._store = store
        client = weighlock.Client(preflight=preflight)

        async def reads() -> None:
            nonlocal read
            complain_to(complaints)
            stream = await client.aio.models.generate_content_stream(model=MODEL, contents="Tell me a story")
            async for _ in stream:
                read += 1
                if read == at:
                    match ends:
                        case "return":
                            return
                        case "raise":
                            raise LookupError
                        case _:
                            raise SystemExit

        with suppress(LookupError, SystemExit):
            asyncio.run(reads())
        gc.collect()
        client.close()
        preflight.close()
        ((spent, held),) = store.counters().values()
        return read, spent.get(PROMPT_TOKENS, 0), {name: amount for name, amount in held.items() if amount}

    events, spent, _ = whole(NEVER)
    for at in range(1, events + 1):
        assert whole(at)[1:] == (spent, {}), at
    gc.collect()  # what is left open is let go of in this test, whose filter knows of it
