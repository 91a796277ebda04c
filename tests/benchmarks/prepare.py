"""The SDK's call with the line in front of it, beside the bare one: both to the emulator, in one run, in turns."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from google import genai
from google.genai import types
from PIL import Image

import weighlock
from benchmarks.harness import Comparison, medians
from benchmarks.uploads import emulator
from weighlock.preflight import Preflight

MODEL = "gemini-3.8-flash"
BARE, OURS = "google-genai", "weighlock.Client"
_SETTINGS = """\
version: 1
accounts: {bench: {backend: developer, api_key_env: WEIGHLOCK_BENCH_KEY}}
default:
  account: bench
  model: gemini-3.8-flash
  mode: enforce
  limits: {prompt_tokens: 100000, cost_usd: 0.25, media_parts: 40}
  windows: {month: {cost_usd: 2000}, day: {cost_usd: 500, prompt_tokens: 900000000}}
  session: {cost_usd: 100}
"""


def prepare(folder: Path, rounds: int) -> Iterator[Comparison]:
    """A text, a new screenshot, the twentieth turn with twenty of them, and a thousand prepared at once."""
    file = folder / "weighlock.yaml"
    file.write_text(f"{_SETTINGS}state: {{dir: {folder}}}\n")
    shots = [_screenshot(number) for number in range(20 + 4 * rounds)]
    with emulator() as url, _environment(WEIGHLOCK_BENCH_KEY="k", GOOGLE_GEMINI_BASE_URL=url):
        preflight = Preflight(weighlock.load(file, environ={}))
        bare, ours = genai.Client(api_key="k"), weighlock.Client(preflight=preflight)
        clients = {BARE: bare, OURS: ours}
        new = iter(shots[20:])
        text = _calls(clients, lambda: "What is a weighlock?", rounds * 20)
        yield _extra("a text far from its limits", text, 0.5)
        yield _extra("a new 1080p screenshot", _calls(clients, lambda: [_part(next(new)), "What is wrong?"], rounds), 8)
        chat = _calls(clients, lambda: _history(shots[:20]), rounds)
        yield Comparison(
            task="the 20th turn of a chat with 20 screenshots, sent again",
            unit="ms",
            baseline=BARE,
            medians=medians(chat, scale=1000),
            goals={OURS: 1.3},
        )
        gc.collect()
        gc.freeze()  # as servers do once they are up: to look through the SDK's objects takes 40 ms, whoever is blamed
        yield asyncio.run(_thousand(preflight))
        gc.unfreeze()
        ours.close()
        preflight.close()


def _calls(clients: dict[str, Any], contents: Callable[[], Any], rounds: int) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in clients}
    order, shuffle = list(clients), random.Random(7)
    for number in range(rounds + 1):
        shuffle.shuffle(order)
        asked = contents()
        for name in order:
            begun = time.perf_counter()
            clients[name].models.generate_content(model=MODEL, contents=asked)
            if number:
                samples[name].append(time.perf_counter() - begun)
    return samples


def _extra(task: str, samples: dict[str, list[float]], goal_ms: float) -> Comparison:
    found = medians(samples, scale=1000)
    extra = found[OURS] - found[BARE]
    verdict = "met" if extra <= goal_ms else "MISSED"
    note = f"{extra:+.2f} ms, goal ≤ {goal_ms:g}: {verdict}"
    return Comparison(task=task, unit="ms", baseline=BARE, medians=found, notes=(note,))


async def _thousand(preflight: Preflight) -> Comparison:
    """Prepared at once: how long the slowest hundredth takes, and how long the loop was not its own."""
    blocked: list[float] = []
    ended = asyncio.Event()

    async def beat() -> None:
        while not ended.is_set():
            begun = time.perf_counter()
            await asyncio.sleep(0.001)
            blocked.append(time.perf_counter() - begun - 0.001)

    async def one(number: int) -> float:
        begun = time.perf_counter()
        ready = await preflight.aprepare(f"question {number}", model=MODEL)
        taken = time.perf_counter() - begun
        await preflight.arelease(ready)
        return taken

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0.05)
    taken = await asyncio.gather(*(one(number) for number in range(1000)))
    ended.set()
    await heart
    p99 = statistics.quantiles(taken, n=100)[98] * 1000
    worst = max(blocked) * 1000
    return Comparison(
        task="1,000 prepared at once",
        unit="ms",
        baseline="p99",
        medians={"p99": p99, "the loop blocked, at most": worst},
        notes=(
            f"p99 goal ≤ 250: {'met' if p99 <= 250 else 'MISSED'}",
            f"blocked goal ≤ 20: {'met' if worst <= 20 else 'MISSED'}",
        ),
    )


def _history(shots: list[bytes]) -> list[types.Content]:
    turns = []
    for shot in shots:
        turns.append(types.Content(role="user", parts=[_part(shot), types.Part(text="And here?")]))
        turns.append(types.Content(role="model", parts=[types.Part(text="A button.")]))
    return turns[:-1]


def _part(shot: bytes) -> types.Part:
    return types.Part.from_bytes(data=shot, mime_type="image/png")


def _screenshot(number: int) -> bytes:
    """Of a page with some text and a picture in it: about 300 KB."""
    page = Image.new("RGB", (1920, 1080), (240, 240, number % 256))
    page.paste(Image.effect_noise((400, 400), 20 + number).convert("RGB"), (200, 200))
    drawn = io.BytesIO()
    page.save(drawn, "PNG")
    return drawn.getvalue()


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
