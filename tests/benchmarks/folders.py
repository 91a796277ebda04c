"""`weighlock check` of a 1,000-file mixed folder, as a whole process, on one and on two cores."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import media
from benchmarks.harness import Comparison, Operations, medians, timed

COUNT = 1000


def mixed_folder(folder: Path, rounds: int) -> Iterator[Comparison]:
    """700 images, 100 recordings, 100 songs, 60 PDFs, 40 texts."""
    _fill(folder)
    cores = sorted(os.sched_getaffinity(0))
    runs = {1: cores[:1], 2: cores[:2]} if len(cores) > 1 else {1: cores}
    operations: Operations = {
        f"{count} core{'s' * (count > 1)}": partial(_check, folder, these) for count, these in runs.items()
    }
    samples = timed(operations, rounds=min(rounds, 3))
    seconds = medians(samples, scale=1)
    rates = ", ".join(f"{name} {COUNT / value:,.0f} files/s" for name, value in seconds.items())
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield Comparison(
        task=f"check of a {COUNT:,}-file mixed folder",
        unit="s",
        baseline="1 core",
        medians=seconds,
        notes=(rates, f"peak memory of one process: {peak:.0f} MiB"),
    )


def _check(folder: Path, cores: list[int]) -> None:
    command = [sys.executable, "-m", "weighlock", "check", str(folder), "--format", "jsonl"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False, preexec_fn=lambda: os.sched_setaffinity(0, cores))


def _fill(folder: Path) -> None:
    shapes: list[tuple[int, str, bytes]] = [
        (400, "png", media.picture((1280, 720))),
        (300, "jpg", media.picture((1024, 768), "JPEG")),
        (100, "mp4", media.video(5, fps=25, size=(640, 360), sound_s=5)),
        (100, "mp3", media.sound(10, "libmp3lame", "mp3")),
        (60, "pdf", media.pdf([(595.28, 841.89)] * 3)),
        (40, "txt", b"The quick brown fox jumps over the lazy dog.\n" * 50),
    ]
    number = 0
    for count, suffix, data in shapes:
        for _ in range(count):
            (folder / f"{(number * 617) % COUNT:04}.{suffix}").write_bytes(data)
            number += 1
