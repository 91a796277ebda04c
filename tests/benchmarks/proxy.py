"""The proxy in front of the emulator, beside the emulator itself: both in one run, in turns, two cores for all of it.

The peer for throughput is LiteLLM's proxy, where `litellm` is installed beside this (`pip install 'litellm[proxy]'`).
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import httpx2

from benchmarks.harness import Comparison
from benchmarks.uploads import emulator
from weighlock.service.keys import hash_of, new_key

MODEL = "gemini-2.5-flash"
PATH = f"/v1beta/models/{MODEL}:generateContent"
DIRECT, OURS, PEER = "the emulator", "weighlock serve", "litellm proxy"
_BODY = json.dumps({"contents": [{"role": "user", "parts": [{"text": "What is a weighlock?"}]}]}).encode()
_AT_ONCE, _SECONDS = 16, 5.0


def proxy(folder: Path, rounds: int) -> Iterator[Comparison]:
    """One call at a time, sixteen at a time, and 15 MB inline."""
    with emulator() as url, _serving(folder, url) as (served, key, process):
        targets = {DIRECT: (url, "k"), OURS: (served, key)}
        yield _one_at_a_time(targets, 60 * rounds)
        yield _memory(served, key, process)
        rates = {name: asyncio.run(_rate(*target)) for name, target in targets.items()}
        if shutil.which("litellm"):
            with _litellm(folder, url) as target:
                rates[PEER] = asyncio.run(_rate(*target))
        yield Comparison(
            task=f"{_AT_ONCE} at a time",
            unit="requests/s",
            baseline=PEER if shutil.which("litellm") else DIRECT,
            medians=rates,
            notes=() if shutil.which("litellm") else ("litellm[proxy] is not installed: not compared",),
        )


def _one_at_a_time(targets: dict[str, tuple[str, str]], calls: int) -> Comparison:
    samples: dict[str, list[float]] = {name: [] for name in targets}
    clients = {name: httpx2.Client(base_url=url) for name, (url, _) in targets.items()}
    for number in range(calls + 20):
        for name, (_, key) in targets.items():
            begun = time.perf_counter()
            answer = clients[name].post(PATH, content=_BODY, headers=_headers(key))
            if number >= 20:
                samples[name].append((time.perf_counter() - begun) * 1000)
            assert answer.status_code == 200, answer.text
    p50 = {name: statistics.median(taken) for name, taken in samples.items()}
    p99 = {name: statistics.quantiles(taken, n=100)[98] for name, taken in samples.items()}
    notes = [
        f"added {name}: {each[OURS] - each[DIRECT]:+.2f} ms, goal ≤ {goal}"
        for name, each, goal in (("p50", p50, 2), ("p99", p99, 10))
    ]
    return Comparison(task="text, one at a time", unit="ms", baseline=DIRECT, medians=p50, notes=tuple(notes))


async def _rate(url: str, key: str) -> float:
    done, until = 0, time.monotonic() + _SECONDS

    async def ask(session: aiohttp.ClientSession) -> None:
        nonlocal done
        while time.monotonic() < until:
            async with session.post(f"{url}{PATH}", data=_BODY, headers=_headers(key)) as answer:
                assert answer.status == 200, await answer.text()
                await answer.read()
                done += 1

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(ask(session) for _ in range(_AT_ONCE)))
    return done / _SECONDS


def _memory(url: str, key: str, process: subprocess.Popen[str]) -> Comparison:
    picture = b"\x89PNG\r\n\x1a\n" + bytes.fromhex("0000000d49484452") + (1920).to_bytes(4) + (1080).to_bytes(4)
    data = base64.b64encode(picture + os.urandom(15_000_000)).decode()
    body = json.dumps({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}]}).encode()
    with httpx2.Client(base_url=url, timeout=60) as http:
        http.post(PATH, content=_BODY, headers=_headers(key))
        before = _peak_bytes(process.pid, reset=True)
        http.post(PATH, content=body, headers=_headers(key))
        more = _peak_bytes(process.pid) - before
    ratio = more / len(body)
    note = f"{ratio:.2f} × the body, goal ≤ 2.5"
    return Comparison(
        task="15 MB inline",
        unit="MB",
        baseline="the body",
        medians={"the body": len(body) / 1e6, "more in memory": more / 1e6},
        notes=(note,),
    )


def _peak_bytes(pid: int, *, reset: bool = False) -> int:
    """The most a process has had in memory; with `reset`, from now on."""
    if reset:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


def _headers(key: str) -> dict[str, str]:
    return {"content-type": "application/json", "x-goog-api-key": key}


@contextmanager
def _serving(folder: Path, upstream: str) -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    key = new_key()
    file = folder / "weighlock.yaml"
    file.write_text(
        f"version: 1\naccounts: {{bench: {{backend: developer, api_key_env: WEIGHLOCK_BENCH_KEY}}}}\n"
        f"default: {{model: {MODEL}, mode: enforce, windows: {{day: {{cost_usd: 500}}}}}}\n"
        f"service: {{admin: null, clients: {{bench: {{key_sha256: {hash_of(key)}}}}}}}\nstate: {{dir: {folder}}}\n"
    )
    command = [sys.executable, "-m", "weighlock", "serve", "--upstream", upstream, "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "WEIGHLOCK_BENCH_KEY": "k"}
    with subprocess.Popen(
        [*command, "--config", str(file)], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+?(?=,)", process.stdout.readline())
            assert found is not None
            yield found[0], key, process
        finally:
            process.terminate()


@contextmanager
def _litellm(folder: Path, upstream: str) -> Iterator[tuple[str, str]]:
    """One worker, a master key, no database, no logging."""
    config, key, port = folder / "litellm.yaml", "sk-" + "0" * 48, 4100
    config.write_text(
        f"model_list:\n- model_name: {MODEL}\n"
        f"  litellm_params: {{model: gemini/{MODEL}, api_key: k, api_base: '{upstream}/v1beta'}}\n"
    )
    environment = {
        **os.environ,
        "LITELLM_MASTER_KEY": key,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOG": "ERROR",
    }
    command = ["litellm", "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    httpx2.get(f"http://127.0.0.1:{port}/health/liveliness", timeout=1)
                    break
                except httpx2.HTTPError:
                    assert time.monotonic() < until
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}", key
        finally:
            process.terminate()
