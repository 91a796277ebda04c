"""Budgets under attack: wishes and bills that are no numbers, forks, other stores and settings, clocks that jump."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from emulated import user
from prepared import Face, settings
from weighlock.budgets.audit import verify
from weighlock.budgets.hold import MOST, PROMPT_TOKENS, REQUESTS, Grant
from weighlock.budgets.memory import MemoryStore
from weighlock.cli import cli
from weighlock.errors import InputError, WindowExhausted
from weighlock.preflight import Preflight
from weighlock.scales import Asked
from weighlock.settings import Settings

MODEL = "gemini-3.5-flash"
NAN = float("nan")


def known(folder: Path, default: str = "windows: {day: {requests: 1000000}}", more: str = "") -> Settings:
    folder.mkdir(exist_ok=True)
    return settings(folder, f"default: {{model: {MODEL}, {default}}}\n{more}")


def body(text: str = "hi") -> bytes:
    return json.dumps({"contents": [user(text)]}).encode()


def used(prompt: int = 7) -> dict[str, Any]:
    return {"usageMetadata": {"promptTokenCount": prompt, "candidatesTokenCount": 5}}


# ---- what is no number, and no name


@pytest.mark.parametrize(
    "wish",
    [
        {"output_tokens": 10**18},
        {"output_tokens": -1},
        {"output_tokens": 1.5},
        {"output_tokens": NAN},
        {"output_tokens": True},
        {"output_tokens": "5"},
        {"max_tokens": NAN},
        {"max_tokens": -1},
        {"max_usd": Decimal("NaN")},
        {"max_usd": Decimal("Infinity")},
        {"max_usd": Decimal(-1)},
        {"deadline_s": NAN},
        {"tenant": 5},
        {"tenant": "x" * 201},
        {"tenant": "\ud800"},
        {"session": 5},
        {"endpoint": 5},
        {"model": "\ud800"},
    ],
)
def test_a_wish_that_cannot_be_is_the_callers_to_mend(wish: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        Asked(**wish)
    assert next(iter(wish)) in caught.value.message
    caught.value.message.encode()


@pytest.mark.parametrize(
    "said",
    [
        {"promptTokenCount": -5},
        {"promptTokenCount": NAN},
        {"promptTokenCount": 7.5},
        {"promptTokenCount": "9" * 5000},
        {"promptTokenCount": True},
        {"promptTokensDetails": "x"},
        {
            "promptTokensDetails": [
                None,
                1,
                {"modality": None, "tokenCount": 5},
                {"modality": "IMAGE", "tokenCount": -3},
            ]
        },
        {"promptTokenCount": 10**12, "initialPromptTokenCount": 1},
        {
            "promptTokenCount": 10**18,
            "candidatesTokenCount": 10**18,
            "toolUsePromptTokenCount": 10**18,
            "cachedContentTokenCount": 10**19,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10**18}],
        },
    ],
)
@pytest.mark.parametrize("policy", ["mode: enforce", "mode: observe", "on_exceed: warn"])
def test_a_bill_of_nonsense_is_settled_and_gives_nothing_back(
    tmp_path: Path, said: dict[str, Any], policy: str
) -> None:
    with Face(known(tmp_path, f"{policy}, windows: {{day: {{cost_usd: 5}}}}"), awaits=False) as face:
        for answer in ({"usageMetadata": said}, said, [said, None, 5]):
            with suppress(WindowExhausted):  # a bill of a trillion tokens is carried by its window
                face.settle(face.prepare(body()), answer)
        ((spent, held),) = face.counters().values()
        assert not held
        assert all(0 < amount <= 3 * MOST for amount in spent.values())
        assert verify(face.preflight.store) == ()


def test_prices_and_answers_as_high_as_settings_allow_are_counted_in_whole_numbers(tmp_path: Path) -> None:
    most = "9" * 18
    prices = f"pricing: {{overrides: {{{MODEL}: {{input: {most}, output: {most}}}}}}}\n"
    default = f"mode: observe, output_tokens: {{expected: {most}}}, windows: {{day: {{cost_usd: {most}}}}}"
    with Face(known(tmp_path, default, prices), awaits=False) as face:
        for _ in range(20):
            face.settle(face.prepare(body()), used())
        ((spent, held),) = face.counters().values()
    assert not held
    assert spent["micro_usd"] == 20 * MOST


@pytest.mark.parametrize("given", [["--usd", "1e300"], ["--usd", "nan"], ["--usd", "-5"], ["--tokens", "9" * 20]])
def test_a_grant_that_cannot_be_counted_is_refused(tmp_path: Path, given: list[str]) -> None:
    known(tmp_path, "windows: {day: {cost_usd: 5, prompt_tokens: 5}}", f"state: {{dir: {tmp_path}}}\n")
    file = str(tmp_path / "weighlock.yaml")
    done = CliRunner().invoke(
        cli, ["budget", "grant", "default", *given, "--for", "1h", "--reason", "r", "--config", file]
    )
    assert done.exit_code == 2, done.output
    for amount in (0, -1, MOST + 1):
        with pytest.raises(ValueError, match="a grant is from 1"):
            Grant(scope="s", metric=REQUESTS, amount=amount, until=datetime.now(UTC), reason="r", by="b")


# ---- forks, threads, loops


@contextmanager
def busy(work: Callable[[], object], threads: int = 4) -> Iterator[None]:
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            work()

    with ThreadPoolExecutor(threads) as pool:
        going = [pool.submit(go_on) for _ in range(threads)]
        try:
            yield
        finally:
            ended.set()
    for one in going:
        one.result()


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_while_threads_settle_goes_on_and_settles_what_was_prepared_before(
    tmp_path: Path, store: str
) -> None:
    with Preflight(known(tmp_path, more=f"state: {{store: {store}}}\n")) as preflight:

        def one() -> None:
            preflight.settle(preflight.prepare(body()), used())

        before = preflight.prepare(body())
        with busy(one):
            for _ in range(25):
                child = os.fork()
                if child == 0:
                    signal.alarm(10)  # one that hangs is killed by it
                    with suppress(BaseException):
                        one()
                        preflight.settle(before, used())
                        os._exit(0)
                    os._exit(1)
                assert os.waitpid(child, 0)[1] == 0
        preflight.settle(before, used())
        ((spent, held),) = preflight.store.counters().values()
        assert (held, spent[PROMPT_TOKENS] == 7 * spent[REQUESTS]) == ({}, True)
        assert verify(preflight.store) == ()


def test_threads_and_loops_at_once_are_admitted_up_to_the_limit(tmp_path: Path) -> None:
    with Preflight(known(tmp_path, "windows: {day: {requests: 50}}")) as preflight:
        admitted: list[object] = []

        def blocking() -> None:
            for _ in range(20):
                with suppress(WindowExhausted):
                    admitted.append(preflight.settle(preflight.prepare(body()), used()))

        async def awaiting() -> None:
            with suppress(WindowExhausted):
                admitted.append(await preflight.asettle(await preflight.aprepare(body()), used()))

        async def many() -> None:
            await asyncio.gather(*(awaiting() for _ in range(20)))
            await preflight._async_io.close()

        with ThreadPoolExecutor(4) as pool:
            for done in [
                pool.submit(blocking),
                pool.submit(blocking),
                *(pool.submit(asyncio.run, many()) for _ in "ab"),
            ]:
                done.result()
        assert len(admitted) == 50
        ((spent, held),) = preflight.store.counters().values()
        assert (spent[REQUESTS], held) == (50, {})


# ---- another store, other settings, another time


def test_what_was_held_where_another_store_stands_now_is_charged_in_that(tmp_path: Path) -> None:
    here, there = (known(tmp_path / name) for name in ("here", "there"))
    with Face(here, awaits=False) as mine, Face(there, awaits=False) as other:
        ready = mine.prepare(body())
        other.settle(ready, used())
        ((spent, held),) = other.counters().values()
    assert (spent[PROMPT_TOKENS], held) == (7, {})


def test_what_a_window_reserved_lands_in_it_though_the_settings_know_it_no_more(tmp_path: Path) -> None:
    with Face(known(tmp_path, "windows: {day: {prompt_tokens: 100}, hour: {requests: 9}}"), awaits=False) as before:
        ready = before.prepare(body())
        with Face(known(tmp_path, "windows: {month: {prompt_tokens: 100}}"), awaits=False) as after:
            after.settle(ready, used(90))
            after.prepare(body())
        with Face(known(tmp_path, "windows: {day: {prompt_tokens: 50}}"), awaits=False) as lower:
            with pytest.raises(WindowExhausted):
                lower.prepare(body())
            assert not [held for key, held in lower.held().items() if "month" not in key]


@pytest.mark.parametrize("by", [timedelta(days=-3), timedelta(hours=-1), timedelta(hours=1), timedelta(days=3)])
def test_a_clock_that_jumps_between_prepare_and_settle_changes_no_sum(tmp_path: Path, by: timedelta) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    store = MemoryStore(lambda: now)
    with Face(known(tmp_path, "windows: {day: {prompt_tokens: 100}}"), awaits=False) as face:
        face.preflight._opened._store = store
        ready = face.prepare(body())
        now += by
        face.release(face.prepare(body()))  # charges what is past its time
        face.settle(ready, used(90))
        now -= by
        with pytest.raises(WindowExhausted):
            face.prepare(body("words " * 20))
        assert store.counters()["endpoint:default|day|2026-11-30"][0][PROMPT_TOKENS] == 90
        assert verify(store) == ()
