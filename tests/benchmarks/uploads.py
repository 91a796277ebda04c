"""A sparse file of 2 GB to the emulator, beside the SDK's own `files.upload`: each upload a process, in turns."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import Comparison, as_installed, medians

SIZE_BYTES = 2 << 30
SDK, OURS, ASYNC = "google-genai files.upload", "weighlock", "weighlock, async"
_WAYS = {SDK: "sdk", f"{SDK}, async": "sdk_awaiting", OURS: "blocking", ASYNC: "awaiting"}


def uploads(folder: Path, rounds: int) -> Iterator[Comparison]:
    """The send phase; the whole call, in which ours hashes first; the memory that is taken more."""
    path = folder / "sparse.pdf"
    with path.open("wb") as file:
        file.truncate(SIZE_BYTES)
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in _WAYS}
    order, shuffle = list(_WAYS), random.Random(7)
    with emulator() as url:
        for number in range(min(rounds, 5) + 1):
            shuffle.shuffle(order)
            for name in order:
                told = _upload(_WAYS[name], url, path)
                if number:
                    samples[name].append(told)
    for what, key, goal in (("send phase", "send_s", 1 / 0.9), ("whole call, ours hashed first", "whole_s", None)):
        seconds = medians({name: [one[key] for one in told] for name, told in samples.items()}, scale=1)
        fastest = {name: min(one[key] for one in told) for name, told in samples.items()}
        rates, at_best = (
            ", ".join(f"{name} {SIZE_BYTES / 1e6 / value:,.0f} MB/s" for name, value in taken.items())
            for taken in (seconds, fastest)
        )
        yield Comparison(
            task=f"upload of a sparse file of 2 GB, {what}",
            unit="s",
            baseline=SDK,
            medians=seconds,
            goals={OURS: goal, ASYNC: goal} if goal else {},
            notes=(rates, f"fastest: {at_best}"),
        )
    grown = {name: max(one["grown_mb"] for one in told) for name, told in samples.items()}
    yield Comparison(
        task="upload of a sparse file of 2 GB, memory taken more at its peak",
        unit="MiB",
        baseline=SDK,
        medians=grown,
        notes=tuple(f"{name}: goal ≤ 48: {'met' if grown[name] <= 48 else 'MISSED'}" for name in (OURS, ASYNC)),
    )


def _upload(way: str, url: str, path: Path) -> dict[str, float]:
    program = Path(__file__).with_name("uploading.py")
    command = [sys.executable, "-P", str(program), way, url, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=as_installed())
    told: dict[str, float] = json.loads(done.stdout)
    return told


@contextmanager
def emulator() -> Iterator[str]:
    command = [sys.executable, "-m", "weighlock", "emulator", "--drop-bytes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[3]
        finally:
            process.terminate()
